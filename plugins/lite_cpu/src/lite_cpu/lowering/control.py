"""Lowering of If, Loop and Scan: their bodies become steps of the same program, which jumps between them.

A loop keeps its carried values at fixed positions. The body computes each new value at another place, and a copy at the
end of an iteration moves it, unless the new value can be computed over the old one. Slices of Scan are copied out of
the inputs, and the outputs of iterations into the stacked outputs, at a place that the counter of the loop decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from lite_compiler.fusion import Group
from lite_core.ir import DType, Graph, Node, Value
from lite_core.ops import attributes_of
from lite_cpu.control_shapes import has_known_shapes, refuse_changing_shapes
from lite_cpu.kernels.control import BeginLoop, Fail, NextIteration, SkipUnless
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.loop_bodies import (
    Body,
    emit_jump,
    emit_step,
    lower_iteration,
    move_new_values,
    move_slice,
    set_target,
)
from lite_cpu.lowering.registry import lowers
from lite_cpu.lowering.shape import input_of, required_input
from lite_cpu.tensors import Tensor

Array = np.ndarray[Any, Any]


def _dense_target(lowering: Lowering, value: Value) -> Tensor:
    """Return a contiguous tensor that receives a value, which :func:`_deliver` brings to its destination."""
    target = lowering.target(value)
    return target if target.is_dense else lowering.allocate(target.shape, target.dtype)


def _deliver(lowering: Lowering, value: Value, result: Tensor) -> None:
    target = lowering.tensor(value)
    if target.storage is not result.storage:
        lowering.copy(result, target)


# **** If ****


@lowers("If")
def if_(lowering: Lowering, group: Group) -> None:
    """Emit both branches, each of which computes the results; only the one that is taken if that is known."""
    node = group.head
    condition = required_input(node)
    branches = [node.attributes[name] for name in ("then_branch", "else_branch")]
    results = [None if value is None else _dense_target(lowering, value) for value in node.outputs]
    known = lowering.known(condition)
    if known is not None:
        _branch(lowering, node, branches[0 if known.reshape(-1)[0] else 1], results)
    else:
        skip_then = emit_jump(lowering, SkipUnless(True), [lowering.dense(lowering.tensor(condition))])
        _branch(lowering, node, branches[0], results)
        skip_else = emit_jump(lowering, SkipUnless(False), [])
        set_target(lowering, skip_then, len(lowering.steps))
        _branch(lowering, node, branches[1], results)
        set_target(lowering, skip_else, len(lowering.steps))
    for value, result in zip(node.outputs, results):
        if value is not None and result is not None:
            _deliver(lowering, value, result)


def _branch(lowering: Lowering, node: Node, graph: Any, results: Sequence[Tensor | None]) -> None:
    if not has_known_shapes(graph):  # see :func:`fits`
        fault, number = lowering.fault(f"{node.describe()}: {graph.name} does not fit the shapes of this run")
        emit_step(lowering, Fail(), [fault], [number])
        return
    body = Body(lowering, graph, {}, {})
    pairs = [(value, result) for value, result in zip(graph.outputs, results) if result is not None]
    own = {value: result for value, result in reversed(pairs) if body.computes(value)}
    body.lower(own)
    for value, result in pairs:
        source = own[value] if value in own else body.passed(value)
        if source is not result:
            lowering.copy(source, result)


# **** loops ****


class _Places:
    """The positions of what the steps of a loop share, all but the first one int64 or bool.

    Args:
        lowering: the context of the graph that contains the loop.
        limit: the number of iterations at most; None without a limit.
        counter: the number of the present iteration.
        condition: the condition that the body reads.
    """

    def __init__(
        self,
        lowering: Lowering,
        limit: Tensor | None = None,
        counter: Tensor | None = None,
        condition: Tensor | None = None,
    ) -> None:
        self.limit = limit
        self.counter = counter or lowering.allocate((), DType.INT64)
        self.condition = condition or lowering.allocate((), DType.BOOL)


@lowers("Loop", refuse=refuse_changing_shapes)
def loop(lowering: Lowering, group: Group) -> None:
    """Emit a loop; every shape is known, also the number of iterations if they have outputs."""
    node = group.head
    limit = input_of(node, 0)
    count = len(node.inputs) - 2
    stacks = [None if value is None else _dense_target(lowering, value) for value in node.outputs[count:]]
    positions = _Places(lowering, None if limit is None else lowering.dense(lowering.tensor(limit)))
    _lower_loop(lowering, node, positions, stacks)
    for value, stack in zip(node.outputs[count:], stacks):
        if value is not None and stack is not None:
            _deliver(lowering, value, stack)


@lowers("lite_cpu.OpenLoop")
def open_loop(lowering: Lowering, group: Group) -> None:
    """Emit a loop whose number of iterations is unknown; see :mod:`lite_cpu.open_loop`."""
    node = group.head
    *results, counter, condition = node.outputs
    assert counter is not None
    assert condition is not None
    count = len(node.inputs) - 2
    stacks = [None if value is None else _dense_target(lowering, value) for value in results[count:]]
    limit = lowering.tensor(required_input(node))
    positions = _Places(lowering, limit, lowering.target(counter), lowering.target(condition))
    _lower_loop(lowering, node, positions, stacks)


def _lower_loop(lowering: Lowering, node: Node, positions: _Places, stacks: Sequence[Tensor | None]) -> None:
    """Emit the steps of a Loop, and bind its final carried values.

    Args:
        lowering: the context of the graph that contains the node.
        node: the node.
        positions: the positions of what the steps share.
        stacks: for each output of the iterations the tensor that receives all of them; None if nothing reads it.
    """
    body: Any = node.attributes["body"]
    before = input_of(node, 1)
    count = len(node.inputs) - 2
    carried = _Carried(lowering, body.inputs[2:], node.inputs[2:], body.outputs[1 : 1 + count])
    counters = {
        body.inputs[0]: positions.counter.view(body.inputs[0].shape, (1,) * len(body.inputs[0].shape)),
        body.inputs[1]: positions.condition.view(body.inputs[1].shape, (1,) * len(body.inputs[1].shape)),
    }
    inner = Body(lowering, body, {**counters, **carried.positions}, carried.known)
    inner.lower_invariant({*counters, *carried.changing_inputs})
    limits = [positions.limit] if positions.limit is not None else []
    befores = [] if before is None else [lowering.dense(lowering.tensor(before))]
    skip = emit_jump(
        lowering, BeginLoop(bool(limits), bool(befores)), [positions.counter, positions.condition, *limits, *befores]
    )
    first = len(lowering.steps)
    ends = [] if before is None or body.outputs[0] is body.inputs[1] else [body.outputs[0]]
    outputs = [v for v, stack in zip(body.outputs[1 + count :], stacks) if stack is not None]
    new = lower_iteration(lowering, inner, [*ends, *carried.changing, *outputs])
    for value, stack in zip(body.outputs[1 + count :], stacks):
        if stack is not None:
            length = prod(stack.shape[1:])
            move_slice(lowering, new[value], stack, positions.counter, True, (1, length, 0, 0, length))
    carried.move(new, inner, first)
    _end_iteration(lowering, positions, [lowering.dense(new[value]) for value in ends], first)
    set_target(lowering, skip, len(lowering.steps))
    carried.bind(node.outputs[:count])


def _end_iteration(lowering: Lowering, positions: _Places, conditions: Sequence[Tensor], first: int) -> None:
    """Emit the test whether another iteration follows; it begins with step ``first``.

    ``conditions`` has the condition that the body computes, if it can end the loop.
    """
    if len(lowering.steps) == first:
        emit_jump(lowering, SkipUnless(False), [])  # does nothing: a step cannot jump to itself
    limits = [] if positions.limit is None else [positions.limit]
    kernel = NextIteration(bool(limits), bool(conditions))
    set_target(
        lowering, emit_jump(lowering, kernel, [positions.counter, positions.condition, *limits, *conditions]), first
    )


class _Carried:
    """The carried values of a loop.

    Args:
        lowering: the context of the graph that contains the loop.
        inputs: the body's inputs for them.
        initial: their values before the loop; None for one that the body replaces without reading it.
        outputs: the body's outputs for them.
    """

    def __init__(
        self, lowering: Lowering, inputs: Sequence[Value], initial: Sequence[Value | None], outputs: Sequence[Value]
    ) -> None:
        self._lowering = lowering
        self._pairs = list(zip(inputs, outputs))
        #: The positions of the values that the body reads, and the elements of those that are known.
        self.positions: dict[Value, Tensor] = {}
        self.known: dict[Value, Array] = {}
        self._fixed: dict[Value, Value] = {}
        self._places: dict[Value, Tensor] = {}
        for value, start, after in zip(inputs, initial, outputs):
            array = lowering.known(start)
            if start is None:
                self._places[value] = lowering.allocate(after.shape, after.dtype)
            elif value is after:
                self._fixed[value] = start
                if array is not None:
                    self.known[value] = array
                else:
                    self.positions[value] = lowering.tensor(start)
            else:
                place = self.positions[value] = lowering.allocate(value.shape, value.dtype)
                lowering.copy(lowering.tensor(start), place)
        self._places.update(self.positions)

    @property
    def changing_inputs(self) -> list[Value]:
        """The inputs of the body for values that it changes."""
        return [value for value, after in self._pairs if value is not after]

    @property
    def changing(self) -> list[Value]:
        """The outputs of the body for values that it changes."""
        return [after for value, after in self._pairs if value is not after]

    def move(self, new: Mapping[Value, Tensor], body: Body, first: int) -> None:
        """Move new values to where the old ones are; see :func:`move_new_values`."""
        pairs = [(self._places[value], after) for value, after in self._pairs if value is not after]
        move_new_values(self._lowering, pairs, new, body, first)

    def bind(self, finals: Sequence[Value | None]) -> None:
        """Make the positions the tensors of the loop's outputs."""
        lowering = self._lowering
        for final, (value, _) in zip(finals, self._pairs):
            if final is not None and value in self._fixed:
                lowering.bind(final, lowering.tensor(self._fixed[value]))
            elif final is not None:
                lowering.bind(final, self._places[value])


