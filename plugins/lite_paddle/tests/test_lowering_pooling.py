"""Pooling against Paddle: paddings, ceil_mode, adaptive bins of uneven size, indices."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hand_made import graph_of, run, run_single
from paddle_cases import Case, check, parametrize_cases

from lite_core.errors import UnsupportedOperatorError

RNG = np.random.default_rng(0)


def array(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.standard_normal(shape).astype(np.float32)


X = array(2, 3, 11, 8)
CUBE = array(1, 2, 5, 7, 6)
OPEN = [(None, 3, None, None)]
LAST = X.transpose(0, 2, 3, 1).copy()


def pool(kind: str, *arguments: Any, **options: Any) -> Callable[[Any], Any]:
    return lambda p: lambda x: getattr(p.nn.functional, kind)(x, *arguments, **options)


def _max_and_avg(name: str, *arguments: Any, **options: Any) -> list[Case]:
    return [
        Case(f"{kind}_{name}{suffix}", pool(f"{kind}_pool2d", *arguments, **options), [X], shapes=shapes)
        for kind in ("max", "avg")
        for suffix, shapes in (("", None), ("_open", OPEN))
    ]


def _adaptive(*sizes: Any) -> list[Case]:
    return [
        Case(f"adaptive_{kind}_{number}{suffix}", pool(f"adaptive_{kind}_pool2d", size), [X], shapes=shapes)
        for kind in ("max", "avg")
        for number, size in enumerate(sizes)
        for suffix, shapes in (("", None), ("_open", OPEN))
    ]


CASES = [
    *_max_and_avg("plain", 2),
    *_max_and_avg("strided", 3, 2, 1),
    *_max_and_avg("ceil", 3, 2, 0, ceil_mode=True),
    *_max_and_avg("ceil_padded", 3, 2, 1, ceil_mode=True),
    *_max_and_avg("four_pads", 3, 2, [1, 0, 0, 1]),
    *_max_and_avg("same", 3, 2, "SAME"),
    *_max_and_avg("same_ceil", 3, 2, "SAME", ceil_mode=True),
    *_max_and_avg("valid", 3, 2, "VALID"),
    Case("max_window_in_padding", pool("max_pool2d", 2, 2, [0, 1, 0, 1], ceil_mode=True), [X]),
    Case("max_window_in_padding_open", pool("max_pool2d", 2, 2, [0, 1, 0, 1], ceil_mode=True), [X], shapes=OPEN),
    Case("avg_inclusive", pool("avg_pool2d", 3, 2, 1, exclusive=False), [X]),
    Case("avg_inclusive_ceil", pool("avg_pool2d", 3, 2, 1, exclusive=False, ceil_mode=True), [X]),
    Case("avg_inclusive_ceil_open", pool("avg_pool2d", 3, 2, 1, exclusive=False, ceil_mode=True), [X], shapes=OPEN),
    Case("avg_inclusive_ceil_bare", pool("avg_pool2d", 3, 2, 0, exclusive=False, ceil_mode=True), [X]),
    Case("max_channels_last", pool("max_pool2d", 3, 2, 1, data_format="NHWC"), [LAST]),
    Case("avg_channels_last", pool("avg_pool2d", 3, 2, 1, data_format="NHWC"), [LAST]),
    Case("max_one_axis", pool("max_pool1d", 3, 2, 1), [X[:, :, 0]]),
    Case("avg_one_axis", pool("avg_pool1d", 3, 2, 1), [X[:, :, 0]]),
    Case("max_three_axes", pool("max_pool3d", 3, 2, 1, ceil_mode=True), [CUBE]),
    Case("avg_three_axes", pool("avg_pool3d", 3, 2, 1), [CUBE]),
    *_adaptive(1, (11, 4), (3, 5), 7, (1, 3)),
    Case("adaptive_avg_kept", pool("adaptive_avg_pool2d", (None, 3)), [X]),
    Case("adaptive_avg_three_axes", pool("adaptive_avg_pool3d", (2, 3, 4)), [CUBE]),
    Case("adaptive_max_three_axes", pool("adaptive_max_pool3d", (2, 3, 4)), [CUBE]),
    Case("adaptive_avg_last", pool("adaptive_avg_pool2d", (3, 5), data_format="NHWC"), [LAST]),
    Case("adaptive_avg_one_axis", pool("adaptive_avg_pool1d", 3), [X[:, :, :, 0]]),
    Case("adaptive_max_one_axis", pool("adaptive_max_pool1d", 3), [X[:, :, :, 0]]),
    Case("index", pool("max_pool2d", 3, 2, 1, return_mask=True), [X]),
    Case("index_open", pool("max_pool2d", 3, 2, 1, return_mask=True), [X], shapes=OPEN),
    Case("index_three_axes", pool("max_pool3d", 2, 2, 0, return_mask=True), [CUBE]),
    Case("index_adaptive", pool("adaptive_max_pool2d", (3, 5), return_mask=True), [X]),
    Case("index_adaptive_even", pool("adaptive_max_pool2d", (11, 4), return_mask=True), [X]),
    Case("lp", pool("lp_pool2d", 2.0, 3, 2, 1), [np.abs(X)], kinds=("pir",)),
    Case("lp_odd_power", pool("lp_pool2d", 3.0, 2, 2), [np.abs(X)], kinds=("pir",)),
    Case("lp_infinite", pool("lp_pool2d", float("inf"), 2, 2), [X], kinds=("pir",)),
]


def _unpool(p: Any) -> Any:
    def function(x: Any) -> Any:
        out, index = p.nn.functional.max_pool2d(x, 2, 2, return_mask=True)
        return p.nn.functional.max_unpool2d(out, index, 2, 2, output_size=[2, 3, 11, 8])

    return function


def _unpool_natural(p: Any) -> Any:
    def function(x: Any) -> Any:
        out, index = p.nn.functional.max_pool2d(x, 2, 2, return_mask=True)
        return p.nn.functional.max_unpool2d(out, index, 2, 2)

    return function


CASES += [Case("unpool", _unpool, [X]), Case("unpool_natural", _unpool_natural, [X[:, :, :10]])]


@parametrize_cases(CASES)
def test_matches_paddle(case: Case, kind: str, paddle_models: Callable[[str], Path]) -> None:
    check(case, paddle_models(kind), kind)


def test_windows_wholly_in_the_padding() -> None:
    x = array(1, 1, 4, 4)
    attrs = {"ksize": [2, 2], "strides": [2, 2], "paddings": [0, 1, 0, 1], "ceil_mode": True}
    (largest,) = run("pool2d", {"X": x}, {**attrs, "pooling_type": "max"})
    assert largest.shape == (1, 1, 3, 3)
    assert largest[0, 0, 2, 2] == np.finfo(np.float32).min
    (mean,) = run("pool2d", {"X": x}, {**attrs, "pooling_type": "avg"})
    assert np.isnan(mean[0, 0, 2, 2])
    np.testing.assert_allclose(mean[0, 0, 1, 1], x[0, 0, 2:, 2:].mean(), rtol=1e-5)


def test_averages_count_as_much_padding_behind_as_before() -> None:
    """SAME adds nothing before this row and one element behind it, which does not count even if padding does."""
    row = np.array([1.0, 2.0, 3.0], np.float32).reshape(1, 1, 1, 3)
    attrs = {"pooling_type": "avg", "ksize": [1, 2], "padding_algorithm": "SAME", "exclusive": False}
    np.testing.assert_allclose(run_single("pool2d", {"X": row}, attrs).reshape(-1), [1.5, 2.5, 3.0])
    explicit = {**attrs, "padding_algorithm": "EXPLICIT", "paddings": [0, 0, 1, 2]}
    np.testing.assert_allclose(run_single("pool2d", {"X": row}, explicit).reshape(-1), [0.5, 1.5, 2.5, 1.5, 0.0])
    with pytest.raises(UnsupportedOperatorError, match="SAME padding"):
        graph_of("pool2d", {"X": row}, {**attrs, "strides": [1, 2]}, shapes={"X": [1, 1, 1, -1]})


def test_valid_still_rounds_up() -> None:
    attrs = {"ksize": [3, 3], "strides": [2, 2], "paddings": [4, 4], "padding_algorithm": "VALID", "ceil_mode": True}
    x = array(1, 1, 6, 6)
    (y,) = run("pool2d", {"X": x}, {**attrs, "pooling_type": "avg"})
    assert y.shape == (1, 1, 3, 3)
    np.testing.assert_allclose(y[0, 0, 2, 2], x[0, 0, 4:, 4:].mean(), rtol=1e-5)


def test_global_pool_ignores_kernel_and_paddings() -> None:
    attrs = {"ksize": [2, 2], "paddings": [5, 5], "global_pooling": True}
    np.testing.assert_allclose(
        run("pool2d", {"X": X}, {**attrs, "pooling_type": "avg"})[0],
        X.mean((2, 3), keepdims=True),
        rtol=1e-4,
        atol=1e-6,
    )
    (largest, index) = run("max_pool2d_with_index", {"X": X}, attrs, outputs=["Out", "Mask"])
    np.testing.assert_array_equal(largest, X.max((2, 3), keepdims=True))
    np.testing.assert_array_equal(index.reshape(2, 3), X.reshape(2, 3, -1).argmax(-1))


@pytest.mark.parametrize("kind", ["max", "avg"])
def test_a_pool_of_open_size_is_one_node(kind: str) -> None:
    attrs = {"ksize": [3, 3], "strides": [2, 2], "paddings": [1, 1], "ceil_mode": True, "pooling_type": kind}
    graph = graph_of("pool2d", {"X": X}, attrs, shapes={"X": (-1, 3, -1, -1)})
    assert len(graph.nodes) == 1
