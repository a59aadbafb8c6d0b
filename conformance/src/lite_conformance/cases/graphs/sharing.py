"""Values with several uses, such as outputs that are used inside, which test fusion and reuse of memory."""

from __future__ import annotations

from lite_conformance.cases.graphs.draft import FLOATS, Draft, GraphTable
from lite_conformance.judge.tolerances import EXACT

__all__ = ["graphs"]

graphs = GraphTable()


@graphs.case("used-twice", FLOATS)
def _(g: Draft) -> None:
    x = g.linear(g.input(3, 6), 6)
    g.output(g("Add", g("Relu", x), g("Tanh", x)))


@graphs.case("used-late", FLOATS)
def _(g: Draft) -> None:
    """A value that is used again after many others were computed and freed."""
    x = first = g("Tanh", g.input(4, 9))
    for _ in range(6):
        x = g("Sigmoid", g("Add", x, x))
    g.output(g("Mul", x, first))


@graphs.case("same-operand-twice", FLOATS, op="MatMul")
def _(g: Draft) -> None:
    x = g.input(5, 5)
    g.output(g("MatMul", x, x), g("Mul", x, x), g("Sub", x, x), g("MatMul", x, g("Transpose", x)))


@graphs.case("fused-intermediates-are-outputs", FLOATS, op="Conv")
def _(g: Draft) -> None:
    """Every value of a fusible chain is an output as well."""
    conv = g.conv(g.input(1, 3, 6, 6), 5, 3)
    norm = g.batch_norm(conv)
    g.output(conv, norm, g("Relu", norm))


@graphs.case("conv-output-and-relu", FLOATS, op="Conv")
def _(g: Draft) -> None:
    conv = g.conv(g.input(1, 3, 6, 6), 5, 3)
    g.output(g("Relu", conv), conv)


@graphs.case("norm-has-two-users", op="Conv")
def _(g: Draft) -> None:
    """A convolution followed by a normalisation, with another use of its result."""
    conv = g.conv(g.input(1, 3, 6, 6), 5, 3)
    g.output(g("Add", g("Relu", g.batch_norm(conv)), g("Sigmoid", conv)))


@graphs.case("two-norms-of-one-conv", op="Conv")
def _(g: Draft) -> None:
    conv = g.conv(g.input(1, 3, 6, 6), 5, 3)
    g.output(g("Relu", g.batch_norm(conv)), g("Tanh", g.batch_norm(conv)))


@graphs.case("matmul-output-before-bias", FLOATS, op="MatMul")
def _(g: Draft) -> None:
    product = g("MatMul", g.input(3, 6), g.weight(6, 5))
    biased = g("Add", product, g.weight(5))
    g.output(product, biased, g("Relu", biased))


@graphs.case("gelu-inside-is-output", op="Erf")
def _(g: Draft) -> None:
    """The error function inside a GELU is an output, so that the fused GELU must not remove it."""
    x = g.input(3, 8)
    erf = g("Erf", g("Div", x, 2**0.5))
    g.output(erf, g("Mul", g("Mul", x, g("Add", erf, 1.0)), 0.5))


@graphs.case("swish-gate-is-output", op="Sigmoid")
def _(g: Draft) -> None:
    x = g.input(3, 8)
    gate = g("Sigmoid", x)
    g.output(g("Mul", x, gate), gate)


@graphs.case("hardswish-inside-is-output", op="Clip")
def _(g: Draft) -> None:
    x = g("Mul", g.input(3, 8), 3.0)
    clipped = g("Clip", g("Add", x, 3.0), 0.0, 6.0)
    g.output(g("Div", g("Mul", x, clipped), 6.0), clipped)


@graphs.case("output-used-inside", FLOATS)
def _(g: Draft) -> None:
    x = g("Tanh", g.input(3, 7))
    y = g("Mul", x, 2.0)
    g.output(x, g("Add", y, g("Neg", x)), y)


@graphs.case("one-value-two-outputs", FLOATS, only_session=True)
def _(g: Draft) -> None:
    """One value as output twice, and through Identity twice more."""
    x = g("Tanh", g.input(3, 7))
    g.output(x, x, g("Identity", x), g("Identity", x))


@graphs.case("input-is-output", FLOATS, only_session=True)
def _(g: Draft) -> None:
    x, y = g.input(3, 7), g.input(3, 7)
    g.output(x, g("Add", x, y), y)


