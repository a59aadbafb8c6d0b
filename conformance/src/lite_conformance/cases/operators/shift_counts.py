"""BitShift by the width of the type and more: these elements may have any value, the others are right."""

from __future__ import annotations

import numpy as np

from lite_conformance.cases.op_cases import table_of
from lite_conformance.cases.operators import elementwise_binary  # noqa: F401 - creates the table extended here
from lite_conformance.cases.operators.operands import whole_range
from lite_conformance.cases.tensors import Array, as_type, const, t, values
from lite_core.ir import DType


def _width(dtype: DType) -> int:
    return 8 * dtype.itemsize


def small_and_large_counts(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return shift counts, every second one of which is the width of the type, or more."""
    large = [_width(dtype), _width(dtype) + 1, 2 * _width(dtype), 255, np.iinfo(dtype.numpy).max]
    small = random.integers(0, _width(dtype), shape)
    return np.where(np.arange(small.size).reshape(shape) % 2, random.choice(as_type(large, dtype), shape),
                    as_type(small, dtype))  # fmt: skip


def width(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return the width of the type."""
    return np.full(shape, _width(dtype), dtype.numpy)


def _too_large(x: Array, count: Array) -> Array:
    return np.broadcast_to(count >= _width(DType.of(x.dtype)), np.broadcast_shapes(x.shape, count.shape))


for _direction in ("LEFT", "RIGHT"):
    for _label, _x, _counts in (
        ("", t(9, 37, init=whole_range), t(9, 37, init=small_and_large_counts)),
        (",constant-counts", t(9, 37, init=whole_range), const(37, init=small_and_large_counts)),
        (",constant", const(37, init=whole_range), t(9, 37, init=small_and_large_counts)),
        (",scalar", values([[3], [0]]), const(1, init=width)),
    ):
        table_of("BitShift")(f"beyond-the-width,{_direction.lower()}{_label}", _x, _counts, direction=_direction,
                             unspecified=_too_large)  # fmt: skip
