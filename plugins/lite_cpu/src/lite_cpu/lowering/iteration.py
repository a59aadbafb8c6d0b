"""Lowering of one iteration of a Loop whose carried values grow; see :mod:`lite_cpu.iteration`."""

from __future__ import annotations

from math import prod
from typing import Any

from lite_compiler.fusion import Group
from lite_core.ir import Graph
from lite_cpu.kernels.control import NextIteration
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.loop_bodies import Body, emit_step, lower_iteration, move_new_values, move_slice
from lite_cpu.lowering.registry import lowers
from lite_cpu.lowering.shape import required_input


@lowers("lite_cpu.LoopIteration")
def loop_iteration(lowering: Lowering, group: Group) -> None:
    """Emit the steps of an iteration, which leaves counter, condition and carried values ready for the next one."""
    node = group.head
    attributes: Any = node.attributes
    body: Graph = attributes["body"]
    counter, condition, *rest = (lowering.tensor(value) for value in node.inputs if value is not None)
    states, stacks = dict(zip(attributes["carried"], rest)), rest[len(attributes["carried"]) :]
    positions = {}
    for (number, state), value in zip(states.items(), body.inputs[2:]):
        positions[number] = state.view(value.shape, state.strides)
    before = dict(zip(body.inputs, [counter, condition, *positions.values()]))
    inner = Body(lowering, body, before, {})
    # Values that grow in place need no move.
    changing = [
        (number, body.outputs[1 + number])
        for number, position in positions.items()
        if number not in attributes["appended"] and before.get(body.outputs[1 + number]) is not position
    ]
    following = {n: states[n].view(body.outputs[1 + n].shape, states[n].strides) for n in states}
    grown = {body.outputs[1 + n]: following[n] for n in attributes["appended"]}
    ends = [body.outputs[0]] if attributes["has_condition"] and body.outputs[0] is not body.inputs[1] else []
    slices = [body.outputs[i] for i in attributes["stacked"]]
    first = len(lowering.steps)
    new = lower_iteration(lowering, inner, [*ends, *(after for _, after in changing), *slices], grown)
    for value, stack in zip(slices, stacks):
        length = prod(stack.shape[1:])
        move_slice(lowering, new[value], stack, counter, True, (1, length, 0, 0, length))
    pairs = [(following[number], after) for number, after in changing]
    copied = {after for number, after in changing if number in attributes["grows"]}
    move_new_values(lowering, pairs, new, inner, first, copied)
    conditions = [lowering.dense(new[end]) for end in ends]
    emit_step(
        lowering, NextIteration(False, bool(ends)), [lowering.target(group.output), counter, condition, *conditions]
    )


@lowers("lite_cpu.Append")
def append(lowering: Lowering, group: Group) -> None:
    """Emit copies of new elements behind those of a carried value, which has room for them."""
    node, result = group.head, group.output
    old = lowering.tensor(required_input(node))
    axis: Any = node.attributes["axis"]
    whole = old.view(result.shape, old.strides)
    position = old.shape[axis]
    for value in node.inputs[1:]:
        if value is not None:
            piece = lowering.tensor(value)
            lowering.copy(piece, whole.slice(axis, position, piece.shape[axis]))
            position = position + piece.shape[axis]
    lowering.bind(result, whole)
