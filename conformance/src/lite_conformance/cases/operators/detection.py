"""Cases of RoiAlign and NonMaxSuppression."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, table
from lite_conformance.cases.operators.box_initializers import boxes, regions_of, scores
from lite_conformance.cases.tensors import Initializer, Tensor, big, const, normal, positive, t, tiny, values
from lite_conformance.judge.tolerances import SCALED
from lite_core.ir import DType

# **** RoiAlign ****


def regions(size: tuple[int, int], attributes: dict[str, Any]) -> Initializer:
    """Return an initializer of regions in quarters, up to a third of the map beyond its edges.

    NOTE: a sample more than one element outside the map has no weight and one slightly nearer has full weight, and
    the number of samples jumps where the size of a bin is a whole number of elements: samples and bins avoid both.
    """
    scale, ratio = attributes["spatial_scale"], attributes["sampling_ratio"]
    shift = 0.5 if attributes["coordinate_transformation_mode"] == "half_pixel" else 0.0
    bins = attributes["output_height"], attributes["output_width"]

    def fits(low: float, high: float, axis: int) -> bool:
        length = (high - low) * scale
        bin_size = (max(length, 1.0) if not shift else length) / bins[axis]
        if not ratio and abs(bin_size - round(bin_size)) < 1e-3:
            return False
        samples = ratio or int(np.ceil(bin_size))
        positions = low * scale - shift + (np.arange(bins[axis] * samples) + 0.5) / samples * bin_size
        return bool((np.abs(positions + 1) > 1e-3).all() and (np.abs(positions - size[axis]) > 1e-3).all())

    def span(random: np.random.Generator, axis: int) -> tuple[float, float] | None:
        most = size[axis] / scale
        length, low = random.uniform(1 / scale, most), random.uniform(-most / 3, most)
        low, high = np.round(low * 4) / 4, np.round((low + length) * 4) / 4
        return (float(low), float(high)) if high > low and fits(low, high, axis) else None

    return regions_of(span)


roi_align = table("RoiAlign", SCALED)


def _attributes(
    bins: tuple[int, int], ratio: int = 0, scale: float = 1.0, mode: str = "avg", shifted: bool = True
) -> dict[str, Any]:
    return {
        "output_height": bins[0],
        "output_width": bins[1],
        "sampling_ratio": ratio,
        "spatial_scale": scale,
        "mode": mode,
        "coordinate_transformation_mode": "half_pixel" if shifted else "output_half_pixel",
    }


def _align(
    label: str, x: Tensor, images: list[int], bins: tuple[int, int], rois: Tensor | None = None, **options: Any
) -> None:
    """Add a case with one region for each entry of ``images``, the number of its image."""
    attributes = _attributes(bins, **options)
    rois = rois or t(len(images), 4, init=regions((x.shape[2], x.shape[3]), attributes))
    roi_align(label, x, rois, values(np.array(images, np.int64), "int64"), **attributes)


_small, _outside = values([[2, 2, 2.25, 2.25], [1, 3, 1.5, 3.25]]), values([[-9, 0, -8, 1], [0, 7, 1, 8], [8, 8, 9, 9]])
_edge = values([[-0.25, -0.25, 1, 1], [3, 3, 4.5, 4.5]])
roi_align("n1c2h8w8,k1,defaults", t(1, 2, 8, 8, init=positive), values([[0.75, 1.25, 6, 5.5]]), values([0], "int64"))
_align("n2c3h9w7,k5,o3x2", t(2, 3, 9, 7), [0, 1, 1, 0, 1], (3, 2))
_align("n3c1h12w10,k4,o7x7,scale0.5", t(3, 1, 12, 10), [2, 0, 2, 1], (7, 7), scale=0.5)
_align("n1c33h6w5,k2,o2x2,ratio2", t(1, 33, 6, 5), [0, 0], (2, 2), ratio=2)
_align("n1c2h6w9,k3,o2x3,ratio3,scale0.25", t(1, 2, 6, 9), [0] * 3, (2, 3), ratio=3, scale=0.25)
_align("n2c2h9w8,k4,o3x3,unshifted", t(2, 2, 9, 8), [1, 0, 0, 1], (3, 3), shifted=False)
_align("n1c2h9w8,k3,o3x1,ratio1,unshifted", t(1, 2, 9, 8), [0] * 3, (3, 1), ratio=1, scale=0.5, shifted=False)
_align("n2c3h8w9,k4,o2x3,max", t(2, 3, 8, 9), [0, 1, 0, 1], (2, 3), mode="max")
_align("n1c2h8w9,k3,o2x2,max,ratio1", t(1, 2, 8, 9), [0] * 3, (2, 2), mode="max", ratio=1)
_align("n1c2h8w9,k3,o3x2,max,unshifted,scale0.5", t(1, 2, 8, 9), [0] * 3, (3, 2), mode="max", shifted=False, scale=0.5)
_align("outside-is-0", t(1, 1, 4, 4), [0] * 3, (2, 2), _outside)
_align("edge-is-repeated", t(1, 1, 4, 4), [0] * 2, (2, 2), _edge, ratio=2)
_align("edge-is-repeated,max", t(1, 1, 4, 4), [0] * 2, (2, 2), _edge, ratio=2, mode="max")
_align("small-regions-grow,unshifted", t(1, 2, 6, 6), [0] * 2, (2, 2), _small, shifted=False)
_align("small-regions-stay", t(1, 2, 6, 6), [0] * 2, (2, 2), _small)
_align("many-samples,o1x1", t(1, 1, 33, 17, init=positive), [0], (1, 1), values([[0.25, 0.25, 16.75, 32]]))
_align("k0,no-region", t(1, 2, 4, 4), [], (2, 3), t(0, 4))
_align("c0,no-channel", t(1, 0, 4, 4), [0], (2, 2))
_align("big", t(1, 2, 8, 8, init=big), [0, 0], (2, 2))
_align("tiny", t(1, 2, 8, 8, init=tiny), [0, 0], (2, 2))
roi_align(
    "constant-regions",
    t(2, 3, 8, 8),
    const(2, 4, init=regions((8, 8), _attributes((2, 2)))),
    values([1, 0], "int64", constant=True),
    **_attributes((2, 2)),
)


@roi_align.drawn
def draw_roi_align(draw: Draw, dtype: DType) -> OpCase:
    images, size = draw(st.integers(1, 3)), draw(st.tuples(st.integers(2, 12), st.integers(2, 12)))
    chosen = draw(st.lists(st.integers(0, images - 1), max_size=4))
    attributes = _attributes(
        draw(st.tuples(st.integers(1, 4), st.integers(1, 4))),
        draw(st.integers(0, 3)),
        draw(st.sampled_from([1.0, 0.5, 0.25])),
        draw(st.sampled_from(["avg", "max"])),
        draw(st.booleans()),
    )
    return roi_align.case(
        # The mean of numbers of both signs may be far smaller than the numbers, so averages get positive ones.
        t(images, draw(st.integers(1, 3)), *size, init=normal if attributes["mode"] == "max" else positive),
        t(len(chosen), 4, init=regions(size, attributes)),
        values(np.array(chosen, np.int64), "int64"),
        **attributes,
    )


# **** NonMaxSuppression ****


nms = table("NonMaxSuppression")


def _scalar(number: float | None, dtype: str, constant: bool) -> Tensor | None:
    return None if number is None else values(number, dtype, constant=constant)


def _limits(
    limit: int | None = None, iou: float | None = None, score: float | None = None, constant: bool = True
) -> list[Tensor | None]:
    operands = [
        _scalar(limit, "int64", constant),
        _scalar(iou, "float32", constant),
        _scalar(score, "float32", constant),
    ]
    while operands and operands[-1] is None:
        operands.pop()
    return operands


def _nms(label: str, images: int, classes: int, many: int, kind: str = "corners", **limits: Any) -> None:
    """Add a case whose overlaps keep a margin from the threshold."""
    corners = t(images, many, 4, init=boxes(limits.get("iou", 0.0), kind=kind))
    center: dict[str, Any] = {"center_point_box": 1} if kind == "center" else {}
    nms(label, corners, t(images, classes, many, init=scores()), *_limits(**limits), **center)


#: The second box overlaps the first and the third by 0.6; these two overlap each other by 0.33.
_chain = values([[[0, 0, 4, 8], [0, 2, 4, 10], [0, 4, 4, 12]]])
_falling, _apart = values([[[0.75, 0.5, 0.25]]]), values([[[0, 0, 1, 1], [4, 4, 5, 5], [7, 7, 8, 8]]])
_negative = values([[[-4, -4, -1, -1], [-4, -3, -1, -1], [-1, -1, 2, 2]]])
_half = values([[[0, 0, 1, 4], [0, 0, 1, 2], [0, 2, 1, 4]]])
_nms("n1c1m9", 1, 1, 9, limit=9, iou=0.5)
_nms("n2c3m20", 2, 3, 20, limit=20, iou=0.3)
_nms("n2c3m20,iou0.7", 2, 3, 20, limit=20, iou=0.7)
_nms("n1c2m130,many", 1, 2, 130, limit=130, iou=0.5)
_nms("n2c3m9,limit2", 2, 3, 9, limit=2, iou=0.5)
_nms("n1c1m5,limit-above-m", 1, 1, 5, limit=99, iou=0.5)
_nms("n1c2m7,no-limit-is-none", 1, 2, 7)
_nms("n1c2m7,limit0", 1, 2, 7, limit=0, iou=0.5)
_nms("n2c2m9,no-iou-is-0", 2, 2, 9, limit=9)
_nms("n2c2m9,score0.4", 2, 2, 9, limit=9, iou=0.5, score=0.4)
_nms("n2c2m9,score0.4,no-iou", 2, 2, 9, limit=9, score=0.4)
_nms("n1c2m6,score-above-all", 1, 2, 6, limit=6, iou=0.5, score=1)
_nms("n2c2m15,any-corners", 2, 2, 15, "any", limit=15, iou=0.5)
_nms("n2c2m15,center", 2, 2, 15, "center", limit=15, iou=0.5)
_nms("n2c2m9,limits-at-run-time", 2, 2, 9, limit=4, iou=0.5, score=0.3, constant=False)
_nms("m0,no-box", 2, 3, 0, limit=5, iou=0.5)
_nms("n0,no-image", 0, 3, 4, limit=5, iou=0.5)
_nms("c0,no-class", 2, 0, 4, limit=5, iou=0.5)
nms("score-must-be-above", _apart, _falling, *_limits(3, 0.5, 0.5))
nms("iou-must-be-above", _half, _falling, *_limits(3, 0.5))
nms("fallen-boxes-suppress-none", _chain, _falling, *_limits(3, 0.5))
nms("negative-scores", t(1, 3, 4, init=boxes(0.5)), values([[[-3, 2, -1]]]), *_limits(3, 0.5))
nms("negative-coordinates", _negative, _falling, *_limits(3, 0.5))
nms("same-box-many-times", values([[[1, 1, 3, 4]] * 5]), t(1, 2, 5, init=scores()), *_limits(5, 0.9))
nms("limits-of-rank-1", _chain, _falling, values([1], "int64"), values([0.5], "float32"), values([0.3], "float32"))
nms("constant-boxes", const(1, 9, 4, init=boxes(0.5)), t(1, 2, 9, init=scores()), *_limits(9, 0.5))


@nms.drawn
def draw_nms(draw: Draw, dtype: DType) -> OpCase:
    images, classes, many = draw(st.integers(0, 2)), draw(st.integers(0, 3)), draw(st.integers(0, 12))
    overlap = draw(st.sampled_from([None, 0.0, 0.25, 0.5, 0.75]))
    least = draw(st.sampled_from([None, 0.1, 0.5]))
    center = draw(st.booleans())
    kind = "center" if center else draw(st.sampled_from(["corners", "any"]))
    limits = _limits(draw(st.integers(0, 14)), overlap, least, draw(st.booleans()))
    return nms.case(
        t(images, many, 4, init=boxes(overlap or 0.0, kind=kind)),
        t(images, classes, many, init=scores()),
        *limits,
        center_point_box=int(center),
    )
