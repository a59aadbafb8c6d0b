"""Chains of operators that backends fuse and passes fold."""

from __future__ import annotations

from lite_conformance.cases.graphs.draft import FLOATS, NARROW, Draft, GraphTable
from lite_conformance.cases.tensors import positive
from lite_core.ir import Value

__all__ = ["graphs"]

graphs = GraphTable()


def _conv_norm(g: Draft) -> Value:
    """Return a normalised convolution of seven channels, which is no multiple of a vector width."""
    return g.batch_norm(g.conv(g.input(2, 5, 9, 7), 7, 3))


@graphs.case("conv-bn", FLOATS, op="Conv")
def _(g: Draft) -> None:
    g.output(_conv_norm(g))


@graphs.case("conv-bn-relu", FLOATS, op="Conv")
def _(g: Draft) -> None:
    g.output(g("Relu", _conv_norm(g)))


@graphs.case("conv-bn-relu6", FLOATS, op="Conv")
def _(g: Draft) -> None:
    # Scaled, so that the upper limit takes effect.
    g.output(g("Clip", g("Mul", _conv_norm(g), 4.0), 0.0, 6.0))


@graphs.case("conv-bn-clip-one-sided", op="Conv")
def _(g: Draft) -> None:
    x = _conv_norm(g)
    g.output(g("Clip", x, None, 0.5), g("Clip", x, -0.25))


@graphs.case("conv-bn-hardswish", NARROW, op="Conv")
def _(g: Draft) -> None:
    g.output(g("HardSwish", g("Mul", _conv_norm(g), 3.0)))


@graphs.case("conv-bn-hardswish-primitive", FLOATS, op="Conv")
def _(g: Draft) -> None:
    g.output(g.hard_swish(g("Mul", _conv_norm(g), 3.0)))


@graphs.case("conv-bn-leakyrelu", FLOATS, op="Conv")
def _(g: Draft) -> None:
    g.output(g("LeakyRelu", _conv_norm(g), alpha=0.3))


@graphs.case("conv-bn-prelu", op="Conv")
def _(g: Draft) -> None:
    g.output(g("PRelu", _conv_norm(g), g.weight(7, 1, 1, init=positive)))


@graphs.case("conv-bn-swish", FLOATS, op="Conv")
def _(g: Draft) -> None:
    g.output(g.swish(_conv_norm(g)))


@graphs.case("conv-add-relu", FLOATS, op="Conv")
def _(g: Draft) -> None:
    x, y = g.input(2, 6, 7, 5), g.input(2, 9, 7, 5)
    g.output(g("Relu", g("Add", g.conv(x, 9, 3), y)))


@graphs.case("conv-add-relu-swapped", op="Conv")
def _(g: Draft) -> None:
    x, y = g.input(2, 6, 7, 5), g.input(2, 9, 7, 5)
    g.output(g("Relu", g("Add", y, g.conv(x, 9, 3, bias=False))))


@graphs.case("conv-add-broadcast", op="Conv")
def _(g: Draft) -> None:
    """The addends are not biases: they differ between rows, or between images."""
    x = g.conv(g.input(2, 3, 6, 5), 4, 3)
    g.output(g("Relu", g("Add", x, g.input(6, 5))), g("Relu", g("Add", x, g.input(2, 1, 1, 1))))


@graphs.case("conv-relu-add", op="Conv")
def _(g: Draft) -> None:
    """The addition follows the activation; fusing it before the activation is wrong."""
    x = g.input(1, 5, 6, 6)
    g.output(g("Add", g("Relu", g.conv(x, 5, 3)), x))


@graphs.case("conv-mul-add", FLOATS, op="Conv")
def _(g: Draft) -> None:
    """A scale and a shift for each channel after a convolution, as in a folded normalisation."""
    x = g.conv(g.input(1, 4, 6, 6), 6, 3)
    g.output(g("Add", g("Mul", x, g.weight(1, 6, 1, 1, init=positive)), g.weight(1, 6, 1, 1)))


@graphs.case("mul-add-conv", FLOATS, op="Conv")
def _(g: Draft) -> None:
    """A shift before a padded convolution: the border is padded with zeros, not with the shift."""
    x = g("Add", g("Mul", g.input(1, 4, 6, 6), g.weight(1, 4, 1, 1, init=positive)), g.weight(1, 4, 1, 1))
    g.output(g.conv(x, 6, 3))


