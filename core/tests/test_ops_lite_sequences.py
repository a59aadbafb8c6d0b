"""SequenceIndices and ViterbiDecode: errors and shapes; and elements of large constants, which a builder knows."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from op_runner import run_op

from lite_core.builder import GraphBuilder
from lite_core.errors import GraphError, LiteError

RNG = np.random.default_rng(3)


@pytest.mark.parametrize(
    ("offsets", "rows", "message"),
    [([1, 2], 2, "begin with 0"), ([0, 3, 2], 2, "not decrease"), ([0, 2, 4], 5, "number of rows, 5, end with 4")],
)
def test_offsets_that_do_not_fit_are_errors(offsets: list[int], rows: int, message: str) -> None:
    with pytest.raises(LiteError, match=message):
        run_op("SequenceIndices", [np.array(offsets), np.array([rows])], 3, "lite")


def test_a_sequence_longer_than_the_padding_is_an_error() -> None:
    with pytest.raises(LiteError, match="5 steps, expected at most 4"):
        run_op("SequenceIndices", [np.array([0, 5])], 3, "lite", length=4)


def test_joined_sequences_have_as_many_rows_as_the_tensor_that_was_padded() -> None:
    b = GraphBuilder()
    x, offsets = b.input("x", "float32", ["rows", 3]), b.input("x.lod", "int64", ["n"])
    rows = b.add("Shape", [x], {"start": 0, "end": 1})
    indices, sequence, step = b.add_node("SequenceIndices", [offsets, rows], outputs=3, domain="lite")
    assert sequence.shape == step.shape == x.shape[:1]
    assert str(indices.shape[0]) == "n - 1"


def test_viterbi_finds_the_best_of_all_paths() -> None:
    emissions, moves, start, stop = (RNG.standard_normal(shape) for shape in ((2, 4, 3), (3, 3), 3, 3))
    scores, paths = run_op("ViterbiDecode", [emissions, moves, start, stop, np.array([4, 2])], 2, "lite")
    for n, length in enumerate((4, 2)):

        def score(path: tuple[int, ...], n: int = n, length: int = length) -> float:
            steps = sum(moves[a, b] for a, b in pairwise(path))
            return float(start[path[0]] + stop[path[-1]] + steps + emissions[n, range(length), path].sum())

        best = max(product(range(3), repeat=length), key=score)
        assert tuple(paths[n]) == (*best, *[0] * (4 - length))
        np.testing.assert_allclose(scores[n], score(best))


def test_lengths_and_sizes_that_do_not_fit_are_errors() -> None:
    emissions, moves = np.zeros((2, 4, 3)), np.zeros((3, 3))
    with pytest.raises(LiteError, match="from 0 to 4"):
        run_op("ViterbiDecode", [emissions, moves, None, None, np.array([5, 1])], 2, "lite")
    b = GraphBuilder()
    with pytest.raises(GraphError, match="transitions must have size 3 on axis 0"):
        b.add("ViterbiDecode", [b.constant(emissions), b.constant(np.zeros((4, 4)))], domain="lite")


def test_a_builder_knows_constants_of_any_size_also_from_a_body() -> None:
    outer = GraphBuilder()
    large = outer.constant(RNG.standard_normal(5000))
    found = GraphBuilder("body", outer=outer).known(large)
    assert found is not None
    assert found.size == 5000
    # Larger tensors than shapes are not computed while a graph is built.
    assert outer.known(outer.add("Neg", [outer.constant(np.arange(5000))])) is None
