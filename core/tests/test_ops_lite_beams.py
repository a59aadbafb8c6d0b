"""BeamSearch and BeamSearchDecode: results worked out by hand, and errors."""

from __future__ import annotations

import numpy as np
import pytest
from op_runner import run_op

from lite_core.builder import GraphBuilder
from lite_core.errors import GraphError, LiteError

END = 9


def _lists(*arrays: np.ndarray) -> list[list[float]]:
    return [array.tolist() for array in arrays]


def test_the_best_continuations_of_each_source() -> None:
    scores = np.array([[-1.0, -4.0], [-2.0, -3.0], [-9.0, -8.0]])
    ids = np.array([[5, 6], [7, 8], [3, 4]])
    found = run_op("BeamSearch", [scores, ids, np.zeros(3), np.zeros(3, np.int64), np.array([0, 2, 3])], 4, "lite",
                   beam_size=3, end_id=END)  # fmt: skip
    assert _lists(*found) == [[-1, -2, -3, -8, -9], [5, 7, 8, 4, 3], [0, 1, 1, 2, 2], [0, 1, 3, 5]]


def test_an_ended_hypothesis_keeps_its_score_and_a_source_of_ended_ones_is_dropped() -> None:
    scores, previous = np.log([[0.5, 0.25], [0.5, 0.25], [1.0, 0.5]]), np.array([-0.1, -2.0, -3.0])
    inputs = [np.exp(scores), None, previous, np.array([END, 4, END]), np.array([0, 2, 3])]
    values, words, parents, children = run_op("BeamSearch", inputs, 4, "lite", beam_size=2, end_id=END, accumulated=0)
    np.testing.assert_allclose(values, [-0.1, -2 + np.log(0.5)])
    assert _lists(words, parents, children) == [[END, 0], [0, 1], [0, 1, 2, 2]]


def test_of_equal_scores_the_later_hypothesis_and_the_last_candidate_win() -> None:
    inputs = [np.zeros((2, 3)), np.arange(6).reshape(2, 3), np.zeros(2), np.array([10, 10]), np.array([0, 2])]
    _, words, parents, _ = run_op("BeamSearch", inputs, 4, "lite", beam_size=2, end_id=END)
    assert _lists(words, parents) == [[3, 5], [1, 1]]


def test_sentences_are_followed_back_and_sorted() -> None:
    # Two sources: the first one has two sentences, of which one ends early; the second one is dropped after it ends.
    ids = np.array([0, 0, 2, 3, END, END, 4])
    scores = np.array([0, 0, -1, -2, -5, -2, -1.5])
    sources = np.array([[0, 1, 2], [0, 1, 2], [0, 2, 3]])
    children = np.array([0, 1, 2, 0, 2, 3, 0, 1, 2, 2])
    found = run_op("BeamSearchDecode", [scores, ids, sources, children], 4, "lite", end_id=END)
    assert _lists(*found) == [
        [0, -2, -1.5, 0, -1, -2, 0, -5],
        [0, 3, 4, 0, 2, END, 0, END],
        [0, 2, 3],
        [0, 3, 6, 8],
    ]


@pytest.mark.parametrize(
    ("sources", "children", "message"),
    [
        ([[0, 1], [0, 2]], [0, 1, 0, 1, 2], "step 1 continues 2 hypotheses, but the step before it has 1 results"),
        ([[0, 1], [0, 1]], [0, 1, 0], "step 1 needs 2"),
        ([[0, 1], [0, 1]], [0, 1, 0, 2], "3 results and 4 offsets, but there are 2 and 4"),
        ([[0, 1], [1, 1]], [0, 1, 0, 1], "begin with 0"),
    ],
)
def test_steps_that_do_not_fit_are_errors(sources: list[list[int]], children: list[int], message: str) -> None:
    inputs = [np.zeros(2), np.zeros(2, np.int64), np.array(sources), np.array(children)]
    with pytest.raises(LiteError, match=message):
        run_op("BeamSearchDecode", inputs, 4, "lite", end_id=END)


def test_offsets_and_sizes_that_do_not_fit_are_errors() -> None:
    inputs = [np.zeros((2, 3)), None, np.zeros(2), np.zeros(2, np.int64), np.array([0, 3])]
    with pytest.raises(LiteError, match="end with 2"):
        run_op("BeamSearch", inputs, 4, "lite", beam_size=2, end_id=END)
    b = GraphBuilder()
    constants = [b.constant(a) for a in (np.zeros((2, 3)), np.zeros((2, 4), np.int64), *inputs[2:])]
    with pytest.raises(GraphError, match="ids must have size 3 on axis 1"):
        b.add_node("BeamSearch", constants, {"beam_size": 2, "end_id": END}, outputs=4, domain="lite")
