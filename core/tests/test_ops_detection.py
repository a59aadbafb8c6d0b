"""RoiAlign and NonMaxSuppression: cases that ONNX's node data does not cover."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from op_runner import infer_op, run_op

from lite_core.errors import GraphError
from lite_core.ir import DType, SymbolicDim, TensorType


def typed(dtype: str, *dims: Any) -> TensorType:
    return TensorType(DType.of(dtype), tuple(SymbolicDim.named(d) if isinstance(d, str) else d for d in dims))


def roi_align(rois: list[list[float]], **attributes: Any) -> np.ndarray[Any, Any]:
    x = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
    regions = np.array(rois, np.float32).reshape(-1, 4)
    (out,) = run_op("RoiAlign", [x, regions, np.zeros(len(regions), np.int64)], **attributes)
    return out[:, 0]


def test_roi_align_samples_the_centre_of_each_element() -> None:
    out = roi_align([[0, 0, 4, 4]], output_height=4, output_width=4)
    np.testing.assert_array_equal(out.reshape(-1), np.arange(16))


def test_roi_align_takes_one_sample_per_element_by_default() -> None:
    out = roi_align([[0, 0, 4, 4]], output_height=2, output_width=2)
    np.testing.assert_allclose(out, [[[2.5, 4.5], [10.5, 12.5]]])
    out = roi_align([[0, 0, 4, 4]], output_height=2, output_width=2, sampling_ratio=1)
    np.testing.assert_allclose(out, [[[2.5, 4.5], [10.5, 12.5]]])


def test_roi_align_edges() -> None:
    # beyond one element outside: 0; within: the edge's value
    attributes = {"coordinate_transformation_mode": "output_half_pixel", "sampling_ratio": 1}
    out = roi_align([[-9, 0, -8, 1], [-1.5, -0.5, -0.5, 0.5], [3.25, 2.5, 4.25, 3.5]], **attributes)
    np.testing.assert_allclose(out.reshape(-1), [0, 0, 15])


def test_roi_align_enlarges_regions_only_with_output_half_pixel() -> None:
    kept = roi_align([[1, 1, 1, 1]], coordinate_transformation_mode="output_half_pixel")
    np.testing.assert_allclose(kept.reshape(-1), [1.5 + 4 * 1.5])
    np.testing.assert_array_equal(roi_align([[1, 1, 1, 1]]).reshape(-1), [0])
    np.testing.assert_array_equal(roi_align([[1, 1, 1, 1]], mode="max").reshape(-1), [0])


def test_roi_align_without_regions() -> None:
    assert roi_align([], output_height=2, output_width=3).shape == (0, 2, 3)


def test_roi_align_inference() -> None:
    x, rois, indices = typed("float32", "n", 8, "h", "w"), typed("float32", "k", 4), typed("int64", "k")
    assert infer_op("RoiAlign", [x, rois, indices], output_height=7, output_width=5) == ["float32[k, 8, 7, 5]"]
    with pytest.raises(GraphError, match=r"rois .*4 .*axis 1.*\[k, 5\]"):
        infer_op("RoiAlign", [x, typed("float32", "k", 5), indices])
    with pytest.raises(GraphError, match=r"X .*4 dimensions.*\[n, 8\]"):
        infer_op("RoiAlign", [typed("float32", "n", 8), rois, indices])


BOXES = np.array([[[0, 0, 1, 1], [1, 1, 0, 0.1], [2, 2, 3, 3], [5, 5, 5, 5], [5, 5, 5, 5]]], np.float32)
SCORES = np.array([[[0.9, 0.8, 0.8, 0.1, 0.2]]], np.float32)


def nms(*optional: Any) -> list[list[int]]:
    arrays = [None if o is None else np.array([o[0]], o[1]) for o in optional]
    return run_op("NonMaxSuppression", [BOXES, SCORES, *arrays])[0].tolist()


def test_nms_options() -> None:
    many = (10, np.int64)
    assert nms() == [], "at most 0 boxes when no number is given"
    assert nms((-1, np.int64)) == []
    # box 1 overlaps box 0 by 0.9; boxes without area overlap nothing
    assert nms(many) == [[0, 0, 0], [0, 0, 2], [0, 0, 4], [0, 0, 3]]
    assert nms(many, (0.95, np.float32)) == [[0, 0, 0], [0, 0, 1], [0, 0, 2], [0, 0, 4], [0, 0, 3]]
    assert nms(many, (0.5, np.float32), (0.2, np.float32)) == [[0, 0, 0], [0, 0, 2]]
    assert nms(many, None, (0.85, np.float32)) == [[0, 0, 0]]
    assert nms((2, np.int64), (0.5, np.float32)) == [[0, 0, 0], [0, 0, 2]]


@pytest.mark.parametrize("shape", [(0, 4, 2), (1, 0, 2), (1, 4, 0)])
def test_nms_of_empty_inputs(shape: tuple[int, int, int]) -> None:
    images, boxes, classes = shape
    inputs = [np.zeros((images, boxes, 4), np.float32), np.zeros((images, classes, boxes), np.float32)]
    assert run_op("NonMaxSuppression", [*inputs, np.array(5, np.int64)])[0].shape == (0, 3)


def test_nms_inference() -> None:
    boxes = typed("float32", "n", "m", 4)
    (found,) = infer_op("NonMaxSuppression", [boxes, typed("float32", "n", 80, "m")])
    assert found.startswith("int64[selected?")
    assert found.endswith(", 3]")
    with pytest.raises(GraphError, match=r"scores .*6 .*axis 2.*\[1, 2, 5\]"):
        infer_op("NonMaxSuppression", [typed("float32", 1, 6, 4), typed("float32", 1, 2, 5)])
    with pytest.raises(GraphError, match="center_point_box .*0 or 1.* 2"):
        infer_op("NonMaxSuppression", [boxes, typed("float32", "n", 80, "m")], center_point_box=2)


@pytest.mark.parametrize("wrong", [2, -1])
def test_image_out_of_range_is_an_error(wrong: int) -> None:
    x, rois = np.zeros((2, 1, 4, 4), np.float32), np.zeros((1, 4), np.float32)
    with pytest.raises(GraphError, match=rf"batch_indices .* 0 to 1, are \[{wrong}\]"):
        run_op("RoiAlign", [x, rois, np.array([wrong])])
