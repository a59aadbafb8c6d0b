"""The registry of lowerings from Paddle's operators to Lite's opset.

A lowering is one function for one operator or several that share it::

    @lowers("relu", "sigmoid")
    def activation(op: SourceOp, context: Context) -> None:
        context.emit(op, {"relu": "Relu", "sigmoid": "Sigmoid"}[op.type], [context.input(op, "X")])

A lowering that meets something it cannot express raises :class:`~lite_paddle.lowering.unlowerable.Unlowerable` with the
reason. Lowerings are in the modules of :mod:`lite_paddle.lowering.operators`, which finds them for an operator.
"""

from __future__ import annotations

from collections.abc import Callable

from lite_paddle.lowering.context import Context
from lite_paddle.source import SourceOp

__all__ = ["LoweringFunction", "lowers", "lowers_complex", "registered_complex", "registered_lowerings"]

LoweringFunction = Callable[[SourceOp, Context], None]

#: Lowerings by operator type.
registered_lowerings: dict[str, LoweringFunction] = {}
#: Those of operators that read complex numbers; see :mod:`lite_paddle.lowering.complex_numbers`.
registered_complex: dict[str, LoweringFunction] = {}


def lowers(*types: str) -> Callable[[LoweringFunction], LoweringFunction]:
    """Register a function for these operator types (legacy names)."""
    return _register(registered_lowerings, types)


def lowers_complex(*types: str) -> Callable[[LoweringFunction], LoweringFunction]:
    """Register a function for these operator types where an input has complex numbers."""
    return _register(registered_complex, types)


def _register(
    table: dict[str, LoweringFunction], types: tuple[str, ...]
) -> Callable[[LoweringFunction], LoweringFunction]:
    def register(function: LoweringFunction) -> LoweringFunction:
        for type_ in types:
            if type_ in table:
                raise ValueError(f"operator {type_!r} is lowered twice")
            table[type_] = function
        return function

    return register
