"""``cblas_sgemm`` in NumPy, for tests: an external matrix product that records its calls."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from lite_cpu.external import ExternalSgemm

__all__ = ["NumpySgemm"]

Array = np.ndarray[Any, Any]

_INT, _FLOAT, _FLOATS = ctypes.c_int, ctypes.c_float, ctypes.POINTER(ctypes.c_float)
_SGEMM = ctypes.CFUNCTYPE(
    None, *(_INT,) * 6, _FLOAT, _FLOATS, _INT, _FLOATS, _INT, _FLOAT, _FLOATS, _INT
)  # fmt: skip


class NumpySgemm:
    """``cblas_sgemm`` in NumPy, with the sizes of its calls and the number of requests for it."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, int, int]] = []
        self.requests = 0
        self.function = _SGEMM(self._multiply)

    def _multiply(
        self, layout: int, trans_a: int, trans_b: int, m: int, n: int, k: int, alpha: float,
        a: Any, lda: int, b: Any, ldb: int, beta: float, c: Any, ldc: int,
    ) -> None:  # fmt: skip
        assert (layout, trans_a) == (101, 111)
        assert (alpha, beta) == (1.0, 0.0)
        self.calls.append((m, n, k))
        right = _matrix(b, n, k, ldb).T if trans_b == 112 else _matrix(b, k, n, ldb)
        _matrix(c, m, n, ldc)[:] = _matrix(a, m, k, lda) @ right

    def offered(self) -> ExternalSgemm:
        self.requests += 1
        return ExternalSgemm("numpy", ctypes.cast(self.function, ctypes.c_void_p).value or 0)


def _matrix(pointer: Any, rows: int, columns: int, stride: int) -> Array:
    """Return memory as a matrix; nothing behind the elements of the last row is accessed."""
    flat = np.ctypeslib.as_array(pointer, ((rows - 1) * stride + columns,))
    return np.lib.stride_tricks.as_strided(flat, (rows, columns), (4 * stride, 4))
