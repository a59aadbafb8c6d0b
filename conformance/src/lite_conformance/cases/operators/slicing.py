"""Cases of Slice, CenterCropPad."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, table
from lite_conformance.cases.operators.operands import EACH_SIZE, data, run_time_ints, some_ints, whole_range
from lite_conformance.cases.operators.strategies import axes_of, shape
from lite_conformance.cases.tensors import Tensor, const, ints, special, t, values
from lite_conformance.judge.tolerances import MOVED
from lite_core.ir import DType

_END, _START = 2**63 - 1, -(2**63)


def _ints32(*elements: int, constant: bool = True) -> Tensor:
    return values(elements, "int32", constant=constant)


cut = table("Slice", MOVED)
cut("7x9,1to5,2to9", data(7, 9), ints(1, 2), ints(5, 9))
cut("7x9,axis1,2to8,step3", data(7, 9), ints(2), ints(8), ints(1), ints(3))
cut("7x9,1to6,axis0-only", data(7, 9), ints(1), ints(6))
cut("5x33,axis-1,-9to-2", data(5, 33), ints(-9), ints(-2), ints(-1))
cut("9x5,reversed", data(9, 5), ints(-1), ints(_START), ints(0), ints(-1))
cut("9x5,axis0,7to1,step-2", data(9, 5), ints(7), ints(1), ints(0), ints(-2))
cut("4x9,axis1,8to-10,step-3,to-the-first", data(4, 9), ints(8), ints(-10), ints(1), ints(-3))
cut("9,-3to1,step-1", data(9), ints(-3), ints(1), ints(0), ints(-1))
cut("9,20to-20,step-4,clamped", data(9), ints(20), ints(-20), ints(0), ints(-4))
cut("7x9,axis1,3to-the-end", data(7, 9), ints(3), ints(_END), ints(1))
cut("7x9,axis1,3to-int32-max", data(7, 9), ints(3), ints(2**31 - 1), ints(1))
cut("7x9,-100to100,clamped", data(7, 9), ints(-100, -100), ints(100, 4))
cut("7x9,axis1,100to200,nothing", data(7, 9), ints(100), ints(200), ints(1))
cut("7x9,axis0,5to2,nothing", data(7, 9), ints(5), ints(2))
cut("2x3x4x5,axes3+-3,unsorted", data(2, 3, 4, 5), ints(1, 0), ints(5, 2), ints(3, -3), ints(2, 1))
cut(
    "3x4x5x6,every-axis,steps",
    data(3, 4, 5, 6),
    ints(0, 3, 1, 5),
    ints(3, 0, 5, 0),
    ints(0, 1, 2, 3),
    ints(2, -1, 3, -2),
)
cut("7x9,axis1,step100", data(7, 9), ints(2), ints(9), ints(1), ints(100))
cut("0x9,empty", data(0, 9), ints(0), ints(5))
cut("7x9,at-run-time", data(7, 9), run_time_ints(1, -4), run_time_ints(6, 9))
cut("7x9,at-run-time,step-2", data(7, 9), run_time_ints(8), run_time_ints(-20), ints(1), run_time_ints(-2))
cut("7x9,int32", data(7, 9), _ints32(5, -2), _ints32(-9, 9), _ints32(0, 1), _ints32(-2, 1))
cut("7x9,int32,at-run-time", data(7, 9), _ints32(1, constant=False), _ints32(2**31 - 1, constant=False), _ints32(1))
cut("7x9,axes-at-run-time", data(7, 9), ints(2), ints(6), run_time_ints(1))
cut("2x3x257,axis2,1to256,odd", data(2, 3, 257), ints(1), ints(256), ints(2))
cut("constant", const(5, 6, init=whole_range), ints(1), ints(3), ints(1))
cut("9x7,step2,special", t(9, 7, init=special), ints(0), ints(9), ints(0), ints(2))


@cut.drawn_for(EACH_SIZE)
def draw_slice(draw: Draw, dtype: DType) -> OpCase:
    sizes = shape(draw, 1, 4, largest=9)
    axes = axes_of(draw, len(sizes)) or (0,)
    count = len(axes)
    bounds = st.lists(st.integers(-12, 12), min_size=count, max_size=count)
    steps = draw(st.lists(st.integers(-3, 3).filter(bool), min_size=count, max_size=count))
    starts, ends = some_ints(draw, draw(bounds)), some_ints(draw, draw(bounds))
    return cut.case(data(*sizes), starts, ends, some_ints(draw, axes), some_ints(draw, steps))


center = table("CenterCropPad", MOVED)
center("7x9,to-5x5,crop", data(7, 9), ints(5, 5))
center("6x6,to-3x3,odd-rest", data(6, 6), ints(3, 3))
center("7x7,to-4x4,odd-rest", data(7, 7), ints(4, 4))
center("3x4,to-7x7,pad", data(3, 4), ints(7, 7))
center("4x3,to-7x6,odd-rest,pad", data(4, 3), ints(7, 6))
center("3x9,to-6x4,both", data(3, 9), ints(6, 4))
center("2x5x6x3,axes1+2", data(2, 5, 6, 3), ints(4, 9), axes=(1, 2))
center("2x5x6,axes-1+0,unsorted", data(2, 5, 6), ints(3, 4), axes=(-1, 0))
center("7x9,to-7x9,nothing", data(7, 9), ints(7, 9))
center("7x9,int32", data(7, 9), values([4, 12], "int32", constant=True))
center("7x9,to-4x12,at-run-time", data(7, 9), run_time_ints(4, 12))
center("0x3,to-2x3,pad-of-nothing", data(0, 3), ints(2, 3))
center("4x5,to-0x5,empty", data(4, 5), ints(0, 5))
center("9x9,to-5x13,special", t(9, 9, init=special), ints(5, 13))


@center.drawn_for(EACH_SIZE)
def draw_center(draw: Draw, dtype: DType) -> OpCase:
    sizes = shape(draw, 1, 4)
    axes = axes_of(draw, len(sizes)) or (0,)
    every = draw(st.booleans())
    attributes: dict[str, Any] = {} if every else {"axes": axes}
    wanted = [draw(st.integers(0, 9)) for _ in (sizes if every else axes)]
    return center.case(data(*sizes), some_ints(draw, wanted), **attributes)
