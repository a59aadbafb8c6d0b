"""Cases of RotaryEmbedding."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, table
from lite_conformance.cases.operators.layer_initializers import with_infinity, with_nan
from lite_conformance.cases.tensors import Array, Tensor, as_type, const, t, values
from lite_conformance.judge.tolerances import SCALED
from lite_core.ir import DType


def cosines(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return cosines of random angles."""
    return as_type(np.cos(random.uniform(-3, 3, shape)), dtype)


def positions(*rows: list[int], constant: bool = False) -> Tensor:
    """Return positions, a list for each row of the batch."""
    return values(list(rows), "int64", constant=constant)


def tables(*shape: int, constant: bool = True) -> list[Tensor]:
    """Return cosines and sines."""
    return [(const if constant else t)(*shape, init=cosines) for _ in range(2)]


rotary = table("RotaryEmbedding", SCALED)
rotary("2x3x4x8", t(2, 3, 4, 8), *tables(2, 4, 4, constant=False))
rotary("2x3x4x8,interleaved", t(2, 3, 4, 8), *tables(2, 4, 4, constant=False), interleaved=1)
rotary("2x4x24,heads3", t(2, 4, 24), *tables(2, 4, 4, constant=False), num_heads=3)
rotary("2x4x24,heads3,positions", t(2, 4, 24), *tables(9, 4), positions([0, 1, 2, 3], [8, 0, 5, 5]), num_heads=3)
rotary("2x3x4x8,positions", t(2, 3, 4, 8), *tables(9, 4), positions([4, 5, 6, 7], [0, 1, 2, 3]))
rotary("2x3x2x8,positions-constant", t(2, 3, 2, 8), *tables(9, 4), positions([4, 5], [0, 1], constant=True))
rotary("1x16x1x64,one-position", t(1, 16, 1, 64), *tables(33, 32), positions([32]))
rotary("1x3x5x34,odd-pairs", t(1, 3, 5, 34), *tables(9, 17), positions([0, 1, 2, 3, 4]))
rotary("2x3x4x10,six-rotated", t(2, 3, 4, 10), *tables(9, 3), positions([0, 1, 2, 3], [3, 2, 1, 0]),
       rotary_embedding_dim=6)  # fmt: skip
rotary("2x4x30,six-rotated,interleaved", t(2, 4, 30), *tables(9, 3), positions([0, 1, 2, 3], [3, 2, 1, 0]),
       rotary_embedding_dim=6, num_heads=3, interleaved=1)  # fmt: skip
rotary("1x2x520x64,large", t(1, 2, 520, 64), *tables(1, 520, 32, constant=False))
rotary("2x3x4x8,one-nan", t(2, 3, 4, 8, init=with_nan), *tables(2, 4, 4, constant=False))
rotary("2x3x4x8,one-infinity", t(2, 3, 4, 8, init=with_infinity), *tables(2, 4, 4, constant=False))
rotary("0x3x4x8,empty", t(0, 3, 4, 8), *tables(0, 4, 4, constant=False))


@rotary.drawn
def draw_rotary(draw: Draw, dtype: DType) -> OpCase:
    batch, heads, rows, half = (draw(st.integers(1, most)) for most in (2, 3, 3, 9))
    rest = draw(st.integers(0, 3))
    width = 2 * half + rest
    is_flat, interleaved = draw(st.booleans()), draw(st.integers(0, 1))
    x = t(batch, rows, heads * width) if is_flat else t(batch, heads, rows, width)
    attributes = {"interleaved": interleaved, "num_heads": heads, "rotary_embedding_dim": 2 * half}
    if draw(st.booleans()):
        return rotary.case(x, *tables(batch, rows, half, constant=False), **attributes)
    where = [[draw(st.integers(0, 10)) for _ in range(rows)] for _ in range(batch)]
    return rotary.case(x, *tables(11, half), positions(*where), **attributes)
