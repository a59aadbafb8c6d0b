"""Cases of lite.Mode and lite.Inverse."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, table
from lite_conformance.cases.tensors import Array, as_type, t, values
from lite_conformance.judge.tolerances import MOVED, SCALED
from lite_core.ir import DType


def repeated(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return small integers, so that many are equal."""
    return as_type(random.integers(0, 4, shape), dtype)


def dominant(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return matrices with a large diagonal, which are far from singular."""
    return as_type(random.uniform(-1, 1, shape) + 2 * shape[-1] * np.eye(shape[-1]), dtype)


mode = table("Mode", MOVED, domain="lite")
mode("7", t(7, init=repeated))
mode("3x9", t(3, 9, init=repeated))
mode("5x3,axis0", t(5, 3, init=repeated), axis=0)
mode("2x4x3,axis-2", t(2, 4, 3, init=repeated), axis=-2)
mode("1,single", t(1, init=repeated))
mode("4,tie", values([3, 1, 3, 1]))
mode("0x4,empty", t(0, 4, init=repeated))


@mode.drawn
def draw_mode(draw: Draw, dtype: DType) -> OpCase:
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)))
    return mode.case(t(*shape, init=repeated), axis=draw(st.integers(-len(shape), len(shape) - 1)))


inverse = table("Inverse", SCALED, domain="lite")
inverse("4x4", t(4, 4, init=dominant))
inverse("2x3x5x5", t(2, 3, 5, 5, init=dominant))
inverse("1x1", t(1, 1, init=dominant))
inverse("0x3x3,empty", t(0, 3, 3, init=dominant))


@inverse.drawn
def draw_inverse(draw: Draw, dtype: DType) -> OpCase:
    batch, size = draw(st.integers(1, 3)), draw(st.integers(1, 9))
    return inverse.case(t(batch, size, size, init=dominant))
