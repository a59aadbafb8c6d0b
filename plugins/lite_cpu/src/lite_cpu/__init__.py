"""The CPU kernel library that Lite's CPU backends share: kernels written in Python, compiled by LLVM.

Names are imported when they are first used, so that ``import lite_cpu`` stays fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lite_cpu.machine import ARM_V8, X86_64_V2, X86_64_V3, X86_64_V4, Machine

__version__ = "0.1.0"

__all__ = ["ARM_V8", "X86_64_V2", "X86_64_V3", "X86_64_V4", "Machine", "__version__"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'lite_cpu' has no attribute {name!r}")
    value = getattr(import_module("lite_cpu.machine"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
