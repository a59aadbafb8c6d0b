"""Sequence operators of Paddle 1, against NumPy; ``test_lod_programs.py`` compares whole programs with Paddle."""

from __future__ import annotations

from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest
from hand_made import program_of, run, run_single

from lite_core.errors import LiteError, ModelFormatError
from lite_paddle.lowering import lower

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


# **** several sequences ****

OFFSETS = [0, 2, 2, 5]
LOD = {"X": [OFFSETS]}


def each(op_type: str, rows: Any, more: dict[str, Any], attrs: dict[str, Any], **options: Any) -> Any:
    """Run an operator on one sequence at a time and join the results."""
    parts = [rows[a:b] for a, b in pairwise(OFFSETS) if b > a]
    slot = options.pop("slot", "X")
    return np.concatenate([run_single(op_type, {slot: part, **more}, attrs, **options) for part in parts])


FILTER = RNG.standard_normal((9, 4)).astype(np.float32)
IDS = RNG.integers(0, 9, (5, 1))


@pytest.mark.parametrize(
    ("op_type", "rows", "more", "attrs", "out"),
    [
        ("sequence_softmax", X[:, :1], {}, {}, "Out"),
        ("sequence_reverse", X, {}, {}, "Y"),
        ("sequence_conv", X, {"Filter": FILTER}, {"contextLength": 3, "contextStart": -1}, "Out"),
        ("sequence_enumerate", IDS, {}, {"win_size": 3, "pad_value": 7}, "Out"),
        ("sequence_erase", IDS, {}, {"tokens": IDS[1:3].ravel().tolist()}, "Out"),
        ("row_conv", X, {"Filter": FILTER[:2, :3]}, {}, "Out"),
        ("sequence_reshape", X, {}, {"new_dim": 1}, "Out"),
    ],
)
def test_several_sequences_are_those_computed_one_by_one(
    op_type: str, rows: Any, more: dict[str, Any], attrs: dict[str, Any], out: str
) -> None:
    found = run_single(op_type, {"X": rows, **more}, attrs, outputs=(out,), lod=LOD)
    np.testing.assert_allclose(found, each(op_type, rows, more, attrs, outputs=(out,)), rtol=1e-5)


@pytest.mark.parametrize("pooltype", ["AVERAGE", "SUM", "SQRT", "MAX", "FIRST", "LAST"])
def test_pooling_gives_a_row_for_each_sequence_and_a_number_for_an_empty_one(pooltype: str) -> None:
    attrs = {"pooltype": pooltype, "pad_value": 7.0}
    first, empty, last = run_single("sequence_pool", {"X": X}, attrs, lod=LOD)
    np.testing.assert_allclose(np.stack([first, last]), each("sequence_pool", X, {}, attrs), rtol=1e-5)
    assert (empty == 7).all()


def test_concat_joins_sequence_by_sequence_and_returns_the_offsets() -> None:
    lod = {"X": [[0, 2, 5]]}
    found, offsets = run("sequence_concat", {"X": [X, X + 10]}, lod=lod)
    np.testing.assert_array_equal(found, np.concatenate([X[:2], X[:2] + 10, X[2:], X[2:] + 10]))
    np.testing.assert_array_equal(offsets, [0, 4, 10])


def test_expand_repeats_rows_or_sequences() -> None:
    y = np.zeros((5, 1), np.float32)
    rows = run_single("sequence_expand_as", {"X": X[:3], "Y": y}, lod={"Y": [OFFSETS]})
    np.testing.assert_array_equal(rows, X[[0, 0, 2, 2, 2]])
    found = run_single("sequence_expand", {"X": X[:3], "Y": y}, {"ref_level": 0}, lod={"Y": [OFFSETS]})
    np.testing.assert_array_equal(found, rows)
    lod = {"X": [[0, 2, 3]], "Y": [[0, 2, 3], [0, 1, 4, 5]]}
    found, offsets = run("sequence_expand", {"X": X[:3], "Y": y}, {"ref_level": 0}, lod=lod)
    np.testing.assert_array_equal(found, X[[0, 1, 0, 1, 2]])
    np.testing.assert_array_equal(offsets, [0, 2, 4, 5])


