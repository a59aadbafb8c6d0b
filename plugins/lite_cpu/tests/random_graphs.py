"""Random graphs for hypothesis: operators that are fused, written in place, joined without copies and seen as views.

A graph grows node by node from a pool of values. Every operator that is drawn is continuous and keeps values small,
so that a graph may be deep and still be compared closely. What nothing reads is an output, and so are a few
values that something reads, which must then exist in memory although they could have stayed in registers.
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
    """A graph, and inputs for it."""

    graph: Graph
    inputs: dict[str, Array]

    def __repr__(self) -> str:  # what hypothesis shows of the smallest example that fails
        return str(self.graph)


@dataclass
class _Sketch:
    """A graph on the way: what can be read, what has been, and where choices come from."""

    draw: st.DrawFn
    builder: GraphBuilder = field(default_factory=lambda: GraphBuilder("random"))
    pool: list[Value] = field(default_factory=list)
    inputs: dict[str, Array] = field(default_factory=dict)
    _read: set[Value] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.draw(st.integers(0, 99)))

    # **** choices ****

    def choose(self, options: Sequence[Any]) -> Any:
        """One of some."""
        return self.draw(st.sampled_from(options))

    def number(self, least: int, most: int) -> int:
        """A whole number from ``least`` to ``most``."""
        return self.draw(st.integers(least, most))

    def value(self, fits: Callable[[Value], bool] = lambda value: True) -> Value | None:
        """One of the pool's values, a late one rather than an early one; None where none fits."""
        fitting = [v for v in reversed(self.pool) if fits(v)]
        return self.choose(fitting) if fitting else None

    # **** building ****

    def input(self, shape: Sequence[int], dtype: DType = DType.FLOAT32) -> None:
        """A new input of the graph."""
        value = self.builder.input(f"input_{len(self.inputs)}", dtype, shape)
        self.inputs[value.name] = self._elements(shape, dtype)
        self.pool.append(value)

    def constant(self, *shape: int, dtype: DType = DType.FLOAT32, scale: float = 1.0) -> Value:
        """A constant of random elements."""
        elements = self._elements(shape, dtype)
        return self.builder.constant((elements * scale).astype(dtype.numpy) if scale != 1.0 else elements)

    def _elements(self, shape: Sequence[int], dtype: DType) -> Array:
        if dtype is DType.BOOL:
            return np.asarray(self._random.random(shape) < 0.5)
        drawn = self._random.standard_normal(shape) * (1.0 if dtype.is_floating else 4.0)
        return np.asarray(drawn).astype(dtype.numpy)

    def add(self, op: str, *inputs: Value | None, outputs: int = 1, **attributes: Attribute) -> None:
        """Add a node, its results to the pool."""
        made = self.builder.add_node(op, inputs, attributes, outputs=outputs)
        self._read.update(v for v in inputs if v is not None)
        self.pool.extend(made)

    def finish(self) -> Example:
        """The graph; every value that is made contributes to an output."""
        made = [v for v in self.pool if v not in self.builder.graph.inputs]
        for value in made:
            if value not in self._read or self.number(0, 9) == 0:
                self.builder.output(value)
        return Example(self.builder.build(), self.inputs)


# **** element-wise graphs ****


@st.composite
def elementwise_graphs(draw: st.DrawFn) -> Example:
    """Element-wise nodes of several element types on operands that broadcast in every way."""
    sketch = _Sketch(draw)
    full = draw(st.lists(st.integers(1, 9), min_size=0, max_size=4))
    for _ in range(sketch.number(1, 3)):
        kept = full[sketch.number(0, len(full)) :] if full else []
        shape = [n if sketch.number(0, 3) else 1 for n in kept]
        sketch.input(shape, sketch.choose([DType.FLOAT32, DType.FLOAT32, DType.INT32, DType.INT64, DType.BOOL]))
    for _ in range(sketch.number(1, 14)):
        sketch.choose(_ELEMENTWISE_MOVES)(sketch)
    return sketch.finish() if len(sketch.pool) > len(sketch.inputs) else _fallback(sketch)


def _fallback(sketch: _Sketch) -> Example:
    """The smallest graph, where no node that was drawn had an operand."""
    sketch.add("Identity", sketch.pool[0])
    return sketch.finish()


def _unary(sketch: _Sketch) -> None:
    value = sketch.value(_is_float)
    if value is not None:
        sketch.add(sketch.choose(_UNARY), value)