@graphs.case("bn-conv", op="Conv")
def _(g: Draft) -> None:
    g.output(g.conv(g.batch_norm(g.input(1, 4, 6, 6)), 6, 3, bias=False))


@graphs.case("pad-conv", FLOATS, op="Conv")
def _(g: Draft) -> None:
    x = g("Pad", g.input(1, 3, 6, 5), (0, 0, 1, 2, 0, 0, 0, 1))
    g.output(g.conv(x, 5, 3, pads=(0, 0, 0, 0)))


@graphs.case("pad-value-conv", op="Conv")
def _(g: Draft) -> None:
    """Padding other than with zeros, which a convolution cannot absorb."""
    x = g.input(1, 3, 6, 5)
    filled = g("Pad", x, (0, 0, 1, 1, 0, 0, 1, 1), 1.5)
    mirrored = g("Pad", x, (0, 0, 1, 1, 0, 0, 1, 1), mode="reflect")
    g.output(g.conv(filled, 5, 3, pads=(0,) * 4), g.conv(mirrored, 5, 3, pads=(1,) * 4))


@graphs.case("pad-maxpool", op="MaxPool")
def _(g: Draft) -> None:
    """MaxPool compares with zeros that Pad inserted, but not with its own padding."""
    x = g("Sub", g.input(1, 3, 6, 6), 5.0)
    padded = g("Pad", x, (0, 0, 1, 1, 0, 0, 1, 1))
    g.output(g("MaxPool", padded, kernel_shape=(3, 3)), g("MaxPool", x, kernel_shape=(3, 3), pads=(1,) * 4))


@graphs.case("conv-relu-maxpool", FLOATS, op="Conv")
def _(g: Draft) -> None:
    x = g("Relu", g.conv(g.input(1, 3, 11, 9), 6, 3, strides=(2, 2)))
    g.output(g("MaxPool", x, kernel_shape=(3, 3), strides=(2, 2), pads=(1,) * 4))


@graphs.case("conv-1x1-conv-3x3", FLOATS, op="Conv")
def _(g: Draft) -> None:
    g.output(g("Relu", g.conv(g("Relu", g.conv(g.input(1, 5, 7, 7), 9, 1)), 6, 3)))


@graphs.case("convtranspose-bn-relu", FLOATS, op="ConvTranspose")
def _(g: Draft) -> None:
    x = g("ConvTranspose", g.input(1, 4, 5, 4), g.weight(4, 6, 3, 3), g.weight(6), strides=(2, 2), pads=(1,) * 4)
    g.output(g("Relu", g.batch_norm(x)))


@graphs.case("matmul-add-gelu", FLOATS, op="MatMul")
def _(g: Draft) -> None:
    g.output(g.gelu(g.linear(g.input(2, 5, 12), 9)))


@graphs.case("matmul-add-gelu-tanh", op="MatMul")
def _(g: Draft) -> None:
    """The approximation of GELU with a hyperbolic tangent."""
    x = g.linear(g.input(2, 5, 12), 9)
    cube = g("Mul", g("Pow", x, 3.0), 0.044715)
    inner = g("Tanh", g("Mul", g("Add", x, cube), 0.7978845608))
    g.output(g("Mul", g("Mul", x, g("Add", inner, 1.0)), 0.5), g("Gelu", x, approximate="tanh"))


@graphs.case("matmul-add-relu-matmul", FLOATS, op="MatMul")
def _(g: Draft) -> None:
    g.output(g.linear(g("Relu", g.linear(g.input(7, 10), 17)), 3))


@graphs.case("matmul-add-not-a-bias", op="MatMul")
def _(g: Draft) -> None:
    """The addends of the product are a column and whole matrices, not a row of biases."""
    x = g("MatMul", g.input(4, 6), g.weight(6, 4))
    g.output(g("Add", x, g.weight(4, 1)), g("Add", x, g.input(4, 4)), g("Add", x, g.input(2, 4, 4)))


