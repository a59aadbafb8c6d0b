"""Cases of ArgMax, ArgMin, TopK, NonZero, Unique."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, OpTable, table
from lite_conformance.cases.operators.operands import FLOATS, run_time_ints, some_ints, without_nan
from lite_conformance.cases.operators.strategies import axis_of, shape
from lite_conformance.cases.tensors import (
    Array,
    Initializer,
    const,
    distinct,
    integers,
    ints,
    normal,
    special,
    t,
    uniform,
)
from lite_core.ir import DType

_ties = integers(0, 4)
_SIGNED = ("int8", "int16", "int32", "int64", *FLOATS)


def _add_arg_cases(choose: OpTable) -> None:
    """Add the cases of ArgMax and ArgMin."""
    choose("7", t(7))
    choose("5x7,axis0-by-default", t(5, 7, init=distinct))
    choose("5x7,axis1,drop", t(5, 7, init=distinct), axis=1, keepdims=0)
    choose("2x33x5,axis-2", t(2, 33, 5), axis=-2)
    choose("3x257,axis-1,odd", t(3, 257), axis=-1, keepdims=0)
    choose("257x3,axis0,odd", t(257, 3), keepdims=0)
    choose("9x9,ties,first", t(9, 9, init=_ties), axis=1)
    choose("9x9,ties,last", t(9, 9, init=_ties), axis=1, select_last_index=1)
    choose("17x3,axis0,ties,last,drop", t(17, 3, init=_ties), keepdims=0, select_last_index=1)
    choose("4x6,all-equal,last", t(4, 6, init=integers(2, 3)), axis=1, select_last_index=1)
    choose("4x1x3,axis1,one-element", t(4, 1, 3), axis=1)
    choose("5x33,extremes", t(5, 33, init=without_nan), axis=1)
    choose("5x33,extremes,axis0,last", t(5, 33, init=without_nan), select_last_index=1)
    choose("3x9,all-negative", t(3, 9, init=uniform(-90, -10)), axis=1, dtypes=_SIGNED)
    choose("3x9,all-positive", t(3, 9, init=uniform(10, 90)), axis=1)
    choose("0x3,axis1,empty-result", t(0, 3), axis=1)
    choose("2x3x2x1x3x2,axis4,rank6", t(2, 3, 2, 1, 3, 2, init=_ties), axis=4, keepdims=0)

    @choose.drawn
    def draw_choice(draw: Draw, dtype: DType) -> OpCase:
        sizes = shape(draw, 1, 4, smallest=1)
        return choose.case(
            t(*sizes, init=draw(st.sampled_from([normal, _ties]))),
            axis=axis_of(draw, len(sizes)),
            keepdims=draw(st.integers(0, 1)),
            select_last_index=draw(st.integers(0, 1)),
        )


_add_arg_cases(table("ArgMax"))
_add_arg_cases(table("ArgMin"))

top_k = table("TopK")
top_k("9,k3", t(9, init=distinct), ints(3), outputs=2)
top_k("5x9,k4,smallest", t(5, 9, init=distinct), ints(4), outputs=2, largest=0)
top_k("9x5,k4,axis0", t(9, 5), ints(4), outputs=2, axis=0)
top_k("3x9x2,k5,axis-2,smallest", t(3, 9, 2), ints(5), outputs=2, axis=-2, largest=0)
top_k("3x17,k6,ties", t(3, 17, init=_ties), ints(6), outputs=2)
top_k("3x17,k6,ties,smallest", t(3, 17, init=_ties), ints(6), outputs=2, largest=0)
top_k("2x257,k33,odd", t(2, 257), ints(33), outputs=2)
top_k("4x7,k7,everything", t(4, 7), ints(7), outputs=2)
top_k("4x7,k1", t(4, 7), ints(1), outputs=2)
top_k("4x7,k0", t(4, 7), ints(0), outputs=2)
top_k("4x7,k1,any-order", t(4, 7, init=distinct), ints(1), outputs=2, sorted=0)
top_k("4x7,k3,values-only", t(4, 7), ints(3))
top_k("4x7,k3,at-run-time", t(4, 7), run_time_ints(3), outputs=2)
top_k("7x4,k3,axis0,at-run-time,smallest", t(7, 4), run_time_ints(3), outputs=2, axis=0, largest=0)
top_k("3x17,k9,extremes", t(3, 17, init=without_nan), ints(9), outputs=2)
top_k("3x17,k9,extremes,smallest", t(3, 17, init=without_nan), ints(9), outputs=2, largest=0)
top_k("0x7,k3,empty", t(0, 7), ints(3), outputs=2)


@top_k.drawn
def draw_top_k(draw: Draw, dtype: DType) -> OpCase:
    sizes = shape(draw, 1, 3, smallest=1, largest=9)
    axis = axis_of(draw, len(sizes))
    return top_k.case(
        t(*sizes, init=draw(st.sampled_from([normal, _ties]))),
        some_ints(draw, [draw(st.integers(0, sizes[axis]))]),
        outputs=2,
        axis=axis,
        largest=draw(st.integers(0, 1)),
    )


def _sparse(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return numbers half of which are 0; some floats are fractions, which a conversion to integers turns into 0."""
    array = normal(random, shape, dtype)
    return np.where(random.random(shape) < 0.5, array, array.dtype.type(0))


