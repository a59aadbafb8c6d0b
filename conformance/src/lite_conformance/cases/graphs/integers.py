"""Integer and boolean graphs, casts and quantisation, with exact results."""

from __future__ import annotations

import numpy as np

from lite_conformance.cases.graphs.draft import INTEGERS, Draft, GraphTable
from lite_conformance.cases.tensors import integers, uniform
from lite_conformance.judge.tolerances import EXACT
from lite_core.ir import DType

__all__ = ["graphs"]

graphs = GraphTable()


@graphs.case("integer-chain", [*INTEGERS, "int8", "uint8"], numerics=EXACT)
def _(g: Draft) -> None:
    """Sums and products that wrap around where the type is small."""
    x, y = g.input(3, 5), g.input(5)
    x = g("Add", g("Mul", x, y), g.weight(3, 1))
    x = g("Min", g("Max", g("Sub", x, y), g.constant(2)), g.constant(100))
    g.output(x, g("Greater", x, y))


@graphs.case("integer-division", INTEGERS, numerics=EXACT, op="Div")
def _(g: Draft) -> None:
    """Division truncates towards zero, and the remainder has the divisor's sign."""
    x, y = g.input(4, 6), g.input(6, init=integers(1, 5))
    quotient = g("Div", x, y)
    g.output(quotient, g("Sub", x, g("Mul", quotient, y)), g("Mod", x, y), g("Mod", x, g("Neg", y)))


@graphs.case("index-arithmetic", INTEGERS, numerics=EXACT, op="Gather")
def _(g: Draft) -> None:
    """Indices computed in the graph: rows and columns from flat indices."""
    flat = g.input(7, init=integers(0, 12))
    width = g.constant(4)
    row, column = g("Div", flat, width), g("Mod", flat, width)
    table = g.weight(3, 4)
    pairs = g("Cast", g("Concat", g("Unsqueeze", row, (1,)), g("Unsqueeze", column, (1,)), axis=1), to=DType.INT64)
    g.output(g("GatherND", table, pairs), g("Gather", g("Reshape", table, (12,)), flat))


@graphs.case("gather-scatter", ("int64", "int32", "float32"), numerics=EXACT, op="ScatterElements")
def _(g: Draft) -> None:
    x = g.input(5, 4)
    index = g.constant([[3, 1, 0, 4], [0, 4, 2, 1]], "int64")
    moved = g("ScatterElements", x, index, g("Neg", g.input(2, 4)), axis=0)
    g.output(
        moved,
        g("GatherElements", moved, index, axis=0),
        g("ScatterND", x, g.constant([[1], [3]], "int64"), g.input(2, 4)),
    )


@graphs.case("masks", ("bool",), numerics=EXACT, op="Where")
def _(g: Draft) -> None:
    x, y = g.input(4, 6), g.input(4, 1)
    either, both = g("Or", x, y), g("And", x, g("Not", y))
    numbers = g("Cast", g("Xor", either, both), to=DType.INT64)
    g.output(either, g("ReduceSum", numbers, (1,)), g("Where", both, g.constant(7, "int32"), g.constant(-7, "int32")))


@graphs.case("cast-chain", ("float32",), numerics=EXACT, op="Cast")
def _(g: Draft) -> None:
    """Conversions to integers, to booleans, and back."""
    x = g.input(4, 7, init=uniform(-100, 100))
    whole = g("Cast", x, to=DType.INT32)
    byte = g("Cast", g("Cast", g("Abs", x), to=DType.UINT8), to=DType.FLOAT16)
    truth = g("Cast", whole, to=DType.BOOL)
    g.output(g("Cast", whole, to=DType.INT64), byte, truth, g("Sub", x, g("Cast", whole, to=DType.FLOAT32)))


@graphs.case("quantize-dequantize", ("float32",), numerics=EXACT, op="QuantizeLinear")
def _(g: Draft) -> None:
    """Scales are powers of two, so that quotients are exact."""
    scale = g.constant(0.0625)
    zero = g.constant(3, "uint8")
    x = g("QuantizeLinear", g("Mul", g.input(3, 8, init=integers(-9, 12)), 0.125), scale, zero)
    pooled = g("Max", x, g.constant(5, "uint8"))
    g.output(x, g("DequantizeLinear", pooled, scale, zero))


@graphs.case("integer-matmul", ("int8", "uint8"), numerics=EXACT, op="MatMulInteger")
def _(g: Draft) -> None:
    x = g("MatMulInteger", g.input(4, 6), g.weight(6, 5), g.constant(2), g.constant(1))
    g.output(g("Add", x, g.builder.constant(np.arange(5, dtype=np.int32))))


@graphs.case("one-hot-sum", INTEGERS, op="OneHot")
def _(g: Draft) -> None:
    """Counting by one-hot vectors."""
    labels = g.input(9, init=integers(0, 5))
    hot = g("OneHot", labels, g.constant(5, "int64"), g.constant([0, 1], "int64"), axis=-1)
    g.output(g("ReduceSum", hot, (0,), keepdims=0), g("ArgMax", hot, axis=-1))


@graphs.case("rounding-chain", ("float32",), numerics=EXACT, op="Cast")
def _(g: Draft) -> None:
    """Halves that a smaller type in the middle of a chain rounds, and integers that it wraps."""
    x = g.input(4, 9, init=integers(257, 600))
    short = g("Cast", g("Cast", x, to=DType.BFLOAT16), to=DType.FLOAT32)
    half = g("Cast", g("Cast", g("Add", g("Mul", x, 8.0), 1.0), to=DType.FLOAT16), to=DType.FLOAT32)
    byte = g("Cast", g("Cast", g("Cast", x, to=DType.INT32), to=DType.INT8), to=DType.FLOAT32)
    g.output(g("Sub", x, short), half, byte, g("Cast", g("Round", g("Mul", x, 0.5)), to=DType.INT32))


@graphs.case("ties-after-rounding", ("float32",), numerics=EXACT, op="TopK")
def _(g: Draft) -> None:
    """Elements that are equal only after they were rounded."""
    x = g.input(5, 37)
    whole = g("Round", x)
    best, indices = g.several("TopK", 2, whole, (7,), axis=-1)
    g.output(best, indices, g("ArgMax", whole, axis=1), g("ArgMin", g("Floor", x), axis=1, select_last_index=1))
