"""Making of a Paddle-Lite program from a finished draft: names of variables, numbered blocks, attributes with types."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..source import SourceBlock, SourceOp, SourceType, SourceValue
from .control_flow import Variables
from .draft import Draft
from .program import KERNEL_ATTRIBUTE, Attribute, AttributeKind, Block, Operator, Program, Variable, VariableKind
from .schemas import schema_of, typed
from .type_numbers import NUMBERS

__all__ = ["emit"]

# The kernels of the operators that hand over inputs and outputs.
_FEED, _FETCH = "feed/def/1/4/2", "fetch/def/1/4/2"

# Optional slots that these operators ask for, and that must be there without values.
_ASKED_FOR = {"gru": ("H0", "Bias"), "lstm": ("C0", "H0"), "lod_reset": ("Y",)}
# Paddle-Lite computes like Paddle 2.4, whose tensors have at least one axis; the program is written for that.
_BEHAVES_LIKE = 2_004_002


def emit(draft: Draft, variables: Variables) -> Program:
    """Return the program of a draft, whose operators have kernels and Paddle-Lite's slots and attributes."""
    return _Emitter(draft, variables).program()


class _Emitter:
    """Names and declarations of one program."""

    def __init__(self, draft: Draft, variables: Variables) -> None:
        self._draft = draft
        self._variables = variables
        self._names: dict[SourceValue, str] = {}
        self._taken: set[str] = {"feed", "fetch"}
        self._blocks: list[Block | None] = []
        self._home: dict[SourceValue, int] = {}
        self._depth: list[int] = []
        self._operators: list[list[Operator]] = []

    def program(self) -> Program:
        """Return the whole program."""
        for name, value in [*self._draft.inputs, *self._draft.outputs]:
            self._name(value, name)
        for value in self._draft.constants:
            self._name(value, value.name)
        self._begin_block(0)
        for column, (_, value) in enumerate(self._draft.inputs):
            self._hand_over(_FEED, "feed", self._use(value, 0), column)
        parents = [-1]
        self._block(self._draft.block, 0, parents)
        for column, (_, value) in enumerate(self._draft.outputs):
            self._hand_over(_FETCH, self._use(value, 0), "fetch", column)
        declared: list[list[Variable]] = [[] for _ in self._operators]
        declared[0] += [
            Variable("feed", VariableKind.FEED_MINIBATCH, persistable=True),
            Variable("fetch", VariableKind.FETCH_LIST, persistable=True),
        ]
        for value, home in self._home.items():
            declared[home].append(self._variable(value))
        blocks = tuple(
            Block(index, parents[index], tuple(declared[index]), tuple(operators))
            for index, operators in enumerate(self._operators)
        )
        # A number without dimensions has one of size 1 in Paddle-Lite.
        parameters = {
            self._names[value]: np.atleast_1d(array)
            for value, array in self._draft.constants.items()
            if value in self._home
        }
        return Program(blocks, parameters, min(self._draft.version or _BEHAVES_LIKE, _BEHAVES_LIKE))

    def _begin_block(self, depth: int) -> int:
        self._operators.append([])
        self._depth.append(depth)
        return len(self._operators) - 1

    def _block(self, block: SourceBlock, index: int, parents: list[int]) -> None:
        for op in block.ops:
            attributes = _attributes(op)
            for inner in op.blocks:
                number = self._begin_block(self._depth[index] + 1)
                parents.append(index)
                attributes["sub_block"] = Attribute(AttributeKind.INT, number)
                self._block(inner, number, parents)
            schema = schema_of(op.type)
            assert schema is not None, "operators without a kernel were refused before"
            inputs = {slot: tuple(self._use(v, index) for v in values) for slot, values in op.inputs.items()}
            outputs = {slot: tuple(self._use(v, index) for v in values) for slot, values in op.outputs.items()}
            for slot in _ASKED_FOR.get(op.type, ()):
                inputs.setdefault(slot, ())
            for slot, is_needed in schema.outputs.items():
                if is_needed and slot not in outputs:
                    outputs[slot] = (self._use(_unused(op, slot), index),)
            self._operators[index].append(Operator(op.type, inputs, outputs, attributes))

    def _hand_over(self, kernel: str, source: str, target: str, column: int) -> None:
        """Add the operator that hands over an input or output."""
        attributes = {"col": Attribute(AttributeKind.INT, column), KERNEL_ATTRIBUTE: _kernel(kernel)}
        type_ = kernel.partition("/")[0]
        self._operators[0].append(Operator(type_, {"X": (source,)}, {"Out": (target,)}, attributes))

    def _use(self, value: SourceValue, index: int) -> str:
        """Return the name of a value's variable, which block ``index`` uses."""
        value = self._variables.of(value)
        home = 0 if value in self._draft.constants else self._home.get(value, index)
        self._home[value] = index if self._depth[index] < self._depth[home] else home
        return self._name(value, value.name)

    def _name(self, value: SourceValue, wanted: str) -> str:
        value = self._variables.of(value)
        if value not in self._names:
            name, count = wanted, 0
            while name in self._taken:
                count += 1
                name = f"{wanted}@{count}"
            self._taken.add(name)
            self._names[value] = name
        return self._names[value]

    def _variable(self, value: SourceValue) -> Variable:
        type_ = value.type or SourceType("undefined", None)
        element = type_.dtype if type_.dtype in NUMBERS else "float32"
        kind = VariableKind.LOD_TENSOR_ARRAY if type_.is_array else VariableKind.LOD_TENSOR
        constant = self._draft.constants.get(value)
        shape = type_.shape if constant is None else np.atleast_1d(constant).shape
        return Variable(self._names[value], kind, element, shape, constant is not None, type_.lod_level)


def _attributes(op: SourceOp) -> dict[str, Attribute]:
    schema = schema_of(op.type)
    assert schema is not None, "operators without a kernel were refused before"
    found: dict[str, Attribute] = {}
    for name, (kind, is_needed) in schema.attributes.items():
        value: Any = op.attrs.get(name)
        if value is None and is_needed:
            value = schema.defaults.get(name)
        if name != "sub_block" and (value is not None or is_needed):
            found[name] = typed(kind, value)
    # Attributes that carry their type: the kernel, and what only Paddle-Lite's own operators have.
    found.update({name: value for name, value in op.attrs.items() if isinstance(value, Attribute)})
    return found


def _unused(op: SourceOp, slot: str) -> SourceValue:
    """Return a value for a result that the operator writes and that is never read."""
    near = next((values[0] for values in op.outputs.values() if values), None)
    return SourceValue(f"{near.name if near is not None else op.type}/{slot}", None if near is None else near.type)


def _kernel(name: str) -> Attribute:
    return Attribute(AttributeKind.STRING, name)
