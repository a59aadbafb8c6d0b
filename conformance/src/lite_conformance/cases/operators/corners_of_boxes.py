"""Boxes at the corners of the formulas: below one pixel, without area, exchanged corners, overlaps equal to limits."""

from __future__ import annotations

from typing import Any

from lite_conformance.cases.op_cases import table_of
from lite_conformance.cases.operators import (  # noqa: F401 - these modules create the tables extended here
    detection,
    lite_detection,
    lite_priors,
    lite_regions,
)
from lite_conformance.cases.tensors import Tensor, ints, t, values

_FLOAT32 = ["float32"]

#: Boxes whose overlaps are exact, and thresholds between the results of a formula and those of its neighbours.
_PAIRS: dict[str, tuple[list[list[float]], float]] = {
    "below-a-pixel": ([[0, 0, 0.5, 0.5], [0, 0, 0.5, 0.375], [4, 4, 4.5, 4.5]], 0.5),
    "gap-below-a-pixel": ([[0, 0, 1, 1], [1.5, 1.5, 2.5, 2.5], [1.25, 4, 2.25, 5]], 0.1),
    "gap-on-one-side": ([[0, 0, 4, 4], [0, 4.5, 4, 8.5], [4.5, 0, 8.5, 4]], 0.1),
    "no-area": ([[2, 2, 2, 2], [2, 2, 2, 2], [5, 5, 6, 6]], 0.5),
    "overlap-is-the-limit": ([[0, 0, 2, 1], [0, 0, 1, 1], [4, 4, 5, 5]], 0.5),
    "above-the-limit": ([[0, 0, 2, 1], [0, 0, 1, 1], [4, 4, 5, 5]], 0.375),
}
_falling = [0.875, 0.75, 0.625]

for _label, (_boxes, _limit) in _PAIRS.items():
    table_of("NonMaxSuppression")(_label, values([_boxes]), values([[_falling]]), ints(9), values([_limit], "float32"),
                                  dtypes=_FLOAT32)  # fmt: skip

# **** suppression in the domain of Lite ****

_EVERY: dict[str, Any] = {"background_label": -1, "score_threshold": 0.1, "nms_top_k": -1, "keep_top_k": -1}


def _multiclass(label: str, boxes: list[list[float]], limit: float, **more: Any) -> None:
    attributes = {**_EVERY, "nms_threshold": limit, **more}
    table_of("MulticlassNms", "lite")(label, values([boxes]), values([[_falling[: len(boxes)]]]), outputs=3,
                                      dtypes=_FLOAT32, **attributes)  # fmt: skip


#: Exchanged in x, in y, in both: only the last one's sides have a positive product.
_exchanged: list[list[list[float]]] = [
    [[4.0, 0, 0, 4], [0, 4, 4, 0], [4, 4, 0, 0]],
    [[0.0, 0, 4, 4], [4, 0, 0, 4], [4, 4, 0, 0]],
]
for _label, (_boxes, _limit) in _PAIRS.items():
    _multiclass(f"{_label},pairs", _boxes, _limit)
for _number, _boxes in enumerate(_exchanged):
    _multiclass(f"exchanged-corners{_number}", _boxes, 0.1)
    _multiclass(f"exchanged-corners{_number},pixels", _boxes, 0.1, normalized=0)
_multiclass("narrower-than-a-pixel,pixels", [[0.0, 0, 0, 7], [0, 0, 0, 5], [0, 0, 0.5, 7]], 0.65, normalized=0)
# Overlaps of 10 x 5 of 10 x 10 pixels, 1/2; counted with another size of the last pixel, they are on the other side.
_multiclass("pixels,overlap-is-the-limit", [[0, 0, 9, 9], [0, 0, 9, 4], [40, 0, 44, 4]], 0.5, normalized=0)
_multiclass("pixels,overlap-above-the-limit", [[0, 0, 9, 9], [0, 0, 9, 4], [40, 0, 44, 4]], 0.49, normalized=0)
_multiclass("top0", [[0, 0, 4, 4], [8, 0, 12, 4]], 0.5, nms_top_k=0)
# A threshold of exactly 0.5 is not multiplied by eta, one slightly above is: the second pair overlaps by 3/7.
_adaptive: list[list[float]] = [[8.0, 0, 12, 4], [0, 0, 4, 5], [0, 2, 4, 7]]
for _limit in (0.5, 0.502):
    _multiclass(f"eta0.75,limit{_limit}", _adaptive, _limit, nms_eta=0.75)
for _label, _top in (("top0", 0), ("top1", 1)):
    table_of("MatrixNms", "lite")(
        f"{_label},pairs", values([[[0, 0, 4, 4], [0, 1, 4, 5]]]), values([[[0.75, 0.5]]]), outputs=3, dtypes=_FLOAT32,
        background_label=-1, score_threshold=0.1, post_threshold=0.0, nms_top_k=_top, keep_top_k=-1,
    )  # fmt: skip
