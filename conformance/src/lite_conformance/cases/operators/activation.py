"""Activation functions; :mod:`not_a_number` has more cases of NaN."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan

from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, OpTable, table
from lite_conformance.cases.operators.elementwise_shapes import add_unary_shapes, draw_fraction, draw_length
from lite_conformance.cases.operators.initializers import few, full_range, grid, neighbours, with_elements
from lite_conformance.cases.operators.strategies import shape
from lite_conformance.cases.tensors import big, const, normal, t, tiny, uniform, values
from lite_conformance.judge.tolerances import ARITHMETIC, EXACT, FUNCTION
from lite_core.ir import DType
from lite_core.ops.dtypes import FLOATS, INTEGERS

# ONNX attributes are float32: these defaults differ from the same decimals in float64.
_NARROW = tuple(d for d in FLOATS if d is not DType.FLOAT64)

# ONNX defines HardSwish and the approximation of Gelu by functions whose constants are float32.
_SINGLE = replace(FUNCTION, name="function, in float32", wide=(32 * 2.0**29, 32 * 2.0**29))


_INFINITE = with_elements(inf, -inf, 0.0, -0.0)
_UPPER_INFINITE = with_elements(inf, 0.0, -0.0)
_SATURATING = uniform(-100, 100)


def _add_sizes(activation: OpTable) -> None:
    activation("big", t(4, 33, init=big))
    activation("tiny", t(4, 33, init=tiny))


# **** piecewise linear ****

relu = table("Relu", EXACT)
add_unary_shapes(relu)
_add_sizes(relu)
relu("full-range", t(257, init=full_range), dtypes=INTEGERS)
relu("infinities", t(33, init=_INFINITE), dtypes=FLOATS)

leaky_relu = table("LeakyRelu", ARITHMETIC)
add_unary_shapes(leaky_relu, alpha=0.125)
leaky_relu("default", t(3, 33), dtypes=_NARROW)
leaky_relu("alpha-0", t(3, 33), alpha=0.0)
leaky_relu("alpha-above-one", t(3, 33), alpha=1.5)
leaky_relu("alpha-negative", t(3, 33), alpha=-0.5)
leaky_relu("big", t(4, 33, init=big), alpha=0.25)
leaky_relu("tiny", t(4, 33, init=tiny), alpha=0.25)
leaky_relu("infinities", t(33, init=_INFINITE), alpha=0.25)


@leaky_relu.drawn
def draw_leaky_relu(draw: Draw, dtype: DType) -> OpCase:
    return leaky_relu.case(t(*draw_length(draw)), alpha=draw_fraction(draw, -2, 2))


prelu = table("PRelu", ARITHMETIC)
prelu("2x3x4x5,3x1x1,channel", t(2, 3, 4, 5), const(3, 1, 1))
prelu("2x3x4x5,3x1x1,slope-at-run-time", t(2, 3, 4, 5), t(3, 1, 1))
prelu("2x5x7x3,5x1x1,odd-channels", t(2, 5, 7, 3), const(5, 1, 1))
prelu("3x3x3x3,1x3x1x1,axes-of-one-size", t(3, 3, 3, 3), const(1, 3, 1, 1))
prelu("2x3x4x5,1,shared", t(2, 3, 4, 5), const(1))
prelu("5x33,scalar", t(5, 33), const())
prelu("5x33,33,last-axis", t(5, 33), const(33))
prelu("4x7,4x7,every-element", t(4, 7), const(4, 7))
prelu("5x5,5x5,square", t(5, 5), const(5, 5))
prelu("4x1x6,4x1x6,run-time", t(4, 1, 6), t(4, 1, 6))
prelu("2x3x4,2x1x4", t(2, 3, 4), const(2, 1, 4))
prelu("scalar", t(), const())
prelu("1x257,odd", t(1, 257), const(1, 1))
prelu("10007,long", t(10007), const(1))
prelu("2x3x2x1x3x2,3x1x1x3x1,rank6", t(2, 3, 2, 1, 3, 2), const(3, 1, 1, 3, 1))
prelu("0x3,3,empty", t(0, 3), const(3))
prelu("slopes-above-one", t(5, 33), const(33, init=uniform(1, 9)))
prelu("largest", t(4, 9, init=neighbours), const(9, init=few), dtypes=INTEGERS)
prelu("big", t(4, 9, init=big), const(9, init=grid), dtypes=FLOATS)
prelu("tiny", t(4, 9, init=tiny), const(9, init=grid), dtypes=FLOATS)
prelu("infinities", t(4, 9, init=_INFINITE), const(9, init=uniform(0.25, 2)), dtypes=FLOATS)


@prelu.drawn
def draw_prelu(draw: Draw, dtype: DType) -> OpCase:
    sizes = shape(draw, 0, 5)
    slope = tuple(draw(st.sampled_from((1, size))) for size in sizes[draw(st.integers(0, len(sizes))) :])
    return prelu.case(t(*sizes), draw(st.sampled_from((t, const)))(*slope))


thresholded_relu = table("ThresholdedRelu", EXACT)
add_unary_shapes(thresholded_relu, grid)
_add_sizes(thresholded_relu)
thresholded_relu("alpha-0", t(3, 33, init=few), alpha=0.0)
thresholded_relu("alpha-2,on-the-threshold", t(3, 33, init=few), alpha=2.0)
thresholded_relu("alpha-below-zero", t(3, 33, init=few), alpha=-1.0)
thresholded_relu("infinities", t(33, init=_INFINITE))


@thresholded_relu.drawn
def draw_thresholded_relu(draw: Draw, dtype: DType) -> OpCase:
    return thresholded_relu.case(t(*draw_length(draw), init=grid), alpha=draw_fraction(draw, -2, 2))


shrink = table("Shrink", ARITHMETIC)
add_unary_shapes(shrink, grid)
_add_sizes(shrink)
shrink("lambd-2,on-the-threshold", t(3, 33, init=few), lambd=2.0)
shrink("lambd-1.5", t(3, 33), lambd=1.5)
shrink("soft,bias-1,lambd-1", t(3, 33, init=grid), bias=1.0, lambd=1.0)
shrink("bias-1,lambd-3", t(3, 33, init=grid), bias=1.0, lambd=3.0)
shrink("bias-below-zero", t(3, 33, init=grid), bias=-1.0, lambd=1.0)
shrink("fractions", t(3, 33), bias=0.375, lambd=0.25, dtypes=FLOATS)
shrink("infinities", t(33, init=_INFINITE), bias=0.25, dtypes=FLOATS)


@shrink.drawn
def draw_shrink(draw: Draw, dtype: DType) -> OpCase:
    if dtype.is_floating:
        bias, threshold = draw_fraction(draw, -2, 2), draw_fraction(draw, 0, 2)
    else:
        # The bias is at most the threshold, so that unsigned numbers do not fall below zero.
        threshold = float(draw(st.integers(0, 4)))
        bias = float(draw(st.integers(0, int(threshold))))
    return shrink.case(t(*draw_length(draw), init=grid), bias=bias, lambd=threshold)


hard_sigmoid = table("HardSigmoid", FUNCTION)
add_unary_shapes(hard_sigmoid, alpha=0.25, beta=0.5)
_add_sizes(hard_sigmoid)
hard_sigmoid("default", t(3, 33, init=uniform(-4, 4)), dtypes=_NARROW)
hard_sigmoid("both-ends", t(3, 33, init=uniform(-9, 9)), alpha=0.25)
hard_sigmoid("alpha-1,beta-0", t(3, 33), alpha=1.0, beta=0.0)
hard_sigmoid("beta-below-zero", t(3, 33), alpha=0.5, beta=-0.25)
hard_sigmoid("alpha-below-zero", t(3, 33), alpha=-0.5, beta=0.75)
hard_sigmoid("infinities", t(33, init=_INFINITE))


@hard_sigmoid.drawn
def draw_hard_sigmoid(draw: Draw, dtype: DType) -> OpCase:
    alpha, beta = draw_fraction(draw, -1, 1), draw_fraction(draw, -1, 2)
    return hard_sigmoid.case(t(*draw_length(draw)), alpha=alpha, beta=beta)


hard_swish = table("HardSwish", FUNCTION)
add_unary_shapes(hard_swish, dtypes=_NARROW)
_add_sizes(hard_swish)
hard_swish("all-branches", t(3, 33, init=uniform(-6, 6)), dtypes=_NARROW)
hard_swish("all-branches,float64", t(3, 33, init=uniform(-6, 6)), dtypes=("float64",), numerics=_SINGLE)
hard_swish("joints", values([-4.0, -3.0, -2.0, 0.0, 2.0, 3.0, 4.0]), dtypes=_NARROW)
hard_swish("infinity", t(33, init=_UPPER_INFINITE))

# **** exponential ****


def _add_exponential(exponential: OpTable, *, lower: bool = True) -> None:
    """Add magnitudes at which exponentials overflow, vanish or cancel.

    Args:
        exponential: the table to extend.
        lower: True if every formula of the function has the same limit at minus infinity.
    """
    _add_sizes(exponential)
    exponential("saturated", t(257, init=_SATURATING))
    exponential("infinities", t(33, init=_INFINITE if lower else _UPPER_INFINITE))
    exponential("nan", t(33, init=with_elements(nan)))


elu = table("Elu", FUNCTION)
add_unary_shapes(elu)
_add_exponential(elu)
elu("alpha-0.5", t(3, 33), alpha=0.5)
elu("alpha-2", t(3, 33), alpha=2.0)

selu = table("Selu", FUNCTION)
add_unary_shapes(selu)
_add_exponential(selu)
selu("alpha-2,gamma-0.5", t(3, 33), alpha=2.0, gamma=0.5)
selu("alpha-0.25", t(3, 33), alpha=0.25)
selu("gamma-3", t(3, 33), gamma=3.0)


@selu.drawn
def draw_selu(draw: Draw, dtype: DType) -> OpCase:
    alpha, gamma = draw_fraction(draw, 0, 3), draw_fraction(draw, 0, 3)
    return selu.case(t(*draw_length(draw)), alpha=alpha, gamma=gamma)


celu = table("Celu", FUNCTION)
add_unary_shapes(celu)
_add_exponential(celu)
celu("alpha-0.5", t(3, 33), alpha=0.5)
celu("alpha-2", t(3, 33), alpha=2.0)

for _one in (elu, celu):

    @_one.drawn
    def draw_alpha(draw: Draw, dtype: DType, one: OpTable = _one) -> OpCase:
        return one.case(t(*draw_length(draw)), alpha=draw_fraction(draw, 0.25, 3))


sigmoid = table("Sigmoid", FUNCTION)
add_unary_shapes(sigmoid)
_add_exponential(sigmoid)

swish = table("Swish", FUNCTION, domain="lite")
add_unary_shapes(swish)
_add_exponential(swish, lower=False)
swish("beta-0.5", t(3, 33), beta=0.5)
swish("beta-1.5", t(3, 33), beta=1.5)
swish("beta-below-zero", t(3, 33), beta=-1.0)
swish("beta-0", t(3, 33), beta=0.0)


@swish.drawn
def draw_swish(draw: Draw, dtype: DType) -> OpCase:
    return swish.case(t(*draw_length(draw)), beta=draw_fraction(draw, -2, 2))


softplus = table("Softplus", FUNCTION)
add_unary_shapes(softplus)
_add_exponential(softplus)

mish = table("Mish", FUNCTION)
add_unary_shapes(mish)
_add_exponential(mish, lower=False)

softsign = table("Softsign", ARITHMETIC)
add_unary_shapes(softsign)
_add_sizes(softsign)
softsign("wide", t(257, init=_SATURATING))
softsign("nan", t(33, init=with_elements(nan)))

gelu = table("Gelu", FUNCTION)
add_unary_shapes(gelu)
_add_exponential(gelu, lower=False)
for _label, _init in (
    ("", normal),
    (",saturated", _SATURATING),
    (",big", big),
    (",tiny", tiny),
    (",nan", with_elements(nan)),
):
    gelu(f"tanh{_label}", t(3, 33, init=_init), dtypes=_NARROW, approximate="tanh")
gelu("tanh,infinity", t(33, init=_UPPER_INFINITE), dtypes=_NARROW, approximate="tanh")
gelu("tanh,float64", t(3, 33), dtypes=("float64",), numerics=_SINGLE, approximate="tanh")
gelu("none", t(3, 33, init=uniform(-4, 4)), approximate="none")
gelu("tanh,1x257,odd", t(1, 257, init=uniform(-4, 4)), dtypes=_NARROW, approximate="tanh")


@gelu.drawn
def draw_gelu(draw: Draw, dtype: DType) -> OpCase:
    kinds = ("none",) if dtype is DType.FLOAT64 else ("none", "tanh")
    return gelu.case(t(*draw_length(draw)), approximate=draw(st.sampled_from(kinds)))
