"""One session with many input shapes: plans are made, cached and reused; sizes that depend on data."""

from __future__ import annotations

from lite_conformance.cases.graphs.draft import Draft, GraphTable
from lite_conformance.cases.tensors import distinct
from lite_conformance.judge.tolerances import EXACT
from lite_core.ir import DType, Value

__all__ = ["graphs"]

graphs = GraphTable()

#: Changing batches and widths; some repeat, with other contents than before.
_IMAGES = tuple({"n": n, "w": w} for n, w in ((1, 7), (3, 32), (1, 33), (0, 7), (3, 32), (1, 7)))
_BATCHES = tuple({"n": n} for n in (1, 3, 0, 32, 33, 3, 1))
#: Sizes without 0, for results whose sizes depend on data.
_NON_EMPTY = tuple({"n": n} for n in (4, 7, 33, 4, 32, 7))


@graphs.case("conv", signatures=_IMAGES, op="Conv")
def _(g: Draft) -> None:
    x = g("Relu", g.batch_norm(g.conv(g.input("n", 3, 8, "w"), 5, 3)))
    g.output(g("MaxPool", x, kernel_shape=(2, 2), strides=(2, 2)), x)


@graphs.case("conv-two-sizes", signatures=_IMAGES, op="Conv")
def _(g: Draft) -> None:
    """A residual block, and a head whose output has a fixed size per image."""
    x = g.conv(g.input("n", 2, "w", 9), 6, 3, strides=(2, 2))
    x = g("Relu", g("Add", x, g.conv(x, 6, 3)))
    g.output(g("Gemm", g("Flatten", g("GlobalAveragePool", x)), g.weight(6, 4), g.weight(4)))


@graphs.case("mlp", ("float32", "float16", "float64"), signatures=_BATCHES, op="MatMul")
def _(g: Draft) -> None:
    g.output(g("Softmax", g.linear(g("Relu", g.linear(g.input("n", 6), 9)), 4), axis=-1))


@graphs.case("elementwise", ("float32", "int64"), signatures=_IMAGES)
def _(g: Draft) -> None:
    """Two inputs that broadcast: a size of 1 against one of 5, and changing sizes."""
    x, y = g.input("n", 1, "w"), g.input(5, "w")
    g.output(g("Mul", g("Add", x, y), g("Sub", x, g.constant(2))), g("Neg", y))


@graphs.case("elementwise-one-becomes-many", signatures=_BATCHES)
def _(g: Draft) -> None:
    """A size that is 1 in some runs, where it broadcasts, and larger in others."""
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
    """The target shape of a Reshape from Shape, Gather and Concat, as exporters write it."""
    x = g.input("n", 4, "w")
    shape = g("Shape", x)
    sizes = [g("Unsqueeze", g("Gather", shape, g.constant(axis, "int64")), (0,)) for axis in (0, 2)]
    halved = g("Div", g.constant([4], "int64"), g.constant([2], "int64"))
    target = g("Concat", sizes[0], g("Mul", sizes[1], halved), halved, axis=0)
    g.output(g("Reshape", g("Relu", x), target), shape)


@graphs.case("flatten-rows", signatures=_IMAGES, op="MatMul")
def _(g: Draft) -> None:
    """Reshape to a matrix with the number of rows inferred, and back to the original shape."""
    x = g.input("n", "w", 5)
    rows = g("Reshape", x, (-1, 5))
    product = g("MatMul", rows, g.weight(5, 3))
    target = g("Concat", g("Shape", x, start=0, end=2), (3,), axis=0)
    g.output(g("Reshape", g("Add", product, g.weight(3)), target))


@graphs.case("expand-and-range", signatures=_IMAGES, op="Expand")
def _(g: Draft) -> None:
    """Positions computed from the length of the input."""
    x = g.input("n", "w", 3)
    length = g("Gather", g("Shape", x), g.constant(1, "int64"))
    index = g("Range", g.constant(0, "int64"), length, g.constant(1, "int64"))
    positions = g("Unsqueeze", g("Cast", index, to=DType.FLOAT32), (1,))
    g.output(g("Add", x, g("Expand", g("Mul", positions, 0.1), g("Shape", x))), index)


@graphs.case("resize-to-match", signatures=_IMAGES[:3] + _IMAGES[4:], op="Resize")
def _(g: Draft) -> None:
    """A feature map resized to the size of another."""
    fine = g.input("n", 3, 8, "w")
    coarse = g.conv(fine, 3, 3, strides=(2, 2))
    grown = g("Resize", coarse, None, None, g("Shape", fine), mode="linear")
    g.output(g("Add", grown, fine))


