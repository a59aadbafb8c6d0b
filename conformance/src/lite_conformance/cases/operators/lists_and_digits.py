"""Operators of detection: long lists, elements with all digits of their type, NaN and infinities in arithmetic."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import numpy as np

from lite_conformance.cases.op_cases import table_of
from lite_conformance.cases.operators import (  # noqa: F401 - these modules create the tables extended here
    activation,
    comparison,
    control,
    detection,
    generate,
    grid_sample,
    lite_boxes,
    lite_detection,
    lite_priors,
    lite_regions,
    recurrent,
    reduction,
    softmax,
)
from lite_conformance.cases.operators.bodies import Scope, loop_body
from lite_conformance.cases.tensors import Array, as_type, integers, ints, positive, t, values
from lite_conformance.judge.tolerances import epsilon
from lite_core.ir import DType, Value
from lite_core.ops.dtypes import FLOATS

_FLOAT32 = ["float32"]
_more: dict[str, Any] = {}  # in loops over operators: attributes that only one of them has
_MANY = 16400  # boxes with more than 65,536 coordinates


def _row_of_boxes(random: np.random.Generator, size: tuple[int, ...], dtype: DType) -> Array:
    """Return boxes of 4 x 4 that do not touch each other, in a row."""
    left = 8.0 * np.arange(int(np.prod(size)) // 4)
    return as_type(np.stack([left, 0 * left, left + 4, 0 * left + 4], axis=1).reshape(size), dtype)


def _falling(random: np.random.Generator, size: tuple[int, ...], dtype: DType) -> Array:
    """Return scores from 1 to 0, each lower than the one before."""
    count = int(np.prod(size))
    return as_type((1 - np.arange(count) / count).reshape(size), dtype)


def _rising(random: np.random.Generator, size: tuple[int, ...], dtype: DType) -> Array:
    """Return scores from 0 to 1, each higher than the one before."""
    count = int(np.prod(size))
    return as_type(((np.arange(count) + 1) / count).reshape(size), dtype)


def _with_all_digits(random: np.random.Generator, size: tuple[int, ...], dtype: DType) -> Array:
    """Return boxes whose coordinates a smaller type cannot hold, none near a change of level."""
    low = random.integers(16, 30, (*size[:-1], 2))
    boxes = np.concatenate([low, low + random.integers(45, 50, low.shape)], axis=-1)
    return as_type(boxes.astype(np.float64) * (1 + epsilon(dtype)), dtype)


# **** long lists ****

_last = 8.0 * (_MANY - 1)
_boxes, _one_box = t(1, _MANY, 4, init=_row_of_boxes), values([[_last, 0, _last + 4, 2]])
_list, _scores = t(_MANY, 4, init=_row_of_boxes), t(1, 1, _MANY, init=_rising)
_suppression: dict[str, Any] = {
    "background_label": -1, "score_threshold": 0.5, "nms_top_k": 9, "keep_top_k": 7, "outputs": 3, "dtypes": _FLOAT32,
}  # fmt: skip
table_of("NonMaxSuppression")("long-list", _boxes, _scores, ints(5), values([0.5], "float32"),
                              values([0.9995], "float32"))  # fmt: skip
table_of("MulticlassNms", "lite")("long-list", _boxes, _scores, **_suppression)
table_of("MatrixNms", "lite")("long-list", _boxes, _scores, post_threshold=0.0, **_suppression)
table_of("BoxCoder", "lite")("encode,long-list", _list, None, _one_box, dtypes=_FLOAT32)
table_of("IouSimilarity", "lite")("long-list", _list, _one_box, dtypes=_FLOAT32)
table_of("BipartiteMatch", "lite")("long-list", t(1, 65600, init=_rising), outputs=2, dtypes=_FLOAT32)
_levels: dict[str, Any] = {"min_level": 2, "max_level": 5, "refer_level": 4, "refer_scale": 32}
table_of("DistributeFpnProposals", "lite")("long-list", _list, values([_MANY], "int32"), outputs=9, dtypes=_FLOAT32,
                                           **_levels)  # fmt: skip
table_of("CollectFpnProposals", "lite")(
    "long-list", _list, _list, t(_MANY, 1, init=_rising), t(_MANY, 1, init=_rising), values([_MANY], "int32"),
    values([_MANY], "int32"), outputs=2, dtypes=_FLOAT32, post_nms_top_n=_MANY + 5,
)  # fmt: skip
table_of("OneHot")("long-list", t(263, 257, init=integers(0, 2), dtype="int64"), values(2, "int64", constant=True),
                   values([0, 1], constant=True), dtypes=_FLOAT32)  # fmt: skip
table_of("AffineGrid")("long-list", t(11000, 2, 3), ints(11000, 1, 1, 2), dtypes=_FLOAT32)

_feature, _picture = t(0, 2, 3, 2), t(0, 3, 24, 30)
for _op, _more in (
    ("PriorBox", {"min_sizes": (8.0,)}),
    ("DensityPriorBox", {"fixed_sizes": (8.0,), "fixed_ratios": (1.0,), "densities": (2,)}),
):
    table_of(_op, "lite")(
        "n0,only-sizes-count", _feature, _picture, outputs=2, dtypes=_FLOAT32, **dict[str, Any](_more)
    )
table_of("AnchorGenerator", "lite")("n0,only-sizes-count", _feature, outputs=2, anchor_sizes=(32.0,),
                                    aspect_ratios=(1.0,), dtypes=_FLOAT32)  # fmt: skip

# **** all digits of the type ****

_exact, _size = t(6, 4, init=_with_all_digits), values([[1000.0, 1000, 1]])
table_of("BoxClip", "lite")("all-digits", t(1, 6, 4, init=_with_all_digits), _size)
table_of("DistributeFpnProposals", "lite")("all-digits", _exact, values([6], "int32"), outputs=9, **_levels)
table_of("CollectFpnProposals", "lite")("all-digits", _exact, _exact, t(6, 1, init=_falling), t(6, 1, init=_falling),
                                        values([6], "int32"), values([6], "int32"), outputs=2,
                                        post_nms_top_n=12)  # fmt: skip

# **** NaN and infinities ****

_odd = [[nan, 1, 4, 5], [1, 2, inf, 5], [2, 3, 4, 5]]
table_of("BoxCoder", "lite")("encode,not-finite", values([[0.0, 0, 4, 4]]), None, values(_odd), dtypes=_FLOAT32)
table_of("CollectFpnProposals", "lite")(
    "not-finite", values(_odd), values([[0, -inf, 4, 4.0]]), values([[0.75], [0.5], [0.25]]), values([[0.625]]),
    values([3], "int32"), values([1], "int32"), outputs=2, dtypes=FLOATS, post_nms_top_n=4,
)  # fmt: skip
_map = [[[[nan, 1.0, 2, 3], [4, 5, 6, 7], [8, 9, inf, 2], [3, 4, 5, 6]]]]
for _op, _more in (("RoiPool", {}), ("PsRoiPool", {"output_channels": 1})):
    table_of(_op, "lite")("not-finite", values(_map), values([[0.0, 0, 1, 1], [2, 2, 3, 3], [0, 2, 1, 3]]),
                          values([3], "int32"), dtypes=_FLOAT32, **dict[str, Any](_more))  # fmt: skip
table_of("RoiAlign")("infinite", values([[[[inf, inf, 1, 2], [inf, inf, 3, 4], [5, 6, 7, 8], [1, 2, 3, 4]]]]),
                     values([[0.25, 0.25, 1.25, 1.25], [2.25, 2.25, 3.25, 3.25]]), values([0, 0], "int64"),
                     sampling_ratio=1, dtypes=_FLOAT32)  # fmt: skip

table_of("BoxClip", "lite")("not-finite", values([_odd]), values([[64.0, 64, 1]]), dtypes=_FLOAT32)
table_of("IouSimilarity", "lite")("not-finite", values(_odd), values([[2.0, 2, 4, 4], [0, 0, inf, 4]]),
                                  dtypes=_FLOAT32)  # fmt: skip
_logits = np.zeros((1, 6, 2, 2))
_logits[0, 4:] = 2.0
_logits[0, 0, 0, 0] = _logits[0, 1, 0, 1] = _logits[0, 5, 1, 0] = nan
_logits[0, 2, 1, 1] = inf
for _clip in (0, 1):
    table_of("YoloBox", "lite")(f"not-finite,clip{_clip}", values(_logits), values([[96, 160]], "int32"), outputs=2,
                                anchors=(10, 13), class_num=1, conf_thresh=0.25, clip_bbox=_clip,
                                dtypes=_FLOAT32)  # fmt: skip
for _op, _more in (("MatrixNms", {"post_threshold": 0.0}), ("MulticlassNms", {"nms_threshold": 0.5})):
    for _name, _box in (("nan", [nan, 1.0, 4, 5]), ("infinity", [1.0, 2, inf, 5])):
        table_of(_op, "lite")(
            f"one-box,{_name}",
            values([[_box]]),
            values([[[0.75]]]),
            outputs=3,
            dtypes=_FLOAT32,
            background_label=-1,
            score_threshold=0.1,
            nms_top_k=-1,
            keep_top_k=-1,
            **dict[str, Any](_more),
        )
table_of("MulticlassNms", "lite")("all-digits", t(1, 1, 4, init=_with_all_digits), values([[[0.75]]]), outputs=3,
                                  background_label=-1, score_threshold=0.1, nms_top_k=-1, keep_top_k=-1)  # fmt: skip
# Positions and sizes that float16 does not hold.
for _op, _more in (("RoiPool", {}), ("PsRoiPool", {"output_channels": 1})):
    table_of(_op, "lite")("wide-image", t(1, 1 if _op == "RoiPool" else 3, 2, 4200),
                          values([[2051.0, 0, 4097, 1], [1, 0, 4099, 1]]), values([2], "int32"), pooled_height=1,
                          pooled_width=3, dtypes=_FLOAT32, **dict[str, Any](_more))  # fmt: skip
for _type, _number in (("uint32", 3 * 2**30), ("uint64", 3 * 2**62)):
    table_of("ReduceMean")(f"unsigned-{_type}", values(np.array([[_number, 2]], np.uint64)), ints(1), dtypes=[_type])
table_of("Shrink")("unsigned,bias", values([200, 3, 100, 255, 0]), lambd=4.0, bias=1.0, dtypes=["uint8"])
table_of("Shrink")("unsigned,bias,16-bits", values([60000, 3, 40000]), lambd=4.0, bias=1.0, dtypes=["uint16"])
table_of("Shrink")("unsigned,bias,64-bits", values(np.array([3 * 2**62, 2**63, 0], np.uint64)), lambd=4.0,
                   bias=2.0**50, dtypes=["uint64"])  # fmt: skip
table_of("Shrink")("unsigned,large-bias", values([3 * 2**30, 2**30, 0]), lambd=4.0, bias=2.0**28,
                   dtypes=("uint32",))  # fmt: skip
table_of("RoiAlign")("image-without-elements", t(1, 2, 0, 5), values([[0.0, 0, 1, 1]]), values([0], "int64"),
                     output_height=2, output_width=3, dtypes=_FLOAT32)  # fmt: skip

_largest = np.finfo(np.float32).max
table_of("Equal")("infinity-and-the-largest", values([inf, -inf, inf]), values([_largest, -_largest, inf]),
                  dtypes=_FLOAT32)  # fmt: skip
_one, _none = values([[[1.0]]], constant=True), values([[[0.0]]], constant=True)
table_of("RNN")("infinite,relu", values([[[1.0]], [[2.0]], [[inf]]]), _one, _none, hidden_size=1,
                activations=("Relu",), dtypes=_FLOAT32)  # fmt: skip

table_of("Hardmax")("infinity-and-the-largest", values([[_largest, inf, 1.0], [-inf, -_largest, -inf]]),
                    dtypes=_FLOAT32)  # fmt: skip
table_of("PsRoiPool", "lite")(
    "many-channels", t(1, 150 * 49, 8, 8), values([[0.0, 0, 7, 6], [1, 0, 6, 7], [2, 1, 7, 7]] * 4),
    values([12], "int32"), pooled_height=7, pooled_width=7, output_channels=150, dtypes=_FLOAT32,
)  # fmt: skip

# **** interpolated integers beyond their type; boxes that share their last pixels ****

table_of("GridSample")("cubic,integers-saturate", values([[[[0, 127, 127, 0], [0, 127, 127, 0], [127, 0, 0, 127]]]]),
                       values([[[[-0.7, 0.1], [0.05, -0.3], [0.6, 0.35], [0.0, 0.0]]]], "float32"), mode="cubic",
                       dtypes=["int8"])  # fmt: skip
_shared: dict[str, Any] = {
    "nms_thresh": 0.1, "min_size": 0.0, "pre_nms_top_n": 6, "post_nms_top_n": 6, "pixel_offset": 1,
}  # fmt: skip
table_of("GenerateProposals", "lite")(
    "shared-pixels", values([[[[1.0]], [[0.75]], [[0.5]], [[0.25]]]]), values([[[[0.0]]] * 16]),
    values([[64.0, 64.0]]), values([[[[0, 0, 3, 0], [3, 0, 6, 0], [20, 0, 20, 3], [20, 3, 20, 6]]]]),
    values([[[[1.0] * 4] * 4]]), outputs=3, dtypes=_FLOAT32, **_shared,
)  # fmt: skip
for _op, _more in (("MatrixNms", {"post_threshold": 0.0}), ("MulticlassNms", {"nms_threshold": 0.1})):
    table_of(_op, "lite")(
        "shared-pixels", values([[[0.0, 0, 3, 0], [3, 0, 6, 0], [20, 0, 20, 3], [20, 3, 20, 6]]]),
        values([[[1.0, 0.75, 0.5, 0.25]]]), outputs=3, dtypes=_FLOAT32, background_label=-1, score_threshold=0.1,
        nms_top_k=-1, keep_top_k=-1, normalized=0, **dict[str, Any](_more),
    )  # fmt: skip
# sigmoid(0) is exactly the threshold, which is enough.
table_of("YoloBox", "lite")(
    "confidence-is-the-threshold", values(np.array([0.5, 0.25, 0.5, 0.25, 0, 1]).reshape(1, 6, 1, 1)),
    values([[96, 160]], "int32"), outputs=2, anchors=(10, 13), class_num=1, conf_thresh=0.5, dtypes=_FLOAT32,
)  # fmt: skip

# **** regions without height, and without size in mode max ****

_no_size = values([[1.0, 2, 4, 2], [2, 2, 2, 2], [1, 1, 1, 4]])
for _mode in ("avg", "max"):
    table_of("RoiAlign")(f"no-height,{_mode}", t(1, 2, 5, 5, init=positive), _no_size, values([0, 0, 0], "int64"),
                         output_height=2, output_width=3, mode=_mode, dtypes=_FLOAT32)  # fmt: skip

# **** bodies of Loop that count in vectors of one element ****


def _joined_counter(scope: Scope) -> list[Value]:
    """Join the iteration number to itself, which a scalar cannot be."""
    joined = scope.op("Concat", scope.counters[0], scope.counters[0], axis=0)
    total = scope.combine(scope.carried[0], scope.captured[0])
    return [scope.op("Concat", scope.counters[1], axis=0), total, joined]


_state = t(2, 3)
table_of("Loop")("counters-are-vectors,joined", values(3, "int64"), values(True, "bool"), _state, captured=(t(2, 3),),
                 outputs=2, body=loop_body(_joined_counter, _state, counter_shape=(1,)), dtypes=_FLOAT32)  # fmt: skip

# **** reductions along given axes do not become reductions over no axes ****

for _op in ("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"):
    table_of(_op)("noop,axis1", t(3, 4, init=positive), ints(1), noop_with_empty_axes=1, keepdims=0, dtypes=FLOATS)
for _op, _types in (("ReduceL2", ("int32", "int64")), ("ReduceLogSumExp", ("int32", "uint32", "int64", "uint64"))):
    table_of(_op)("one-large-number", values([[100000], [40000]]), ints(1), dtypes=_types)

# **** coordinates and sizes just below a limit ****

_close = 2.0**-8
table_of("Hardmax")("last-digit", values([[1.0, 1 + 2.0**-10, 0.5]]), dtypes=("float16", "float32"))
table_of("RoiAlign")("edges,just-more-than-one-outside", t(1, 2, 4, 4, init=positive),
                     values([[-1.5 - _close, 0, 0.5 - _close, 2], [0, -1.5 - _close, 2, 0.5 - _close]]),
                     values([0, 0], "int64"), sampling_ratio=1, dtypes=_FLOAT32)  # fmt: skip
_halves = values([[1.5 - _close, 0, 4, 3], [0, 2.5 - _close, 3, 5]])
for _op, _more in (("RoiPool", {}), ("PsRoiPool", {"output_channels": 1})):
    table_of(_op, "lite")("just-below-the-half", t(1, 1, 6, 6), _halves, values([2], "int32"), dtypes=_FLOAT32,
                          **dict[str, Any](_more))  # fmt: skip
_beyond = values([[[-1.0, -2, 90, 90], [3, 4, 70, 80]]])
table_of("BoxClip", "lite")(
    "just-below-the-half", _beyond, values([[64.5 - _close, 48.5 - _close, 1]]), dtypes=_FLOAT32
)
table_of("DensityPriorBox", "lite")("steps-of-100", t(1, 2, 2, 2), t(1, 3, 200, 200), outputs=2, fixed_sizes=(80.0,),
                                    fixed_ratios=(1.0,), densities=(2,), step_w=100.0, step_h=100.0,
                                    dtypes=_FLOAT32)  # fmt: skip