@graphs.case("constant-is-output", FLOATS, only_session=True)
def _(g: Draft) -> None:
    table = g.weight(4, 5)
    g.output(table, g("Add", g.input(4, 5), table))


@graphs.case("unused-input", FLOATS)
def _(g: Draft) -> None:
    g.input(2, 3, dtype="int64")
    x = g.input(4, 3)
    g.input(5)
    g.output(g("Relu", x))


@graphs.case("identity-chain", [*FLOATS, "int64", "bool"], numerics=EXACT, op="Identity")
def _(g: Draft) -> None:
    """Only copies; the passes leave an empty graph."""
    x = g.input(3, 5)
    for _ in range(3):
        x = g("Identity", x)
    g.output(x)


@graphs.case("identity-between", FLOATS, op="Identity")
def _(g: Draft) -> None:
    """A copy whose original has later uses."""
    x = g("Tanh", g.input(3, 5))
    y = g("Identity", x)
    g.output(g("Mul", y, 3.0), g("Add", x, y), y)


@graphs.case("views-and-originals", FLOATS)
def _(g: Draft) -> None:
    """Reshape, Unsqueeze, Slice and Transpose may be views, through which the original must not be overwritten."""
    x = g("Tanh", g.input(4, 6))
    views = [g("Reshape", x, (2, 12)), g("Unsqueeze", x, (0,)), g("Slice", x, (1,), (3,), (0,)), g("Transpose", x)]
    g.output(*(g("Sub", view, 2.0) for view in views), g("Neg", x))


@graphs.case("in-place-traps", FLOATS)
def _(g: Draft) -> None:
    """Element-wise operators whose operands have later uses and must not be overwritten in place."""
    x = g("Sigmoid", g.input(5, 9))
    y = g("Relu", g("Sub", x, 0.5))
    z = g("Add", y, x)
    g.output(g("Mul", z, y), g("Sub", g("Neg", z), x))


@graphs.case("broadcast-in-place", FLOATS)
def _(g: Draft) -> None:
    """The second operand is larger, so that the result does not fit the memory of the first."""
    small, large = g("Tanh", g.input(9)), g("Tanh", g.input(5, 9))
    g.output(g("Sub", small, large), g("Neg", small), g("Neg", large))


@graphs.case("swap", FLOATS, numerics=EXACT)
def _(g: Draft) -> None:
    """Outputs in a different order than their nodes and inputs."""
    x, y = g.input(3, 5), g.input(3, 5)
    a, b = g("Neg", x), g("Abs", y)
    g.output(b, a)


@graphs.case("shared-weights", FLOATS, op="Conv")
def _(g: Draft) -> None:
    """One constant as a convolution's weight, reshaped as a matrix, and as an element-wise operand."""
    weight = g.weight(6, 4, 1, 1)
    x = g("Conv", g.input(1, 4, 5, 5), weight)
    y = g("MatMul", g.input(3, 6), g("Reshape", weight, (6, 4)))
    g.output(x, y, g("Mul", g("Conv", g.input(1, 4, 3, 3), weight), 2.0), g("Neg", weight))


@graphs.case("duplicates", FLOATS)
def _(g: Draft) -> None:
    """Identical nodes, and nodes that differ in an attribute or operand."""
    x = g.input(2, 3, 6)
    same = [g("ReduceSum", g("Tanh", x), (-1,)) for _ in range(2)]
    other = [g("ReduceSum", g("Tanh", x), (-1,), keepdims=0), g("ReduceSum", g("Tanh", x), (1,))]
    g.output(g("Add", same[0], same[1]), *other, *same)


@graphs.case("dead-nodes", FLOATS)
def _(g: Draft) -> None:
    """Unused results, some of them of a node with another result that is used."""
    x = g.input(6, 4)
    g("Exp", x)
    parts = g.several("Split", 3, x, axis=0, num_outputs=3)
    g.output(g("Neg", parts[1]))


@graphs.case("optional-outputs", op="MaxPool")
def _(g: Draft) -> None:
    """The same operator with and without its second output."""
    x = g.input(1, 3, 6, 6)
    one = g("MaxPool", x, kernel_shape=(2, 2), strides=(2, 2))
    two, indices = g.several("MaxPool", 2, x, kernel_shape=(2, 2), strides=(2, 2))
    norm, *_ = g.several("LayerNormalization", 3, one, g.weight(3), axis=-1)
    g.output(norm, two, indices)
