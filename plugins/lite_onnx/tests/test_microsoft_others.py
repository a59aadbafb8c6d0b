"""Variants of ONNX's operators in the domain com.microsoft, compared with ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from runtime_models import RuntimeModels, numbers


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
@pytest.mark.parametrize("shape", [(6,), (1, 6)], ids=str)
def test_pad(models: RuntimeModels, shape: tuple[int, ...], mode: str) -> None:
    pads = np.array([0, 1, 2, 0, 0, 1], np.int64).reshape(shape)
    inputs = [numbers(2, 3, 4), pads, np.array([1.5], np.float32)]
    models.compare("Pad", inputs, mode=mode, constants=(1, 2), dims={0: ("batch", 3, 4)})


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_expand_dims(models: RuntimeModels, axis: int) -> None:
    inputs = [numbers(2, 3), np.array(axis, np.int32)]
    models.compare("ExpandDims", inputs, constants=(1,), dims={0: ("batch", 3)})


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"mode": "nearest", "padding_mode": "border"},
        {"mode": "bicubic", "align_corners": 1},
        {"mode": "bilinear", "padding_mode": "reflection"},
    ],
    ids=str,
)
def test_grid_sample(models: RuntimeModels, attributes: dict[str, Any]) -> None:
    grid = np.random.default_rng(0).uniform(-1.2, 1.2, (2, 4, 3, 2)).astype(np.float32)
    dims = {0: ("batch", 2, "height", "width"), 1: ("batch", 4, 3, 2)}
    models.compare("GridSample", [numbers(2, 2, 5, 6), grid], dims=dims, **attributes)


@pytest.mark.parametrize("upper", [0, 1])
def test_triangle(models: RuntimeModels, upper: int) -> None:
    models.compare("Trilu", [numbers(2, 4, 5), np.array(1, np.int64)], upper=upper, constants=(1,))


def test_range(models: RuntimeModels) -> None:
    models.compare("Range", [np.array(n, np.float32) for n in (1, 9, 2)])
    models.compare("Range", [np.array(n, np.int64) for n in (2, 7)])


def test_gather(models: RuntimeModels) -> None:
    models.compare("GatherND", [numbers(3, 4, 5), np.array([[0, 1], [2, 3]], np.int64)])


def test_unique(models: RuntimeModels) -> None:
    """Elements are in the order of their first occurrence; ONNX's operator sorts by default."""
    found = models.compare("Unique", [np.array([3, 1, 3, 2, 1], np.float32)], outputs=3)
    assert found["output_0"].tolist() == [3, 1, 2]


def _bucket(ahead: int, buckets: int, limit: int, is_bidirectional: int) -> int:
    """Return T5's bucket: near positions have separate buckets, far positions share buckets."""
    first = 0
    if is_bidirectional:
        buckets //= 2
        first, ahead = (buckets if ahead > 0 else 0), -abs(ahead)
    distance, exact = max(0, -ahead), buckets // 2
    if distance < exact:
        return first + distance
    steps = np.log(np.float32(distance / exact)) / np.log(np.float32(limit / exact)) * np.float32(buckets - exact)
    return first + min(exact + int(steps), buckets - 1)


@pytest.mark.parametrize("is_bidirectional", [0, 1])
@pytest.mark.parametrize("size", [3, 40])
def test_relative_position_bias(models: RuntimeModels, size: int, is_bidirectional: int) -> None:
    """ONNX Runtime has this operator only on GPUs: the oracle follows the T5 paper."""
    inputs = [numbers(16, 3), np.array([size], np.int64), np.array([size], np.int64)]
    buckets = [[_bucket(j - i, 16, 21, is_bidirectional) for j in range(size)] for i in range(size)]
    expected = {"output_0": inputs[0][np.array(buckets)].transpose(2, 0, 1)[None]}
    attributes = {"max_distance": 21, "is_bidirectional": is_bidirectional}
    models.compare("RelativePositionBias", inputs, constants=(0,), expected=expected, **attributes)
