"""Cases of BeamSearch and BeamSearchDecode (domain ``lite``)."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, table
from lite_conformance.cases.tensors import Array, Tensor, as_type, const, integers, t, values
from lite_conformance.judge.tolerances import EXACT, SCALED
from lite_core.ir import DType

#: The word that ends a sentence.
_END = 1
# Such numbers are exact in every element type, and many of them are equal.
_small = integers(-3, 3)


def _numbers(*numbers: int) -> Tensor:
    return values(np.array(numbers, np.int64), "int64")


def _words(rows: int, candidates: int) -> Tensor:
    return values(np.arange(rows * candidates).reshape(rows, candidates) * 5 % 7, "int64")


# **** BeamSearch ****

search = table("BeamSearch", EXACT, domain="lite")


def _falling(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return scores of which none is higher than the one before."""
    return as_type(1 - np.arange(shape[-1]).reshape(shape) / shape[-1], dtype)


def _hypotheses(
    previous: list[int], offsets: list[int], candidates: int, *, ids: bool = True, accumulated: bool = True
) -> list[Tensor | None]:
    rows = len(previous)
    # The logarithm of 1 is exact in every element type.
    scores = t(rows, candidates, init=_small) if accumulated else values(np.ones((rows, candidates)))
    words = _words(rows, candidates) if ids else None
    return [scores, words, t(rows, init=_small), _numbers(*previous), _numbers(*offsets)]


search("two-sources", *_hypotheses([0, 2, 3, 4, 5], [0, 2, 5], 4), outputs=4, beam_size=3, end_id=_END)
search("one-ended", *_hypotheses([0, 1, 3, 1, 5], [0, 2, 5], 4), outputs=4, beam_size=4, end_id=_END)
search("all-ended", *_hypotheses([1, 1, 3, 2], [0, 2, 4], 3), outputs=4, beam_size=2, end_id=_END)
search("no-ids", *_hypotheses([0, 2, 3], [0, 1, 3], 33, ids=False), outputs=4, beam_size=4, end_id=_END)
search(
    "probabilities",
    *_hypotheses([0, 2, 1], [0, 1, 3], 4, accumulated=False),
    outputs=4,
    beam_size=3,
    end_id=_END,
    accumulated=0,
)
search("ties-of-one-hypothesis", values([[2, 2, 2, 2]]), values([[6, 5, 7, 3]], "int64"), values([0]), _numbers(2),
       _numbers(0, 1), outputs=4, beam_size=2, end_id=_END)  # fmt: skip
search("powers-of-two", values([[0.5, 0.25, 0.125], [1, 0.0625, 0.03125]]), _words(2, 3), values([1, -2]),
       _numbers(2, 3), _numbers(0, 2), outputs=4, beam_size=4, end_id=_END, accumulated=0,
       numerics=SCALED)  # fmt: skip
search("all-digits", t(3, 5), _words(3, 5), t(3), _numbers(0, 1, 2), _numbers(0, 3), outputs=4, beam_size=5,
       end_id=_END)  # fmt: skip
search("constant-words-before", t(3, 4, init=_small), _words(3, 4), const(3, init=_small),
       values([0, 1, 2], "int64", constant=True), _numbers(0, 3), outputs=4, beam_size=3, end_id=_END)  # fmt: skip
search("66000-candidates,large", t(1, 66000, init=_falling), None, values([0]), _numbers(2), _numbers(0, 1), outputs=4,
       beam_size=65900, end_id=_END)  # fmt: skip
search("few-candidates", *_hypotheses([0, 2, 3], [0, 1, 3], 1), outputs=4, beam_size=4, end_id=_END)
search("one-beam", *_hypotheses([0, 2, 3], [0, 1, 3], 5), outputs=4, beam_size=1, end_id=_END)
search("no-hypotheses", *_hypotheses([], [0, 0, 0], 5), outputs=4, beam_size=2, end_id=_END)
search("source-without-hypotheses", *_hypotheses([0, 2], [0, 1, 1, 2], 5), outputs=4, beam_size=2, end_id=_END)


@search.drawn
def draw_search(draw: Draw, dtype: DType) -> OpCase:
    counts = draw(st.lists(st.integers(0, 4), min_size=1, max_size=4))
    previous = draw(st.lists(st.integers(0, 2), min_size=sum(counts), max_size=sum(counts)))
    offsets = [0, *np.cumsum(counts).tolist()]
    accumulated = draw(st.booleans())
    inputs = _hypotheses(previous, offsets, draw(st.integers(1, 6)), ids=draw(st.booleans()), accumulated=accumulated)
    attributes = {"beam_size": draw(st.integers(1, 5)), "accumulated": int(accumulated)}
    return search.case(*inputs, outputs=4, end_id=_END, **attributes)


# **** BeamSearchDecode ****

decode = table("BeamSearchDecode", EXACT, domain="lite")


def _decode(label: str, words: list[int], sources: list[list[int]], children: list[int]) -> None:
    scores = np.arange(len(words)) * 3 % 11 - 5
    inputs = [values(scores), _numbers(*words), values(np.array(sources, np.int64), "int64"), _numbers(*children)]
    decode(label, *inputs, outputs=4, end_id=_END)


decode("nan-in-the-first-step", values([np.nan, 1, 2, 3]), _numbers(2, 3, 4, 5), values([[0, 1], [0, 2]], "int64"),
       _numbers(0, 2, 0, 1, 2), outputs=4, end_id=_END)  # fmt: skip
_WIDTH, _STEPS = 330, 201
decode("67000-words,large", t(_WIDTH * _STEPS), t(_WIDTH * _STEPS, dtype="int64", init=integers(2, 99)),
       values([[0, 1]] + [[0, _WIDTH]] * (_STEPS - 1), "int64"),
       _numbers(0, _WIDTH, *(list(range(_WIDTH + 1)) * (_STEPS - 1))), outputs=4, end_id=_END)  # fmt: skip
_decode("one-step", [2, 3, 4], [[0, 1, 2]], [0, 2, 3])
_decode("two-steps", [0, 0, 2, 3, 1, 4], [[0, 1, 2], [0, 1, 2]], [0, 1, 2, 0, 2, 4])
_decode("ended-twice", [0, 1, 2, 1, 3, 1, 1], [[0, 1], [0, 1], [0, 2]], [0, 1, 0, 2, 0, 1, 4])
_decode("as-many-in-each-step", [0, 0, 1, 2, 1, 3, 1, 4], [[0, 1, 2], [0, 1, 2], [0, 1, 2], [0, 1, 2]],
                   [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2])  # fmt: skip
_decode("source-dropped", [0, 0, 1, 2, 3], [[0, 1, 2], [0, 1, 2], [0, 1, 2]], [0, 1, 2, 0, 1, 2, 0, 0, 1])
_decode("nothing-left", [0, 0, 1, 1], [[0, 1, 2], [0, 1, 2], [0, 1, 2]], [0, 1, 2, 0, 1, 2, 0, 0, 0])
_decode("no-sources", [], [[0]], [0])