def _binary(sketch: _Sketch) -> None:
    """Two values, or one twice, or one and a constant; in either order."""
    first = sketch.value(lambda v: v.dtype is not DType.BOOL)
    if first is None:
        return
    second = sketch.value(lambda v: v.dtype is first.dtype and _fit(v, first))
    if second is None or sketch.number(0, 3) == 0:
        shape = [n if sketch.number(0, 1) else 1 for n in first.shape][sketch.number(0, len(first.shape)) :]
        second = sketch.constant(*shape, dtype=first.dtype)
    # Products of products soon overflow, or lose every digit.
    ops = _BINARY if first.dtype.is_floating and sketch.number(0, 2) == 0 else [o for o in _BINARY if o != "Mul"]
    pair = (first, second) if sketch.number(0, 1) else (second, first)
    sketch.add(sketch.choose(ops), *pair)


def _gate(sketch: _Sketch) -> None:
    """A value times what is between 0 and 1, as in SiLU and in squeeze-and-excitation."""
    first = sketch.value(_is_float)
    second = None if first is None else sketch.value(lambda v: _is_float(v) and _fit(v, first))
    if first is not None and second is not None:
        sketch.add("Sigmoid", second)
        sketch.add("Mul", first, sketch.pool[-1])


def _compare(sketch: _Sketch) -> None:
    """The smaller of two values by comparing them: continuous, unlike a comparison alone."""
    first = sketch.value(lambda v: v.dtype is not DType.BOOL)
    second = None if first is None else sketch.value(lambda v: v.dtype is first.dtype and _fit(v, first))
    if first is not None and second is not None:
        less = sketch.builder.add("Less", [first, second])
        sketch.add("Where", less, first, second)


def _truth(sketch: _Sketch) -> None:
    """Something on truth values, or a choice by one."""
    truth = sketch.value(lambda v: v.dtype is DType.BOOL)
    if truth is None:
        return
    kind = sketch.number(0, 2)
    if kind == 0:
        sketch.add("Not", truth)
    elif kind == 1:
        other = sketch.value(lambda v: v.dtype is DType.BOOL and _fit(v, truth))
        sketch.add(sketch.choose(("And", "Or", "Xor")), truth, other)
    else:
        chosen = sketch.value(lambda v: v.dtype is not DType.BOOL and _fit(v, truth))
        if chosen is not None:
            sketch.add("Where", truth, chosen, sketch.constant(dtype=chosen.dtype))


def _cast(sketch: _Sketch) -> None:
    """To float from anything; a rounding the other way would not be continuous."""
    value = sketch.value(lambda v: not _is_float(v))
    if value is not None:
        to = DType.FLOAT32 if value.dtype is DType.BOOL else sketch.choose((DType.FLOAT32, DType.INT64, DType.INT32))
        sketch.add("Cast", value, to=to)


def _clip(sketch: _Sketch) -> None:
    value = sketch.value(_is_float)
    if value is not None:
        low, high = (sketch.builder.constant(np.float32(limit)) for limit in (-1.5, 2.0))
        sketch.add("Clip", value, low if sketch.number(0, 2) else None, high if sketch.number(0, 2) else None)


_ELEMENTWISE_MOVES = (_unary, _unary, _binary, _binary, _gate, _compare, _truth, _cast, _clip)


# **** image graphs ****


@st.composite
def image_graphs(draw: st.DrawFn) -> Example:
    """Convolutions, pools, products, joins, cuts, views and reductions, with element-wise nodes between them."""
    sketch = _Sketch(draw)
    shape = [sketch.number(1, 2), sketch.choose((1, 3, 4, 8, 16, 20)), sketch.number(1, 11), sketch.number(1, 19)]
    for _ in range(sketch.number(1, 2)):
        sketch.input(shape)
    for _ in range(sketch.number(1, 12)):
        sketch.choose(_IMAGE_MOVES)(sketch)
    return sketch.finish() if len(sketch.pool) > len(sketch.inputs) else _fallback(sketch)


