"""Cases of Softmax, LogSoftmax, Hardmax."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, OpTable, table
from lite_conformance.cases.operators.initializers import with_elements
from lite_conformance.cases.operators.strategies import axis_of, shape
from lite_conformance.cases.tensors import big, distinct, integers, normal, t, tiny, uniform, values
from lite_conformance.judge.tolerances import EXACT, SCALED
from lite_core.ir import DType


def _add_along_axis(shares: OpTable) -> None:
    """Add the cases that the three operators share."""
    shares("3x7", t(3, 7))
    shares("3x7,axis0", t(3, 7), axis=0)
    shares("2x3x4x5,axis1", t(2, 3, 4, 5), axis=1)
    shares("2x3x4x5,axis-2", t(2, 3, 4, 5), axis=-2)
    shares("2x3x4,axis2", t(2, 3, 4), axis=2)
    shares("2x33x3,axis1", t(2, 33, 3), axis=1)
    shares("5x257", t(5, 257))
    shares("257", t(257))
    shares("7x1,one-element", t(7, 1))
    shares("1x1x1x1x1x3,high-rank", t(1, 1, 1, 1, 1, 3))
    shares("0x3,empty", t(0, 3))
    shares("3x0,empty-axis", t(3, 0))
    shares("equal", t(3, 7, init=uniform(2, 2)))
    shares("big", t(3, 7, init=big))
    shares("tiny", t(3, 7, init=tiny))
    shares("far-from-zero", t(3, 7, init=uniform(-300, -290)))

    @shares.drawn
    def draw_along_axis(draw: Draw, dtype: DType) -> OpCase:
        size = shape(draw, least=1, largest=9)
        init = draw(st.sampled_from((normal, distinct)))
        return shares.case(t(*size, init=init), axis=axis_of(draw, len(size)))


softmax = table("Softmax", SCALED)
log_softmax = table("LogSoftmax", SCALED)
for _shares in (softmax, log_softmax):
    _add_along_axis(_shares)
    _shares("large-differences", t(3, 33, init=uniform(-200, 200)))
    # Minus infinity, as in attention masks.
    _shares("masked", values([[0, -np.inf, 1, -np.inf, 2], [-np.inf, -np.inf, 0.5, -np.inf, -np.inf]]))
    _shares("nan-in-one-row", values([[0, 1, np.nan, 2, 1], [0, 1, 2, 3, 4], [np.nan, 0, 1, 0, 1]]))
    _shares("nan-in-one-column", values([[0, 1, np.nan], [0, 2, 2], [1, 0, 1]]), axis=0)

hardmax = table("Hardmax", EXACT)
_add_along_axis(hardmax)
hardmax("3x33,first-of-equal-ones", t(3, 33, init=integers(0, 4)))
hardmax("3x33x5,axis1,first-of-equal-ones", t(3, 33, 5, init=integers(0, 4)), axis=1)
hardmax("infinite", t(5, 7, init=with_elements(-np.inf, -np.inf, np.inf)))
