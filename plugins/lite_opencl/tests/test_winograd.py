"""Winograd's filtering: both tile sizes against the reference in float64, and its choice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from opencl_convolution_case import ConvolutionCase as Case
from opencl_convolution_case import difference, labels
from tiers import in_part

from lite_opencl.lowering import convolution
from lite_opencl.lowering.convolution_choice import Algorithm, winograd_algorithms
from lite_opencl.lowering.winograd import transform_weights

SAME = {"pads": (1, 1, 1, 1)}
CASES = {
    "whole-tiles": Case(16, 32, (8, 8), (3, 3), SAME),
    "odd-sizes": Case(5, 7, (9, 11), (3, 3), SAME, batch=2),
    "odd-channels-residual": Case(33, 65, (13, 7), (3, 3), SAME, tail="residual"),
    "no-padding": Case(20, 40, (7, 10), (3, 3)),
    "uneven-padding": Case(8, 9, (6, 6), (3, 3), {"pads": (0, 2, 3, 1)}, tail="scale"),
    "padding-beyond-a-tile": Case(4, 4, (3, 3), (3, 3), {"pads": (6, 6, 6, 6)}),
    "one-output": Case(19, 18, (3, 3), (3, 3)),
    "many-channels": Case(512, 20, (14, 14), (3, 3), SAME),
}
LAYER = Case(128, 128, (28, 28), (3, 3), SAME)
STEPS = ["convolution_phases", "winograd_input", "winograd_product", "winograd_output"]


@pytest.mark.parametrize("m", in_part("opencl", [2, 4], [4]))
@pytest.mark.parametrize("name", in_part("opencl", CASES, ["odd-sizes"]))
def test_agrees_with_the_reference(name: str, m: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convolution, "winograd_algorithms", lambda *_: [Algorithm("winograd", m)])
    assert labels(CASES[name]) == STEPS
    assert difference(CASES[name]) < 2e-5


def test_transformed_impulse_filter_has_rank_one() -> None:
    weights = np.zeros((1, 1, 1, 1, 3, 3), np.float32)
    weights[..., 0, 2] = 1
    points = transform_weights(4, weights).reshape(6, 6)
    # The point at infinity ignores taps of the first row, and the point 0 ignores taps of the last column.
    assert (points[5] == 0).all()
    assert (points[:, 0] == 0).all()
    assert np.linalg.matrix_rank(points) == 1


@pytest.mark.parametrize(
    "case",
    [
        replace(LAYER, channels=3),
        replace(LAYER, attributes={"strides": (2, 2), **SAME}),
        replace(LAYER, attributes={"dilations": (2, 2), **SAME}),
        replace(LAYER, groups=2),
        replace(LAYER, kernel=(3, 1)),
        replace(LAYER, weights="input"),
    ],
)
def test_winograd_is_not_used_if_it_saves_nothing(case: Case) -> None:
    assert labels(case)[-1] == "convolution_gemm"


@pytest.mark.parametrize(("size", "m"), [(28, 4), (7, 2)])
def test_small_images_use_small_winograd_tiles(size: int, m: int) -> None:
    assert winograd_algorithms(512, 512, 1, size, size)[0] == Algorithm("winograd", m)


def test_exact_sessions_do_not_use_winograd() -> None:
    assert labels(LAYER) == STEPS
    assert labels(LAYER, exact=True) == ["convolution_phases", "convolution_gemm"]
