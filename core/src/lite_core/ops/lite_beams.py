"""Operators of the domain ``lite`` for the beam search of Paddle 1.x, whose sources have any number of hypotheses.

The hypotheses of all sources follow each other in one tensor; those of source ``n`` are the rows ``offsets[n]`` up to
``offsets[n + 1]``. Sizes in this file: N sources, R hypotheses before a step, M after it, C candidates for each of
them, T steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_core.ir import Shape, fresh_dim
from lite_core.ops.detection import check_ranks, check_size, dim_of
from lite_core.ops.dtypes import FLOATS
from lite_core.ops.inference import Inference, fail
from lite_core.ops.registry import op, required

Array = np.ndarray[Any, Any]


def _check_offsets(offsets: Array, rows: int, what: str) -> None:
    if not offsets.size or offsets[0] != 0 or (np.diff(offsets) < 0).any() or offsets[-1] != rows:
        raise fail(f"{what} must begin with 0, not decrease, and end with {rows}, are {offsets.tolist()[:9]}")


# **** BeamSearch ****


def _infer_beam_search(inference: Inference) -> list[Shape]:
    check_ranks(inference, (2, 2, 1, 1, 1), ("scores", "ids", "previous_scores", "previous_ids", "offsets"))
    if inference.attributes["beam_size"] < 1:
        raise fail(f"beam_size must be at least 1, is {inference.attributes['beam_size']}")
    scores = inference.shape(0)
    if scores is not None:
        ids = inference.shape(1) if inference.has(1) else None
        check_size(ids, 0, scores[0], "ids")
        check_size(ids, 1, scores[1], "ids")
        check_size(inference.shape(2), 0, scores[0], "previous_scores")
        check_size(inference.shape(3), 0, scores[0], "previous_ids")
    chosen = fresh_dim("hypotheses")
    return [(chosen,), (chosen,), (chosen,), (dim_of(scores, 0, "rows") + 1,)]


@op(
    "BeamSearch",
    "scores: T, ids: int64?, previous_scores: T, previous_ids: int64, offsets: int64"
    " -> selected_scores: T, selected_ids: int64, parents: int64, children: int64",
    domain="lite",
    types={"T": FLOATS},
    attributes={"beam_size": required("int"), "end_id": required("int"), "accumulated": 1},
    infer=_infer_beam_search,
)
def beam_search(
    scores: Array,
    ids: Array | None,
    previous_scores: Array,
    previous_ids: Array,
    offsets: Array,
    *,
    beam_size: int,
    end_id: int,
    accumulated: int,
) -> tuple[Array, Array, Array, Array]:
    """One step of a beam search: the ``beam_size`` best continuations of each source's hypotheses.

    Hypothesis ``r`` continues with each of its candidates ``ids`` [R, C] (the numbers from 0 to C - 1 without them) and
    gets their ``scores`` [R, C]; if these are not ``accumulated``, they are probabilities, and their logarithms are
    added to ``previous_scores`` [R]. A hypothesis that ended before (``previous_ids`` [R] is ``end_id``) continues only
    with ``end_id``, and keeps its score. Of equal scores, that of the later hypothesis is better. Of equal scores of
    one hypothesis, the first candidates are chosen, but a later one replaces the candidate in the last place.

    A source is dropped in the step after all of its hypotheses have ended: its chosen continuations are then ``end_id``
    for hypotheses that ended before.

    Results are in the order of the hypotheses that they continue, the better ones of one hypothesis first: ``parents``
    [M] are these hypotheses, and ``children`` [R + 1] says which results continue each of them.

    Raises:
        GraphError: the offsets do not begin with 0, decrease, or do not end with R.
    """
    rows = len(scores)
    _check_offsets(offsets, rows, "offsets")
    if ids is None:
        ids = np.broadcast_to(np.arange(scores.shape[1]), scores.shape)
    if not accumulated:
        with np.errstate(divide="ignore", invalid="ignore"):
            scores = previous_scores[:, None] + np.log(scores)
    found: list[list[tuple[int, Any]]] = [[] for _ in range(rows)]
    for start, end in zip(offsets[:-1].tolist(), offsets[1:].tolist()):
        beam = _best(previous_ids, previous_scores, ids, scores, range(start, end), beam_size, end_id)
        if any(word != end_id or previous_ids[row] != end_id for _, row, word in beam):
            for score, row, word in beam:
                found[row].append((word, score))
    chosen = [pair for pairs in found for pair in pairs]
    counts = [len(pairs) for pairs in found]
    children = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    words, values = (np.array([pair[i] for pair in chosen], kind) for i, kind in ((0, np.int64), (1, scores.dtype)))
    return values, words, np.repeat(np.arange(rows), counts), children


def _best(
    previous_ids: Array, previous_scores: Array, ids: Array, scores: Array, rows: range, beam_size: int, end_id: int
) -> list[tuple[Any, int, int]]:
    """Return the best continuations of one source, the best one first: score, hypothesis, word."""
    ended = {row for row in rows if previous_ids[row] == end_id}
    everything = [previous_scores[row : row + 1] if row in ended else scores[row] for row in rows]
    sizes = sum(len(part) for part in everything)
    # Candidates with lower scores than this one cannot be chosen.
    limit = np.partition(np.concatenate(everything), -beam_size)[-beam_size] if sizes > beam_size else -np.inf
    beam: list[tuple[Any, int, int]] = []
    for row, values in zip(rows, everything):
        for index in np.flatnonzero(values >= limit).tolist():
            item = (values[index], row, end_id if row in ended else int(ids[row, index]))
            if len(beam) < beam_size:
                beam.append(item)
            elif item[:2] >= beam[-1][:2]:
                beam[-1] = item
            else:
                continue
            place = len(beam) - 1
            while place and beam[place - 1][:2] < item[:2]:
                beam[place] = beam[place - 1]
                place -= 1
            beam[place] = item
    return beam


# **** BeamSearchDecode ****


def _infer_decode(inference: Inference) -> list[Shape]:
    check_ranks(inference, (1, 1, 2, 1), ("scores", "ids", "sources", "children"))
    check_size(inference.shape(1), 0, dim_of(inference.shape(0), 0, "scores"), "ids")
    words = fresh_dim("words")
    return [(words,), (words,), (dim_of(inference.shape(2), 1, "sources"),), (fresh_dim("sentences"),)]


@op(
    "BeamSearchDecode",
    "scores: T, ids: int64, sources: int64, children: int64"
    " -> word_scores: T, words: int64, source_offsets: int64, sentence_offsets: int64",
    domain="lite",
    types={"T": FLOATS},
    attributes={"end_id": required("int")},
    infer=_infer_decode,
)
def beam_search_decode(
    scores: Array, ids: Array, sources: Array, children: Array, *, end_id: int
) -> tuple[Array, Array, Array, Array]:
    """The sentences that a beam search has found, followed back from their last words.

    ``ids`` and ``scores`` are the results of T steps, one after another. Of step ``t``, ``sources[t]`` [N + 1] are the
    offsets of each source's hypotheses before the step, and as many elements of ``children`` as there are such
    hypotheses, and one more, are the offsets of their continuations among the results of this step.

    ``words`` and ``word_scores`` are those of all sentences, from their first words to the first ``end_id``, or to the
    last step of their source. Sentence ``s`` has the words ``sentence_offsets[s]`` up to ``sentence_offsets[s + 1]``.
    Source ``n`` has the sentences ``source_offsets[n]`` up to ``source_offsets[n + 1]``, sorted by the scores of their
    last words, the best first.

    Raises:
        GraphError: there is no step, or offsets do not fit each other.
    """
    steps = _steps(sources, children, len(ids))
    words: list[int] = []
    values: list[Any] = []
    source_offsets, sentence_offsets = [0], [0]
    for source in range(sources.shape[1] - 1):
        found = _sentences(ids, scores, steps, sources[:, source : source + 2], end_id)
        for sentence in sorted(found, key=lambda indices: -scores[indices[0]]):
            words += ids[sentence[::-1]].tolist()
            values += scores[sentence[::-1]].tolist()
            sentence_offsets.append(len(words))
        source_offsets.append(len(sentence_offsets) - 1)
    integers = [np.array(numbers, np.int64) for numbers in (words, source_offsets, sentence_offsets)]
    return np.array(values, scores.dtype), integers[0], integers[1], integers[2]


def _steps(sources: Array, children: Array, count: int) -> list[tuple[int, Array]]:
    """Return for each step where its results begin, and the offsets of the continuations of each hypothesis."""
    steps: list[tuple[int, Array]] = []
    if not len(sources) or not sources.shape[1]:
        raise fail("it has no steps or sources")
    used = results = before = 0
    for step, offsets in enumerate(sources):
        rows = int(offsets[-1])
        if step and rows != before:
            raise fail(f"step {step} continues {rows} hypotheses, but the step before it has {before} results")
        _check_offsets(offsets, rows, f"the offsets of the sources in step {step}")
        part = children[used : used + rows + 1]
        before = int(part[-1]) if len(part) else 0
        if len(part) <= rows:
            raise fail(f"children has {len(children)} elements, expected more: step {step} needs {rows + 1}")
        _check_offsets(part, before, f"the offsets of the continuations in step {step}")
        steps.append((results, part))
        used, results = used + rows + 1, results + before
    if used != len(children) or results != count:
        raise fail(f"its steps have {results} results and {used} offsets, but there are {count} and {len(children)}")
    return steps


def _sentences(ids: Array, scores: Array, steps: list[tuple[int, Array]], sources: Array, end_id: int) -> list[Any]:
    """Return the sentences of one source: the indices of their words, the last word first."""
    sentences: list[list[int]] = []
    hypotheses: list[int] = []  # the hypothesis of each sentence, as a row of the results of the step before
    for (first, children), (start, end) in zip(reversed(steps), sources[::-1].tolist()):
        if not hypotheses:  # the source was dropped later, or this is the last step
            rows = list(range(int(children[start]), int(children[end])))
            sentences = [[first + row] for row in rows]
        else:
            rows = hypotheses
            for sentence, row in zip(sentences, rows):
                if ids[first + row] != end_id:  # an ended hypothesis repeats its last word
                    sentence.append(first + row)
        hypotheses = (np.searchsorted(children, np.array(rows, np.int64), side="right") - 1).tolist()
    return sentences
