"""Suppression and pooling of so much that kernels sort by digits, fill whole vectors and divide the work.

Hundreds of boxes have few different scores, so that the order of equal ones decides most choices. Overlaps and decayed
scores are exact in every floating type, and overlaps are far from the thresholds.
"""

from __future__ import annotations

from math import inf, nan
from typing import Any

import numpy as np

from lite_conformance.cases.op_cases import table_of
from lite_conformance.cases.operators import (  # noqa: F401 - these modules create the tables extended here
    deformable_convolution,
    detection,
    lite_detection,
)
from lite_conformance.cases.operators.detection import regions
from lite_conformance.cases.tensors import Array, const, ints, normal, positive, t, values
from lite_core.ir import DType

_FLOAT32 = ("float32",)


def _pairs(count: int) -> Array:
    """Return boxes [count, 4] in a grid: each second one overlaps the one before it by 1/2, and no other."""
    place = np.arange(count) // 2
    left, top = 16.0 * (place % 20), 16.0 * (place // 20)
    low = np.stack([left, top + np.arange(count) % 2 * 4], axis=1)
    return np.concatenate([low, low + 12], axis=1)


def _few_scores(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return scores of which many are equal, or not above 1/8."""
    return (random.integers(0, 9, shape) / 8).astype(dtype.numpy)


def _odd_scores(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return equal scores, zeros of both signs, negative and infinite ones, and NaN."""
    return random.choice([0.5, 0.25, 0.0, -0.0, -0.5, inf, -inf, nan], shape).astype(dtype.numpy)


def _odd_boxes(count: int) -> Array:
    """Return the boxes of :func:`_pairs` with exchanged corners, without area, and with coordinates not finite."""
    found = _pairs(count)
    found[5::31, 2:] = found[5::31, :2]
    found[7::37] = found[7::37][:, [2, 1, 0, 3]]
    found[11::41] = found[11::41][:, [2, 3, 0, 1]]
    found[3::43, 0], found[13::47, 3], found[17::53, 2] = nan, nan, inf
    return found


# **** NonMaxSuppression ****

_nms = table_of("NonMaxSuppression")
_limits = values([0.375], "float32"), values([0.125], "float32")
_nms("long,n2c3m600", values([_pairs(600), _pairs(600)[::-1]]), t(2, 3, 600, init=_few_scores), ints(450), *_limits)
_nms("long,n1c2m600,no-score-limit", values([_pairs(600)]), t(1, 2, 600, init=_few_scores), ints(600), _limits[0])
_nms("long,n1c3m600,odd-scores", values([_pairs(600)]), t(1, 3, 600, init=_odd_scores), ints(600), *_limits)
_nms("long,n1c2m600,odd-boxes", values([_odd_boxes(600)]), t(1, 2, 600, init=_few_scores), ints(600), *_limits)
_nms("long,n1c40m9,nothing-is-kept", values([_pairs(9)]), t(1, 40, 9, init=_few_scores), ints(9), _limits[0],
     values([1], "float32"))  # fmt: skip

# **** MulticlassNms and MatrixNms: cut in a class, in an image, in both, in neither ****

_every: dict[str, Any] = {
    "score_threshold": 0.125, "nms_top_k": -1, "keep_top_k": -1, "background_label": -1, "outputs": 3,
    "dtypes": _FLOAT32,
}  # fmt: skip
_cuts: dict[str, dict[str, int]] = {
    "": {},
    ",top90": {"nms_top_k": 90},
    ",keep77": {"keep_top_k": 77},
    ",top90,keep200": {"nms_top_k": 90, "keep_top_k": 200},
}
_two_images = values([_pairs(300), _pairs(300)[::-1]])
_three_parts = values(np.repeat(_pairs(300)[:, None], 3, axis=1)), t(300, 3, init=_few_scores)
for _label, _cut in _cuts.items():
    for _name in ("MulticlassNms", "MatrixNms"):
        _suppress = table_of(_name, "lite")
        _suppress(f"long,n2c3m300{_label}", _two_images, t(2, 3, 300, init=_few_scores), **{**_every, **_cut})
    table_of("MulticlassNms", "lite")(f"long,box-per-class,n4c3m300{_label}", *_three_parts,
                                      values([140, 0, 1, 159], "int32"), **{**_every, **_cut})  # fmt: skip
for _name in ("MulticlassNms", "MatrixNms"):
    _suppress = table_of(_name, "lite")
    _suppress("long,n1c3m600,odd-scores", values([_pairs(600)]), t(1, 3, 600, init=_odd_scores),
              **{**_every, "score_threshold": -0.25})  # fmt: skip
table_of("MulticlassNms", "lite")("long,n1c2m600,odd-boxes", values([_odd_boxes(600)]),
                                  t(1, 2, 600, init=_few_scores), **_every)  # fmt: skip

# **** RoiAlign: blocks of channels; DeformConv: infinity next to the edge, positions that are no numbers ****

for _mode in ("avg", "max"):
    _attributes: dict[str, Any] = {
        "output_height": 3, "output_width": 2, "sampling_ratio": 0, "spatial_scale": 0.5, "mode": _mode,
        "coordinate_transformation_mode": "half_pixel",
    }  # fmt: skip
    table_of("RoiAlign")(
        f"n2c150h9w21,k6,{_mode}", t(2, 150, 9, 21, init=normal if _mode == "max" else positive),
        t(6, 4, init=regions((9, 21), _attributes)), values([1, 0, 1, 1, 0, 0], "int64"), dtypes=_FLOAT32,
        **_attributes,
    )  # fmt: skip
_edge = np.ones((1, 1, 3, 4))
_edge[0, 0, 0, 0], _edge[0, 0, 2, 3] = inf, -inf
_moved = np.zeros((1, 2, 3, 4))
_moved[0, :, 0] = [[-1.5, -1, 0.25, 0], [0.5, 0, 1.5, nan]]
_moved[0, :, 2] = [[inf, -inf, 0, 0.5], [0, 0.5, 9, -0.5]]
table_of("DeformConv")("infinite-edges", values(_edge), const(2, 1, 1, 1), values(_moved), dtypes=_FLOAT32)
table_of("DeformConv")("n1c40h7w9,k3,offset-group2", t(1, 40, 7, 9), const(5, 40, 3, 3), t(1, 36, 7, 9),
                       pads=(1, 1, 1, 1), offset_group=2, dtypes=_FLOAT32)  # fmt: skip
