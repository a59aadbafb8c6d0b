"""Reductions over axes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, OpTable, table
from lite_conformance.cases.operators.operands import FLOATS, run_time_ints, some_ints, without_nan
from lite_conformance.cases.operators.strategies import axes_of, shape
from lite_conformance.cases.tensors import (
    Array,
    Initializer,
    big,
    const,
    ints,
    normal,
    positive,
    t,
    tiny,
    uniform,
    values,
)
from lite_conformance.judge.tolerances import EXACT, FUNCTION, SUM
from lite_core.ir import DType

_INF, _NAN = float("inf"), float("nan")
_ROWS = ((1, _NAN, 2), (_INF, 1, 2), (3, -_INF, 1), (_INF, 2, -_INF), (0, 0, 0), (-1, 2, 3))


@dataclass(frozen=True, slots=True)
class _Traits:
    """Properties of a reduction that its cases depend on.

    Attributes:
        init: initializer of elements for which the reduction has one correct result.
        empty: the element types in which a reduction over no elements has a value; None for all.
        noop: True if ``noop_with_empty_axes`` has one meaning. Versions of ONNX differ for operators that also
            transform each element (square, exponentiate): with empty axes some still do, some do not.
    """

    init: Initializer = normal
    empty: tuple[DType, ...] | None = None
    noop: bool = False


def _add_reductions(reduce: OpTable, traits: _Traits) -> None:
    """Add the cases of every reduction."""
    init = traits.init
    reduce("2x3x4,all", t(2, 3, 4, init=init))
    reduce("2x3x4,all,drop", t(2, 3, 4, init=init), keepdims=0)
    reduce("5x7,axis0", t(5, 7, init=init), ints(0))
    reduce("5x7,axis-1,drop", t(5, 7, init=init), ints(-1), keepdims=0)
    reduce("3x33x5,axis1", t(3, 33, 5, init=init), ints(1))
    reduce("2x3x4x5,axes0+2,drop", t(2, 3, 4, 5, init=init), ints(0, 2), keepdims=0)
    reduce("2x3x4x5,axes-1+1,unsorted", t(2, 3, 4, 5, init=init), ints(-1, 1))
    reduce("2x3x2x1x3x2,axes1+4+5,rank6", t(2, 3, 2, 1, 3, 2, init=init), ints(1, 4, 5), keepdims=0)
    reduce("257x3,axis0,odd", t(257, 3, init=init), ints(0), keepdims=0)
    reduce("3x257,axis1,odd", t(3, 257, init=init), ints(1))
    reduce("4x1x3,axis1,one-element", t(4, 1, 3, init=init), ints(1))
    reduce("scalar", t(init=init))
    reduce("3x4,no-axes-given-is-all", t(3, 4, init=init), ints())
    reduce("2x3x4,axes-at-run-time", t(2, 3, 4, init=init), run_time_ints(1, -1))
    reduce("2x3x4,axes-at-run-time,drop", t(2, 3, 4, init=init), run_time_ints(-2), keepdims=0)
    reduce("0x3,axis1,empty-result", t(0, 3, init=init), ints(1), keepdims=0)
    reduce("2x0x3,axis1,over-nothing", t(2, 0, 3, init=init), ints(1), dtypes=traits.empty)
    if traits.noop:
        reduce("3x4,noop", t(3, 4, init=init), noop_with_empty_axes=1)
        reduce("3x4,noop,no-axes-given", t(3, 4, init=init), ints(), noop_with_empty_axes=1, keepdims=0)
        reduce("3x4,noop,axis1", t(3, 4, init=init), ints(1), noop_with_empty_axes=1, keepdims=0)

    @reduce.drawn
    def draw_reduction(draw: Draw, dtype: DType) -> OpCase:
        smallest = 0 if traits.empty is None or dtype in traits.empty else 1
        sizes = shape(draw, 0, 4, smallest=smallest, largest=6)
        axes = axes_of(draw, len(sizes))
        operands = [some_ints(draw, axes)] if axes or draw(st.booleans()) else []
        return reduce.case(t(*sizes, init=init), *operands, keepdims=draw(st.integers(0, 1)))


def _add_magnitudes(reduce: OpTable, squares: bool = False) -> None:
    """Add cases of sums too long for half-precision accumulators (but not for float32), and of large and small numbers.

    Args:
        reduce: the table to extend.
        squares: True if the operator sums squares, which overflow for large integers.
    """
    reduce("2x2051,positive,long", t(2, 2051, init=positive), ints(1))
    reduce("2051x2,positive,long,drop", t(2051, 2, init=positive), ints(0), keepdims=0)
    reduce("3x9,big", t(3, 9, init=big), ints(1), dtypes=FLOATS if squares else None)
    reduce("3x9,tiny", t(3, 9, init=tiny), ints(0), dtypes=FLOATS)
    reduce("6x3,not-finite", values(_ROWS), ints(1), dtypes=FLOATS)


def _factors(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return numbers whose product stays in range: floats near 1 in magnitude; integers 1, and a few 2 and 3."""
    if dtype.is_floating:
        array = random.uniform(0.8, 1.25, shape)
    else:
        array = np.ones(shape)
        flat = array.reshape(-1)
        positions = random.permutation(flat.size)[:12]
        flat[positions] = random.integers(2, 4, positions.size)
    signs = random.choice([-1, 1], shape) if dtype.is_signed else 1
    return np.asarray(array * signs).astype(dtype.numpy)


