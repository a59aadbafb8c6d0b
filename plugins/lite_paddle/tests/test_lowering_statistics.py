"""Counts, medians, norms, inverses and random numbers, against Paddle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hand_made import run
from paddle_cases import Case, check, fixed_and_open, parametrize_cases, tensor_method

from lite_core.errors import LiteError

RNG = np.random.default_rng(8)
X = RNG.standard_normal((3, 4, 5)).astype(np.float32)
ROWS = RNG.standard_normal((4, 3)).astype(np.float32)
TIED = RNG.integers(0, 4, (4, 6)).astype(np.float32)
WITH_NAN = np.array([[1, np.nan, 3, 2], [np.nan] * 4, [4, 1, 2, 9]], np.float32)
COUNTS = np.array([3, 0, 3, 1, 7], np.int64)
WEIGHTS = np.array([0.5, 1, 2, 4, 8], np.float32)
SMALL = np.array([-100.5, -3.0, -2.5, -1e-3, 0, 1e-6, 0.5, 1, 1 + 1e-6, 1.5, 2, 3, 50.5, 1e4, np.inf], np.float32)
SQUARES = (RNG.standard_normal((2, 4, 4)) + 3 * np.eye(4)).astype(np.float32)
IDS = np.array([[2], [0], [1], [2]], np.int32)
PIR = ("pir",)
MAP = RNG.standard_normal((2, 3, 6, 7)).astype(np.float32)


CASES = [
    *fixed_and_open("bincount", lambda p: lambda x: p.bincount(x), COUNTS),
    Case("bincount_weighted", lambda p: lambda x, w: p.bincount(x, w, minlength=10), [COUNTS, WEIGHTS]),
    *fixed_and_open("histogram", lambda p: lambda x: p.histogram(x, bins=7), X),
    Case("histogram_range", lambda p: lambda x: p.histogram(x, bins=4, min=-1, max=1), [X]),
    Case("histogram_single", lambda p: lambda x: p.histogram(x, bins=3), [np.full(5, 2, np.float32)]),
    Case("histogram_weighted", lambda p: lambda x, w: p.histogram(x, bins=3, weight=w), [WEIGHTS, WEIGHTS], kinds=PIR),
    Case("histogram_density", lambda p: lambda x: p.histogram(x, bins=5, density=True), [X], kinds=PIR),
    *fixed_and_open("median", tensor_method("median", axis=1), X),
    *fixed_and_open("median_of_all", tensor_method("median"), X),
    Case("median_with_nan", tensor_method("median", axis=1), [WITH_NAN]),
    Case("median_lower", lambda p: lambda x: p.median(x, axis=1, mode="min")[0], [WITH_NAN], kinds=PIR),
    Case("median_of_integers", tensor_method("median"), [COUNTS[:4]], kinds=PIR),
    *fixed_and_open("nanmedian", tensor_method("nanmedian", axis=1, keepdim=True), WITH_NAN),
    Case("nanmedian_axes", tensor_method("nanmedian", axis=[0, 2]), [X]),
    Case("mode", lambda p: lambda x: p.mode(x), [TIED]),
    Case("mode_of_columns", lambda p: lambda x: p.mode(x, axis=0, keepdim=True), [TIED]),
    Case("multiplex", lambda p: lambda a, b, c, i: p.multiplex([a, b, c], i), [ROWS, ROWS + 1, ROWS + 2, IDS]),
    Case("broadcast_tensors", lambda p: lambda x, y: p.broadcast_tensors([x, y]), [X[:1], X[:, :, :1].copy()]),
    Case("tril_indices", lambda p: lambda x: p.tril_indices(4, 5, 1) + x, [np.array(2, np.int64)]),
    Case("triu_indices", lambda p: lambda x: p.triu_indices(4, 3, -1) + x, [np.array(2, np.int64)]),
    Case("renorm", tensor_method("renorm", 2.0, 1, 1.5), [X]),
    Case("renorm_p1", tensor_method("renorm", 1.0, -1, 3.0), [X]),
    Case("inverse", lambda p: lambda x: p.inverse(x), [SQUARES]),
    *fixed_and_open("lgamma", tensor_method("lgamma"), SMALL),
    Case("spectral_norm", lambda p: p.nn.SpectralNorm([3, 4, 5], 1, 3), [X], rtol=1e-4),
    *fixed_and_open("mask_rows", lambda p: lambda x: x[x > 0], ROWS),
]  # fmt: skip


@parametrize_cases(CASES)
def test_matches_paddle(case: Case, kind: str, paddle_models: Any) -> None:
    check(case, paddle_models(kind), kind)


def test_rows_are_divided_and_joined_by_a_mask() -> None:
    mask = np.array([[True], [False], [False], [True]])
    yes, no = run("split_lod_tensor", {"X": ROWS, "Mask": mask}, outputs=["OutTrue", "OutFalse"])
    np.testing.assert_array_equal(yes, ROWS[[0, 3]])
    np.testing.assert_array_equal(no, ROWS[[1, 2]])
    (joined,) = run("merge_lod_tensor", {"X": ROWS, "Mask": mask, "InTrue": yes, "InFalse": no})
    np.testing.assert_array_equal(joined, ROWS)


def test_unique_elements_with_counts() -> None:
    """The operator is in files of Paddle 1.x only: elements in the order in which they first stand."""
    x = np.array([2, 3, 3, 1, 5, 3])
    attrs = {"dtype": "int32"}
    found, index, count = run("unique_with_counts", {"X": x}, attrs, outputs=["Out", "Index", "Count"])
    assert index.dtype == count.dtype == np.int32
    np.testing.assert_array_equal(found, [2, 3, 1, 5])
    np.testing.assert_array_equal(index, [0, 1, 1, 2, 3, 1])
    np.testing.assert_array_equal(count, [1, 3, 1, 1])


def test_corners_of_polygons() -> None:
    """The operator is in files of Paddle 1.x only: even channels are offsets of columns, odd ones of rows."""
    x = RNG.standard_normal((2, 4, 2, 3)).astype(np.float32)
    (y,) = run("polygon_box_transform", {"Input": x}, outputs=["Output"])
    expected = np.empty_like(x)
    for n, c, i, j in np.ndindex(x.shape):
        expected[n, c, i, j] = 4 * (i if c % 2 else j) - x[n, c, i, j]
    np.testing.assert_allclose(y, expected, rtol=1e-6)


def _drawn(op: str, **attrs: Any) -> np.ndarray[Any, Any]:
    (y,) = run(op, {}, {"shape": [40, 500], "seed": 7, **attrs})
    (again,) = run(op, {}, {"shape": [40, 500], "seed": 7, **attrs})
    np.testing.assert_array_equal(y, again)
    (other,) = run(op, {}, {"shape": [40, 500], "seed": 0, **attrs})
    assert not np.array_equal(y, other)
    assert y.shape == (40, 500)
    return y


def test_distributions_of_random_numbers() -> None:
    """The limits are six standard errors of 20,000 numbers; the seed makes them the same in every run."""
    normal = _drawn("gaussian_random", mean=2.0, std=3.0)
    assert abs(normal.mean() - 2) < 6 * 3 / 141
    assert abs(normal.std() - 3) < 6 * 3 / 200
    uniform = _drawn("uniform_random", min=-1.0, max=3.0)
    assert uniform.min() >= -1
    assert uniform.max() <= 3
    assert abs(uniform.mean() - 1) < 6 * 1.155 / 141
    whole = _drawn("randint", low=-2, high=3)
    assert whole.dtype == np.int64
    assert np.array_equal(np.unique(whole), [-2, -1, 0, 1, 2])
    cut = _drawn("truncated_gaussian_random", mean=1.0, std=2.0)
    assert np.abs(cut - 1).max() <= 4 + 1e-4
    assert abs(cut.std() - 2 * 0.8796) < 6 * 2 / 200  # of a normal distribution within two standard deviations
    (order,) = run("randperm", {}, {"n": 50})
    np.testing.assert_array_equal(np.sort(order), np.arange(50))
    (flags,) = run("bernoulli", {"X": np.full((100, 200), 0.25, np.float32)})
    assert abs(flags.mean() - 0.25) < 6 * 0.433 / 141


@pytest.mark.parametrize(
    ("op", "slots", "attrs", "message"),
    [
        ("randint", {}, {"low": 3, "high": 3, "shape": [2]}, "integers from 3 below 3"),
        ("histogram", {"X": X}, {"bins": 0}, "0 bins"),
    ],
)
def test_attributes_that_make_no_sense(op: str, slots: Any, attrs: Any, message: str) -> None:
    with pytest.raises(LiteError, match=message):
        run(op, slots, attrs)


def _correlation(
    first: np.ndarray[Any, Any], second: np.ndarray[Any, Any], pad: int, kernel: int, most: int, step: int, shift: int
) -> np.ndarray[Any, Any]:
    """Compute FlowNet's correlation from its definition, by loops; a map is zero outside itself."""
    batch, count, height, width = first.shape
    reach, radius = most // shift, kernel // 2
    border = most + radius
    rows, columns = (-(-(size + 2 * pad - 2 * border) // step) for size in (height, width))
    result = np.zeros((batch, (2 * reach + 1) ** 2, rows, columns))

    def at(x: np.ndarray[Any, Any], n: int, y: int, z: int) -> np.ndarray[Any, Any]:
        inside = 0 <= y - pad < height and 0 <= z - pad < width
        return x[n, :, y - pad, z - pad].astype(np.float64) if inside else np.zeros(count)

    for n, channel, row, column in np.ndindex(result.shape):
        down, right = ((channel // (2 * reach + 1) - reach) * shift, (channel % (2 * reach + 1) - reach) * shift)
        y, z = row * step + border, column * step + border
        window = range(-radius, radius + 1)
        total = sum(
            at(first, n, y + i, z + j) @ at(second, n, y + i + down, z + j + right) for i in window for j in window
        )
        result[n, channel, row, column] = total / (kernel * kernel * count)
    return result


@pytest.mark.parametrize(
    "numbers", [(4, 1, 4, 1, 1), (3, 3, 3, 1, 2), (0, 1, 2, 2, 1), (2, 1, 1, 1, 1), (0, 3, 1, 3, 1)]
)
def test_correlation_of_maps(numbers: tuple[int, ...]) -> None:
    """Paddle computes it on GPUs only."""
    names = ("pad_size", "kernel_size", "max_displacement", "stride1", "stride2")
    attrs = {**dict(zip(names, numbers)), "corr_type_multiply": 1}
    other = MAP[::-1] + 1
    (y,) = run("correlation", {"Input1": MAP, "Input2": other}, attrs, outputs=["Output"])
    np.testing.assert_allclose(y, _correlation(MAP, other, *numbers), rtol=1e-4, atol=1e-5)
