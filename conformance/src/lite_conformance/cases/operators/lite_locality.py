"""Cases of LocalityAwareNms (domain ``lite``). Numbers are such that joined boxes are exact in every element type."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_conformance.cases.op_cases import table
from lite_conformance.cases.tensors import Array, t, uniform, values
from lite_conformance.judge.tolerances import EXACT

local = table("LocalityAwareNms", EXACT, domain="lite")

_ALL: dict[str, Any] = {"score_threshold": 0.0, "nms_top_k": -1, "keep_top_k": -1}
#: The first two are joined, and so are the next two; the last is where the first are, and suppressed.
_ROW = [[0, 0, 8, 8], [0, 2, 8, 10], [16, 0, 24, 8], [18, 0, 26, 8], [0, 1, 8, 9]]
_SCORES = [0.5, 0.5, 0.25, 0.25, 0.75]
_BLANK = 32.0


def _local(label: str, boxes: Any, scores: Any, **more: Any) -> None:
    local(label, values(boxes), values(scores), outputs=2, **{**_ALL, **more})


def _quads(boxes: Any) -> Array:
    """Return polygons of the four corners of boxes [..., 4], clockwise."""
    return np.array(boxes)[..., [0, 1, 2, 1, 2, 3, 0, 3]]


_local("n1m5,c1", [_ROW], [[_SCORES]])
_local("n2m5,c1", [_ROW, _ROW[::-1]], [[_SCORES], [_SCORES]])
_local("n1m5,c2,joined-boxes-stay", [_ROW], [[_SCORES, [0.5, 0.25, 0.5, 0.5, 0.125]]])
_local("background0", [_ROW], [[_SCORES, _SCORES]], background_label=0)
_local("keep2", [_ROW], [[_SCORES, _SCORES[::-1]]], keep_top_k=2)
_local("keep0", [_ROW], [[_SCORES]], keep_top_k=0)
_local("top1", [_ROW], [[_SCORES]], nms_top_k=1)
_local("top0", [_ROW], [[_SCORES]], nms_top_k=0)
_local("threshold-of-sums", [_ROW], [[_SCORES]], score_threshold=0.75)
_local("none-above", [_ROW], [[_SCORES]], score_threshold=_BLANK)
_local("overlap0.75,none-joined", [_ROW], [[_SCORES]], nms_threshold=0.75)
_local("eta", [_ROW], [[_SCORES]], nms_threshold=0.75, nms_eta=0.5)
_local("pixels", [[[0, 0, 7, 7], [0, 2, 7, 9], [8, 0, 15, 7]]], [[[0.5, 0.5, 0.25]]], normalized=0)
_local("quads", _quads([_ROW]), [[_SCORES]])
_local("quads,turned", [[[4, 0, 8, 4, 4, 8, 0, 4], [4, 1, 8, 5, 4, 9, 0, 5], [20, 0, 24, 4, 20, 8, 16, 4]]],
       [[[0.5, 0.5, 0.25]]])  # fmt: skip
_local("quads,crossed", [[[0, 0, 8, 8, 8, 0, 0, 8], [0, 0, 8, 0, 8, 8, 0, 8]]], [[[0.5, 0.25]]], nms_threshold=0.25)
_local("quads,no-area", [[[0, 0, 8, 8, 8, 8, 0, 0], [0, 0, 8, 0, 8, 8, 0, 8]]], [[[0.5, 0.25]]])
_local("octagons", np.repeat(_quads([_ROW]).reshape(1, 5, 4, 2), 2, axis=2).reshape(1, 5, 16), [[_SCORES]])
_local("ties-in-order", [[[0, 0, 4, 4], [8, 0, 12, 4], [16, 0, 20, 4]]], [[[0.5] * 3]], keep_top_k=2)


# **** overlaps that decide ****


def _decides(label: str, first: Any, second: Any, overlap: float, *, margin: float = 0.01, **more: Any) -> None:
    """Add cases of two boxes and a threshold just below their overlap, at which they are joined, and just above it."""
    for name, order in ((label, [first, second]), (f"{label},exchanged", [second, first])):
        for kind, factor in (("joined", 1 - margin), ("apart", 1 + margin)):
            boxes = np.array(order).reshape(1, 2, -1)
            _local(f"{name},{kind}", boxes, [[[0.5, 0.5]]], nms_threshold=overlap * factor, **more)


# Measured by counting the points of a fine grid that are in one and in both of the polygons.
_decides("turned", [0, 0, 7, 1, 9, 8, 1, 6], [3, -2, 11, 3, 6, 10, 2, 5], 0.4968)
_decides("steep", [0, 1, 2, 9, 5, 2, 9, 8], [-1, 4, 4, 0, 10, 5, 3, 7], 0.3518)
_decides("notched", [0, 0, 9, 0, 9, 9, 6, 9, 6, 3, 3, 3, 3, 9, 0, 9],
         [1, 2, 10, 5, 8, 8, 7, 5, 5, 7, 4, 5, 2, 8, 0, 5], 0.2620)  # fmt: skip
_decides("comb", [0, 0, 9, 1, 8, 2, 2, 3, 9, 5, 2, 6, 8, 8, 0, 9],
         [1, -2, 3, 10, 4, 3, 5, 11, 6, 2, 7, 9, 8, -1, 4, 1], 0.3560)  # fmt: skip
_decides("parts", [0, 0, 6, 0, 6, 6, 0, 6], [2, 4, 8, 4, 8, 11, 2, 11], 4 * 2 / (36 + 42 - 8))
_decides("small-boxes", [0, 0, 3, 3], [1, 1, 3, 4], 2 * 2 / (9 + 6 - 4), margin=0.03)
_decides("small-boxes,pixels", [0, 0, 3, 3], [1, 1, 3, 4], 3 * 3 / (16 + 12 - 9), margin=0.03, normalized=0)
_decides("lines,pixels", [3, 0, 3, 7], [3, 1, 3, 8], 7 / 9, margin=0.03, normalized=0)
_decides("lines-across,pixels", [0, 3, 7, 3], [1, 3, 8, 3], 7 / 9, margin=0.03, normalized=0)
_decides("thin-boxes", [0, 0, 8, 0.5], [2, 0, 10, 0.5], 6 / 10, margin=0.03)
# Sixteenths of the first pair.
_decides("turned,small", np.array([0, 0, 7, 1, 9, 8, 1, 6]) / 16, np.array([3, -2, 11, 3, 6, 10, 2, 5]) / 16, 0.4968)
_PAIR = [[[0.5, 0.5]]]
_local("quads,neither-has-an-area", [[[0, 0, 8, 8, 8, 8, 0, 0], [0, 0, 8, 8, 8, 8, 0, 0]]], _PAIR)
for _label, _boxes in (
    ("boxes", [[0, 0, 4, 4], [8, 0, 12, 4]]), ("quads", _quads([[0, 0, 4, 4], [8, 0, 12, 4]])),
    ("quads,corners-of-one-square", [[0, 0, 6, 0, 1, 1, 0, 6], [9, 9, 3, 9, 8, 8, 9, 3]]),
):  # fmt: skip
    _local(f"{_label},threshold-below-0", [_boxes], _PAIR, nms_threshold=-0.5)
_local("quads,corners-of-one-square", [[[0, 0, 6, 0, 1, 1, 0, 6], [9, 9, 3, 9, 8, 8, 9, 3]]], _PAIR, nms_threshold=0.0)
_local("apart-by-half,pixels", [[[0, 0, 7, 7], [7.5, 0, 15, 7]]], _PAIR, nms_threshold=0.0, normalized=0)
_local("overlapping-by-half", [[[0, 0, 7.5, 8], [7, 0, 15, 8]]], _PAIR, nms_threshold=0.0)
_local("overlap-is-threshold", [[[0, 0, 8, 8], [0, 0, 8, 4]]], _PAIR, nms_threshold=0.5)
_local("overlap-is-threshold,pixels", [[[0, 0, 7, 7], [0, 0, 7, 3]]], _PAIR, nms_threshold=0.5, normalized=0)
_local("eta,threshold0.502", [[[0, 0, 8, 8], [0, 4, 8, 12]]], _PAIR, nms_threshold=0.502, nms_eta=0.5)
_local(
    "eta-above-1", [[[0, 0, 8, 10], [20, 0, 28, 8], [0, 0, 8, 8]]], [[[0.5, 0.5, 0.5]]], nms_threshold=0.6, nms_eta=1.5
)
_local("score-is-threshold", [[[0, 0, 4, 4], [8, 0, 12, 4]]], [[[0.5, 0.75]]], score_threshold=0.5)
_local("eta,threshold0.5", [[[0, 0, 8, 8], [0, 4, 8, 12]]], _PAIR, nms_threshold=0.5, nms_eta=0.5)

# **** more ****

_APART = [[8 * i, 0, 8 * i + 4, 4] for i in range(40)]
_local("nan-apart", [[[np.nan, 0, 8, 8], [20, 0, 28, 8]]], [[[0.75, 0.5]]])
_local("nan-apart,in-the-far-corner", [[[20, 0, np.nan, 8], [0, 0, 8, 8]]], [[[0.75, 0.5]]])
_local("classes-in-order", [_APART[:3]], [[[0.125, 0.25, 0.75], [0.875, 0.5, 0.0625]]], keep_top_k=4)
_local("many-ties", [_APART], [[[0.25, 0.5, 0.75, 0.5] * 10] * 2], nms_top_k=30, keep_top_k=17)
local("n2100,large", t(2100, 1, 32), t(2100, 1, 1, init=uniform(0.5, 1)), outputs=2, **_ALL)
local("m0,no-box", t(1, 0, 4), t(1, 2, 0), outputs=2, **_ALL)
local("n0,no-image", t(0, 3, 4), t(0, 2, 3), outputs=2, **_ALL)
local("counts-left-out", values([_ROW]), values([[_SCORES]]), outputs=1, **_ALL)
