"""The backend ``numba``: readable loops for many operators, on every platform that Numba supports."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from importlib import import_module

from lite_core.backend import Device, No, Yes
from lite_core.ir import Node
from lite_core.kernel_backend import Kernel
from lite_numba.numba_backend import NumbaBackend

__all__ = ["backend"]

#: Above host, whose references are slower; below every backend with kernels for one kind of processor.
_SCORE = 0.25

#: The modules that register kernels.
_FAMILIES = ("numpy_calls", "elementwise", "rows", "indices", "images", "recurrent")


class _Backend(NumbaBackend):
    """The kernels are imported when the first node is asked about: listing backends imports none."""

    def choose(self, node: Node) -> tuple[Kernel | None, Yes | No]:
        for family in _FAMILIES:
            import_module(f"lite_numba.kernels.{family}")
        return super().choose(node)


@functools.cache
def _devices() -> Sequence[Device]:
    from importlib import metadata  # every start imports this module, and this takes 15 ms that only a probe needs

    versions = {name: metadata.version(name) for name in ("numba", "llvmlite")}
    name = f"Python loops compiled by Numba {versions['numba']}"
    details = {**versions, "float16": "float32", "bfloat16": "float32"}
    return [Device("numba", name=name, score=_SCORE, details=details)]


backend = _Backend("numba", _devices)
