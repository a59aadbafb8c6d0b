"""Structured loops and conditionals as Paddle-Lite has them: blocks that write variables of the enclosing block.

A conditional becomes two operators ``conditional_block`` and one ``select_input`` for each result. A loop becomes a
``while`` whose carried values are variables: they are assigned before the loop and at the end of its body. After this,
several values may stand for one variable.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ..source import SourceBlock, SourceOp, SourceType, SourceValue
from .draft import Draft

__all__ = ["Variables", "write_control_flow"]

Slots = dict[str, list[SourceValue]]

_FLAG = SourceType("bool", (1,))


@dataclass(eq=False)
class Variables:
    """The values that share a variable with an earlier value."""

    _earlier: dict[SourceValue, SourceValue] = field(default_factory=dict)

    def share(self, value: SourceValue, earlier: SourceValue) -> None:
        """Let a value stand for the variable of another one."""
        self._earlier[value] = earlier

    def of(self, value: SourceValue) -> SourceValue:
        """Return the first value of a value's variable."""
        while value in self._earlier:
            value = self._earlier[value]
        return value


def write_control_flow(draft: Draft) -> Variables:
    """Replace the structured operators of a draft, and let tensor arrays be changed in place."""
    variables = Variables()
    _rewrite(draft.block, variables)
    return variables


def _rewrite(block: SourceBlock, variables: Variables) -> None:
    ops: list[SourceOp] = []
    for op in block.ops:
        for inner in op.blocks:
            _rewrite(inner, variables)
        if op.type == "if":
            _conditional(op, ops, variables)
        elif op.type == "while":
            _loop(op, ops, variables)
        elif op.type == "write_to_array" and "Array" in op.inputs:
            variables.share(op.outputs["Out"][0], op.inputs.pop("Array")[0])
            ops.append(op)
        elif op.type != "create_array":
            ops.append(op)
    block.ops = ops


def _conditional(op: SourceOp, ops: list[SourceOp], variables: Variables) -> None:
    condition = op.inputs["Cond"][0]
    is_scalar = op.attrs.get("is_scalar_condition", True)
    otherwise, mask = _new("otherwise", condition, _FLAG), _new("mask", condition, SourceType("int32", (1,)))
    then_block, else_block = op.blocks
    results = op.outputs.get("Out", [])
    for flag, block in ((condition, then_block), (otherwise, else_block)):
        if block is else_block:
            ops.append(_op("logical_not", {"X": [condition]}, {"Out": [otherwise]}, op))
        if block.ops:
            made = {value for inner in block.ops for values in inner.outputs.values() for value in values}
            inputs = {"Cond": [flag], "Input": _captured(block)}
            outputs = {"Out": [value for value in block.results if value in made and not _is_array(value)]}
            attrs = {"is_scalar_condition": is_scalar}
            ops.append(SourceOp("conditional_block", inputs, outputs, attrs, [block], op.index, op.original_type))
    tensors = [index for index, value in enumerate(results) if not _is_array(value)]
    if tensors:
        ops.append(_op("cast", {"X": [condition]}, {"Out": [mask]}, op, in_dtype="bool", out_dtype="int32"))
    for index, result in enumerate(results):
        choices = [else_block.results[index], then_block.results[index]]
        if index in tensors:
            ops.append(_op("select_input", {"X": choices, "Mask": [mask]}, {"Out": [result]}, op))
        else:
            # Both blocks changed the same array in place, or one of them did.
            variables.share(result, choices[0])
    for block in op.blocks:
        block.results = []


def _loop(op: SourceOp, ops: list[SourceOp], variables: Variables) -> None:
    (body,) = op.blocks
    condition = _new("condition", op.inputs["Condition"][0], _FLAG)
    ops.append(_op("assign", {"X": op.inputs["Condition"]}, {"Out": [condition]}, op))
    initial, results = op.inputs.get("X", []), op.outputs.get("Out", [])
    carried = []
    for value, argument in zip(initial, body.arguments):
        if _is_array(value) or _is_array(argument):
            variables.share(argument, value)
        else:
            ops.append(_op("assign", {"X": [value]}, {"Out": [argument]}, op))
        carried.append(argument)
    # A result that is an argument of another place must be read before that argument is assigned.
    last = list(body.results)
    for index, (result, target) in enumerate(zip(body.results[1:], carried), 1):
        if result in carried and result is not target and not _is_array(target):
            last[index] = _new("previous", result, result.type)
            body.ops.append(_op("assign", {"X": [result]}, {"Out": [last[index]]}, op))
    for result, target in zip(last, [condition, *carried]):
        if result is not target and not _is_array(target):
            written = _new("next", target, target.type)
            variables.share(written, target)
            body.ops.append(_op("assign", {"X": [result]}, {"Out": [written]}, op))
    for result, target in zip(results, carried):
        variables.share(result, target)
    inputs = {"Condition": [condition], "X": _captured(body)}
    outputs = {"Out": [value for value in results if not _is_array(value)]}
    ops.append(SourceOp("while", inputs, outputs, {}, [body], op.index, op.original_type))
    body.arguments, body.results = [], []


def _captured(block: SourceBlock) -> list[SourceValue]:
    """Return the tensors that a block reads and does not make, in order."""
    made: set[SourceValue] = set()
    read: dict[SourceValue, None] = {}
    for op in block.walk():
        read.update(dict.fromkeys(value for values in op.inputs.values() for value in values))
        made.update(value for values in op.outputs.values() for value in values)
    return [value for value in read if value not in made and not _is_array(value)]


def _is_array(value: SourceValue) -> bool:
    return value.type is not None and value.type.is_array


def _new(label: str, value: SourceValue, type_: SourceType | None) -> SourceValue:
    return SourceValue(f"{value.name}/{label}", type_)


def _op(type_: str, inputs: Slots, outputs: Slots, near: SourceOp, **attrs: object) -> SourceOp:
    return SourceOp(type_, inputs, outputs, dict(attrs), [], near.index, near.original_type)
