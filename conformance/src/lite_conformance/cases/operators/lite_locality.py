"""Cases of LocalityAwareNms (domain ``lite``). Numbers are such that joined boxes are exact in every element type."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_conformance.cases.op_cases import table
from lite_conformance.cases.tensors import Array, t, values
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
local("m0,no-box", t(1, 0, 4), t(1, 2, 0), outputs=2, **_ALL)
local("n0,no-image", t(0, 3, 4), t(0, 2, 3), outputs=2, **_ALL)
local("counts-left-out", values([_ROW]), values([[_SCORES]]), outputs=1, **_ALL)
