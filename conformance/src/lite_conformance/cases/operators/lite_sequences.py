"""Cases of SequenceIndices and ViterbiDecode (domain ``lite``)."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, table
from lite_conformance.cases.tensors import Array, Tensor, as_type, const, integers, t, values
from lite_conformance.judge.tolerances import EXACT, epsilon
from lite_core.ir import DType

# **** SequenceIndices ****


def _numbers(*numbers: int) -> Tensor:
    return values(np.array(numbers, np.int64), "int64")


indices = table("SequenceIndices", EXACT, domain="lite")
indices("three-sequences", _numbers(0, 2, 3, 7), outputs=3)
indices("reverse", _numbers(0, 2, 3, 7), outputs=3, reverse=1)
indices("rows", _numbers(0, 2, 3, 7), _numbers(7), outputs=3)
indices("length6", _numbers(0, 2, 3, 7), outputs=3, length=6)
indices("length6,reverse", _numbers(0, 2, 3, 7), outputs=3, length=6, reverse=1)
indices("empty-sequences", _numbers(0, 0, 3, 3, 4, 4), _numbers(4), outputs=3)
indices("empty-sequences,reverse", _numbers(0, 0, 3, 3, 4, 4), _numbers(4), outputs=3, reverse=1)
indices("no-rows", _numbers(0, 0, 0), _numbers(0), outputs=3)
indices("no-sequence", _numbers(0), _numbers(0), outputs=3)
indices("one-sequence", _numbers(0, 5), outputs=3)
indices("66000-sequences,large", _numbers(*range(66001)), outputs=3)
indices("only-indices", _numbers(0, 2, 3))


@indices.drawn
def draw_indices(draw: Draw, dtype: DType) -> OpCase:
    lengths = draw(st.lists(st.integers(0, 9), min_size=1, max_size=6))
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    length = draw(st.sampled_from([0, max(lengths) + 1]))
    return indices.case(_numbers(*offsets), outputs=3, length=length, reverse=draw(st.integers(0, 1)))


# **** ViterbiDecode ****

# Sums of such numbers are exact in every element type, and many of them are equal.
_small = integers(-3, 3)


def _digits(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return integers with almost all digits of the type: sums of eight of them are exact."""
    most = int(1 / epsilon(dtype)) // 8
    return as_type(random.integers(-most, most, shape), dtype)


viterbi = table("ViterbiDecode", EXACT, domain="lite")


def _moves(tags: int) -> Tensor:
    return const(tags, tags, init=_small)


def _weights(tags: int) -> Tensor:
    return const(tags, init=_small)


viterbi("n2l5c4", t(2, 5, 4, init=_small), _moves(4), outputs=2)
viterbi("n3l7c33,all", t(3, 7, 33, init=_small), _moves(33), _weights(33), _weights(33), _numbers(7, 0, 4), outputs=2)
viterbi("start", t(2, 6, 16, init=_small), _moves(16), _weights(16), outputs=2)
viterbi("stop", t(2, 6, 17, init=_small), _moves(17), None, _weights(17), outputs=2)
viterbi("lengths", t(3, 6, 5, init=_small), _moves(5), None, None, _numbers(1, 6, 2), outputs=2)
viterbi("weights-at-run-time", t(2, 5, 9, init=_small), t(9, 9, init=_small), t(9, init=_small), outputs=2)
viterbi("one-tag", t(2, 5, 1, init=_small), _moves(1), outputs=2)
viterbi("one-step", t(3, 1, 6, init=_small), _moves(6), _weights(6), _weights(6), outputs=2)
viterbi("no-steps", t(2, 0, 6, init=_small), _moves(6), _weights(6), _weights(6), outputs=2)
viterbi("no-sequence", t(0, 4, 6, init=_small), _moves(6), outputs=2)
viterbi("n33000l2c2,large", t(33000, 2, 2, init=_small), _moves(2), outputs=2)
viterbi("all-digits", t(3, 4, 5, init=_digits), const(5, 5, init=_digits), outputs=2)
viterbi("ties", values(np.zeros((2, 5, 19))), values(np.zeros((19, 19)), constant=True), outputs=2)
viterbi("only-scores", t(2, 5, 4, init=_small), _moves(4))


@viterbi.drawn
def draw_viterbi(draw: Draw, dtype: DType) -> OpCase:
    batch, steps, tags = (draw(st.integers(1, most)) for most in (4, 9, 40))
    given = [_weights(tags) if draw(st.booleans()) else None for _ in range(2)]
    lengths = _numbers(*(draw(st.integers(0, steps)) for _ in range(batch))) if draw(st.booleans()) else None
    return viterbi.case(t(batch, steps, tags, init=_small), _moves(tags), *given, lengths, outputs=2)