# **** Scan ****


@lowers("Scan", refuse=refuse_changing_shapes)
def scan(lowering: Lowering, group: Group) -> None:
    """Emit a loop over slices of the inputs."""
    node = group.head
    attributes, body = attributes_of(node), node.attributes["body"]
    assert isinstance(body, Graph)
    count = attributes["num_scan_inputs"]
    states = len(node.inputs) - count
    outputs = node.outputs[states:]
    sequences = [lowering.dense(lowering.tensor(required_input(node, states + i))) for i in range(count)]
    axes = [axis % s.rank for axis, s in zip(attributes["scan_input_axes"] or [0] * count, sequences)]
    trips = sequences[0].shape[axes[0]]
    stacks = [None if value is None else _dense_target(lowering, value) for value in outputs]
    carried = _Carried(lowering, body.inputs[:states], node.inputs[:states], body.outputs[:states])
    if trips:
        slices = {v: lowering.allocate(v.shape, v.dtype) for v in body.inputs[states:]}
        inner = Body(lowering, body, {**carried.positions, **slices}, carried.known)
        inner.lower_invariant({*slices, *carried.changing_inputs})
        positions = _Places(lowering, lowering.constant(np.array(trips)))
        assert positions.limit is not None
        emit_jump(lowering, BeginLoop(True, False), [positions.counter, positions.condition, positions.limit])
        first = len(lowering.steps)
        lowering.steps[-1].jump = 0  # there is an iteration
        directions = attributes["scan_input_directions"] or [0] * count
        for slice_, whole, axis, back in zip(slices.values(), sequences, axes, directions):
            move_slice(lowering, slice_, whole, positions.counter, False, _along(whole.shape, axis, back))
        new = lower_iteration(lowering, inner, [*carried.changing, *(v for v in body.outputs[states:])])
        axes = attributes["scan_output_axes"] or [0] * len(outputs)
        directions = attributes["scan_output_directions"] or [0] * len(outputs)
        for value, stack, axis, back in zip(body.outputs[states:], stacks, axes, directions):
            if stack is not None:
                move_slice(
                    lowering, new[value], stack, positions.counter, True, _along(stack.shape, axis % stack.rank, back)
                )
        carried.move(new, inner, first)
        _end_iteration(lowering, positions, [], first)
    carried.bind(node.outputs[:states])
    for output, stack in zip(outputs, stacks):
        if output is not None and stack is not None:
            _deliver(lowering, output, stack)


def _along(shape: Sequence[int], axis: int, backwards: bool) -> tuple[int, int, int, int, int]:
    """Return where the slices along an axis are, as :func:`move_slice` takes it."""
    inner = prod(shape[axis + 1 :])
    first, step = ((shape[axis] - 1) * inner, -inner) if backwards else (0, inner)
    return prod(shape[:axis]), inner, shape[axis] * inner, first, step
