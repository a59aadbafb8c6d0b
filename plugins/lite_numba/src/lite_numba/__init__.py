"""Kernels as plain Python loops, compiled by Numba: :class:`NumbaBackend`, and the backend ``numba`` made of them.

Names are imported when they are first used, so that ``import lite_numba`` stays fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lite_numba.numba_backend import NumbaBackend
    from lite_numba.vectors import flat

__all__ = ["NumbaBackend", "flat"]

_MODULES = {"NumbaBackend": "numba_backend", "flat": "vectors"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
