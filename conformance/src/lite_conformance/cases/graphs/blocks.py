"""The building blocks of convolutional networks."""

from __future__ import annotations

from lite_conformance.cases.graphs.draft import FLOATS, NARROW, Draft, GraphTable
from lite_conformance.judge.tolerances import EXACT
from lite_core.ir import Value

__all__ = ["graphs"]

graphs = GraphTable()


@graphs.case("residual-block", FLOATS, op="Conv")
def _(g: Draft) -> None:
    x = g("Relu", g.input(1, 8, 9, 9))
    y = g("Relu", g.batch_norm(g.conv(x, 8, 3, bias=False)))
    y = g.batch_norm(g.conv(y, 8, 3, bias=False))
    g.output(g("Relu", g("Add", y, x)))


@graphs.case("residual-downsample", FLOATS, op="Conv")
def _(g: Draft) -> None:
    x = g("Relu", g.input(2, 5, 9, 7))
    y = g("Relu", g.batch_norm(g.conv(x, 10, 3, strides=(2, 2))))
    y = g.batch_norm(g.conv(y, 10, 3))
    shortcut = g.batch_norm(g.conv(x, 10, 1, strides=(2, 2)))
    g.output(g("Relu", g("Add", y, shortcut)))


@graphs.case("bottleneck", op="Conv")
def _(g: Draft) -> None:
    x = g.input(1, 12, 6, 6)
    y = g("Relu", g.batch_norm(g.conv(x, 3, 1)))
    y = g("Relu", g.batch_norm(g.conv(y, 3, 3)))
    g.output(g("Relu", g("Add", x, g.batch_norm(g.conv(y, 12, 1)))))


def _squeeze_excite(g: Draft, x: Value, channels: int, hidden: int) -> Value:
    gate = g("Relu", g.conv(g("GlobalAveragePool", x), hidden, 1))
    return g("Mul", x, g("HardSigmoid", g.conv(gate, channels, 1), alpha=1 / 6, beta=0.5))


@graphs.case("squeeze-excite", FLOATS, op="GlobalAveragePool")
def _(g: Draft) -> None:
    g.output(_squeeze_excite(g, g.input(2, 10, 5, 5), 10, 3))


@graphs.case("inverted-residual", NARROW, op="Conv")
def _(g: Draft) -> None:
    x = g.input(1, 6, 7, 7)
    y = g("HardSwish", g.batch_norm(g.conv(x, 18, 1, bias=False)))
    y = g("HardSwish", g.batch_norm(g.conv(y, 18, 5, bias=False, group=18)))
    y = g.batch_norm(g.conv(_squeeze_excite(g, y, 18, 5), 6, 1, bias=False))
    g.output(g("Add", x, y))


@graphs.case("depthwise-separable", FLOATS, op="Conv")
def _(g: Draft) -> None:
    x = g.input(2, 7, 8, 6)
    x = g("Clip", g.batch_norm(g.conv(x, 7, 3, group=7, strides=(2, 2))), 0.0, 6.0)
    g.output(g("Clip", g.batch_norm(g.conv(x, 13, 1)), 0.0, 6.0))


@graphs.case("grouped-conv-shuffle", FLOATS, op="Conv")
def _(g: Draft) -> None:
    x = g.conv(g.input(1, 12, 5, 5), 12, 3, group=3)
    x = g("Transpose", g("Reshape", x, (0, 3, 4, 5, 5)), perm=(0, 2, 1, 3, 4))
    g.output(g.conv(g("Reshape", x, (0, 12, 5, 5)), 12, 3, group=3))


@graphs.case("split-concat-shuffle", FLOATS, op="Concat")
def _(g: Draft) -> None:
    a, b = g.several("Split", 2, g.input(2, 10, 4, 4), axis=1, num_outputs=2)
    x = g("Concat", g("Relu", g.conv(b, 5, 3)), a, axis=1)
    x = g("Transpose", g("Reshape", x, (2, 2, 5, 4, 4)), perm=(0, 2, 1, 3, 4))
    g.output(g("Reshape", x, (2, 10, 4, 4)))


@graphs.case("split-uneven-concat", [*FLOATS, "int32"], numerics=EXACT, op="Split")
def _(g: Draft) -> None:
    a, b, c = g.several("Split", 3, g.input(3, 10, 4), (1, 7, 2), axis=1)
    g.output(g("Concat", c, a, b, a, axis=1), g("Concat", b, b, axis=0))


@graphs.case("feature-pyramid", FLOATS, op="Resize")
def _(g: Draft) -> None:
    fine = g("Relu", g.conv(g.input(1, 3, 16, 16), 5, 3, strides=(2, 2)))
    middle = g("Relu", g.conv(fine, 6, 3, strides=(2, 2)))
    coarse = g("Relu", g.conv(middle, 7, 3, strides=(2, 2)))
    top = g.conv(coarse, 4, 1)
    nearest = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    doubled = g.constant([1, 1, 2, 2], "float32")
    middle = g("Concat", g.conv(middle, 4, 1), g("Resize", top, None, doubled, **nearest), axis=1)
    linear = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}
    upper = g("Resize", g.conv(middle, 4, 1), None, None, (1, 4, 8, 8), **linear)
    g.output(g.conv(g("Add", g.conv(fine, 4, 1), upper), 3, 3), g.conv(middle, 3, 3), g.conv(top, 3, 3))