reduce_sum = table("ReduceSum", SUM)
_add_reductions(reduce_sum, _Traits(noop=True))
_add_magnitudes(reduce_sum)
reduce_sum("5x7,constant", const(5, 7), run_time_ints(0))

reduce_mean = table("ReduceMean", SUM)
_add_reductions(reduce_mean, _Traits(empty=FLOATS, noop=True))
_add_magnitudes(reduce_mean)

reduce_product = table("ReduceProd", SUM)
_add_reductions(reduce_product, _Traits(_factors, noop=True))
reduce_product("6x3,not-finite", values(_ROWS), ints(1), dtypes=FLOATS)
reduce_product("3x2,big", t(3, 2, init=big), ints(1))
reduce_product("3x2,tiny", t(3, 2, init=tiny), ints(1))

for _name in ("ReduceSumSquare", "ReduceL1", "ReduceL2"):
    _sum = table(_name, SUM)
    _add_reductions(_sum, _Traits())
    _add_magnitudes(_sum, squares=_name != "ReduceL1")

reduce_log_sum = table("ReduceLogSum", FUNCTION)
_add_reductions(reduce_log_sum, _Traits(uniform(1, 8), empty=FLOATS))
reduce_log_sum("6x3,not-finite", values(_ROWS), ints(1), dtypes=FLOATS)
reduce_log_sum("2x2051,positive,long", t(2, 2051, init=positive), ints(1), dtypes=FLOATS)


def _exponents(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return standard normal numbers; integers are 0, so that log(n) is not near an integer, where truncation flips."""
    return normal(random, shape, dtype) if dtype.is_floating else np.zeros(shape, dtype.numpy)


reduce_log_sum_exp = table("ReduceLogSumExp", FUNCTION)
_add_reductions(reduce_log_sum_exp, _Traits(_exponents, empty=FLOATS))
reduce_log_sum_exp("2x3,axis1,integers", values([[0, 1, 2], [5, 5, 5]]), ints(1))
reduce_log_sum_exp("3x4,large,exp-would-overflow", t(3, 4, init=uniform(900, 910)), ints(1), dtypes=FLOATS)
reduce_log_sum_exp("3x4,negative,exp-would-vanish", t(3, 4, init=uniform(-910, -900)), ints(1), dtypes=FLOATS)
reduce_log_sum_exp("6x3,not-finite", values(_ROWS), ints(1), dtypes=FLOATS)
reduce_log_sum_exp("2x3,minus-infinity-alone", values([[-_INF] * 3, [-_INF, 1, 2]]), ints(1), dtypes=FLOATS)

for _name in ("ReduceMax", "ReduceMin"):
    _extreme = table(_name, EXACT)
    _add_reductions(_extreme, _Traits(noop=True))
    _extreme("5x33,extremes", t(5, 33, init=without_nan), ints(1))
    _extreme("5x33,axis0,extremes", t(5, 33, init=without_nan), ints(0))
    _extreme("3x9,all-negative", t(3, 9, init=uniform(-90, -10)), ints(1), dtypes=("int8", "int32", "int64", *FLOATS))
    _extreme(
        "3x9,all-positive", t(3, 9, init=uniform(10, 90)), ints(1), dtypes=("int8", "uint8", "int32", "int64", *FLOATS)
    )
