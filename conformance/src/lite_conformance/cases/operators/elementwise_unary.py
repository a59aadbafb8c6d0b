"""Element-wise functions of one tensor: arithmetic, rounding, exponentials, trigonometry."""

from __future__ import annotations

from math import inf, nan, pi

import numpy as np
from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, table
from lite_conformance.cases.operators.elementwise_shapes import add_unary_shapes, draw_length
from lite_conformance.cases.operators.initializers import full_range, specials, with_elements, within
from lite_conformance.cases.tensors import Array, big, normal, positive, t, tiny, uniform, values
from lite_conformance.judge.tolerances import ARITHMETIC, EXACT, FUNCTION, RELATIVE, epsilon
from lite_core.ir import DType
from lite_core.ops.dtypes import FLOATS, INTEGERS, UNSIGNED

# **** arithmetic ****

for _name in ("Abs", "Neg", "Sign"):
    _unary = table(_name, EXACT)
    add_unary_shapes(_unary)
    _unary("big", t(4, 33, init=big))
    _unary("tiny", t(4, 33, init=tiny))
    _unary("full-range", t(257, init=full_range), dtypes=INTEGERS)
    _special = with_elements(inf, -inf, 0.0, -0.0) if _name == "Sign" else specials
    _unary("special", t(33, init=_special), dtypes=FLOATS)

reciprocal = table("Reciprocal", ARITHMETIC)
add_unary_shapes(reciprocal, with_elements(0.5, -2.0, 3.0))
reciprocal("big", t(4, 33, init=big))
reciprocal("tiny", t(4, 33, init=tiny))
reciprocal("special", t(33, init=specials))

square_root = table("Sqrt", ARITHMETIC)
add_unary_shapes(square_root, positive)
square_root("special,negative-is-nan", t(33, init=specials))
square_root("big,negative-is-nan", t(4, 33, init=big))
square_root("tiny,negative-is-nan", t(4, 33, init=tiny))

bitwise_not = table("BitwiseNot", EXACT)
add_unary_shapes(bitwise_not, full_range)
bitwise_not("extremes", t(5, init=specials))

# **** rounding ****