@graphs.case("depth-to-space", FLOATS, op="DepthToSpace")
def _(g: Draft) -> None:
    x = g.input(1, 3, 5, 4)
    details = g("DepthToSpace", g.conv(x, 12, 3), blocksize=2, mode="CRD")
    large = g("Resize", x, None, g.constant([1, 1, 2, 2], "float32"), mode="linear")
    g.output(g("Clip", g("Add", large, details), -1.0, 1.0), g("SpaceToDepth", details, blocksize=2))


@graphs.case("odd-channels", FLOATS, op="Conv")
def _(g: Draft) -> None:
    """Channel counts and widths that are no multiples of a vector width."""
    x = g.input(1, 1, 7, 11)
    for channels in (3, 17, 5, 9, 1):
        x = g("Relu", g.conv(x, channels, 3))
    g.output(x)


@graphs.case("rectangular-conv", op="Conv")
def _(g: Draft) -> None:
    x = g.input(1, 5, 8, 9)
    x = g("Relu", g("Conv", x, g.weight(6, 5, 1, 7), pads=(0, 3, 0, 3)))
    x = g("Relu", g("Conv", x, g.weight(7, 6, 5, 1), g.weight(7), pads=(2, 0, 2, 0), strides=(2, 1)))
    g.output(g("Conv", x, g.weight(3, 7, 3, 2), pads=(2, 0, 2, 1), dilations=(2, 1)))


@graphs.case("wide-fan", NARROW, op="Concat")
def _(g: Draft) -> None:
    """One value is used by eight branches, whose results are concatenated."""
    x = g("Tanh", g.input(1, 5, 4, 4))
    unary = ("Relu", "Sigmoid", "Exp", "Neg", "Abs", "Tanh", "Softsign", "HardSwish")
    g.output(g("Concat", *(g.conv(g(op, x), 3, 1) for op in unary), axis=1))


@graphs.case("wide-sum", FLOATS, op="Sum")
def _(g: Draft) -> None:
    x = g("Tanh", g.input(3, 7))
    parts = [g("Mul", x, 0.5 + number) for number in range(8)]
    g.output(g("Sum", *parts), g("Max", *parts), g("Mean", *parts))


@graphs.case("dense-block", FLOATS, op="Concat")
def _(g: Draft) -> None:
    x = g.input(1, 3, 5, 5)
    for _ in range(4):
        x = g("Concat", x, g("Relu", g.conv(x, 3, 3)), axis=1)
    g.output(x)


@graphs.case("inception", op="Concat")
def _(g: Draft) -> None:
    x = g("Relu", g.input(1, 6, 7, 7))
    pooled = g("AveragePool", x, kernel_shape=(3, 3), pads=(1,) * 4)
    parts = [g.conv(x, 3, 1), g.conv(g("Relu", g.conv(x, 4, 1)), 5, 3), g.conv(x, 2, 5), g.conv(pooled, 3, 1)]
    g.output(g("Relu", g("Concat", *parts, axis=1)))


@graphs.case("deep-chain-64", FLOATS)
def _(g: Draft) -> None:
    x = g.input(3, 17)
    for number in range(32):
        x = g("Add", x, 0.25) if number % 2 else g("Mul", x, -0.75)
        x = g(("Tanh", "Neg", "Abs", "Relu")[number // 2 % 4], x)
    g.output(x)


@graphs.case("diamond", FLOATS)
def _(g: Draft) -> None:
    x = g("Tanh", g.input(3, 8))
    g.output(g("Mul", g("Relu", x), g("Sigmoid", g("Neg", x))))


@graphs.case("nested-diamonds", FLOATS)
def _(g: Draft) -> None:
    x = g.input(3, 8)
    for _ in range(4):
        left = g("Tanh", x)
        right = g("Sub", g("Relu", left), g("Sigmoid", left))
        x = g("Add", left, right)
    g.output(x)


@graphs.case("classifier-head", FLOATS, op="Softmax")
def _(g: Draft) -> None:
    x = g("Relu", g.conv(g.input(2, 3, 7, 7), 11, 3))
    x = g("Flatten", g("GlobalAveragePool", x))
    g.output(g("Softmax", g("Gemm", x, g.weight(10, 11), g.weight(10), transB=1), axis=-1))


@graphs.case("normalizations", op="GroupNormalization")
def _(g: Draft) -> None:
    x = g.conv(g.input(2, 3, 6, 5), 8, 3)
    one = g("InstanceNormalization", x, g.weight(8), g.weight(8))
    g.output(g("Relu", one), g("GroupNormalization", x, g.weight(8), g.weight(8), num_groups=4))


@graphs.case("conv-1d-3d", op="Conv")
def _(g: Draft) -> None:
    one = g("Relu", g("Conv", g.input(2, 3, 17), g.weight(5, 3, 3), g.weight(5), pads=(1, 1), strides=(2,)))
    three = g("Relu", g("Conv", g.input(1, 2, 4, 5, 6), g.weight(3, 2, 3, 3, 3), g.weight(3), pads=(1,) * 6))
    g.output(g("Conv", one, g.weight(2, 5, 1)), g("GlobalMaxPool", three))


@graphs.case("spatial-attention", op="ReduceMax")
def _(g: Draft) -> None:
    x = g.input(1, 6, 7, 7)
    pooled = g("Concat", g("ReduceMean", x, (1,)), g("ReduceMax", x, (1,)), axis=1)
    g.output(g("Mul", x, g("Sigmoid", g.conv(pooled, 1, 7))))
