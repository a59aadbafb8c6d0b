"""Cases of lite.Mode and lite.Inverse."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, table
from lite_conformance.cases.tensors import Array, as_type, special, t, values
from lite_conformance.judge.tolerances import MOVED, SCALED, epsilon
from lite_core.ir import DType
from lite_core.ops.dtypes import FLOATS


def repeated(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return small integers, so that many are equal."""
    return as_type(random.integers(0, 4, shape), dtype)


def largest(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return the four largest integers of the type, or 1 and the three numbers after it."""
    if dtype.is_integer:
        return np.asarray(np.iinfo(dtype.numpy).max - random.integers(0, 4, shape).astype(dtype.numpy))
    return as_type(1 + epsilon(dtype) * random.integers(0, 4, shape), dtype)


def dominant(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return matrices with a large diagonal, which are far from singular."""
    return as_type(random.uniform(-1, 1, shape) + 2 * shape[-1] * np.eye(shape[-1]), dtype)


mode = table("Mode", MOVED, domain="lite")
mode("7", t(7, init=repeated), outputs=2)
mode("3x9", t(3, 9, init=repeated), outputs=2)
mode("5x3,axis0", t(5, 3, init=repeated), axis=0, outputs=2)
mode("2x4x3,axis-2", t(2, 4, 3, init=repeated), axis=-2, outputs=2)
mode("1,single", t(1, init=repeated), outputs=2)
mode("4,tie", values([3, 1, 3, 1]), outputs=2)
mode("3x9,values-only", t(3, 9, init=repeated))
mode("5x9,next-to-each-other", t(5, 9, init=largest), outputs=2)
mode("4x9,special", t(4, 9, init=special), outputs=2)
mode("nan", values([np.nan, 1, np.nan, 2, 2, np.nan]), outputs=2, dtypes=FLOATS)
mode("16500x4x2,large", t(16500, 4, 2, init=repeated), axis=0, outputs=2)
mode("66000x1,large", t(66000, 1, init=repeated), outputs=2, dtypes=["float32"])
mode("0x4,empty", t(0, 4, init=repeated), outputs=2)


@mode.drawn
def draw_mode(draw: Draw, dtype: DType) -> OpCase:
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)))
    return mode.case(t(*shape, init=repeated), axis=draw(st.integers(-len(shape), len(shape) - 1)), outputs=2)


inverse = table("Inverse", SCALED, domain="lite")
inverse("4x4", t(4, 4, init=dominant))
inverse("2x3x5x5", t(2, 3, 5, 5, init=dominant))
inverse("1x1", t(1, 1, init=dominant))
inverse("4200x4x4,large", t(4200, 4, 4, init=dominant))
inverse("0x3x3,empty", t(0, 3, 3, init=dominant))


@inverse.drawn
def draw_inverse(draw: Draw, dtype: DType) -> OpCase:
    batch, size = draw(st.integers(1, 3)), draw(st.integers(1, 9))
    return inverse.case(t(batch, size, size, init=dominant))
