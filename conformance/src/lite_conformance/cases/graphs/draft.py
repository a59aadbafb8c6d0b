"""A concise way to write graphs: numbers as operands, random weights, inputs with their contents.

Each function is a graph::

    @graphs.case("conv-bn-relu", FLOATS)
    def _(g: Draft) -> None:
        x = g.input(1, 3, 8, 8)
        g.output(g("Relu", g.batch_norm(g.conv(x, 5, 3))))
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lite_conformance.cases.op_cases import held_in_float32
from lite_conformance.cases.tensors import Array, Initializer, normal, positive
from lite_conformance.judge.tolerances import GRAPH, Numerics
from lite_core.builder import GraphBuilder
from lite_core.ir import DType, Graph, Value

__all__ = ["FLOATS", "INTEGERS", "NARROW", "Draft", "Drafted", "GraphTable", "Sketch"]

FLOATS = ("float32", "float16", "bfloat16", "float64")
#: Types of operators that ONNX defines with float32 constants, or with float32 sums even for float64.
NARROW = ("float32", "float16", "bfloat16")
INTEGERS = ("int32", "int64")

#: An input of :meth:`Draft.__call__`: a number is a scalar constant of the draft's element type, a tuple of
#: integers an int64 vector.
Operand = Value | float | tuple[int, ...] | None

Sketch = Callable[["Draft"], None]


@dataclass(frozen=True, slots=True)
class _Input:
    name: str
    shape: tuple[int | str, ...]
    dtype: DType
    initializer: Initializer
    rounds: tuple[Array, ...]

    def make(self, seed: int, number: int, sizes: Mapping[str, int]) -> Array:
        if self.rounds:
            return self.rounds[number % len(self.rounds)]
        shape = tuple(sizes[d] if isinstance(d, str) else d for d in self.shape)
        random = np.random.default_rng([seed, number, zlib.crc32(self.name.encode())])
        return np.ascontiguousarray(self.initializer(random, shape, self.dtype)).reshape(shape)


class Drafted:
    """A finished graph and its sets of inputs.

    Attributes:
        graph: the graph.
        rounds: number of different sets of inputs to test it with.
    """

    def __init__(self, graph: Graph, inputs: Sequence[_Input], seed: int) -> None:
        self.graph = graph
        self.rounds = max(2, *(len(i.rounds) for i in inputs)) if inputs else 1
        self._inputs = inputs
        self._seed = seed

    def arrays(self, number: int, sizes: Mapping[str, int] | None = None) -> list[Array]:
        """Return the inputs of a round, in the graph's order.

        Args:
            number: number of the round; the contents differ between rounds.
            sizes: sizes of the symbols in the inputs' shapes.
        """
        return [i.make(self._seed, number, sizes or {}) for i in self._inputs]


class Draft:
    """A graph under construction. Calling it adds a node and returns the node's first output.

    Args:
        name: the graph's name, which is part of the seed of its weights.
        dtype: the default element type.
        seed: seed of weights and inputs.
        outer: the draft of the enclosing graph, for bodies.
    """

    def __init__(self, name: str, dtype: DType, seed: int, outer: Draft | None = None) -> None:
        self.dtype = dtype
        self.builder: GraphBuilder = GraphBuilder(name, outer=outer.builder if outer else None)
        self._seed = seed
        self._random: np.random.Generator = (
            outer._random if outer else np.random.default_rng([seed, zlib.crc32(name.encode())])
        )
        self._inputs: list[_Input] = []

    # **** values ****

    def input(self, *shape: int | str, init: Initializer = normal, dtype: str | None = None) -> Value:
        """Add an input; a text as a dimension is a symbol."""
        return self._input(shape, DType.of(dtype) if dtype else self.dtype, init, ())

    def input_of(self, *rounds: Any, dtype: str | None = None) -> Value:
        """Add an input with exactly these contents, one for each round, all of the same shape."""
        type = DType.of(dtype) if dtype else self.dtype
        arrays = tuple(np.asarray(r).astype(type.numpy) for r in rounds)
        return self._input(arrays[0].shape, type, normal, arrays)

    def _input(self, shape: tuple[int | str, ...], dtype: DType, init: Initializer, rounds: tuple[Array, ...]) -> Value:
        name = f"input_{len(self._inputs)}"
        self._inputs.append(_Input(name, shape, dtype, init, rounds))
        return self.builder.input(name, dtype, shape)

    def argument(self, dtype: str | DType, *shape: int | str) -> Value:
        """Add an input to the body of a Loop or Scan."""
        name = self.builder.unique_name(f"argument_{len(self.builder.graph.inputs)}")
        return self.builder.input(name, dtype, shape)

    def weight(self, *shape: int, init: Initializer | None = None) -> Value:
        """Add a constant, by default scaled for sums of about 1: normal / sqrt(product of all sizes but the first)."""
        if init is not None or not self.dtype.is_floating:
            return self.builder.constant((init or normal)(self._random, shape, self.dtype))
        drawn = self._random.standard_normal(shape) / math.sqrt(max(1, math.prod(shape[1:])))
        return self.constant(drawn)

    def constant(self, elements: Any, dtype: str | None = None) -> Value:
        """Add a constant with these elements, by default of the draft's element type."""
        return self.builder.constant(np.asarray(elements).astype(DType.of(dtype or self.dtype).numpy))

    # **** nodes ****

    def __call__(self, op: str, /, *operands: Operand, **attributes: Any) -> Value:
        """Add a node and return its first output."""
        return self.several(op, 1, *operands, **attributes)[0]

    def several(self, op: str, count: int, /, *operands: Operand, **attributes: Any) -> list[Value]:
        """Add a node with ``count`` outputs and return them; ``op`` may begin with a domain: ``"acme.Squish"``."""
        domain, _, name = op.rpartition(".")
        if self.dtype is DType.FLOAT64:
            attributes.update(held_in_float32(name, domain, attributes))
        return self.builder.add_node(name, [self._value(o) for o in operands], attributes, domain=domain, outputs=count)

    def _value(self, operand: Operand) -> Value | None:
        if operand is None or isinstance(operand, Value):
            return operand
        return self.builder.ints(*operand) if isinstance(operand, tuple) else self.constant(operand)

    def output(self, *values: Value) -> None:
        """Make values outputs of the graph, in this order; a value may occur several times."""
        for value in values:
            self.builder.output(value)

    def body(self, name: str) -> Draft:
        """Return a draft of a sub-graph, which may use the values of this graph."""
        return Draft(name, self.dtype, self._seed, self)

    def branch(self, name: str, write: Callable[[Draft], Value | Sequence[Value]]) -> Graph:
        """Return a branch of If: a graph without inputs inside this one, whose outputs the given function makes."""
        inner = self.body(name)
        written = write(inner)
        inner.output(*([written] if isinstance(written, Value) else written))
        return inner.builder.build()

    # **** layers ****

    def conv(self, x: Value, channels: int, kernel: int = 3, *, bias: bool = True, **attributes: Any) -> Value:
        """Add a convolution with square kernels over ``[n, c, h, w]``, by default padded to keep the size."""
        groups = attributes.get("group", 1)
        weight = self.weight(channels, _channels(x) // groups, kernel, kernel)
        attributes.setdefault("pads", (kernel // 2,) * 4)
        return self("Conv", x, weight, self.weight(channels) if bias else None, **attributes)

    def batch_norm(self, x: Value) -> Value:
        """Add a batch normalisation over the second dimension, with random statistics."""
        channels = _channels(x)
        scale, variance = (self.weight(channels, init=positive) for _ in range(2))
        return self("BatchNormalization", x, scale, self.weight(channels), self.weight(channels), variance)

    def linear(self, x: Value, outputs: int) -> Value:
        """Add ``x W + b`` over the last dimension, as MatMul and Add."""
        inputs = x.shape[-1]
        weight = np.swapaxes(self._random.standard_normal((outputs, inputs)) / np.sqrt(inputs), 0, 1)
        return self("Add", self("MatMul", x, self.constant(weight)), self.weight(outputs))

    def gelu(self, x: Value) -> Value:
        """Add ``x (1 + erf(x / sqrt(2))) / 2`` in primitive operators."""
        raised = self("Add", self("Erf", self("Div", x, 2**0.5)), 1.0)
        return self("Mul", self("Mul", x, raised), 0.5)

    def swish(self, x: Value) -> Value:
        """Add ``x sigmoid(x)`` in primitive operators."""
        return self("Mul", x, self("Sigmoid", x))

    def hard_swish(self, x: Value) -> Value:
        """Add ``x relu6(x + 3) / 6`` in primitive operators."""
        return self("Div", self("Mul", x, self("Clip", self("Add", x, 3.0), 0.0, 6.0)), 6.0)

    def done(self) -> Drafted:
        """Return the verified graph and its inputs."""
        return Drafted(self.builder.build(), self._inputs, self._seed)


def _channels(x: Value) -> int:
    channels = x.shape[1]
    assert isinstance(channels, int)
    return channels


@dataclass(frozen=True, slots=True)
class GraphCase:
    """A graph of the suite: the function that writes it, and the required accuracy."""

    label: str
    dtype: DType
    sketch: Sketch
    numerics: Numerics
    op: str
    #: Sizes of the symbols in the inputs' shapes, for successive runs; empty for fixed shapes.
    signatures: tuple[Mapping[str, int], ...] = ()
    #: True if it runs only in sessions, with and without passes, because no partition has this form.
    only_session: bool = False

    def draft(self, seed: int) -> Drafted:
        """Return the graph with its inputs; the same for the same seed."""
        draft = Draft(self.label, self.dtype, seed)
        self.sketch(draft)
        return draft.done()


class GraphTable:
    """A list of graphs on one topic."""

    def __init__(self) -> None:
        self._cases: list[GraphCase] = []

    def case(
        self,
        label: str,
        dtypes: Sequence[str] = ("float32",),
        *,
        numerics: Numerics = GRAPH,
        op: str = "",
        signatures: Sequence[Mapping[str, int]] = (),
        only_session: bool = False,
    ) -> Callable[[Sketch], Sketch]:
        """Return a decorator that adds the graph that a function writes.

        Args:
            label: unique name of the graph; it is part of the seed of its weights.
            dtypes: element types of the graph.
            numerics: the required accuracy of its outputs.
            op: the operator it mainly tests, or empty.
            signatures: see :class:`GraphCase`.
            only_session: see :class:`GraphCase`.
        """

        def add(sketch: Sketch) -> Sketch:
            for dtype in map(DType.of, dtypes):
                self._cases.append(
                    GraphCase(label, dtype, sketch, numerics, op, tuple(signatures), only_session or bool(signatures))
                )
            return sketch

        return add

    def __iter__(self) -> Iterator[GraphCase]:
        return iter(self._cases)
