"""Cases of CumSum."""

from __future__ import annotations

from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, table
from lite_conformance.cases.operators.operands import FLOATS
from lite_conformance.cases.operators.strategies import axis_of, shape
from lite_conformance.cases.tensors import Tensor, big, positive, t, tiny, values
from lite_conformance.judge.tolerances import SUM
from lite_core.ir import DType

_INF, _NAN = float("inf"), float("nan")


def _axis(axis: int, dtype: str = "int64") -> Tensor:
    return values(axis, dtype, constant=True)


cum_sum = table("CumSum", SUM)
cum_sum("7", t(7), _axis(0))
cum_sum("5x7,axis0", t(5, 7), _axis(0))
cum_sum("2x3x5,axis1", t(2, 3, 5), _axis(1))
cum_sum("2x33x3,axis-2,exclusive", t(2, 33, 3), _axis(-2), exclusive=1)
cum_sum("3x33,axis-1,reverse", t(3, 33), _axis(-1), reverse=1)
cum_sum("3x257,axis1,exclusive,reverse", t(3, 257), _axis(1), exclusive=1, reverse=1)
cum_sum("4x5,axis0,exclusive,reverse", t(4, 5), _axis(0), exclusive=1, reverse=1)
cum_sum("3x1,axis1,exclusive,one-element", t(3, 1), _axis(1), exclusive=1)
cum_sum("2x1x3x2x2,axis2,rank5", t(2, 1, 3, 2, 2), _axis(2), reverse=1)
cum_sum("4x5,axis-int32", t(4, 5), _axis(1, "int32"))
cum_sum("4x5,axis-vector", t(4, 5), values([-2], "int64", constant=True))
cum_sum("4x5,axis-at-run-time", t(4, 5), values(1, "int64"))
cum_sum("4x5,axis-at-run-time,exclusive,reverse", t(4, 5), values(-2, "int64"), exclusive=1, reverse=1)
cum_sum("0x3,empty", t(0, 3), _axis(0))
cum_sum("3x0,empty,exclusive", t(3, 0), _axis(1), exclusive=1)
cum_sum("2x2051,positive,long", t(2, 2051, init=positive), _axis(1))
cum_sum("3x9,big", t(3, 9, init=big), _axis(1))
cum_sum("3x9,tiny", t(3, 9, init=tiny), _axis(0), reverse=1, dtypes=FLOATS)
cum_sum("3x4,not-finite", values([[1, _INF, 2, 3], [1, _NAN, 2, 3], [_INF, 1, -_INF, 2]]), _axis(1), dtypes=FLOATS)
# Kernels that compute the exclusive sum by subtracting the element turn the infinity into NaN.
cum_sum("4,not-finite,exclusive", values([1, 2, _INF, 3]), _axis(0), exclusive=1, dtypes=FLOATS)


@cum_sum.drawn
def draw_cum_sum(draw: Draw, dtype: DType) -> OpCase:
    sizes = shape(draw, 1, 4)
    axis = values(axis_of(draw, len(sizes)), draw(st.sampled_from(["int32", "int64"])), constant=draw(st.booleans()))
    return cum_sum.case(t(*sizes), axis, exclusive=draw(st.integers(0, 1)), reverse=draw(st.integers(0, 1)))
