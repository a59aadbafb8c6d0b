"""Operators of the domain ``lite`` on sequences of different lengths whose rows follow each other in one tensor.

Sequence ``n`` has the rows ``offsets[n]`` up to ``offsets[n + 1]``. Paddle calls these offsets LoD. Sizes in this file:
R rows, N sequences, L steps of the longest one, C tags.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_core.ir import Dim, Shape, fresh_dim
from lite_core.ops.detection import check_ranks, check_size, dim_of
from lite_core.ops.dtypes import FLOATS
from lite_core.ops.inference import Inference, fail
from lite_core.ops.registry import op

Array = np.ndarray[Any, Any]

# **** SequenceIndices ****


def _infer_sequence_indices(inference: Inference) -> list[Shape]:
    check_ranks(inference, (1, None), ("offsets", "rows"))
    offsets, length = inference.shape(0), inference.attributes["length"]
    if length < 0:
        raise fail(f"length must be 0 (of the longest sequence) or a number of steps, is {length}")
    count: Dim = fresh_dim("sequences") if offsets is None else offsets[0] - 1
    if count == -1:
        raise fail("offsets must have at least one element")
    rows = inference.dims(1) if inference.has(1) else None
    total = rows[0] if rows is not None and len(rows) == 1 else fresh_dim("rows")
    return [(count, length or fresh_dim("steps")), (total,), (total,)]


@op(
    "SequenceIndices",
    "offsets: int64, rows: int64? -> indices: int64, sequence: int64, step: int64",
    domain="lite",
    attributes={"length": 0, "reverse": 0},
    infer=_infer_sequence_indices,
)
def sequence_indices(offsets: Array, rows: Array | None, *, length: int, reverse: int) -> tuple[Array, Array, Array]:
    """Indices that pad sequences and join them again.

    ``indices`` [N, L] has the row of each step of each sequence (``reverse``: the last one first), and R behind the end
    of a sequence: of rows with one more row of padding, Gather makes [N, L, ...]. L is ``length``, or at least 1.
    ``sequence`` [R] and ``step`` [R] say for each row which sequence and step it is.

    Raises:
        GraphError: the offsets do not begin with 0, decrease, do not end with ``rows``, or a sequence is longer than
            ``length``.
    """
    lengths = np.diff(offsets)
    if offsets[0] != 0 or (lengths < 0).any():
        raise fail(f"sequence offsets must begin with 0 and not decrease, are {_shown(offsets)}")
    total = int(offsets[-1])
    if rows is not None and rows.reshape(-1).tolist() != [total]:
        wanted = ", ".join(map(str, rows.reshape(-1).tolist()))
        raise fail(f"sequence offsets must end with the number of rows, {wanted}, end with {total}: {_shown(offsets)}")
    longest = int(lengths.max(initial=0))
    if length and longest > length:
        raise fail(f"a sequence has {longest} steps, expected at most {length}")
    steps = np.arange(length or max(longest, 1))
    first = (offsets[1:] - 1 if reverse else offsets[:-1])[:, None]
    indices = np.where(steps < lengths[:, None], first - steps if reverse else first + steps, total)
    sequence = np.repeat(np.arange(len(lengths)), lengths)
    return indices, sequence, np.arange(total) - offsets[:-1][sequence]


def _shown(offsets: Array) -> str:
    listed = ", ".join(map(str, offsets[:8].tolist()))
    return f"[{listed}{', ...' if offsets.size > 8 else ''}]"


# **** ViterbiDecode ****


def _infer_viterbi(inference: Inference) -> list[Shape]:
    names = ("emissions", "transitions", "start", "stop", "lengths")
    check_ranks(inference, (3, 2, 1, 1, 1), names)
    emissions = inference.shape(0)
    if emissions is not None:
        for index, axes in ((1, (0, 1)), (2, (0,)), (3, (0,))):
            for axis in axes:
                check_size(inference.shape(index) if inference.has(index) else None, axis, emissions[2], names[index])
        check_size(inference.shape(4) if inference.has(4) else None, 0, emissions[0], "lengths")
    batch = dim_of(emissions, 0, "batch")
    return [(batch,), (batch, dim_of(emissions, 1, "steps"))]


@op(
    "ViterbiDecode",
    "emissions: T, transitions: T, start: T?, stop: T?, lengths: int64? -> scores: T, path: int64",
    domain="lite",
    types={"T": FLOATS},
    infer=_infer_viterbi,
)
def viterbi_decode(
    emissions: Array, transitions: Array, start: Array | None, stop: Array | None, lengths: Array | None
) -> tuple[Array, Array]:
    """The best path through each sequence of a linear-chain CRF, and its score (Viterbi, 1967).

    A path of tags has the score ``start[first] + stop[last]``, plus the emissions [N, L, C] of its steps, plus
    ``transitions[a, b]`` for each tag ``b`` that follows a tag ``a``. Of equal scores, that of the lower tag wins.
    Behind the length of a sequence, its path is 0; the score of a sequence without steps is 0.

    Raises:
        GraphError: a length is negative or more than L.
    """
    batch, steps, tags = emissions.shape
    if lengths is None:
        lengths = np.full(batch, steps)
    elif lengths.size and not 0 <= lengths.min() <= lengths.max() <= steps:
        raise fail(f"lengths must be from 0 to {steps}, are {_shown(lengths)}")
    path = np.zeros((batch, steps), np.int64)
    if not batch or not steps:
        return np.zeros(batch, emissions.dtype), path
    zeros = np.zeros(tags, emissions.dtype)
    best = emissions[:, 0] + (zeros if start is None else start)
    origins = np.zeros((steps, batch, tags), np.int64)
    for t in range(1, steps):
        arrivals = best[:, :, None] + transitions
        origins[t] = arrivals.argmax(axis=1)
        best = np.where((t < lengths)[:, None], arrivals.max(axis=1) + emissions[:, t], best)
    final = best + (zeros if stop is None else stop)
    tag = final.argmax(axis=1)
    for t in reversed(range(steps)):
        inside = t < lengths
        path[:, t] = np.where(inside, tag, 0)
        tag = np.where(inside, origins[t, np.arange(batch), tag], tag) if t else tag
    return np.where(lengths > 0, final.max(axis=1), 0).astype(emissions.dtype), path
