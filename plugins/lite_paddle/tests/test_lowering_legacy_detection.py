"""Detection operators of old releases, against results of Paddle 2.6.2 and against their definitions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hand_made import run

from lite_core.errors import LiteError

GOLDEN = Path(__file__).parent / "fixtures" / "legacy_detection.npz"
NAMES = (
    "retinanet", "retinanet_batch", "retinanet_eta", "retinanet_few",
    "local_boxes", "local_pixels", "local_quads", "local_octagons", "local_eta", "local_none",
)  # fmt: skip
Array = np.ndarray[Any, Any]


@pytest.mark.parametrize("name", NAMES)
def test_results_of_paddle(name: str) -> None:
    with np.load(GOLDEN) as stored:
        attrs = json.loads(str(stored[f"{name}.attrs"]))
        expected = stored[f"{name}.out"]
        inputs: dict[str, list[Array]] = {}
        for key in (k for k in stored.files if k.startswith(f"{name}.") and k.count(".") == 2):
            inputs.setdefault(key.split(".")[1], []).append(stored[key])
    found, *offsets = run(attrs.pop("type"), inputs, attrs)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4)
    assert [o.tolist() for o in offsets] == ([[0, 20, 40]] if name == "retinanet_batch" else
                                             [[0, 10, 20]] if name == "local_boxes" else [])  # fmt: skip


PRIORS = np.array([[0.1, 0.2, 0.5, 0.6], [0.3, 0.1, 0.9, 0.4], [0.0, 0.0, 1.0, 0.5]], np.float32)
VARIANCES = np.array([[0.1, 0.1, 0.2, 0.2]] * 3, np.float32)
OFFSETS = np.random.default_rng(3).standard_normal((2, 12)).astype(np.float32)
DECODING = {"batch_num": 2, "num_priors": 3, "num_loc_classes": 1, "share_location": True}


@pytest.mark.parametrize("encoded", [False, True])
@pytest.mark.parametrize("kind", ["corner", "corner_size", "center_size"])
def test_boxes_of_priors(kind: str, encoded: bool) -> None:
    """The operator is in files of Paddle-Lite only. Its three codes are those of SSD."""
    attrs = {**DECODING, "variance_encoded_in_target": encoded, "code_type": kind}
    inputs = {"Loc": OFFSETS, "Prior": np.stack([PRIORS, VARIANCES]).reshape(1, 2, 12)}
    (found,) = run("decode_bboxes", inputs, attrs, outputs=["Bbox"])
    assert found.shape == OFFSETS.shape
    for row, box in np.ndindex(2, 3):
        d = OFFSETS[row].reshape(3, 4)[box] * (1 if encoded else VARIANCES[box])
        x1, y1, x2, y2 = p = PRIORS[box]
        size = np.array([x2 - x1, y2 - y1])
        if kind == "center_size":
            center = d[:2] * size + [(x1 + x2) / 2, (y1 + y2) / 2]
            half = np.exp(d[2:]) * size / 2
            expected = np.concatenate([center - half, center + half])
        else:
            expected = p + d * (np.tile(size, 2) if kind == "corner_size" else 1)
        np.testing.assert_allclose(found[row].reshape(3, 4)[box], expected, rtol=1e-5, atol=1e-6)


def test_boxes_for_each_class_are_refused() -> None:
    attrs = {**DECODING, "share_location": False, "variance_encoded_in_target": False, "code_type": "corner"}
    with pytest.raises(LiteError, match="share_location"):
        run("decode_bboxes", {"Loc": OFFSETS, "Prior": np.zeros((1, 2, 12), np.float32)}, attrs, outputs=["Bbox"])


# **** roi_perspective_transform ****

IMAGES = np.random.default_rng(4).standard_normal((2, 3, 10, 14)).astype(np.float32)
QUADS = np.array(
    [
        [4, 4, 40, 8, 36, 30, 2, 26],  # slanted
        [10, 6, 20, 6, 20, 34, 10, 34],  # upright, narrower than the result
        [30, -8, 70, 2, 66, 24, 28, 20],  # partly outside the image
        [8, 20, 24, 4, 34, 14, 18, 30],  # turned by 45 degrees
    ],
    np.float32,
)


def _transformed(image: Array, quad: Array, height: int, width: int, scale: float) -> tuple[Array, Array, Array]:
    """Compute the transform in float64 by its definition, the projective map from a rectangle to the region."""
    corners = quad.reshape(4, 2).astype(np.float64) * scale
    length = [np.linalg.norm(corners[i] - corners[(i + 1) % 4]) for i in range(4)]
    down = max(2, height) - 1
    across = min(max(2, int(np.floor((length[0] + length[2]) * down / (length[1] + length[3]) + 0.5)) + 1), width) - 1
    targets = [(0, 0), (across, 0), (across, down), (0, down)]
    system, known = [], []
    for (u, v), (x, y) in zip(targets, corners):
        system += [[u, v, 1, 0, 0, 0, -u * x, -v * x], [0, 0, 0, u, v, 1, -u * y, -v * y]]
        known += [x, y]
    matrix = np.append(np.linalg.solve(system, known), 1).reshape(3, 3)
    result, mask = np.zeros((image.shape[0], height, width)), np.zeros((height, width), np.int32)
    rows, columns = image.shape[1:]
    for i, j in np.ndindex(height, width):
        x, y = (matrix @ [j, i, 1])[:2] / (matrix @ [j, i, 1])[2]
        sides = zip(corners, np.roll(corners, -1, axis=0))
        turns = [(c - a) * (y - b) - (d - b) * (x - a) for (a, b), (c, d) in sides]
        if min(turns) < -1e-3 or not (-0.5 < x < columns - 0.5 and -0.5 < y < rows - 0.5):
            continue
        mask[i, j] = 1
        x, y = min(max(x, 0), columns - 1), min(max(y, 0), rows - 1)
        left, top = int(x), int(y)
        right, bottom = min(left + 1, columns - 1), min(top + 1, rows - 1)
        upper = image[:, top, left] * (1 - x + left) + image[:, top, right] * (x - left)
        lower = image[:, bottom, left] * (1 - x + left) + image[:, bottom, right] * (x - left)
        result[:, i, j] = upper * (1 - y + top) + lower * (y - top)
    return result, mask, matrix.reshape(-1)


def test_perspective_of_regions() -> None:
    """The operator is in files of Paddle 1.x only; the first sequence of regions is in the first image."""
    attrs = {"transformed_height": 6, "transformed_width": 9, "spatial_scale": 0.25}
    inputs = {"X": IMAGES, "ROIs": QUADS}
    outputs = ["Out", "Mask", "TransformMatrix"]
    results = run("roi_perspective_transform", inputs, attrs, outputs=outputs, lod={"ROIs": [[0, 1, 4]]})
    out, mask, matrix = results[:3]
    assert mask.shape == (4, 1, 6, 9)
    assert mask.dtype == np.int32
    for region, image in enumerate((0, 1, 1, 1)):
        expected = _transformed(IMAGES[image], QUADS[region], 6, 9, 0.25)
        np.testing.assert_array_equal(mask[region, 0], expected[1])
        np.testing.assert_allclose(out[region], expected[0], rtol=1e-3, atol=1e-3)
        np.testing.assert_allclose(matrix[region], expected[2], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("op_type", ["roi_align", "roi_pool"])
def test_regions_of_images_by_offsets(op_type: str) -> None:
    regions = np.array([[0, 0, 8, 8], [4, 2, 12, 9], [1, 1, 6, 7]], np.float32)
    attrs = {"pooled_height": 2, "pooled_width": 3, "spatial_scale": 1.0}
    found = run(op_type, {"X": IMAGES, "ROIs": regions}, attrs, lod={"ROIs": [[0, 2, 3]]})[0]
    (counted,) = run(op_type, {"X": IMAGES, "ROIs": regions, "RoisNum": np.array([2, 1], np.int32)}, attrs)
    np.testing.assert_array_equal(found, counted)
