"""Parts that all lowerings of control nodes share: bodies, jumps, slices of an iteration, moves of carried values."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

import numpy as np

from lite_core.ir import DType, Graph, Node, Value
from lite_cpu.control_shapes import invariant_nodes
from lite_cpu.kernels.base import Kernel
from lite_cpu.kernels.control import MoveSlice
from lite_cpu.lowering.compile import lower_body
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.replacing import place_over
from lite_cpu.tensors import Tensor

__all__ = ["Body", "emit_jump", "emit_step", "lower_iteration", "move_new_values", "move_slice", "set_target"]

Array = np.ndarray[Any, Any]


class Body:
    """A body as a separate graph, with the tensors and known elements of what it takes from outside.

    Args:
        lowering: the context of the graph that contains the node.
        graph: the body.
        tensors: the tensors of the body's own inputs that are not known.
        known: the elements of the others.
    """

    def __init__(
        self, lowering: Lowering, graph: Graph, tensors: Mapping[Value, Tensor], known: Mapping[Value, Array]
    ) -> None:
        self._lowering = lowering
        self._given = dict(tensors)
        constants = {**graph.constants, **known}
        for value in graph.captured():
            array = lowering.known(value)
            if array is None:
                self._given[value] = lowering.tensor(value)
            else:
                constants[value] = array
        self._name, self._outputs, self._nodes = graph.name, graph.outputs, graph.nodes
        self._constants = constants
        self._computed = {value for node in graph.nodes for value in node.outputs if value is not None}

    def lower_invariant(self, changing: Container[Value]) -> None:
        """Emit the steps of the nodes that compute the same in each iteration, before the loop.

        Args:
            changing: the inputs of the body that differ between iterations.
        """
        fixed = {*self._constants, *(value for value in self._given if value not in changing)}
        own = invariant_nodes(self._nodes, fixed)
        if not own:
            return
        self._nodes = [node for node in self._nodes if node not in own]
        needed = {*self._outputs, *(value for node in self._nodes for value in node.used())}
        positions = {
            value: self._lowering.allocate(value.shape, value.dtype)
            for node in own
            for value in node.outputs
            if value is not None and value in needed
        }
        self._lower(own, positions)
        self._computed -= positions.keys()
        self._given.update(positions)

    def computes(self, value: Value) -> bool:
        """Return True if a node of the body computes a value."""
        return value in self._computed

    def lower(self, results: Mapping[Value, Tensor]) -> None:
        """Emit the steps of the body. ``results`` are the positions of outputs that it computes."""
        self._lower(self._nodes, results)

    def _lower(self, nodes: Sequence[Node], results: Mapping[Value, Tensor]) -> None:
        graph = Graph(self._name, inputs=[*self._given], outputs=[*results], nodes=nodes, constants=self._constants)
        lower_body(self._lowering, graph, [*self._given.values()], [*results.values()])

    def passed(self, value: Value) -> Tensor:
        """Return the tensor of an output that the body does not compute."""
        array = self._constants.get(value)
        return self._given[value] if array is None else self._lowering.constant(array)


def emit_step(lowering: Lowering, kernel: Kernel, tensors: Sequence[Tensor], params: Sequence[int] = ()) -> int:
    """Emit a step of one work item and return its number."""
    lowering.step(kernel, tensors, params, 1)
    return len(lowering.steps) - 1


def emit_jump(lowering: Lowering, kernel: Kernel, tensors: Sequence[Tensor]) -> int:
    """Emit a step that may jump, and return its number; :func:`set_target` says where."""
    return emit_step(lowering, kernel, [lowering.allocate((1,), DType.INT64), *tensors])


def set_target(lowering: Lowering, jump: int, target: int) -> None:
    """Let the step ``jump`` jump to the step ``target``."""
    lowering.steps[jump].jump = target - jump


def lower_iteration(
    lowering: Lowering, body: Body, outputs: Sequence[Value], placed: Mapping[Value, Tensor] | None = None
) -> dict[Value, Tensor]:
    """Emit an iteration, and return where its outputs are at its end.

    Args:
        lowering: the context of the graph that contains the loop.
        body: the body.
        outputs: the outputs.
        placed: further outputs, with the tensors that receive them.
    """
    results = {**(placed or {}), **{v: lowering.allocate(v.shape, v.dtype) for v in outputs if body.computes(v)}}
    body.lower(results)
    return {value: results[value] if value in results else body.passed(value) for value in outputs}


def move_slice(
    lowering: Lowering,
    slice_: Tensor,
    whole: Tensor,
    counter: Tensor,
    into: bool,
    positions: tuple[int, int, int, int, int],
) -> None:
    """Emit a copy of the slice of an iteration.

    Args:
        lowering: the context that the step is emitted into.
        slice_: the slice; a source of any layout, or a contiguous destination.
        whole: the contiguous tensor of all slices.
        counter: the counter of the loop.
        into: copy the slice into the whole, or else out of it.
        positions: number of rows of the slice, their length, their distance in the whole, the first iteration's first
            element there, and the distance to the next iteration's.
    """
    rows, length, *rest = positions
    slice_ = lowering.dense(slice_)
    pair = [whole.as_bits(), slice_.as_bits()]
    if rows * length:
        kernel = MoveSlice(whole.dtype.itemsize, into)
        lowering.step(kernel, [*(pair if into else pair[::-1]), counter], [length, *rest], rows)


def move_new_values(
    lowering: Lowering,
    pairs: Sequence[tuple[Tensor, Value]],
    new: Mapping[Value, Tensor],
    body: Body,
    first: int,
    copied: Container[Value] = (),
) -> None:
    """Emit the moves of new values to where the old ones are, or let the steps from ``first`` on write them there.

    Values that the body only passes on, to another position, are copied before any is overwritten.

    Args:
        lowering: the context of the graph that contains the loop.
        pairs: the position of each carried value that the body changes, and the body's output for it.
        new: where the outputs are.
        body: the body.
        first: the number of the first step of the iteration.
        copied: outputs that are copied in any case, because old and new values have different sizes.
    """
    moves: list[tuple[Tensor, Tensor, bool]] = []
    taken: set[Value] = set()
    for position, after in pairs:
        source = new[after]
        if after in taken or not body.computes(after):
            copy = lowering.allocate(source.shape, source.dtype)
            lowering.copy(source, copy)
            source = copy
        taken.add(after)
        moves.append((source, position, after in copied))
    for source, position, is_copied in moves:
        if is_copied or not place_over(lowering.steps, first, source, position):
            lowering.copy(source, position)