@graphs.case("slice-and-concat", ("float32", "int32"), signatures=_IMAGES, numerics=EXACT, op="Slice")
def _(g: Draft) -> None:
    """All elements but the first, whose size is the width minus one, and every second element in reverse order."""
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
    """The trip count is the number of rows of the input."""
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
    """The size of the input selects the branch."""
    x = g.input("n", 3)
    many = g("Greater", g("Gather", g("Shape", x), g.constant(0, "int64")), g.constant(2, "int64"))
    then = g.branch("then", lambda b: b("Tanh", x))
    other = g.branch("else", lambda b: b("Neg", x))
    g.output(g("Add", g("If", many, then_branch=then, else_branch=other), 1.0))


# **** sizes that depend on data ****


@graphs.case("nonzero-output", ("float32", "bool"), signatures=_NON_EMPTY, numerics=EXACT, op="NonZero")
def _(g: Draft) -> None:
    x = g.input("n", 5)
    g.output(g("NonZero", x if g.dtype is DType.BOOL else g("Relu", x)))


@graphs.case("nonzero-inside", signatures=_NON_EMPTY, op="NonZero")
def _(g: Draft) -> None:
    """Positive elements are gathered, and layers run on that many rows."""
    x = g.input("n", 5)
    positions = g("Transpose", g("NonZero", g("Greater", x, 0.0)))
    found = g("Unsqueeze", g("GatherND", x, positions), (1,))
    g.output(g("Tanh", g("Gemm", found, g.weight(1, 3), g.weight(3))), g("Shape", found))


@graphs.case("compress-inside", signatures=_NON_EMPTY, op="Compress")
def _(g: Draft) -> None:
    """Rows are selected, processed by layers, and scattered back to their positions."""
    x = g.linear(g.input("n", 6), 6)
    chosen = g("Greater", g("Gather", x, g.constant(0, "int64"), axis=1), 0.0)
    rows = g("Compress", x, chosen, axis=0)
    changed = g("Relu", g.linear(rows, 6))
    g.output(g("ScatterND", x, g("Transpose", g("NonZero", chosen)), changed), changed)


@graphs.case("nothing-found", signatures=_NON_EMPTY, op="NonZero")
def _(g: Draft) -> None:
    """No row is selected, so that the layers run on zero rows."""
    x = g.input("n", 5)
    rows = g("Compress", x, g("Greater", g("ReduceMax", x, (1,), keepdims=0), 1e6), axis=0)
    g.output(g("Relu", g.linear(rows, 3)), g("Concat", rows, x, axis=0))


def _boxes(g: Draft) -> tuple[Value, Value]:
    """Return boxes on a grid, of which neighbours overlap, and distinct scores."""
    centres = g.input(1, "n", 2, init=distinct)
    boxes = g("Concat", g("Sub", centres, 1.0), g("Add", centres, 1.0), axis=2)
    return boxes, g("Sigmoid", g("Mul", g.input(1, 2, "n", init=distinct), 0.1))


@graphs.case("nms-output", signatures=_NON_EMPTY, op="NonMaxSuppression")
def _(g: Draft) -> None:
    boxes, scores = _boxes(g)
    limits = g.constant([9], "int64"), g.constant([0.3], "float32"), g.constant([0.2], "float32")
    g.output(g("NonMaxSuppression", boxes, scores, *limits))


@graphs.case("nms-inside", signatures=_NON_EMPTY, op="NonMaxSuppression")
def _(g: Draft) -> None:
    """The boxes that remain are gathered and scaled."""
    boxes, scores = _boxes(g)
    kept = g("NonMaxSuppression", boxes, scores, g.constant([9], "int64"), g.constant([0.3], "float32"))
    image_and_box = g("Gather", kept, (0, 2), axis=1)
    best = g("Mul", g("GatherND", boxes, image_and_box), 8.0)
    g.output(best, g("GatherND", scores, kept), g("Gather", kept, g.constant(1, "int64"), axis=1))


@graphs.case("unique-inside", ("int64", "float32"), signatures=_NON_EMPTY, numerics=EXACT, op="Unique")
def _(g: Draft) -> None:
    x = g.input("n")
    x = x if g.dtype.is_integer else g("Round", x)
    found, _, inverse, counts = g.several("Unique", 4, x)
    g.output(g("Add", found, found), g("Gather", g("Neg", found), inverse), counts)
