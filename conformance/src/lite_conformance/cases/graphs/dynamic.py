"""One session, many input shapes: plans are made, kept and found again; sizes that depend on data."""

from __future__ import annotations

from lite_conformance.cases.graphs.draft import Draft, GraphTable
from lite_conformance.cases.tensors import distinct
from lite_conformance.judge.tolerances import EXACT
from lite_core.ir import DType, Value

__all__ = ["graphs"]

graphs = GraphTable()

#: Batches and widths in turn and back again; the second run of a shape has other contents than the first.
_IMAGES = tuple({"n": n, "w": w} for n, w in ((1, 7), (3, 32), (1, 33), (0, 7), (3, 32), (1, 7)))
_BATCHES = tuple({"n": n} for n in (1, 3, 0, 32, 33, 3, 1))
#: Sizes that no data dependent result can do without.
_FILLED = tuple({"n": n} for n in (4, 7, 33, 4, 32, 7))


@graphs.case("conv", signatures=_IMAGES, op="Conv")
def _(g: Draft) -> None:
    x = g("Relu", g.batch_norm(g.conv(g.input("n", 3, 8, "w"), 5, 3)))
    g.output(g("MaxPool", x, kernel_shape=(2, 2), strides=(2, 2)), x)


@graphs.case("conv-two-sizes", signatures=_IMAGES, op="Conv")
def _(g: Draft) -> None:
    """A residual block and a head whose output keeps its size."""
    x = g.conv(g.input("n", 2, "w", 9), 6, 3, strides=(2, 2))
    x = g("Relu", g("Add", x, g.conv(x, 6, 3)))
    g.output(g("Gemm", g("Flatten", g("GlobalAveragePool", x)), g.weight(6, 4), g.weight(4)))


@graphs.case("mlp", ("float32", "float16", "float64"), signatures=_BATCHES, op="MatMul")
def _(g: Draft) -> None:
    g.output(g("Softmax", g.linear(g("Relu", g.linear(g.input("n", 6), 9)), 4), axis=-1))


@graphs.case("elementwise", ("float32", "int64"), signatures=_IMAGES)
def _(g: Draft) -> None:
    """Two inputs that broadcast, one size of which is 1 where the other changes."""
    x, y = g.input("n", 1, "w"), g.input(5, "w")
    g.output(g("Mul", g("Add", x, y), g("Sub", x, g.constant(2))), g("Neg", y))


@graphs.case("elementwise-one-becomes-many", signatures=_BATCHES)
def _(g: Draft) -> None:
    """A size that is 1 in some runs, where it must broadcast, and not in others."""
    g.output(g("Tanh", g("Mul", g.input("n", 4), g.weight(1, 4))), g("Add", g.input("n", 1), g.weight(4)))


@graphs.case("softmax", signatures=_IMAGES, op="Softmax")
def _(g: Draft) -> None:
    x = g.input("n", 3, "w")
    g.output(g("Softmax", x, axis=-1), g("Softmax", x, axis=1), g("ReduceMean", x, (1,)))


@graphs.case("attention", signatures=_IMAGES, op="MatMul")
def _(g: Draft) -> None:
    x = g.input("n", "w", 8)
    query, key, value = (g("Reshape", g.linear(x, 8), (0, 0, 2, 4)) for _ in range(3))
    query, value = (g("Transpose", p, perm=(0, 2, 1, 3)) for p in (query, value))
    weights = g("Softmax", g("MatMul", query, g("Transpose", key, perm=(0, 2, 3, 1))), axis=-1)
    mixed = g("Transpose", g("MatMul", weights, value), perm=(0, 2, 1, 3))
    g.output(g("Reshape", mixed, (0, 0, 8)))