@graphs.case("gemm-activations", FLOATS, op="Gemm")
def _(g: Draft) -> None:
    x = g.input(3, 10)
    for activation in ("Relu", "Tanh", "Sigmoid"):
        g.output(g(activation, g("Gemm", x, g.weight(7, 10), g.weight(7), transB=1)))


@graphs.case("gemm-alpha-beta-clip", op="Gemm")
def _(g: Draft) -> None:
    x = g("Gemm", g.input(10, 3), g.weight(10, 7), g.input(3, 1), transA=1, alpha=0.5, beta=2.0)
    g.output(g("Clip", x, -0.4, 0.7))


@graphs.case("elementwise-eight", FLOATS)
def _(g: Draft) -> None:
    """Eight elementwise operators whose operands broadcast in every way."""
    x = g("Add", g.input(2, 3, 5, 7), g.input(5, 1))
    x = g("Tanh", g("Mul", x, g.input(3, 1, 1)))
    x = g("Sub", g.input(7), x)
    x = g("Exp", g("Mul", x, 0.5))
    x = g("Div", x, g.input(2, 1, 1, 7, init=positive))
    g.output(g("Sqrt", x))


@graphs.case("elementwise-grows", FLOATS)
def _(g: Draft) -> None:
    """A chain whose shape grows: [7], [5, 7], [3, 5, 7], [2, 3, 5, 7]."""
    x = g("Relu", g.input(7))
    x = g("Sigmoid", g("Add", x, g.input(5, 1)))
    x = g("Neg", g("Mul", x, g.input(3, 1, 1)))
    g.output(g("Abs", g("Sub", g.input(2, 1, 1, 1), x)))


@graphs.case("elementwise-order", FLOATS)
def _(g: Draft) -> None:
    """Operators that do not commute, with the chain's value as first and as second operand."""
    x, y = g.input(4, 9), g.input(4, 9, init=positive)
    a = g("Div", g("Sub", x, y), y)
    b = g("Sub", y, g("Div", a, y))
    g.output(g("Pow", y, g("Tanh", b)), g("Where", g("Less", x, y), a, b))


@graphs.case("mul-add-mul-add", FLOATS)
def _(g: Draft) -> None:
    x = g.input(3, 6)
    x = g("Add", g("Mul", x, 1.5), g.weight(6))
    g.output(g("Sub", g("Mul", x, g.weight(6)), 0.75))


@graphs.case("transpose-reshape-matmul", FLOATS, op="MatMul")
def _(g: Draft) -> None:
    x = g("Reshape", g("Transpose", g.input(2, 3, 4, 5), perm=(0, 2, 3, 1)), (2, 20, 3))
    g.output(g("MatMul", x, g.weight(3, 7)))


@graphs.case("transpose-matmul-transpose", FLOATS, op="MatMul")
def _(g: Draft) -> None:
    x, y = g.input(2, 6, 5), g.input(2, 7, 6)
    product = g("MatMul", g("Transpose", x, perm=(0, 2, 1)), g("Transpose", y, perm=(0, 2, 1)))
    g.output(g("Transpose", product, perm=(2, 0, 1)))


@graphs.case("flatten-gemm", op="Gemm")
def _(g: Draft) -> None:
    x = g("Flatten", g("MaxPool", g.input(2, 3, 6, 4), kernel_shape=(2, 2), strides=(2, 2)))
    g.output(g("Gemm", x, g.weight(18, 5), g.weight(5)))


@graphs.case("reduce-and-back", FLOATS)
def _(g: Draft) -> None:
    """A softmax in primitive operators: reductions whose results are broadcast back."""
    x = g.input(3, 5, 8)
    e = g("Exp", g("Sub", x, g("ReduceMax", x, (-1,))))
    g.output(g("Div", e, g("ReduceSum", e, (-1,))))


@graphs.case("scale-is-an-input", op="Conv")
def _(g: Draft) -> None:
    """Weights, scale and shift are run-time inputs: nothing can be folded or packed at compile time."""
    x = g("Conv", g.input(1, 3, 5, 5), g.input(4, 3, 3, 3), g.input(4), pads=(1,) * 4)
    g.output(g("Relu", g("BatchNormalization", x, g.input(4), g.input(4), g.input(4), g.input(4, init=positive))))