@pytest.mark.parametrize("padded_length", [-1, 4])
def test_pad_and_unpad(padded_length: int) -> None:
    inputs = {"X": X, "PadValue": np.float32([7])}
    padded, lengths = run("sequence_pad", inputs, {"padded_length": padded_length}, outputs=("Out", "Length"), lod=LOD)
    assert padded.shape == (3, max(padded_length, 3), 3)
    np.testing.assert_array_equal(lengths, [2, 0, 3])
    np.testing.assert_array_equal(padded[0, :2], X[:2])
    np.testing.assert_array_equal(padded[2, :3], X[2:])
    assert (padded[1] == 7).all()
    assert (padded[0, 2:] == 7).all()
    rows, offsets = run("sequence_unpad", {"X": padded, "Length": lengths})
    np.testing.assert_array_equal(rows, X)
    np.testing.assert_array_equal(offsets, OFFSETS)


def test_slice_takes_a_part_of_each_sequence() -> None:
    inputs = {"X": X, "Offset": np.array([[1], [1]]), "Length": np.array([[1], [2]])}
    found, offsets = run("sequence_slice", inputs, lod={"X": [[0, 2, 5]]})
    np.testing.assert_array_equal(found, X[[1, 3, 4]])
    np.testing.assert_array_equal(offsets, [0, 1, 3])


def test_scatter_adds_to_the_row_of_each_sequence() -> None:
    inputs = {
        "X": X[:2],
        "Ids": np.array([[0], [2], [1], [1], [0]]),
        "Updates": np.arange(5, dtype=np.float32)[:, None],
    }
    found = run_single("sequence_scatter", inputs, lod={"Ids": [[0, 2, 5]]})
    np.testing.assert_allclose(found, X[:2] + np.array([[0, 0, 1], [4, 5, 0]]), rtol=1e-6)


def test_alignment_drops_blanks_and_repetitions_within_sequences() -> None:
    labels = np.array([[1], [1], [0], [2], [2], [0], [1], [1]], np.int32)
    attrs = {"blank": 0, "merge_repeated": True}
    found, offsets = run("ctc_align", {"Input": labels}, attrs, outputs=("Output",), lod={"Input": [[0, 4, 7, 8]]})
    np.testing.assert_array_equal(found, [[1], [2], [2], [1], [1]])
    np.testing.assert_array_equal(offsets, [0, 2, 4, 5])
    (found,) = run("ctc_align", {"Input": labels}, attrs, outputs=("Output",))
    np.testing.assert_array_equal(found, [[1], [2], [1]])
    (found,) = run("ctc_align", {"Input": labels * 0}, attrs, outputs=("Output",))
    np.testing.assert_array_equal(found, [[-1]])


def test_tags_of_several_sequences() -> None:
    emission, weights = RNG.standard_normal((5, 4)).astype(np.float32), RNG.standard_normal((6, 4)).astype(np.float32)
    inputs, options = {"Emission": emission, "Transition": weights}, {"outputs": ("ViterbiPath",)}
    found, offsets = run("crf_decoding", inputs, lod={"Emission": [OFFSETS]}, **options)
    expected = each("crf_decoding", emission, {"Transition": weights}, {}, slot="Emission", **options)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(offsets, OFFSETS)


def test_reset_offsets_divide_the_rows_anew() -> None:
    np.testing.assert_array_equal(run_single("lod_reset", {"X": X}, {"target_lod": [0, 5]}), X)
    assert [r.tolist() for r in run("lod_reset", {"X": X}, {"target_lod": [0, 2, 5]})][1] == [0, 2, 5]


def test_ancestors_of_beams() -> None:
    ids = np.array([[[2, 2]], [[6, 1]], [[3, 9]]])
    parents = np.array([[[0, 0]], [[1, 1]], [[1, 0]]])
    found = run_single("gather_tree", {"Ids": ids, "Parents": parents})
    np.testing.assert_array_equal(found, [[[2, 2]], [[1, 6]], [[3, 9]]])


@pytest.mark.parametrize(
    ("offsets", "message"),
    [([0, 2, 4], "number of rows, 5"), ([1, 5], "begin with 0"), ([0, 4, 2, 5], "not decrease")],
)
def test_offsets_that_do_not_fit_are_refused(offsets: list[int], message: str) -> None:
    with pytest.raises(LiteError, match=message):
        run("sequence_softmax", {"X": X[:, :1]}, lod={"X": [offsets]})


def test_offsets_of_a_model_without_sequences_are_refused() -> None:
    with pytest.raises(ModelFormatError, match="no input with sequences"):
        lower(program_of("relu", {"X": X})[0], lod=True)