non_zero = table("NonZero")
non_zero("9", t(9, init=_sparse))
non_zero("5x7", t(5, 7, init=_sparse))
non_zero("2x3x4x5", t(2, 3, 4, 5, init=_sparse))
non_zero("3x257,odd", t(3, 257, init=_sparse))
non_zero("3x4,none", t(3, 4, init=uniform(0, 0)), dtypes=FLOATS)
non_zero("3x4,every", t(3, 4, init=uniform(1, 3)))
non_zero("3x9,special", t(3, 9, init=special))
non_zero("scalar,not-zero", t(init=uniform(1, 2)))
non_zero("0x3,empty", t(0, 3))
non_zero("3x5,constant", const(3, 5, init=_sparse))


@non_zero.drawn
def draw_non_zero(draw: Draw, dtype: DType) -> OpCase:
    return non_zero.case(t(*shape(draw, 0, 4), init=draw(st.sampled_from([_sparse, special]))))


unique = table("Unique")
unique("17", t(17, init=_ties), outputs=4)
unique("17,in-order-of-occurrence", t(17, init=_ties), outputs=4, sorted=0)
unique("5x7,flattened", t(5, 7, init=_ties), outputs=4)
unique("5x7,flattened,in-order-of-occurrence", t(5, 7, init=_ties), outputs=4, sorted=0)
unique("9x2,axis0", t(9, 2, init=integers(0, 2)), outputs=4, axis=0)
unique("9x2,axis0,in-order-of-occurrence", t(9, 2, init=integers(0, 2)), outputs=4, axis=0, sorted=0)
unique("2x2x9,axis-1", t(2, 2, 9, init=integers(0, 2)), outputs=4, axis=-1)
unique("2x9x1,axis1,in-order-of-occurrence", t(2, 9, 1, init=integers(0, 2)), outputs=4, axis=1, sorted=0)
unique("17,values-only", t(17, init=_ties))
unique("17,values-and-indices", t(17, init=_ties), outputs=2, sorted=0)
unique("17,without-counts", t(17, init=_ties), outputs=3)
unique("6,all-equal", t(6, init=integers(1, 2)), outputs=4)
unique("257,odd", t(257), outputs=4)
unique("33,extremes", t(33, init=without_nan), outputs=4)
unique("1", t(1), outputs=4)
unique("scalar", t(), outputs=4)


@unique.drawn
def draw_unique(draw: Draw, dtype: DType) -> OpCase:
    sizes = shape(draw, 1, 3, smallest=1)
    attributes: dict[str, Any] = {} if draw(st.booleans()) else {"axis": axis_of(draw, len(sizes))}
    init: Initializer = draw(st.sampled_from([normal, _ties, integers(0, 2)]))
    return unique.case(
        t(*sizes, init=init), outputs=draw(st.integers(1, 4)), sorted=draw(st.integers(0, 1)), **attributes
    )
