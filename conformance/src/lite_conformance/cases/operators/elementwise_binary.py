"""Element-wise arithmetic on two or more tensors that broadcast."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan

import numpy as np
from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, OpTable, table
from lite_conformance.cases.operators.elementwise_shapes import add_binary_shapes, draw_length
from lite_conformance.cases.operators.initializers import (
    few,
    full_range,
    grid,
    half_range,
    neighbours,
    nonzero,
    specials,
    with_elements,
)
from lite_conformance.cases.operators.strategies import broadcastable
from lite_conformance.cases.tensors import (
    Array,
    big,
    const,
    integers,
    normal,
    positive,
    special,
    t,
    tiny,
    uniform,
    values,
)
from lite_conformance.judge.tolerances import ARITHMETIC, EXACT, FUNCTION, RELATIVE, SUM
from lite_core.ir import DType
from lite_core.ops.dtypes import FLOATS, INTEGERS, SIGNED, SIGNED_INTEGERS, UNSIGNED

# **** arithmetic; integer_overflow.py and division_by_zero.py have the rest of the integers ****


def _minuend(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return standard normal numbers; unsigned integers are larger than the subtrahends."""
    array = normal(random, shape, dtype)
    return array + array.dtype.type(8) if dtype in UNSIGNED else array


def _long_minuend(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return numbers of :func:`half_range`; unsigned integers are larger than every number of that function."""
    array = half_range(random, shape, dtype)
    return array + array.dtype.type(np.iinfo(array.dtype).max // 2) if dtype in UNSIGNED else array


def _add_extremes(binary: OpTable) -> None:
    binary("11x1,1x11,special", t(11, 1, init=specials), t(1, 11, init=specials), dtypes=FLOATS)
    binary("8x16,special", t(8, 16, init=special), t(8, 16, init=special), dtypes=FLOATS)
    binary("tiny", t(4, 9, init=tiny), t(4, 9, init=tiny), dtypes=FLOATS)


for _name in ("Add", "Sub", "Mul"):
    _arithmetic = table(_name, ARITHMETIC)
    add_binary_shapes(_arithmetic, _minuend)
    _add_extremes(_arithmetic)
    _arithmetic("big", t(4, 9, init=big), t(4, 9, init=big), dtypes=SIGNED if _name == "Sub" else None)
    if _name != "Mul":
        _left = _long_minuend if _name == "Sub" else half_range
        _arithmetic("all-digits", t(9, 7, init=_left), t(9, 7, init=half_range), dtypes=INTEGERS)

divide = table("Div", ARITHMETIC)
add_binary_shapes(divide, normal, nonzero)
_add_extremes(divide)
divide("big", t(4, 9, init=big), t(4, 9, init=big), dtypes=FLOATS)
divide("largest", t(4, 9, init=neighbours), t(4, 9, init=nonzero), dtypes=INTEGERS)
divide("towards-zero", values([[7], [-7], [8], [-8], [1], [-1]]), values([2, -2, 3, -3, 9]), dtypes=SIGNED_INTEGERS)
divide("full-range", t(9, 7, init=full_range), t(9, 7, init=nonzero), dtypes=INTEGERS)


# **** Mod ****


def _fmod_of_floats(dtype: DType) -> int:
    """Return 1 for floating types: ONNX does not define the remainder of floats without fmod."""
    return int(dtype.is_floating)


# A remainder computed from a rounded quotient is not exact; its error is of the size of the dividend's last bits.
_REMAINDER = replace(FUNCTION, name="remainder", truth="native")

modulo = table("Mod", EXACT)
add_binary_shapes(modulo, grid, nonzero, fmod=_fmod_of_floats)
modulo("signs", values([[7], [-7], [6], [-6], [0]]), values([3, -3, 2, -2, 9, -9]), dtypes=SIGNED_INTEGERS)
modulo("signs,fmod", values([[7], [-7], [6], [-6], [0]]), values([3, -3, 2, -2, 9, -9]), fmod=1, dtypes=SIGNED)
modulo("largest", t(4, 9, init=neighbours), t(4, 9, init=nonzero), dtypes=INTEGERS)
modulo("largest,fmod", t(4, 9, init=neighbours), t(4, 9, init=nonzero), fmod=1, dtypes=INTEGERS)
modulo("full-range", t(9, 7, init=full_range), t(9, 7, init=nonzero), dtypes=INTEGERS)
modulo("grid,fmod", t(5, 33, init=grid), t(33, init=nonzero), fmod=1)
modulo("normal,fmod", t(5, 33), t(33, init=positive), fmod=1, dtypes=FLOATS, numerics=_REMAINDER)
modulo(
    "special,fmod",
    t(8, 1, init=with_elements(nan, inf, -inf, 0.0, among=grid)),
    values([2.0, -0.75, 0.0, inf, -inf, nan]),
    fmod=1,
    dtypes=FLOATS,
)


@modulo.drawn
def draw_modulo(draw: Draw, dtype: DType) -> OpCase:
    one, other = broadcastable(draw)
    fmod = 1 if dtype.is_floating else draw(st.integers(0, 1))
    return modulo.case(t(*one, init=grid), t(*other, init=nonzero), fmod=fmod)


# **** Pow ****


def _base(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    return positive(random, shape, dtype) if dtype.is_floating else normal(random, shape, dtype)


def _exponent(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    return (uniform(-2, 2) if dtype.is_floating else integers(0, 5))(random, shape, dtype)


_WHOLE = integers(0, 4)

power = table("Pow", RELATIVE)
add_binary_shapes(power, _base, _exponent)
power("square", t(5, 33), const(init=integers(2, 3)))
power("cube", t(5, 33), const(1, init=integers(3, 4)))
power("zeroth,zero-too", t(33, init=few), const(init=integers(0, 1)))
power("first", t(5, 33), t(init=integers(1, 2)))
power("zero-base", values([0, 0, 0]), values([1, 2, 3]))
power("root", t(33, init=with_elements(0.0, among=positive)), values(0.5), dtypes=FLOATS)
power("inverse", t(33, init=nonzero), values(-1), dtypes=FLOATS)
power("negative-base,whole-exponents", t(7, 1, init=nonzero), values([-3, -2, -1, 0, 1, 2, 3]), dtypes=FLOATS)
power("negative-base,fraction-is-nan", t(33, init=nonzero), values([[0.5], [-1.5]]), dtypes=FLOATS)
power("special,square", t(33, init=with_elements(nan, inf, -inf, 0.0)), values(2), dtypes=FLOATS)
power("special,inverse", t(33, init=with_elements(nan, inf, -inf, 0.0, among=nonzero)), values(-1), dtypes=FLOATS)
power("large,square", t(4, 9, init=uniform(-1000, 1000)), values(2), dtypes=FLOATS)
power("small,square", t(4, 9, init=uniform(-0.01, 0.01)), values(2), dtypes=FLOATS)
power("big,square", t(4, 9, init=big), values(2), dtypes=("int32",))
power("long-digits,square", t(4, 9, init=integers(-90_000_000, 90_000_000)), values(2), dtypes=("int64",))
for _exponent_dtype in (*INTEGERS, *FLOATS):
    _label = f"exponent-{_exponent_dtype}"
    power(_label, t(5, 33, init=few), t(33, init=_WHOLE, dtype=_exponent_dtype.value))
    power(f"{_label},constant", t(5, 33, init=few), const(init=_WHOLE, dtype=_exponent_dtype.value))


# **** variadic operators ****


def _add_variadic(variadic: OpTable) -> None:
    variadic("one-input", t(3, 7))
    variadic("one-input,scalar", t())
    variadic("three,same-shape", t(3, 33), t(3, 33), t(3, 33))
    variadic("three,broadcast", t(4, 1), t(1, 5), t(2, 1, 1))
    variadic("three,last-is-largest", t(), t(5), t(2, 3, 5))
    variadic("four,constants-among-them", t(3, 5), const(5), t(3, 5), const())
    variadic("seven", *[t(2, 9)] * 7)
    variadic("three,empty", t(0, 3), t(1, 3), t())

    @variadic.drawn
    def draw_several(draw: Draw, dtype: DType) -> OpCase:
        return variadic.case(*(t(*shape) for shape in broadcastable(draw, draw(st.integers(1, 5)))))


_NOT_NAN = with_elements(inf, -inf, 0.0, -0.0)

for _name in ("Max", "Min"):
    _extreme = table(_name, EXACT)
    add_binary_shapes(_extreme)
    _add_variadic(_extreme)
    _extreme("11x1,1x11,special", t(11, 1, init=specials), t(1, 11, init=specials), dtypes=INTEGERS)
    _extreme("infinities", t(8, 9, init=_NOT_NAN), t(8, 9, init=_NOT_NAN), dtypes=FLOATS)
    _extreme("neighbours", *[t(9, 7, init=neighbours)] * 3)
    _extreme("big", t(4, 9, init=big), t(4, 9, init=big))
    _extreme("tiny", t(4, 9, init=tiny), t(4, 9, init=tiny))
    _extreme("negative", *[t(4, 9, init=uniform(-9, -1))] * 3, dtypes=SIGNED)

for _name in ("Sum", "Mean"):
    _linear = table(_name, SUM)
    add_binary_shapes(_linear)
    _add_variadic(_linear)
    _linear("special", *[t(8, 9, init=with_elements(nan, inf, -inf, 0.0))] * 3)
    _linear("big", *[t(4, 9, init=big)] * 3)
    _linear("tiny", *[t(4, 9, init=tiny)] * 3)

# **** Clip ****

_SPREAD = uniform(-5, 9)

clip = table("Clip", EXACT)
clip("7x9", t(7, 9, init=_SPREAD), values(1, constant=True), values(4, constant=True))
clip("7x9,bounds-at-run-time", t(7, 9, init=_SPREAD), values(1), values(4))
clip("scalar", t(init=_SPREAD), values(1, constant=True), values(4, constant=True))
clip("only-minimum", t(5, 33, init=_SPREAD), values(2, constant=True))
clip("only-minimum-at-run-time", t(5, 33, init=_SPREAD), values(2))
clip("only-maximum", t(5, 33, init=_SPREAD), None, values(3, constant=True))
clip("only-maximum-at-run-time", t(5, 33, init=_SPREAD), None, values(3))
clip("no-bounds", t(5, 33, init=_SPREAD))
clip("relu6", t(2, 3, 5, 7, init=_SPREAD), values(0, constant=True), values(6, constant=True))
clip("negative-bounds", t(5, 33), values(-4, constant=True), values(-1, constant=True), dtypes=SIGNED)
clip("fractions", t(5, 33), values(-0.5, constant=True), values(0.75, constant=True), dtypes=FLOATS)
clip("minimum-above-maximum", t(5, 33, init=_SPREAD), values(4, constant=True), values(1, constant=True))
clip("minimum-above-maximum,at-run-time", t(5, 33, init=_SPREAD), values(4), values(1))
clip("equal-bounds", t(33, init=_SPREAD), values(2, constant=True), values(2, constant=True))
clip("bounds-in-vectors", t(3, 7, init=_SPREAD), values([1], constant=True), values([4], constant=True))
clip("infinite-bounds", t(33), values(-inf, constant=True), values(inf, constant=True), dtypes=FLOATS)
clip("infinities", t(33, init=_NOT_NAN), values(-1, constant=True), values(2, constant=True), dtypes=FLOATS)
clip("neighbours", t(63, init=neighbours), const(init=neighbours))
clip("big", t(33, init=big), values(1, constant=True), const(init=big))
clip("1x257,odd", t(1, 257, init=_SPREAD), values(1, constant=True), values(4, constant=True))
clip("10007,long", t(10007, init=_SPREAD), values(1, constant=True), values(4, constant=True))
clip("2x3x1x5x1x3,rank6", t(2, 3, 1, 5, 1, 3, init=_SPREAD), values(1, constant=True), values(4, constant=True))
clip("0x3,empty", t(0, 3), values(1, constant=True), values(4, constant=True))


@clip.drawn
def draw_clip(draw: Draw, dtype: DType) -> OpCase:
    least = -4 if dtype.is_signed else 0
    numbers = draw(st.lists(st.none() | st.integers(least, 8), max_size=2))
    constant = draw(st.booleans())
    bounds = [None if number is None else values(number, constant=constant) for number in numbers]
    return clip.case(t(*draw_length(draw), init=_SPREAD), *bounds)


# **** bitwise operators ****

for _name in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
    _bits = table(_name)
    add_binary_shapes(_bits, full_range, full_range)
    _bits("5x1,1x5,extremes", t(5, 1, init=specials), t(1, 5, init=specials))


def _shift_counts(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return shift counts smaller than the width of the type."""
    return np.asarray(random.integers(0, 8 * np.dtype(dtype.numpy).itemsize, shape)).astype(dtype.numpy)


def _largest_shift(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    return np.full(shape, 8 * np.dtype(dtype.numpy).itemsize - 1).astype(dtype.numpy)


shift = table("BitShift")
add_binary_shapes(shift, full_range, _shift_counts, direction="LEFT")
shift("5x33,5x1,right", t(5, 33, init=full_range), t(5, 1, init=_shift_counts), direction="RIGHT")
shift("7,2x3x7,right", t(7, init=full_range), t(2, 3, 7, init=_shift_counts), direction="RIGHT")
shift("257,right", t(257, init=full_range), t(257, init=_shift_counts), direction="RIGHT")
shift("33,scalar-constant,right", t(33, init=full_range), const(init=_shift_counts), direction="RIGHT")
shift("last-place", t(33, init=full_range), t(init=_largest_shift), direction="LEFT")
shift("last-place,right", t(33, init=full_range), t(init=_largest_shift), direction="RIGHT")
shift("extremes,right", t(5, 1, init=specials), t(1, 9, init=_shift_counts), direction="RIGHT")


@shift.drawn
def draw_shift(draw: Draw, dtype: DType) -> OpCase:
    one, other = broadcastable(draw)
    direction = draw(st.sampled_from(("LEFT", "RIGHT")))
    return shift.case(t(*one, init=full_range), t(*other, init=_shift_counts), direction=direction)
