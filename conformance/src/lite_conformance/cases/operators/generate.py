"""Cases of Range, ConstantOfShape, EyeLike, OneHot."""

from __future__ import annotations

from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, table
from lite_conformance.cases.operators.operands import ALL, EACH_SIZE, FLOATS, data, run_time_ints, some_ints
from lite_conformance.cases.operators.strategies import shape
from lite_conformance.cases.tensors import Tensor, const, distinct, integers, ints, short_name, special, t, values
from lite_conformance.judge.tolerances import EXACT, MOVED, SCALED
from lite_core.ir import DType

# **** Range ****

_RANGE_FLOATS = ("float32", "float64")


def _numbers(*numbers: float, constant: bool = True) -> list[Tensor]:
    """Return scalars of the case's element type."""
    return [values(number, constant=constant) for number in numbers]


# The numbers are exact in every type, so that neither lengths nor elements depend on rounding.
range_ = table("Range", EXACT)
range_("0to7", *_numbers(0, 7, 1))
range_("3to20,step4,not-a-multiple", *_numbers(3, 20, 4))
range_("3to19,step4,a-multiple", *_numbers(3, 19, 4))
range_("10to-5,step-3", *_numbers(10, -5, -3))
range_("5to5,nothing", *_numbers(5, 5, 1))
range_("5to2,nothing", *_numbers(5, 2, 1))
range_("2to5,step-1,nothing", *_numbers(2, 5, -1))
range_("0to257,odd", *_numbers(0, 257, 1))
range_("0to7,at-run-time", *_numbers(0, 7, 1, constant=False))
range_("10to-5,step-3,at-run-time", *_numbers(10, -5, -3, constant=False))
range_("-7to9,limit-at-run-time", values(-7, constant=True), values(9), values(2, constant=True))
range_("quarters", *_numbers(-1.5, 2.25, 0.25), dtypes=_RANGE_FLOATS)
range_("tenths", *_numbers(0, 10.05, 0.1, constant=False), dtypes=_RANGE_FLOATS, numerics=SCALED)
range_("beyond-float32", *_numbers(2**24 + 1, 2**24 + 9, 3), dtypes=("int32", "int64", "float64"))
range_("beyond-float64", *[values(n, "int64") for n in (2**53 + 1, 2**53 + 9, 3)], dtypes=["int64"])


@range_.drawn
def draw_range(draw: Draw, dtype: DType) -> OpCase:
    scale = draw(st.sampled_from([1, 0.25])) if dtype.is_floating else 1
    start, limit, step = draw(st.integers(-40, 40)), draw(st.integers(-40, 40)), draw(st.integers(-9, 9).filter(bool))
    return range_.case(*[values(n * scale, constant=draw(st.booleans())) for n in (start, limit, step)])


# **** ConstantOfShape ****

constant_of_shape = table("ConstantOfShape", MOVED, dtypes=ALL)
constant_of_shape("2x3", ints(2, 3), value=data(1))
constant_of_shape("257,odd", ints(257), value=data(1))
constant_of_shape("2x1x3x2x1,rank5", ints(2, 1, 3, 2, 1), value=data(1))
constant_of_shape("scalar", values([], "int64", constant=True), value=data(1))
constant_of_shape("3x0,empty", ints(3, 0), value=data(1))
constant_of_shape("4x5,at-run-time", run_time_ints(4, 5), value=data(1))
constant_of_shape("scalar,at-run-time", values([], "int64"), value=data(1))
constant_of_shape("5,special", ints(5), value=t(1, init=special))
constant_of_shape("5x7,zeros-by-default", ints(5, 7), dtypes=["float32"])
constant_of_shape("5x7,zeros-by-default,at-run-time", run_time_ints(5, 7), dtypes=["float32"])


@constant_of_shape.drawn_for(EACH_SIZE)
def draw_constant_of_shape(draw: Draw, dtype: DType) -> OpCase:
    return constant_of_shape.case(some_ints(draw, shape(draw, 0, 5)), value=data(1))


# **** EyeLike ****