def _conv(sketch: _Sketch) -> None:
    x = sketch.value(lambda v: len(v.shape) == 4 and 0 not in v.shape)
    if x is None:
        return
    depth = x.shape[1]
    kind = sketch.choose(("pointwise", "dense", "dense", "depthwise", "grouped"))
    group = depth if kind == "depthwise" else 2 if kind == "grouped" and depth % 2 == 0 else 1
    channels = depth if kind == "depthwise" else sketch.choose((2, 6, 16, 18))
    kernel = 1 if kind == "pointwise" else sketch.choose((3, 3, 5))
    weight = sketch.constant(channels, depth // group, kernel, kernel, scale=(depth // group * kernel * kernel) ** -0.5)
    bias = sketch.constant(channels) if sketch.number(0, 1) else None
    stride = sketch.choose((1, 1, 2))
    attributes: dict[str, Any] = {"strides": (stride, stride), "pads": (kernel // 2,) * 4, "group": group}
    sketch.add("Conv", x, weight, bias, **attributes)


def _pool(sketch: _Sketch) -> None:
    x = sketch.value(lambda v: len(v.shape) == 4 and 0 not in v.shape)
    if x is None:
        return
    kind = sketch.choose(("MaxPool", "AveragePool", "GlobalAveragePool"))
    if kind == "GlobalAveragePool":
        sketch.add(kind, x)
        return
    stride = sketch.choose((1, 2))
    sketch.add(kind, x, kernel_shape=(3, 3), strides=(stride, stride), pads=(1,) * 4)


def _concat(sketch: _Sketch) -> None:
    first = sketch.value(lambda v: len(v.shape) >= 1 and prod(v.shape) <= _MOST_ELEMENTS // 3)
    if first is None:
        return
    axis = sketch.number(0, len(first.shape) - 1)

    def joins(value: Value) -> bool:
        rest = [n for a, n in enumerate(value.shape) if a != axis]
        return len(value.shape) == len(first.shape) and rest == [n for a, n in enumerate(first.shape) if a != axis]

    others = [sketch.value(joins) for _ in range(sketch.number(1, 2))]
    parts = [first, *(v for v in others if v is not None and prod(v.shape) <= _MOST_ELEMENTS)]
    sketch.add("Concat", *(parts if sketch.number(0, 1) else reversed(parts)), axis=axis)


def _split(sketch: _Sketch) -> None:
    x = sketch.value(lambda v: any(n > 1 for n in v.shape))
    if x is None:
        return
    axis = sketch.choose([a for a, n in enumerate(x.shape) if n > 1])
    first = sketch.number(1, x.shape[axis] - 1)
    sizes = sketch.builder.ints(first, x.shape[axis] - first)
    sketch.add("Split", x, sizes, outputs=2, axis=axis)


def _slice(sketch: _Sketch) -> None:
    x = sketch.value(lambda v: any(n > 1 for n in v.shape))
    if x is None:
        return
    axis = sketch.choose([a for a, n in enumerate(x.shape) if n > 1])
    start, stop, step = sketch.choose(((1, 1000, 1), (0, 1000, 2), (-1, -1000, -1), (0, -1, 1)))
    sketch.add("Slice", x, *(sketch.builder.ints(n) for n in (start, stop, axis, step)))


def _transpose(sketch: _Sketch) -> None:
    x = sketch.value(lambda v: len(v.shape) >= 2)
    if x is not None:
        sketch.add("Transpose", x, perm=tuple(sketch.draw(st.permutations(range(len(x.shape))))))


def _reshape(sketch: _Sketch) -> None:
    """Dimensions merged, or one split in two, or some of size 1 put in."""
    x = sketch.value(lambda v: len(v.shape) >= 1)
    if x is None:
        return
    shape = list(x.shape)
    axis = sketch.number(0, len(shape) - 1)
    kind = sketch.choose(("merge", "split", "one"))
    if kind == "merge" and axis + 1 < len(shape):
        shape[axis : axis + 2] = [shape[axis] * shape[axis + 1]]
    elif kind == "split" and len(shape) < 5:
        factor = next((f for f in (2, 3) if shape[axis] % f == 0), 1)
        shape[axis : axis + 1] = [shape[axis] // factor, factor]
    elif len(shape) < 5:
        shape.insert(axis, 1)
    sketch.add("Reshape", x, sketch.builder.ints(*shape))


def _reduce(sketch: _Sketch) -> None:
    x = sketch.value(lambda v: len(v.shape) >= 1 and 0 not in v.shape)
    if x is not None:
        axes = sketch.draw(st.sets(st.integers(0, len(x.shape) - 1), min_size=1))
        op = sketch.choose(("ReduceMean", "ReduceMax", "ReduceMin"))
        sketch.add(op, x, sketch.builder.ints(*sorted(axes)), keepdims=sketch.number(0, 1))


def _softmax(sketch: _Sketch) -> None:
    x = sketch.value(lambda v: len(v.shape) >= 1 and 0 not in v.shape)
    if x is not None:
        sketch.add("Softmax", x, axis=sketch.number(0, len(x.shape) - 1))


def _layer_norm(sketch: _Sketch) -> None:
    """Over enough elements that they are not all alike: those would be divided by nothing but epsilon."""
    x = sketch.value(lambda v: len(v.shape) >= 1 and v.shape[-1] >= 8)
    if x is not None:
        width = x.shape[-1]
        sketch.add("LayerNormalization", x, sketch.constant(width), sketch.constant(width), epsilon=0.1)


def _product(sketch: _Sketch) -> None:
    x = sketch.value(lambda v: len(v.shape) >= 2 and 0 not in v.shape)
    if x is None:
        return
    depth = x.shape[-1]
    other = sketch.value(lambda v: len(v.shape) == len(x.shape) >= 2 and v.shape[:-2] == x.shape[:-2])
    if other is not None and other.shape[-1] == depth and sketch.number(0, 1):
        last = len(x.shape) - 1
        sketch.add("Transpose", other, perm=(*range(last - 1), last, last - 1))
        sketch.add("MatMul", x, sketch.pool[-1])
        scale = sketch.builder.constant(np.float32(1 / depth))
        sketch.add("Mul", sketch.pool[-1], scale)
    else:
        sketch.add("MatMul", x, sketch.constant(depth, sketch.choose((1, 5, 16, 24)), scale=depth**-0.5))


def _resize(sketch: _Sketch) -> None:
    x = sketch.value(lambda v: len(v.shape) == 4 and 0 < prod(v.shape) <= _MOST_ELEMENTS // 4)
    if x is not None:
        scales = sketch.builder.constant(np.array([1, 1, 2, 2], np.float32))
        kind = sketch.choose(("nearest", "linear"))
        modes: dict[str, Any] = {"mode": kind, "coordinate_transformation_mode": "asymmetric"}
        if kind == "nearest":
            modes["nearest_mode"] = "floor"
        sketch.add("Resize", x, None, scales, **modes)


def _pad(sketch: _Sketch) -> None:
    x = sketch.value(lambda v: len(v.shape) >= 1 and prod(v.shape) <= _MOST_ELEMENTS // 4)
    if x is not None:
        pads = [sketch.number(0, 1) for _ in range(2 * len(x.shape))]
        sketch.add("Pad", x, sketch.builder.ints(*pads))


def _gather(sketch: _Sketch) -> None:
    x = sketch.value(lambda v: len(v.shape) >= 1 and 0 not in v.shape)
    if x is not None:
        axis = sketch.number(0, len(x.shape) - 1)
        chosen = sketch.draw(st.lists(st.integers(0, x.shape[axis] - 1), min_size=1, max_size=4))
        sketch.add("Gather", x, sketch.builder.ints(*chosen), axis=axis)


def _expand(sketch: _Sketch) -> None:
    x = sketch.value(lambda v: 1 in v.shape and prod(v.shape) <= _MOST_ELEMENTS // 8)
    if x is not None:
        shape = [sketch.number(2, 4) if n == 1 and sketch.number(0, 1) else n for n in x.shape]
        if prod(shape) <= _MOST_ELEMENTS:
            sketch.add("Expand", x, sketch.builder.ints(*shape))


_IMAGE_MOVES = (
    *(_unary, _binary, _binary, _gate, _clip, _conv, _conv, _conv, _concat, _concat, _split, _transpose, _reshape),
    *(_pool, _slice, _reduce, _softmax, _layer_norm, _product, _resize, _pad, _gather, _expand),
)


# **** values ****


def _is_float(value: Value) -> bool:
    return value.dtype is DType.FLOAT32


def _fit(one: Value, other: Value) -> bool:
    """Whether two values broadcast together, into something that is not too large."""
    pairs = list(zip(reversed(one.shape), reversed(other.shape)))
    if any(n != m and 1 not in (n, m) for n, m in pairs):
        return False
    return prod(np.broadcast_shapes(tuple(one.shape), tuple(other.shape))) <= _MOST_ELEMENTS