@graphs.case("reshape-computed", signatures=_IMAGES, op="Reshape")
def _(g: Draft) -> None:
    """The target of a Reshape from Shape, Gather and Concat, as exporters write it."""
    x = g.input("n", 4, "w")
    shape = g("Shape", x)
    sizes = [g("Unsqueeze", g("Gather", shape, g.constant(axis, "int64")), (0,)) for axis in (0, 2)]
    halved = g("Div", g.constant([4], "int64"), g.constant([2], "int64"))
    target = g("Concat", sizes[0], g("Mul", sizes[1], halved), halved, axis=0)
    g.output(g("Reshape", g("Relu", x), target), shape)


@graphs.case("flatten-rows", signatures=_IMAGES, op="MatMul")
def _(g: Draft) -> None:
    """To a matrix of as many rows as there are, and back by the shape that was."""
    x = g.input("n", "w", 5)
    rows = g("Reshape", x, (-1, 5))
    product = g("MatMul", rows, g.weight(5, 3))
    target = g("Concat", g("Shape", x, start=0, end=2), (3,), axis=0)
    g.output(g("Reshape", g("Add", product, g.weight(3)), target))


@graphs.case("expand-and-range", signatures=_IMAGES, op="Expand")
def _(g: Draft) -> None:
    """Positions made from the length of the input."""
    x = g.input("n", "w", 3)
    length = g("Gather", g("Shape", x), g.constant(1, "int64"))
    index = g("Range", g.constant(0, "int64"), length, g.constant(1, "int64"))
    positions = g("Unsqueeze", g("Cast", index, to=DType.FLOAT32), (1,))
    g.output(g("Add", x, g("Expand", g("Mul", positions, 0.1), g("Shape", x))), index)


@graphs.case("resize-to-match", signatures=_IMAGES[:3] + _IMAGES[4:], op="Resize")
def _(g: Draft) -> None:
    """A small map enlarged to the size of another."""
    fine = g.input("n", 3, 8, "w")
    coarse = g.conv(fine, 3, 3, strides=(2, 2))
    grown = g("Resize", coarse, None, None, g("Shape", fine), mode="linear")
    g.output(g("Add", grown, fine))


@graphs.case("slice-and-concat", ("float32", "int32"), signatures=_IMAGES, numerics=EXACT, op="Slice")
def _(g: Draft) -> None:
    """All but the first, and the last first: sizes that are the width less one."""
    x = g.input("n", 4, "w")
    tail = g("Slice", x, (1,), (2**62,), (2,))
    back = g("Slice", x, (-1,), (-(2**62),), (2,), (-2,))
    g.output(g("Concat", tail, back, x, axis=2))


@graphs.case("recurrent", signatures=_IMAGES[:3] + _IMAGES[4:], op="LSTM")
def _(g: Draft) -> None:
    weights = g.weight(1, 16, 5), g.weight(1, 16, 4), g.weight(1, 32)
    outputs = g.several("LSTM", 3, g("Tanh", g.input("w", "n", 5)), *weights, hidden_size=4)
    g.output(g("Squeeze", outputs[0], (1,)), outputs[1])


@graphs.case("tile-and-fill", signatures=_IMAGES, op="Tile")
def _(g: Draft) -> None:
    x = g.input("n", "w")
    zeros = g("ConstantOfShape", g("Shape", x))
    g.output(g("Concat", g("Tile", x, (1, 2)), zeros, axis=1))


@graphs.case("loop-over-length", signatures=_BATCHES, op="Loop")
def _(g: Draft) -> None:
    """As many trips as the input has rows."""
    rows = g.input("n", 3)
    body = g.body("body")
    number, going, state = body.argument("int64"), body.argument("bool"), body.argument(g.dtype, 3)
    after = body("Add", state, body("Gather", rows, number, axis=0))
    body.output(body("Identity", going), after, after)
    trips = g("Gather", g("Shape", rows), g.constant(0, "int64"))
    always = g.constant(True, "bool")
    g.output(*g.several("Loop", 2, trips, always, g.weight(3), body=body.builder.build()))