eye_like = table("EyeLike")
eye_like("4x4", t(4, 4))
eye_like("3x7", t(3, 7))
eye_like("7x3", t(7, 3))
eye_like("4x6,k2", t(4, 6), k=2)
eye_like("6x4,k-3", t(6, 4), k=-3)
eye_like("4x5,k9,outside", t(4, 5), k=9)
eye_like("4x5,k-9,outside", t(4, 5), k=-9)
eye_like("1x1", t(1, 1))
eye_like("0x3,empty", t(0, 3))
eye_like("33x17,odd", t(33, 17), k=1)
for _to in ALL:
    eye_like(f"3x4,to-{short_name(_to)}", t(3, 4), dtype=_to, k=1)


@eye_like.drawn_for(EACH_SIZE)
def draw_eye_like(draw: Draw, dtype: DType) -> OpCase:
    return eye_like.case(t(*shape(draw, 2, 2)), dtype=draw(st.sampled_from(ALL)), k=draw(st.integers(-8, 8)))


# **** OneHot ****


def _indices(size: int, *sizes: int, dtype: str = "int64") -> Tensor:
    """Return indices from the front, from the back, and beyond either end, where they select nothing."""
    return t(*sizes, init=integers(-size - 2, size + 3), dtype=dtype)


def _depth(size: int, dtype: str = "int64") -> Tensor:
    return values(size, dtype, constant=True)


_OFF_ON = t(2, init=distinct)

one_hot = table("OneHot", MOVED)
one_hot("5,depth7", t(5, init=integers(0, 7), dtype="int64"), _depth(7), _OFF_ON)
one_hot("3x4,depth5,axis0", _indices(5, 3, 4), _depth(5), _OFF_ON, axis=0)
one_hot("3x4,depth5,axis1", _indices(5, 3, 4), _depth(5), _OFF_ON, axis=1)
one_hot("3x4,depth5,axis-2", _indices(5, 3, 4), _depth(5), _OFF_ON, axis=-2)
one_hot("2x3x4,depth3,axis-4", _indices(3, 2, 3, 4), _depth(3), _OFF_ON, axis=-4)
one_hot("9,every-end", values([0, 6, 7, 8, -1, -7, -8, -9, 3], "int64"), _depth(7), _OFF_ON)
one_hot("one-index", _indices(5), _depth(5), _OFF_ON)
one_hot("33,depth257,odd", _indices(257, 33), _depth(257), _OFF_ON)
one_hot("4,depth1", _indices(1, 4), _depth(1), _OFF_ON)
one_hot("0,depth4,empty", _indices(4, 0), _depth(4), _OFF_ON)
one_hot("4,depth5,constants", values([1, 4, -5, 0], "int64", constant=True), _depth(5), const(2, init=distinct))
one_hot("4,depth-vector", _indices(5, 4), ints(5), _OFF_ON)
one_hot("4,depth-at-run-time", _indices(5, 4), values(5, "int64"), _OFF_ON, axis=0)
one_hot("4,int32", _indices(5, 4, dtype="int32"), _depth(5, "int32"), _OFF_ON)
one_hot("4,beyond-int32", values([2**40, -(2**40), 2**32 + 1, 3], "int64"), _depth(5), _OFF_ON)
one_hot("4,float-indices", _indices(5, 4, dtype="float32"), _depth(5, "float32"), _OFF_ON)
one_hot("4,uint8-indices", t(4, init=integers(0, 8), dtype="uint8"), _depth(5), _OFF_ON)
one_hot("5,whole-range", _indices(5, 5), _depth(5), data(2))
# Kernels that blend the two values with a mask turn the infinity into NaN.
one_hot("5,not-finite", _indices(5, 5), _depth(5), values([float("inf"), 1.0]), dtypes=FLOATS)


@one_hot.drawn_for(EACH_SIZE)
def draw_one_hot(draw: Draw, dtype: DType) -> OpCase:
    sizes = shape(draw, 0, 3, largest=5)
    depth = draw(st.integers(1, 6))
    indices = _indices(depth, *sizes, dtype=draw(st.sampled_from(["int32", "int64"])))
    depth_operand = values(depth, "int64", constant=draw(st.booleans()))
    return one_hot.case(indices, depth_operand, _OFF_ON, axis=draw(st.integers(-len(sizes) - 1, len(sizes))))
