"""Strategies for random graphs: operators that are fused, computed in place, concatenated without copies, or views.

A graph is built node by node from a pool of values. All operators are continuous and keep values small, so that the
results of a deep graph can be compared with a tight tolerance. Outputs are all values without a reader and a few
values with readers, which must then be in memory although they could have stayed in registers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from hypothesis import strategies as st

from lite_core import GraphBuilder
from lite_core.ir import Attribute, DType, Graph, Value

__all__ = ["Example", "elementwise_graphs", "image_graphs"]

Array = np.ndarray[Any, Any]

_MOST_ELEMENTS = 6000
_UNARY = ("Relu", "Sigmoid", "Tanh", "HardSwish", "HardSigmoid", "Neg", "Abs", "LeakyRelu", "Elu", "Softsign", "Gelu")
_BINARY = ("Add", "Sub", "Mul", "Max", "Min")


@dataclass(frozen=True)
class Example:
    """A graph and its inputs."""

    graph: Graph
    inputs: dict[str, Array]

    def __repr__(self) -> str:  # hypothesis prints it for the smallest failing example
        return str(self.graph)


@dataclass
class _RandomGraph:
    """A graph under construction: its random choices, and the pool of values that nodes can read."""

    draw: st.DrawFn
    builder: GraphBuilder = field(default_factory=lambda: GraphBuilder("random"))
    pool: list[Value] = field(default_factory=list)
    inputs: dict[str, Array] = field(default_factory=dict)
    _read: set[Value] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.draw(st.integers(0, 99)))

    # **** choices ****

    def choose(self, options: Sequence[Any]) -> Any:
        """Draw one of the options."""
        return self.draw(st.sampled_from(options))

    def number(self, least: int, most: int) -> int:
        """Draw an integer from ``least`` to ``most``."""
        return self.draw(st.integers(least, most))

    def value(self, fits: Callable[[Value], bool] = lambda value: True) -> Value | None:
        """Draw a value from the pool, with a preference for late ones; None if none fits."""
        fitting = [v for v in reversed(self.pool) if fits(v)]
        return self.choose(fitting) if fitting else None

    # **** building ****

    def input(self, shape: Sequence[int], dtype: DType = DType.FLOAT32) -> None:
        """Add an input to the graph and to the pool."""
        value = self.builder.input(f"input_{len(self.inputs)}", dtype, shape)
        self.inputs[value.name] = self._elements(shape, dtype)
        self.pool.append(value)

    def constant(self, *shape: int, dtype: DType = DType.FLOAT32, scale: float = 1.0) -> Value:
        """Return a constant of random elements."""
        elements = self._elements(shape, dtype)
        return self.builder.constant((elements * scale).astype(dtype.numpy) if scale != 1.0 else elements)

    def _elements(self, shape: Sequence[int], dtype: DType) -> Array:
        if dtype is DType.BOOL:
            return np.asarray(self._random.random(shape) < 0.5)
        drawn = self._random.standard_normal(shape) * (1.0 if dtype.is_floating else 4.0)
        return np.asarray(drawn).astype(dtype.numpy)

    def add(self, op: str, *inputs: Value | None, outputs: int = 1, **attributes: Attribute) -> None:
        """Add a node to the graph, and its results to the pool."""
        made = self.builder.add_node(op, inputs, attributes, outputs=outputs)
        self._read.update(v for v in inputs if v is not None)
        self.pool.extend(made)

    def finish(self) -> Example:
        """Return the graph; every value in it contributes to an output."""
        made = [v for v in self.pool if v not in self.builder.graph.inputs]
        for value in made:
            if value not in self._read or self.number(0, 9) == 0:
                self.builder.output(value)
        return Example(self.builder.build(), self.inputs)


# **** element-wise graphs ****


@st.composite
def elementwise_graphs(draw: st.DrawFn) -> Example:
    """Draw graphs of element-wise nodes of several element types, with all kinds of broadcasting."""
    g = _RandomGraph(draw)
    full = draw(st.lists(st.integers(1, 9), min_size=0, max_size=4))
    for _ in range(g.number(1, 3)):
        kept = full[g.number(0, len(full)) :] if full else []
        shape = [n if g.number(0, 3) else 1 for n in kept]
        g.input(shape, g.choose([DType.FLOAT32, DType.FLOAT32, DType.INT32, DType.INT64, DType.BOOL]))
    for _ in range(g.number(1, 14)):
        g.choose(_ELEMENTWISE_NODES)(g)
    return g.finish() if len(g.pool) > len(g.inputs) else _fallback(g)


def _fallback(g: _RandomGraph) -> Example:
    """Return a graph of one Identity, for the case that no drawn node had an operand."""
    g.add("Identity", g.pool[0])
    return g.finish()


def _unary(g: _RandomGraph) -> None:
    value = g.value(_is_float)
    if value is not None:
        g.add(g.choose(_UNARY), value)


def _binary(g: _RandomGraph) -> None:
    """Add an operator on two values, on one value twice, or on a value and a constant, in either order."""
    first = g.value(lambda v: v.dtype is not DType.BOOL)
    if first is None:
        return
    second = g.value(lambda v: v.dtype is first.dtype and _fit(v, first))
    if second is None or g.number(0, 3) == 0:
        shape = [n if g.number(0, 1) else 1 for n in first.shape][g.number(0, len(first.shape)) :]
        second = g.constant(*shape, dtype=first.dtype)
    # Products of products overflow, or lose all digits, after a few nodes.
    ops = _BINARY if first.dtype.is_floating and g.number(0, 2) == 0 else [o for o in _BINARY if o != "Mul"]
    pair = (first, second) if g.number(0, 1) else (second, first)
    g.add(g.choose(ops), *pair)


def _gate(g: _RandomGraph) -> None:
    """Add a product of a value and a Sigmoid, as in SiLU and in squeeze-and-excitation."""
    first = g.value(_is_float)
    second = None if first is None else g.value(lambda v: _is_float(v) and _fit(v, first))
    if first is not None and second is not None:
        g.add("Sigmoid", second)
        g.add("Mul", first, g.pool[-1])


def _compare(g: _RandomGraph) -> None:
    """Add a comparison that selects the smaller of two values, which is continuous, unlike a comparison alone."""
    first = g.value(lambda v: v.dtype is not DType.BOOL)
    second = None if first is None else g.value(lambda v: v.dtype is first.dtype and _fit(v, first))
    if first is not None and second is not None:
        less = g.builder.add("Less", [first, second])
        g.add("Where", less, first, second)


def _truth(g: _RandomGraph) -> None:
    """Add a logical operator, or a Where with a bool condition."""
    truth = g.value(lambda v: v.dtype is DType.BOOL)
    if truth is None:
        return
    kind = g.number(0, 2)
    if kind == 0:
        g.add("Not", truth)
    elif kind == 1:
        other = g.value(lambda v: v.dtype is DType.BOOL and _fit(v, truth))
        g.add(g.choose(("And", "Or", "Xor")), truth, other)
    else:
        chosen = g.value(lambda v: v.dtype is not DType.BOOL and _fit(v, truth))
        if chosen is not None:
            g.add("Where", truth, chosen, g.constant(dtype=chosen.dtype))


def _cast(g: _RandomGraph) -> None:
    """Add a Cast of integers or bools; a Cast of floats to integers would not be continuous."""
    value = g.value(lambda v: not _is_float(v))
    if value is not None:
        to = DType.FLOAT32 if value.dtype is DType.BOOL else g.choose((DType.FLOAT32, DType.INT64, DType.INT32))
        g.add("Cast", value, to=to)


def _clip(g: _RandomGraph) -> None:
    value = g.value(_is_float)
    if value is not None:
        low, high = (g.builder.constant(np.float32(limit)) for limit in (-1.5, 2.0))
        g.add("Clip", value, low if g.number(0, 2) else None, high if g.number(0, 2) else None)


_ELEMENTWISE_NODES = (_unary, _unary, _binary, _binary, _gate, _compare, _truth, _cast, _clip)


# **** image graphs ****


@st.composite
def image_graphs(draw: st.DrawFn) -> Example:
    """Draw graphs of convolutions, pools, products, Concat, Split, views and reductions, with element-wise nodes."""
    g = _RandomGraph(draw)
    shape = [g.number(1, 2), g.choose((1, 3, 4, 8, 16, 20)), g.number(1, 11), g.number(1, 19)]
    for _ in range(g.number(1, 2)):
        g.input(shape)
    for _ in range(g.number(1, 12)):
        g.choose(_IMAGE_NODES)(g)
    return g.finish() if len(g.pool) > len(g.inputs) else _fallback(g)


def _conv(g: _RandomGraph) -> None:
    x = g.value(lambda v: len(v.shape) == 4 and 0 not in v.shape)
    if x is None:
        return
    depth = x.shape[1]
    kind = g.choose(("pointwise", "dense", "dense", "depthwise", "grouped"))
    group = depth if kind == "depthwise" else 2 if kind == "grouped" and depth % 2 == 0 else 1
    channels = depth if kind == "depthwise" else g.choose((2, 6, 16, 18))
    kernel = 1 if kind == "pointwise" else g.choose((3, 3, 5))
    weight = g.constant(channels, depth // group, kernel, kernel, scale=(depth // group * kernel * kernel) ** -0.5)
    bias = g.constant(channels) if g.number(0, 1) else None
    stride = g.choose((1, 1, 2))
    attributes: dict[str, Any] = {"strides": (stride, stride), "pads": (kernel // 2,) * 4, "group": group}
    g.add("Conv", x, weight, bias, **attributes)


def _pool(g: _RandomGraph) -> None:
    x = g.value(lambda v: len(v.shape) == 4 and 0 not in v.shape)
    if x is None:
        return
    kind = g.choose(("MaxPool", "AveragePool", "GlobalAveragePool"))
    if kind == "GlobalAveragePool":
        g.add(kind, x)
        return
    stride = g.choose((1, 2))
    g.add(kind, x, kernel_shape=(3, 3), strides=(stride, stride), pads=(1,) * 4)


def _concat(g: _RandomGraph) -> None:
    first = g.value(lambda v: len(v.shape) >= 1 and prod(v.shape) <= _MOST_ELEMENTS // 3)
    if first is None:
        return
    axis = g.number(0, len(first.shape) - 1)

    def joins(value: Value) -> bool:
        rest = [n for a, n in enumerate(value.shape) if a != axis]
        return len(value.shape) == len(first.shape) and rest == [n for a, n in enumerate(first.shape) if a != axis]

    others = [g.value(joins) for _ in range(g.number(1, 2))]
    parts = [first, *(v for v in others if v is not None and prod(v.shape) <= _MOST_ELEMENTS)]
    g.add("Concat", *(parts if g.number(0, 1) else reversed(parts)), axis=axis)


def _split(g: _RandomGraph) -> None:
    x = g.value(lambda v: any(n > 1 for n in v.shape))
    if x is None:
        return
    axis = g.choose([a for a, n in enumerate(x.shape) if n > 1])
    first = g.number(1, x.shape[axis] - 1)
    sizes = g.builder.ints(first, x.shape[axis] - first)
    g.add("Split", x, sizes, outputs=2, axis=axis)


def _slice(g: _RandomGraph) -> None:
    x = g.value(lambda v: any(n > 1 for n in v.shape))
    if x is None:
        return
    axis = g.choose([a for a, n in enumerate(x.shape) if n > 1])
    start, stop, step = g.choose(((1, 1000, 1), (0, 1000, 2), (-1, -1000, -1), (0, -1, 1)))
    g.add("Slice", x, *(g.builder.ints(n) for n in (start, stop, axis, step)))


def _transpose(g: _RandomGraph) -> None:
    x = g.value(lambda v: len(v.shape) >= 2)
    if x is not None:
        g.add("Transpose", x, perm=tuple(g.draw(st.permutations(range(len(x.shape))))))


def _reshape(g: _RandomGraph) -> None:
    """Add a Reshape that merges two dimensions, splits one, or inserts one of size 1."""
    x = g.value(lambda v: len(v.shape) >= 1)
    if x is None:
        return
    shape = list(x.shape)
    axis = g.number(0, len(shape) - 1)
    kind = g.choose(("merge", "split", "one"))
    if kind == "merge" and axis + 1 < len(shape):
        shape[axis : axis + 2] = [shape[axis] * shape[axis + 1]]
    elif kind == "split" and len(shape) < 5:
        factor = next((f for f in (2, 3) if shape[axis] % f == 0), 1)
        shape[axis : axis + 1] = [shape[axis] // factor, factor]
    elif len(shape) < 5:
        shape.insert(axis, 1)
    g.add("Reshape", x, g.builder.ints(*shape))


def _reduce(g: _RandomGraph) -> None:
    x = g.value(lambda v: len(v.shape) >= 1 and 0 not in v.shape)
    if x is not None:
        axes = g.draw(st.sets(st.integers(0, len(x.shape) - 1), min_size=1))
        op = g.choose(("ReduceMean", "ReduceMax", "ReduceMin"))
        g.add(op, x, g.builder.ints(*sorted(axes)), keepdims=g.number(0, 1))


def _softmax(g: _RandomGraph) -> None:
    x = g.value(lambda v: len(v.shape) >= 1 and 0 not in v.shape)
    if x is not None:
        g.add("Softmax", x, axis=g.number(0, len(x.shape) - 1))


def _layer_norm(g: _RandomGraph) -> None:
    """Add a LayerNormalization over at least 8 elements; few equal elements would be divided by epsilon only."""
    x = g.value(lambda v: len(v.shape) >= 1 and v.shape[-1] >= 8)
    if x is not None:
        width = x.shape[-1]
        g.add("LayerNormalization", x, g.constant(width), g.constant(width), epsilon=0.1)


def _product(g: _RandomGraph) -> None:
    x = g.value(lambda v: len(v.shape) >= 2 and 0 not in v.shape)
    if x is None:
        return
    depth = x.shape[-1]
    other = g.value(lambda v: len(v.shape) == len(x.shape) >= 2 and v.shape[:-2] == x.shape[:-2])
    if other is not None and other.shape[-1] == depth and g.number(0, 1):
        last = len(x.shape) - 1
        g.add("Transpose", other, perm=(*range(last - 1), last, last - 1))
        g.add("MatMul", x, g.pool[-1])
        scale = g.builder.constant(np.float32(1 / depth))
        g.add("Mul", g.pool[-1], scale)
    else:
        g.add("MatMul", x, g.constant(depth, g.choose((1, 5, 16, 24)), scale=depth**-0.5))


def _resize(g: _RandomGraph) -> None:
    x = g.value(lambda v: len(v.shape) == 4 and 0 < prod(v.shape) <= _MOST_ELEMENTS // 4)
    if x is not None:
        scales = g.builder.constant(np.array([1, 1, 2, 2], np.float32))
        kind = g.choose(("nearest", "linear"))
        modes: dict[str, Any] = {"mode": kind, "coordinate_transformation_mode": "asymmetric"}
        if kind == "nearest":
            modes["nearest_mode"] = "floor"
        g.add("Resize", x, None, scales, **modes)


def _pad(g: _RandomGraph) -> None:
    x = g.value(lambda v: len(v.shape) >= 1 and prod(v.shape) <= _MOST_ELEMENTS // 4)
    if x is not None:
        pads = [g.number(0, 1) for _ in range(2 * len(x.shape))]
        g.add("Pad", x, g.builder.ints(*pads))


def _gather(g: _RandomGraph) -> None:
    x = g.value(lambda v: len(v.shape) >= 1 and 0 not in v.shape)
    if x is not None:
        axis = g.number(0, len(x.shape) - 1)
        chosen = g.draw(st.lists(st.integers(0, x.shape[axis] - 1), min_size=1, max_size=4))
        g.add("Gather", x, g.builder.ints(*chosen), axis=axis)


def _expand(g: _RandomGraph) -> None:
    x = g.value(lambda v: 1 in v.shape and prod(v.shape) <= _MOST_ELEMENTS // 8)
    if x is not None:
        shape = [g.number(2, 4) if n == 1 and g.number(0, 1) else n for n in x.shape]
        if prod(shape) <= _MOST_ELEMENTS:
            g.add("Expand", x, g.builder.ints(*shape))


_IMAGE_NODES = (
    *(_unary, _binary, _binary, _gate, _clip, _conv, _conv, _conv, _concat, _concat, _split, _transpose, _reshape),
    *(_pool, _slice, _reduce, _softmax, _layer_norm, _product, _resize, _pad, _gather, _expand),
)


# **** values ****


def _is_float(value: Value) -> bool:
    return value.dtype is DType.FLOAT32


def _fit(one: Value, other: Value) -> bool:
    """Return True if two values broadcast together, to a shape that is not too large."""
    pairs = list(zip(reversed(one.shape), reversed(other.shape)))
    if any(n != m and 1 not in (n, m) for n, m in pairs):
        return False
    return prod(np.broadcast_shapes(tuple(one.shape), tuple(other.shape))) <= _MOST_ELEMENTS
