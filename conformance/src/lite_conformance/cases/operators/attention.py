"""Cases of Attention."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, table
from lite_conformance.cases.operators.layer_initializers import with_infinity, with_nan
from lite_conformance.cases.tensors import Array, Tensor, const, t, values
from lite_conformance.judge.tolerances import SCALED
from lite_core.ir import DType


def heads(batch: int, count: int, groups: int, queries: int, keys: int, size: int, columns: int = 0) -> list[Tensor]:
    """Return queries, keys and values as heads."""
    return [t(batch, count, queries, size), t(batch, groups, keys, size), t(batch, groups, keys, columns or size)]


def rows(batch: int, count: int, groups: int, queries: int, keys: int, size: int) -> list[Tensor]:
    """Return queries, keys and values as rows."""
    return [t(batch, queries, count * size), t(batch, keys, groups * size), t(batch, keys, groups * size)]


def visible(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return a mask of which the first key of each row is visible."""
    mask = random.random(shape) < 0.6
    mask[..., 0] = True
    return mask


def lengths(*ends: int) -> Tensor:
    """Return the numbers of keys of the rows of a batch."""
    return values(list(ends), "int64")


attention = table("Attention", SCALED)
attention("2x3x4x8", *heads(2, 3, 3, 4, 5, 8))
attention("2x6x4x8,groups3,values7", *heads(2, 6, 3, 4, 5, 8, 7))
attention("2x6x4x8,groups2,causal", *heads(2, 6, 2, 4, 4, 8), is_causal=1)
attention("rows,groups2", *rows(2, 4, 2, 3, 5, 8), q_num_heads=4, kv_num_heads=2)
attention("rows,causal,past", *rows(2, 4, 2, 3, 3, 8), None, t(2, 2, 5, 8), t(2, 2, 5, 8), outputs=3, q_num_heads=4,
          kv_num_heads=2, is_causal=1)  # fmt: skip
attention("one-query,past", *heads(1, 8, 2, 1, 1, 64), None, t(1, 2, 70, 64), t(1, 2, 70, 64), outputs=3, is_causal=1)
attention("one-query,cache300", *heads(1, 4, 1, 1, 300, 16), None, None, None, lengths(290), is_causal=1)
attention("two-queries,cache9", *heads(3, 4, 2, 2, 9, 16), None, None, None, lengths(2, 5, 9), is_causal=1)
attention("twenty-queries,cache70", *heads(1, 4, 2, 20, 70, 16), None, None, None, lengths(33), is_causal=1)
attention("twenty-queries", *heads(1, 4, 2, 20, 20, 16), is_causal=1)
attention("lengths", *heads(2, 4, 2, 3, 6, 8), None, None, None, lengths(4, 6))
attention("mask,3x6", *heads(2, 4, 4, 3, 6, 8), t(3, 6))
attention("mask,2x4x3x6,bool", *heads(2, 4, 2, 3, 6, 8), t(2, 4, 3, 6, dtype="bool", init=visible))
attention("mask,2x1x3x1", *heads(2, 4, 2, 3, 6, 8), t(2, 1, 3, 1))
attention("mask,shorter", *heads(2, 4, 2, 3, 6, 8), t(1, 4, 3, 5))
attention("mask,constant", *heads(1, 4, 2, 3, 6, 8), const(3, 6))
attention("mask,past,causal", *heads(1, 4, 2, 3, 3, 8), t(3, 7), t(1, 2, 4, 8), t(1, 2, 4, 8), outputs=3, is_causal=1)
attention("nothing-visible", *heads(1, 2, 2, 3, 5, 8), values([[1, 0, 0, 0, 1], [0] * 5, [0, 1, 0, 0, 0]], "bool"))
attention("softcap,scale", *heads(2, 4, 2, 3, 6, 8), softcap=0.7, scale=0.4)
attention("softcap,one-query", *heads(1, 4, 2, 1, 6, 8), t(1, 6), softcap=2.0)
attention("odd,1x5x3x7,groups1", *heads(1, 5, 1, 3, 67, 7, 9), is_causal=0)
attention("no-keys", *heads(1, 2, 2, 3, 0, 8))
attention("2x520x64,large", *heads(1, 2, 1, 520, 16, 64), outputs=3)
attention("present-of-one-shape", *heads(2, 3, 3, 4, 4, 8), outputs=3)
# Scores of some hundreds, whose exponentials are infinite or 0; half types have too few digits for them.
attention("large-scores", *heads(1, 2, 2, 3, 6, 8), scale=60.0, dtypes=("float32", "float64"))
_q, _k, _v = heads(1, 2, 2, 3, 6, 8)
attention("query-nan", t(*_q.shape, init=with_nan), _k, _v)
attention("value-nan", _q, _k, t(*_v.shape, init=with_nan))
attention("value-infinite", _q, _k, t(*_v.shape, init=with_infinity))
attention("0x4x3x8,empty", *heads(0, 4, 2, 3, 6, 8))


@attention.drawn
def draw_attention(draw: Draw, dtype: DType) -> OpCase:
    batch, groups, times, queries, size = (draw(st.integers(1, most)) for most in (2, 2, 3, 4, 9))
    is_causal, past = draw(st.integers(0, 1)), draw(st.integers(0, 5))
    keys = draw(st.integers(queries, queries + 3))
    operands: list[Tensor | None] = [*heads(batch, groups * times, groups, queries, keys, size)]
    operands.append(t(queries, keys + past) if draw(st.booleans()) else None)
    if past:
        operands += [t(batch, groups, past, size), t(batch, groups, past, size)]
    elif draw(st.booleans()):
        operands += [None, None, lengths(*(draw(st.integers(queries, keys)) for _ in range(batch)))]
    return attention.case(*operands, outputs=draw(st.sampled_from((1, 3))), is_causal=is_causal)
