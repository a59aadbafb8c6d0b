"""The iterations of a Loop whose carried values grow: a graph of one iteration, by the sizes of these values.

Such a value is in memory for more elements than it has, its capacity. The graph has one node, LoopIteration of the
domain ``lite_cpu`` (:mod:`lite_cpu.lowering.iteration`), which reads and writes the carried values where they are. Its
sizes are one list of numbers: the present length of everything that grows, and the capacity of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lite_compiler.staging import can_compile_whole
from lite_core import ops
from lite_core.ir import DType, Graph, Node, TensorType, Value
from lite_cpu.control_shapes import invariant_nodes, unfit_nodes, unread_inputs
from lite_cpu.templates.partition_sizes import graph_of_shapes

__all__ = ["Growth", "Iterations", "iterations_of"]

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]


class Growth(NamedTuple):
    """The length of an axis before the loop, and the number of elements by which it grows in each iteration."""

    initial: int
    step: int


class Iterations:
    """The graphs of a Loop's iterations.

    Args:
        loop: a graph whose only node is the Loop. The shapes of the node's inputs are known.
        body: the body as a graph of its own: its inputs, those values from outside that are no constants, and the
            outputs of ``before``.
        growths: what grows. Dimensions that always have the same size share an entry.
        dims: for each carried value, the number of the growth of each of its dimensions, or None.
        before: computes from the values from outside what is the same in each iteration, if that is worth while.

    Attributes:
        growths, dims, before: the arguments.
        carried: the numbers of the carried values that the graphs have as inputs; the others are known.
        outside: the values from outside, as the loop's graph names them.
        stacked: the numbers of the outputs of the iterations that something reads, from 0.
        slices: the body's outputs for them.
    """

    def __init__(
        self,
        loop: Graph,
        body: Graph,
        growths: Sequence[Growth],
        dims: Sequence[Sequence[int | None]],
        before: Graph | None = None,
    ) -> None:
        self._loop, self._body, self.before = loop, body, before
        self.growths, self.dims = tuple(growths), tuple(map(tuple, dims))
        node = loop.nodes[0]
        count = len(dims)
        own = _own_body(node)
        number_of = {value: i for i, value in enumerate(own.inputs[2:])}
        known = {i for i in range(count) if _known_input(loop, i) is not None}
        self.carried = [i for i in range(count) if i not in known]
        self._first_outside = 2 + len(self.carried)
        assert len(number_of) == count
        self.outside = _captured(loop, own)
        self.stacked = [i for i, value in enumerate(node.outputs[count:]) if value in set(loop.outputs)]
        self.slices = [body.outputs[1 + count + i] for i in self.stacked]
        self._count = count

    def shape(self, number: int, sizes: Sequence[int]) -> Shape:
        """Return the shape of a carried value where what grows has these sizes, be they lengths or capacities."""
        initial = self._loop.nodes[0].inputs[2 + number]
        assert initial is not None
        return tuple([n if g is None else sizes[g] for n, g in zip(initial.shape, self.dims[number])])

    def is_changed(self, number: int) -> bool:
        """Return True if the body computes a new carried value, and does not only pass it on."""
        own = _own_body(self._loop.nodes[0])
        return own.inputs[2 + number] is not own.outputs[1 + number]

    def have_programs_of(self, other: Iterations) -> bool:
        """Return True if the graphs are those of other iterations of the same loop, which began with other lengths."""
        first, name = self._first_outside, self._loop.nodes[0].name
        same_steps = [g.step for g in self.growths] == [g.step for g in other.growths]
        constants, others = (each._body.constants.values() for each in (self, other))
        lengths = [0] * len(self.growths)
        return (
            name == other._loop.nodes[0].name
            and len(constants) == len(others)
            and all(a is b for a, b in zip(constants, others))
            and self.dims == other.dims
            and same_steps
            and all(self.shape(i, lengths) == other.shape(i, lengths) for i in self.carried)
            and [v.type for v in self._body.inputs[first:]] == [v.type for v in other._body.inputs[first:]]
        )

    def graph(self, sizes: Sequence[int]) -> Graph:
        """Return the graph of an iteration.

        Its inputs are the counter, the condition, the carried values, the stacked outputs, what the body takes from
        outside, and the outputs of :attr:`before`. Its output is 1 unless the body ends the loop.

        Args:
            sizes: the lengths of everything that grows at the beginning of the iteration, then the capacities.

        Raises:
            ValueError: the body cannot be compiled for these sizes.
        """
        lengths, capacities = sizes[: len(self.growths)], sizes[len(self.growths) :]
        shapes = [tuple(value.shape) for value in self._body.inputs]
        shapes[2 : self._first_outside] = [self.shape(i, lengths) for i in self.carried]
        body = graph_of_shapes(self._body, shapes)
        self._check(body, lengths)
        appended = self._append_in_place(body)
        inside, outside = body.inputs[: self._first_outside], body.inputs[self._first_outside :]
        counters = [Value(v.name, v.type) for v in inside[:2]]
        states = [Value(v.name, v.type.with_shape(self.shape(i, capacities))) for i, v in zip(self.carried, inside[2:])]
        stacks = [Value(f"stack_{i}", v.type.with_shape((1, *v.shape))) for i, v in zip(self.stacked, self.slices)]
        goes_on = Value("goes_on", TensorType(DType.INT64, (1,)))
        node = Node(
            "LoopIteration",
            [*counters, *states, *stacks],
            [goes_on],
            {
                "body": Graph(
                    body.name, inputs=inside, outputs=body.outputs, nodes=body.nodes, constants=body.constants
                ),
                "carried": tuple(self.carried),
                "stacked": tuple(1 + self._count + i for i in self.stacked),
                "grows": tuple(i for i in self.carried if any(g is not None for g in self.dims[i])),
                "appended": tuple(appended),
                "has_condition": int(self._loop.nodes[0].inputs[1] is not None),
            },
            domain="lite_cpu",
            name=self._loop.nodes[0].name,
            origin=self._loop.nodes[0].origin,
        )
        return Graph(self._loop.name, inputs=[*counters, *states, *stacks, *outside], outputs=[goes_on], nodes=[node])

    def _check(self, body: Graph, lengths: Sequence[int]) -> None:
        following = [length + growth.step for length, growth in zip(lengths, self.growths)]
        for i in self.carried:
            if tuple(body.outputs[1 + i].shape) != self.shape(i, following):
                raise ValueError(f"carried value {i} has another shape than expected after the iteration")
        if any(not value.type.is_static for value in body.defined()) or unfit_nodes(body):
            raise ValueError("the body has shapes that depend on data")

    def _append_in_place(self, body: Graph) -> list[int]:
        """Replace Concat of a carried value and what follows it, in place; return the numbers of such values."""
        own, producers = _own_body(self._loop.nodes[0]), body.producers()
        inside = dict(zip(self.carried, body.inputs[2:]))
        appended = []
        for i in self.carried:
            after, value = body.outputs[1 + i], inside[i]
            node = producers.get(after)
            grown = [axis for axis, g in enumerate(self.dims[i]) if g is not None]
            if node is None or node.qualified_op != "Concat" or node.inputs[0] is not value or len(grown) != 1:
                continue
            axis = ops.attributes_of(node)["axis"] % len(value.shape)
            if axis != grown[0] or node.inputs.count(value) > 1 or own.outputs.count(own.outputs[1 + i]) > 1:
                continue
            appending = Node(
                "Append", node.inputs, node.outputs, {"axis": axis}, domain="lite_cpu", name=node.name,
                origin=node.origin,
            )  # fmt: skip
            body.nodes[body.nodes.index(node)] = appending
            appended.append(i)
        return appended


def iterations_of(loop: Graph) -> Iterations | None:
    """Return the iterations of a graph's only node; None unless it is a Loop with carried values that grow.

    They must grow by the same number of elements in each iteration, and everything else keep its size.

    Args:
        loop: a graph; the shapes of its inputs are known.
    """
    node = loop.nodes[0]
    if len(loop.nodes) != 1 or node.op != "Loop" or any(value in loop.constants for value in loop.outputs):
        return None
    own = _own_body(node)
    count = len(node.inputs) - 2
    if any(value is None or not value.type.is_static for value in node.inputs[2:]):
        return None
    known = {own.inputs[2 + i]: array for i in range(count) if (array := _known_input(loop, i)) is not None}
    captured = list(own.captured())
    alone = Graph(
        own.name,
        inputs=[*(v for v in own.inputs if v not in known), *_captured(loop, own)],
        outputs=own.outputs,
        nodes=own.nodes,
        constants={**own.constants, **known, **{v: loop.constants[v] for v in captured if v in loop.constants}},
    )
    types = {own.inputs[2 + i]: value.type for i, value in enumerate(node.inputs[2:]) if value is not None}
    for counter in own.inputs[:2]:
        types[counter] = counter.type.with_shape((1,) if len(counter.type.shape or ()) == 1 else ())
    before = _before(alone, len(alone.inputs) - len(_captured(loop, own)))
    if before is not None:
        hoisted = set(before.nodes)
        alone.nodes = [each for each in alone.nodes if each not in hoisted]
        types.update((v, v.type) for v in before.outputs)
        alone.inputs = [*alone.inputs, *before.outputs]
    body = graph_of_shapes(alone, [Value(v.name, types.get(v, v.type)).shape for v in alone.inputs])
    growths: dict[Growth, int] = {}
    dims: list[list[int | None]] = []
    for i, value in enumerate(node.inputs[2:]):
        assert value is not None
        shape = body.outputs[1 + i].type.shape
        if shape is None or len(shape) != len(value.shape) or not body.outputs[1 + i].type.is_static:
            return None
        steps = [after - before for before, after in zip(value.shape, shape)]
        if any(step < 0 for step in steps) or (any(steps) and own.inputs[2 + i] in unread_inputs(own)):
            return None
        dims.append([
            growths.setdefault(Growth(size, step), len(growths)) if step else None
            for size, step in zip(value.shape, steps)
        ])  # fmt: skip
    return Iterations(loop, body, [*growths], dims, before) if growths else None


def _before(body: Graph, first: int) -> Graph | None:
    """Return the graph of what a body computes from constants, and from its inputs from number ``first`` on, alone.

    Its outputs have known shapes, and the body needs them; None if it costs little.
    """
    own = invariant_nodes(body.nodes, {*body.constants, *body.inputs[first:]})
    made = {value for node in own for value in node.outputs if value is not None}
    needed = {*body.outputs, *(value for node in body.nodes if node not in own for value in node.used())}
    graph = Graph(
        body.name,
        inputs=body.inputs[first:],
        outputs=[value for node in own for value in node.outputs if value in needed & made],
        nodes=own,
        constants=body.constants,
    )
    return graph if own and can_compile_whole(graph, unfit_nodes) else None


def _own_body(node: Node) -> Graph:
    body = node.attributes["body"]
    assert isinstance(body, Graph)
    return body


def _captured(loop: Graph, body: Graph) -> list[Value]:
    """Return the values that a body takes from outside and that are no constants."""
    return [value for value in body.captured() if value not in loop.constants]


def _known_input(loop: Graph, number: int) -> Array | None:
    """Return the elements of a carried value that is a constant and that the body never changes."""
    node = loop.nodes[0]
    body, value = _own_body(node), node.inputs[2 + number]
    is_fixed = body.inputs[2 + number] is body.outputs[1 + number]
    return loop.constants[value] if is_fixed and value in loop.constants else None
