"""Lowerings of Paddle's operators, one module for each operator family.

A new operator is one decorated function in one of them, see :mod:`lite_paddle.lowering.registry`; new modules are
found without being listed.
"""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module

from lite_paddle.lowering.registry import LoweringFunction, registered_complex, registered_lowerings
from lite_paddle.lowering.unlowerable import Unlowerable

__all__ = ["complex_lowering_of", "lowering_of", "supported_ops"]

#: The modules that most models need; they are imported in this order, before the others.
_FIRST = (
    "convolution",
    "normalization",
    "activation",
    "elementwise",
    "pooling",
    "matmul",
    "shape",
    "unary",
    "slicing",
    "rearrangement",
    "resize",
    "constant",
    "channels",
    "reduction",
)


def lowering_of(type_: str) -> LoweringFunction | None:
    """Return the function that lowers operators of this type, or None.

    Modules are imported until one has it, so that a model imports only the modules it uses and the more common ones.
    """
    for module in _modules():
        if type_ in registered_lowerings:
            break
        import_module(module)
    return registered_lowerings.get(type_)


def complex_lowering_of(type_: str) -> LoweringFunction:
    """Return the function that lowers operators of this type where they read complex numbers.

    Raises:
        Unlowerable: There is none.
    """
    import_module(f"{__name__}.complex_numbers")
    import_module(f"{__name__}.fourier")
    if type_ not in registered_complex:
        raise Unlowerable("it reads complex numbers, and lite-paddle has a lowering of it for real numbers only")
    return registered_complex[type_]


def supported_ops() -> list[str]:
    """Return every operator type that can be lowered, sorted."""
    for module in _modules():
        import_module(module)
    return sorted(registered_lowerings)


@cache
def _modules() -> list[str]:
    present = (found.name for found in pkgutil.iter_modules(__path__))
    return [f"{__name__}.{name}" for name in dict.fromkeys((*_FIRST, *present))]