@graphs.case("if-by-size", signatures=_BATCHES, op="If")
def _(g: Draft) -> None:
    """A branch taken by the size of the input."""
    x = g.input("n", 3)
    many = g("Greater", g("Gather", g("Shape", x), g.constant(0, "int64")), g.constant(2, "int64"))
    then = g.branch("then", lambda b: b("Tanh", x))
    other = g.branch("else", lambda b: b("Neg", x))
    g.output(g("Add", g("If", many, then_branch=then, else_branch=other), 1.0))


# **** sizes that depend on data ****


@graphs.case("nonzero-output", ("float32", "bool"), signatures=_FILLED, numerics=EXACT, op="NonZero")
def _(g: Draft) -> None:
    x = g.input("n", 5)
    g.output(g("NonZero", x if g.dtype is DType.BOOL else g("Relu", x)))


@graphs.case("nonzero-inside", signatures=_FILLED, op="NonZero")
def _(g: Draft) -> None:
    """Positive elements are gathered, and layers follow on as many rows as there are."""
    x = g.input("n", 5)
    places = g("Transpose", g("NonZero", g("Greater", x, 0.0)))
    found = g("Unsqueeze", g("GatherND", x, places), (1,))
    g.output(g("Tanh", g("Gemm", found, g.weight(1, 3), g.weight(3))), g("Shape", found))


@graphs.case("compress-inside", signatures=_FILLED, op="Compress")
def _(g: Draft) -> None:
    """Rows are picked, go through layers, and are put back where they were."""
    x = g.linear(g.input("n", 6), 6)
    chosen = g("Greater", g("Gather", x, g.constant(0, "int64"), axis=1), 0.0)
    rows = g("Compress", x, chosen, axis=0)
    changed = g("Relu", g.linear(rows, 6))
    g.output(g("ScatterND", x, g("Transpose", g("NonZero", chosen)), changed), changed)


@graphs.case("nothing-found", signatures=_FILLED, op="NonZero")
def _(g: Draft) -> None:
    """Nothing is found: what follows works on no rows at all."""
    x = g.input("n", 5)
    rows = g("Compress", x, g("Greater", g("ReduceMax", x, (1,), keepdims=0), 1e6), axis=0)
    g.output(g("Relu", g.linear(rows, 3)), g("Concat", rows, x, axis=0))


def _boxes(g: Draft) -> tuple[Value, Value]:
    """Boxes on a grid, of which neighbours overlap; scores that all differ."""
    centres = g.input(1, "n", 2, fill=distinct)
    boxes = g("Concat", g("Sub", centres, 1.0), g("Add", centres, 1.0), axis=2)
    return boxes, g("Sigmoid", g("Mul", g.input(1, 2, "n", fill=distinct), 0.1))


@graphs.case("nms-output", signatures=_FILLED, op="NonMaxSuppression")
def _(g: Draft) -> None:
    boxes, scores = _boxes(g)
    limits = g.constant([9], "int64"), g.constant([0.3], "float32"), g.constant([0.2], "float32")
    g.output(g("NonMaxSuppression", boxes, scores, *limits))


@graphs.case("nms-inside", signatures=_FILLED, op="NonMaxSuppression")
def _(g: Draft) -> None:
    """What is kept is gathered and decoded."""
    boxes, scores = _boxes(g)
    kept = g("NonMaxSuppression", boxes, scores, g.constant([9], "int64"), g.constant([0.3], "float32"))
    places = g("Gather", kept, (0, 2), axis=1)
    best = g("Mul", g("GatherND", boxes, places), 8.0)
    g.output(best, g("GatherND", scores, kept), g("Gather", kept, g.constant(1, "int64"), axis=1))


@graphs.case("unique-inside", ("int64", "float32"), signatures=_FILLED, numerics=EXACT, op="Unique")
def _(g: Draft) -> None:
    x = g.input("n")
    x = x if g.dtype.is_integer else g("Round", x)
    found, _, inverse, counts = g.several("Unique", 4, x)
    g.output(g("Add", found, found), g("Gather", g("Neg", found), inverse), counts)