for _label, (_boxes, _) in _PAIRS.items():
    if _label != "no-area":
        table_of("MatrixNms", "lite")(
            f"{_label},pairs", values([_boxes]), values([[_falling]]), outputs=3, dtypes=_FLOAT32, background_label=-1,
            score_threshold=0.1, post_threshold=0.0, nms_top_k=-1, keep_top_k=-1,
        )  # fmt: skip
for _number, _boxes in enumerate(_exchanged):
    table_of("MatrixNms", "lite")(
        f"exchanged-corners{_number}", values([[[0, 0, 8, 8], *_boxes]]), values([[[0.9375, *_falling]]]), outputs=3,
        dtypes=_FLOAT32, background_label=-1, score_threshold=0.1, post_threshold=0.0, nms_top_k=-1, keep_top_k=-1,
        normalized=0,
    )  # fmt: skip


# **** proposals: anchors that no delta moves ****


def _generate(label: str, boxes: list[list[float]], size: tuple[float, float] = (64.0, 64.0), **more: Any) -> None:
    many = len(boxes)
    attributes = {"nms_thresh": 0.5, "min_size": 0.0, "pre_nms_top_n": 6, "post_nms_top_n": 6, "pixel_offset": 0}
    rank = [1 - 0.125 * i for i in range(many)]
    table_of("GenerateProposals", "lite")(
        label, values([[[[r]] for r in rank]]), values([[[[0.0]]] * (4 * many)]), values([list(size)]),
        values([[boxes]]), values([[[[1.0] * 4] * many]]), outputs=3, dtypes=_FLOAT32, **{**attributes, **more},
    )  # fmt: skip


_spread: list[list[float]] = [[0, 0, 8, 8], [0, 2, 8, 10], [20, 20, 30, 30]]
for _name in ("pre_nms_top_n", "post_nms_top_n"):
    _generate(f"{_name.replace('_', '-')}1", _spread, **dict[str, Any]({_name: 1}))
_generate("limit0-keeps-all", _spread, nms_thresh=0.0)
for _limit in (0.5, 0.502):
    _generate(f"eta0.75,limit{_limit}", [[20, 0, 24, 4], [0, 0, 4, 5], [0, 2, 4, 7]], nms_thresh=_limit, eta=0.75)
_generate("overlap-is-the-limit", [[0, 0, 8, 4], [0, 0, 4, 4], [20, 20, 24, 24]])
_generate("size-is-the-limit", [[0, 0, 4, 4], [10, 10, 13, 16], [20, 20, 28, 28]], min_size=4.0)
_generate("gap-below-a-pixel", [[0, 0, 1, 1], [1.5, 1.5, 2.5, 2.5], [1.25, 4, 2.25, 5]], nms_thresh=0.1)
for _label, _size in (("tall", (64.0, 16.0)), ("wide", (16.0, 64.0))):
    _far: list[list[float]] = (
        [[50.0, 1, 60, 11], [2, 2, 11, 12]] if _label == "wide" else [[1.0, 50, 11, 60], [2, 2, 12, 11]]
    )
    _generate(f"{_label},pixels", [*_far, [80, 80, 90, 90]], _size, pixel_offset=1, min_size=1.0)

# **** levels of regions ****

_regions: list[list[float]] = [
    [4.0, 0, 0, 4],
    [0, 4, 4, 0],
    [64, 64, 0, 0],
    [0, 0, 0.5, 512],
    [0, 0, 512, 0.5],
    [0.5, 0, 0, 512],
]
_regions += [[0, 0.5, 512, 0], [0, 0, 0, 1024], [0, 0, 1024, 0], [0, 0, 128, 128]]
for _offset in (0, 1):
    table_of("DistributeFpnProposals", "lite")(
        f"exchanged-and-narrow,offset{_offset}", values(_regions), values([len(_regions)], "int32"), outputs=9,
        dtypes=_FLOAT32, min_level=2, max_level=5, refer_level=3, refer_scale=16, pixel_offset=_offset,
    )  # fmt: skip

# **** priors: a step of one pixel ****


def _maps(feature: tuple[int, int], image: tuple[int, int]) -> tuple[Tensor, Tensor]:
    return t(1, 2, *feature), t(1, 3, *image)


for _label, _steps in (("step1", (1.0, 1.0)), ("no-width,step4", (0.0, 4.0)), ("no-height,step4", (4.0, 0.0))):
    table_of("PriorBox", "lite")(_label, *_maps((3, 2), (24, 30)), outputs=2, min_sizes=(8.0,), step_w=_steps[0],
                                 step_h=_steps[1], clip=0)  # fmt: skip
    table_of("DensityPriorBox", "lite")(
        _label, *_maps((3, 2), (24, 30)), outputs=2, fixed_sizes=(8.0,), fixed_ratios=(1.0,), densities=(1,),
        step_w=_steps[0], step_h=_steps[1], clip=0,
    )  # fmt: skip
table_of("DensityPriorBox", "lite")("h1w1", *_maps((1, 1), (24, 30)), outputs=2, fixed_sizes=(8.0,),
                                    fixed_ratios=(1.0,), densities=(2,), clip=0)  # fmt: skip