def _edges(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return halves, the numbers next to halves and to integers, and the largest numbers with a fraction."""
    step = epsilon(dtype)
    one = [0.5, 1.5, 2.5, 3.5, 7.5, 1.0, 2.0, 0.5 - step / 4, 0.5 + step / 2, 1 - step / 2, 1 + step, 2.5 + 2 * step]
    # Rounding by adding and subtracting a large number is correct for small numbers and wrong for these.
    last = 0.5 / step
    one += [last - 0.5, last + 0.5, last + 1.0, last + 1.5, 2 * last + 1, 2 * last + 3, 4 * last, 6 * last]
    return np.resize(np.array([*one, *(-x for x in one)]).astype(dtype.numpy), shape)


for _name in ("Ceil", "Floor", "Round"):
    _rounding = table(_name, EXACT)
    add_unary_shapes(_rounding, uniform(-9, 9))
    _rounding("edges", t(40, init=_edges))
    _rounding("big", t(4, 33, init=big))
    _rounding("tiny", t(4, 33, init=tiny))
    _rounding("special", t(33, init=specials))

# **** exponentials ****

exponential = table("Exp", RELATIVE)
add_unary_shapes(exponential)
exponential("wide", t(257, init=within(-80, 80, 9)))
exponential("out-of-range", values([100.0, 1000.0, 1e4, -200.0, -1000.0, -1e4]))
exponential("special", t(33, init=specials))
exponential("tiny", t(33, init=tiny))

logarithm = table("Log", FUNCTION)
add_unary_shapes(logarithm, positive)
logarithm("near-one", t(257, init=uniform(0.9, 1.1)))
logarithm("big,negative-is-nan", t(4, 33, init=big))
logarithm("tiny,negative-is-nan", t(4, 33, init=tiny))
logarithm("special,zero-is-minus-infinity", t(33, init=specials))


def _erf_argument(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return standard normal numbers; no integers whose erf rounds to 1 in some floating types only."""
    if dtype.is_floating:
        return normal(random, shape, dtype)
    return np.asarray(random.choice([0, 1, 2, 7] if dtype in UNSIGNED else [-7, -2, -1, 0, 1, 2, 7], shape)).astype(
        dtype.numpy
    )


error_function = table("Erf", FUNCTION)
add_unary_shapes(error_function, _erf_argument)
error_function("saturated", t(257, init=uniform(-6, 6)), dtypes=FLOATS)
error_function("big", t(33, init=big), dtypes=FLOATS)
error_function("tiny", t(33, init=tiny), dtypes=FLOATS)
error_function("special", t(33, init=specials), dtypes=FLOATS)

# **** trigonometry, angles in radians ****

_NOT_FINITE = with_elements(nan, inf, -inf, 0.0, -0.0)


def _off_poles(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return angles over several turns, away from the poles of the tangent, where the last bit of an angle decides."""
    turns = random.integers(-2, 3, shape) if dtype.is_half else random.integers(-30, 31, shape)
    return np.asarray(turns * pi + random.uniform(-1.2, 1.2, shape)).astype(dtype.numpy)


for _name in ("Sin", "Cos"):
    _unary = table(_name, FUNCTION)
    add_unary_shapes(_unary)
    _unary("many-turns", t(257, init=within(-1000, 1000, 30)))
    _unary("tiny", t(33, init=tiny))
    _unary("special", t(33, init=_NOT_FINITE))

tangent = table("Tan", FUNCTION)
add_unary_shapes(tangent, uniform(-1.2, 1.2))
tangent("many-turns", t(257, init=_off_poles))
tangent("tiny", t(33, init=tiny))
tangent("special", t(33, init=with_elements(nan, inf, -inf, 0.0, among=uniform(-1.2, 1.2))))

for _name in ("Asin", "Acos", "Atanh"):
    _unary = table(_name, FUNCTION)
    add_unary_shapes(_unary, uniform(-0.97, 0.97))
    _unary("ends-of-the-domain", t(33, init=with_elements(-1.0, 1.0, among=uniform(-0.97, 0.97))))
    _unary("outside-is-nan", t(33, init=with_elements(nan, inf, -inf, 1.5, -1.5, 100.0, among=uniform(-0.97, 0.97))))
    _unary("tiny", t(33, init=tiny))

arc_tangent = table("Atan", FUNCTION)
add_unary_shapes(arc_tangent)
arc_tangent("wide", t(257, init=uniform(-30, 30)))
arc_tangent("big", t(33, init=big))
arc_tangent("tiny", t(33, init=tiny))
arc_tangent("special", t(33, init=specials))

for _name in ("Sinh", "Cosh"):
    _unary = table(_name, FUNCTION)
    add_unary_shapes(_unary)
    _unary("wide", t(257, init=within(-80, 80, 9)))
    _unary("tiny", t(33, init=tiny))
    _unary("special", t(33, init=specials))

hyperbolic_tangent = table("Tanh", FUNCTION)
add_unary_shapes(hyperbolic_tangent)
hyperbolic_tangent("saturated", t(257, init=uniform(-100, 100)))
hyperbolic_tangent("big", t(33, init=big))
hyperbolic_tangent("tiny", t(33, init=tiny))
hyperbolic_tangent("special", t(33, init=specials))

# Common formulas of these functions square their argument: the largest numbers may overflow, so "big" is enough.
inverse_sinh = table("Asinh", FUNCTION)
add_unary_shapes(inverse_sinh)
inverse_sinh("wide", t(257, init=uniform(-100, 100)))
inverse_sinh("big", t(33, init=big))
inverse_sinh("tiny", t(33, init=tiny))
inverse_sinh("special", t(33, init=_NOT_FINITE))

inverse_cosh = table("Acosh", FUNCTION)
add_unary_shapes(inverse_cosh, uniform(1.05, 5))
inverse_cosh("wide", t(257, init=uniform(1.5, 100)))
inverse_cosh("large", t(33, init=uniform(100, 60000)))
inverse_cosh("special", t(33, init=with_elements(1.0, nan, inf, 0.5, 0.0, -2.0, -inf, among=uniform(1.05, 5))))

# **** tests ****

_MIXED = with_elements(nan, inf, -inf, 0.0)

is_inf = table("IsInf")
add_unary_shapes(is_inf, _MIXED)
is_inf("special", t(33, init=specials))
is_inf("only-negative", t(3, 11, init=specials), detect_positive=0)
is_inf("only-positive", t(3, 11, init=specials), detect_negative=0)
is_inf("neither", t(3, 11, init=specials), detect_negative=0, detect_positive=0)


@is_inf.drawn
def draw_is_inf(draw: Draw, dtype: DType) -> OpCase:
    return is_inf.case(
        t(*draw_length(draw), init=_MIXED),
        detect_negative=draw(st.integers(0, 1)),
        detect_positive=draw(st.integers(0, 1)),
    )


is_nan = table("IsNaN")
add_unary_shapes(is_nan, _MIXED)
is_nan("special", t(33, init=specials))
is_nan("all-finite", t(33))
