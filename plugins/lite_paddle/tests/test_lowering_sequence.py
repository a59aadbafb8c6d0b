"""Sequence operators of Paddle 1 for one sequence, against NumPy."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hand_made import graph_of, run_single

from lite_core.errors import UnsupportedOperatorError
from lite_paddle.lowering import supported_ops

RNG = np.random.default_rng(6)
X = RNG.standard_normal((5, 3)).astype(np.float32)
OPEN = {"X": [-1, 3]}


@pytest.mark.parametrize(
    ("pooltype", "expected"),
    [
        ("AVERAGE", X.mean(axis=0)),
        ("SUM", X.sum(axis=0)),
        ("SQRT", X.sum(axis=0) / np.sqrt(5)),
        ("MAX", X.max(axis=0)),
        ("FIRST", X[0]),
        ("LAST", X[-1]),
    ],
)
def test_sequence_pool(pooltype: str, expected: Any) -> None:
    found = run_single("sequence_pool", {"X": X}, {"pooltype": pooltype}, shapes=OPEN)
    np.testing.assert_allclose(found, expected[None], rtol=1e-5)


def test_sequence_softmax() -> None:
    exponents = np.exp(X[:, :1])
    np.testing.assert_allclose(run_single("sequence_softmax", {"X": X[:, :1]}), exponents / exponents.sum(), rtol=1e-5)


def test_reverse_concat_reshape_and_expand() -> None:
    np.testing.assert_array_equal(run_single("sequence_reverse", {"X": X}, outputs=("Y",)), X[::-1])
    np.testing.assert_array_equal(run_single("sequence_concat", {"X": [X, X[:2]]}), np.concatenate([X, X[:2]]))
    np.testing.assert_array_equal(run_single("sequence_reshape", {"X": X}, {"new_dim": 5}), X.reshape(3, 5))
    expanded = run_single("sequence_expand_as", {"X": X[:1], "Y": X}, shapes={"X": [-1, 3], "Y": [-1, 3]})
    np.testing.assert_array_equal(expanded, np.tile(X[:1], (5, 1)))


@pytest.mark.parametrize(("length", "start"), [(3, -1), (2, 0), (3, 1), (2, -3), (1, 0)])
@pytest.mark.parametrize("shapes", [None, OPEN])
def test_sequence_conv(length: int, start: int, shapes: Any) -> None:
    filters = RNG.standard_normal((3 * length, 4)).astype(np.float32)
    rows = np.zeros((5, length, 3), np.float32)
    for step, tap in product(range(5), range(length)):
        if 0 <= step + start + tap < 5:
            rows[step, tap] = X[step + start + tap]
    attrs = {"contextLength": length, "contextStart": start}
    found = run_single("sequence_conv", {"X": X, "Filter": filters}, attrs, shapes=shapes)
    np.testing.assert_allclose(found, rows.reshape(5, -1) @ filters, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_crf_decoding_finds_the_best_of_all_paths(steps: int) -> None:
    emission = RNG.standard_normal((steps, 3)).astype(np.float32)
    weights = RNG.standard_normal((5, 3)).astype(np.float32)

    def score(path: tuple[int, ...]) -> float:
        moves = sum(weights[2 + a, b] for a, b in pairwise(path))
        return float(weights[0, path[0]] + weights[1, path[-1]] + moves + emission[range(steps), path].sum())

    best = max(product(range(3), repeat=steps), key=score)
    inputs = {"Emission": emission, "Transition": weights}
    shapes = {"Emission": [-1, 3]}
    found = run_single("crf_decoding", inputs, outputs=("ViterbiPath",), parameters=("Transition",), shapes=shapes)
    np.testing.assert_array_equal(found, np.array(best, np.int64)[:, None])
    assert found.dtype == np.int64


def test_several_sequences_are_refused() -> None:
    np.testing.assert_array_equal(run_single("lod_reset", {"X": X}, {"target_lod": [0, 5]}), X)
    with pytest.raises(UnsupportedOperatorError, match="into 2 sequences"):
        graph_of("lod_reset", {"X": X}, {"target_lod": [0, 2, 5]})
    assert not {"sequence_expand", "beam_search", "sequence_slice"} & set(supported_ops())
