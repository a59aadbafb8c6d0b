"""ScatterElements, ScatterND. Without a reduction no element is written twice: its value would be undefined."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, table
from lite_conformance.cases.operators.operands import (
    NUMERIC,
    data,
    distinct_indices,
    distinct_tuples,
    index_tuples,
    indices,
    whole_range,
    without_nan,
)
from lite_conformance.cases.operators.strategies import axis_of, shape
from lite_conformance.cases.tensors import const, integers, special, t, values
from lite_conformance.judge.tolerances import EXACT, MOVED, SUM
from lite_core.ir import DType

#: The accuracy required of each reduction.
_NUMERICS = {"none": MOVED, "add": SUM, "mul": SUM, "max": EXACT, "min": EXACT}
# Products of a few of these fit into every element type.
_small = integers(1, 4)

scatter_elements = table("ScatterElements", MOVED)
scatter_elements("5x3,2x3,axis0-by-default", data(5, 3), distinct_indices(5, 0, 2, 3), data(2, 3))
scatter_elements("3x7,3x4,axis1", data(3, 7), distinct_indices(7, 1, 3, 4), data(3, 4), axis=1)
scatter_elements("2x3x33,2x3x9,axis-1", data(2, 3, 33), distinct_indices(33, 2, 2, 3, 9), data(2, 3, 9), axis=-1)
scatter_elements(
    "4x5x6,2x4x3,axis1,smaller-indices", data(4, 5, 6), distinct_indices(5, 1, 2, 4, 3), data(2, 4, 3), axis=1
)
scatter_elements("7,7,everything", data(7), distinct_indices(7, 0, 7), data(7))
scatter_elements("3x5,3x2,int32", data(3, 5), distinct_indices(5, 1, 3, 2, dtype="int32"), data(3, 2), axis=1)
scatter_elements(
    "3x5,3x2,constant-indices", data(3, 5), distinct_indices(5, 1, 3, 2, constant=True), data(3, 2), axis=-1
)
scatter_elements("3x5,constant", const(3, 5, init=whole_range), distinct_indices(3, 0, 2, 5), data(2, 5))
scatter_elements("3x5,0x5,no-indices", data(3, 5), distinct_indices(3, 0, 0, 5), data(0, 5))
scatter_elements("5x257,5x33,odd", data(5, 257), distinct_indices(257, 1, 5, 33), data(5, 33), axis=1)
scatter_elements("0x5,0x3,empty", data(0, 5), distinct_indices(5, 1, 0, 3), data(0, 3), axis=1)
scatter_elements("9x5,4x5,special", t(9, 5, init=special), distinct_indices(9, 0, 4, 5), t(4, 5, init=special))

scatter_nd = table("ScatterND", MOVED)
scatter_nd("3x4,5x2,elements", data(3, 4), distinct_tuples((3, 4), 5), data(5))
scatter_nd("5x4x3,3x1,slices", data(5, 4, 3), distinct_tuples((5,), 3), data(3, 4, 3))
scatter_nd("3x4x5,2x3x2,slices", data(3, 4, 5), distinct_tuples((3, 4), 2, 3), data(2, 3, 5))
scatter_nd("3x4,2,one-element", data(3, 4), distinct_tuples((3, 4)), data())
scatter_nd("8,4x1", data(8), distinct_tuples((8,), 4), data(4))
scatter_nd("33x7x3,100x2,odd", data(33, 7, 3), distinct_tuples((33, 7), 100), data(100, 3))
scatter_nd(
    "3x4,ends,constant", data(3, 4), values([[0, 0], [2, 3], [-2, -4], [1, -1]], "int64", constant=True), data(4)
)
scatter_nd("constant", const(3, 4, init=whole_range), distinct_tuples((3,), 2), const(2, 4, init=whole_range))
scatter_nd("3x4,0x2,no-indices", data(3, 4), distinct_tuples((3, 4), 0), data(0))
scatter_nd("5x0,3x1,empty", data(5, 0), distinct_tuples((5,), 3), data(3, 0))
scatter_nd("5x9,3x1,special", t(5, 9, init=special), distinct_tuples((5,), 3), t(3, 9, init=special))

for _reduction, _numerics in _NUMERICS.items():
    if _reduction == "none":
        continue
    scatter_elements(
        f"5x3,7x3,axis0,{_reduction},repeated",
        t(5, 3, init=_small),
        indices(5, 7, 3),
        t(7, 3, init=_small),
        reduction=_reduction,
        numerics=_numerics,
        dtypes=NUMERIC,
    )
    scatter_elements(
        f"3x33,2x9,axis1,{_reduction}",
        t(3, 33),
        distinct_indices(33, 1, 2, 9, dtype="int32"),
        t(2, 9),
        axis=1,
        reduction=_reduction,
        numerics=_numerics,
        dtypes=NUMERIC,
    )
    scatter_nd(
        f"3x2,9x2,{_reduction},repeated",
        t(3, 2, init=_small),
        index_tuples((3, 2), 9),
        t(9, init=_small),
        reduction=_reduction,
        numerics=_numerics,
        dtypes=NUMERIC,
    )
    scatter_nd(
        f"5x7,4x1,{_reduction},slices",
        t(5, 7),
        distinct_tuples((5,), 4),
        t(4, 7),
        reduction=_reduction,
        numerics=_numerics,
        dtypes=NUMERIC,
    )

for _reduction in ("max", "min"):
    _extremes = t(9, 5, init=without_nan), distinct_indices(9, 0, 9, 5), t(9, 5, init=without_nan)
    scatter_elements(f"9x5,{_reduction},extremes", *_extremes, reduction=_reduction, dtypes=NUMERIC, numerics=EXACT)


@scatter_elements.drawn
def draw_scatter_elements(draw: Draw, dtype: DType) -> OpCase:
    sizes = shape(draw, 1, 3, smallest=1, largest=6)
    axis = axis_of(draw, len(sizes))
    wanted = [draw(st.integers(0, n)) for n in sizes]
    index = distinct_indices(sizes[axis], axis % len(sizes), *wanted, constant=draw(st.booleans()))
    reduction = _reduction_for(draw, dtype)
    case = scatter_elements.case(t(*sizes), index, t(*wanted), axis=axis, reduction=reduction)
    return replace(case, numerics=_NUMERICS[reduction])


@scatter_nd.drawn
def draw_scatter_nd(draw: Draw, dtype: DType) -> OpCase:
    sizes = shape(draw, 1, 4, smallest=1, largest=5)
    depth = draw(st.integers(1, len(sizes)))
    count = draw(st.integers(0, prod(sizes[:depth])))
    reduction = _reduction_for(draw, dtype)
    updates = t(count, *sizes[depth:])
    case = scatter_nd.case(t(*sizes), distinct_tuples(sizes[:depth], count), updates, reduction=reduction)
    return replace(case, numerics=_NUMERICS[reduction])


def _reduction_for(draw: Draw, dtype: DType) -> str:
    """Draw a reduction that the element type supports; booleans support none."""
    return str(draw(st.sampled_from(sorted(_NUMERICS)))) if dtype is not DType.BOOL else "none"
