"""llvmlite's module ``ir``; where nothing compiles, a stand-in: kernels are described there, but not emitted."""

from __future__ import annotations

from typing import Any

from lite_cpu.machine_code.llvm import missing_compiler

__all__ = ["ir"]


class _StandIn:
    """An object whose attributes and results are itself, for the types that modules of kernels name when imported."""

    def __getattr__(self, name: str) -> _StandIn:
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *arguments: object, **named: object) -> _StandIn:
        return self


def _find() -> Any:
    if missing_compiler():
        return _StandIn()
    from llvmlite import ir

    return ir


ir: Any = _find()
