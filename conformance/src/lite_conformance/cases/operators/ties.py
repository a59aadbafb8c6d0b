"""Choices among equal elements: which of them TopK, ArgMax, MaxPool, Unique, suppression and matching take.

Equal elements are where kernels decide differently: in one lane of a vector, in neighbouring lanes, in
different blocks of a long row, at both ends.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_conformance.cases.op_cases import table_of
from lite_conformance.cases.operators import (  # noqa: F401 - these modules create the tables extended here
    detection,
    lite_detection,
    lite_regions,
    pooling,
    search,
    softmax,
)
from lite_conformance.cases.tensors import Array, Tensor, integers, ints, t, values
from lite_core.ir import DType

_INF = float("inf")
#: Element types of every size and kind: enough, because the cases of each operator itself have ties in every type.
_SOME = ("float32", "float16", "int64", "uint8")
_SOME_FLOATS = ("float32", "bfloat16")


def pairs_of_extremes(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return rows of zeros in which row ``i`` has two or three ones, the first at column ``i``, and the rest later."""
    array = np.zeros(shape, dtype.numpy)
    rows, columns = shape
    for row in range(rows):
        first = row % columns
        later = [c for c in (first + 1, first + 7, first + 8, first + 64, columns - 1) if c < columns]
        array[row, [first, *random.choice(later or [first], 2)]] = 1
    return array


def pairs_of_lowest(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return the elements of :func:`pairs_of_extremes` with zeros and ones exchanged."""
    return np.asarray(1 - pairs_of_extremes(random, shape, dtype)).astype(dtype.numpy)


def few_and_long(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return rows of 0 and 1 with a few 2 and 3, so that most ranks are ties."""
    return random.choice([0, 1, 2, 3], shape, p=[0.45, 0.45, 0.07, 0.03]).astype(dtype.numpy)


def both_zeros(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return zeros of both signs, which are equal."""
    return random.choice([0.0, -0.0], shape).astype(dtype.numpy)


# **** ArgMax, ArgMin, Hardmax ****

for _name, _pairs in (("ArgMax", pairs_of_extremes), ("ArgMin", pairs_of_lowest)):
    _choose = table_of(_name)
    for _last in (0, 1):
        _label = "last" if _last else "first"
        _more: dict[str, Any] = {"select_last_index": _last}
        _choose(f"ties,41x41,{_label}", t(41, 41, init=_pairs), axis=1, dtypes=_SOME, **_more)
        _choose(f"ties,5x259,{_label}", t(5, 259, init=few_and_long), axis=1, dtypes=_SOME, **_more)
        _choose(f"ties,259x5,axis0,{_label}", t(259, 5, init=few_and_long), dtypes=_SOME, **_more)
        _choose(f"ties,3x67,both-zeros,{_label}", t(3, 67, init=both_zeros), axis=1, dtypes=_SOME_FLOATS, **_more)
        _choose(f"ties,infinities,{_label}", values([[-_INF] * 9, [_INF] * 9, [0, _INF, -_INF] * 3]), axis=1,
                dtypes=_SOME_FLOATS, **_more)  # fmt: skip
_hardmax = table_of("Hardmax")
_hardmax("ties,41x41", t(41, 41, init=pairs_of_extremes), dtypes=_SOME)
_hardmax("ties,3x67,both-zeros", t(3, 67, init=both_zeros), dtypes=_SOME_FLOATS)

# **** TopK: the lower index first, and the lower indices if not all of the equal elements fit ****

_top = table_of("TopK")
for _largest in (1, 0):
    _best: dict[str, Any] = {"outputs": 2, "largest": _largest}
    _label, _pairs = ("largest", pairs_of_extremes) if _largest else ("smallest", pairs_of_lowest)
    _top(f"ties,all-equal,{_label}", t(3, 19, init=integers(2, 3)), ints(7), dtypes=_SOME, **_best)
    _top(f"ties,5x259,k33,{_label}", t(5, 259, init=few_and_long), ints(33), dtypes=_SOME, **_best)
    _top(f"ties,259x3,axis0,k33,{_label}", t(259, 3, init=few_and_long), ints(33), axis=0, dtypes=_SOME, **_best)
    _top(f"ties,41x41,k2,{_label}", t(41, 41, init=_pairs), ints(2), dtypes=_SOME, **_best)
    _top(f"ties,both-zeros,{_label}", t(3, 19, init=both_zeros), ints(9), dtypes=_SOME_FLOATS, **_best)
    _top(f"ties,infinities,{_label}", values([[-_INF, _INF, 0, _INF, -_INF, 0, _INF]]), ints(5), dtypes=_SOME_FLOATS,
         **_best)  # fmt: skip
    _top(f"ties,2x6007,k9,long,{_label}", t(2, 6007, init=few_and_long), ints(9), dtypes=["float32"], **_best)

# **** MaxPool: the first of equal elements of a window, in row-major order, whatever the storage order ****

_pool = table_of("MaxPool")
_window: dict[str, Any] = {"outputs": 2, "kernel_shape": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1)}
_pool("ties,n1c2h7w8,k3s2p1,indices", t(1, 2, 7, 8, init=integers(0, 2)), dtypes=_SOME, **_window)
_pool("ties,all-equal,indices", t(1, 2, 7, 8, init=integers(1, 2)), dtypes=_SOME, **_window)
_pool("ties,column-major,indices", t(1, 2, 7, 8, init=integers(0, 2)), dtypes=_SOME, storage_order=1, **_window)
_pool("ties,n1c1w33,k4,1d,indices", t(1, 1, 33, init=integers(0, 2)), dtypes=_SOME, outputs=2, kernel_shape=(4,))

# **** Unique: the index of the first of equal elements; zeros of both signs are equal ****

_unique = table_of("Unique")
for _sorted in (0, 1):
    _label = "sorted" if _sorted else "unsorted"
    _unique(f"ties,259,{_label}", t(259, init=few_and_long), dtypes=_SOME, outputs=4, sorted=_sorted)
    _unique(f"ties,41x3,axis0,{_label}", t(41, 3, init=integers(0, 2)), dtypes=_SOME, outputs=4, sorted=_sorted, axis=0)
    _unique(f"ties,both-zeros,{_label}", t(37, init=both_zeros), dtypes=_SOME_FLOATS, outputs=4, sorted=_sorted)

# **** suppression: of boxes with equal scores, the one with the lower index first ****

#: Six boxes: three that lie apart, then three that overlap the first three by 2/3.
_BOXES = [[0, 0, 4, 4], [8, 0, 12, 4], [16, 0, 20, 4], [0, 0.8, 4, 4.8], [8, 0.8, 12, 4.8], [16, 0.8, 20, 4.8]]
_EQUAL = [[0.5] * 6, [0.25, 0.5, 0.5, 0.5, 0.5, 0.25]]
_six, _scores = values([_BOXES]), values([_EQUAL])
_overlap, _least = values(0.5, "float32", constant=True), values(0.125, "float32", constant=True)


def _limit(number: int) -> Tensor:
    return values(number, "int64", constant=True)


_nms = table_of("NonMaxSuppression")
_nms("ties,equal-scores", _six, _scores, _limit(6), _overlap, _least)
_nms("ties,equal-scores,limit2", _six, _scores, _limit(2), _overlap, _least)
_nms("ties,same-box", values([[[0, 0, 4, 4]] * 9]), values([[[0.5] * 9]]), _limit(9), _overlap)
_nms("ties,apart,many", values([[[5 * i, 0, 5 * i + 4, 4] for i in range(40)]]),
     values([[[0.5, 0.75, 0.5, 0.25] * 10]]), _limit(25), _overlap)  # fmt: skip

_every: dict[str, Any] = {"score_threshold": 0.1, "nms_top_k": -1, "keep_top_k": -1, "background_label": -1}
for _name in ("MulticlassNms", "MatrixNms"):
    _suppress = table_of(_name, "lite")
    _suppress("ties,equal-scores", _six, _scores, outputs=3, dtypes=["float32"], **_every)
    _suppress("ties,equal-scores,top-of-class", _six, _scores, outputs=3, dtypes=["float32"],
              **{**_every, "nms_top_k": 4})  # fmt: skip
    # Equal scores in different classes: the lower class first.
    _suppress("ties,equal-scores,top-of-all", values([_BOXES[:3]]), values([[[0.5] * 3, [0.5] * 3]]), outputs=3,
              dtypes=["float32"], **{**_every, "keep_top_k": 4})  # fmt: skip

# Levels in order, then regions in order.
_collect = table_of("CollectFpnProposals", "lite")
_collect("ties,equal-scores", values(_BOXES[:3]), values(_BOXES[3:]), values([[0.5], [0.75], [0.5]]),
         values([[0.5], [0.5], [0.75]]), values([2, 1], "int32"), values([1, 2], "int32"), outputs=2,
         dtypes=["float32"], post_nms_top_n=4)  # fmt: skip

# NOTE: the one operator in which the box with the higher index comes first, as in Paddle, which defines it.
_propose = table_of("GenerateProposals", "lite")
_propose("ties,equal-scores,higher-index-first", values(np.full((1, 6, 1, 1), 0.5)), values(np.zeros((1, 24, 1, 1))),
         values([[64.0, 64.0]]), values([[_BOXES]]), values(np.ones((1, 1, 6, 4))), outputs=3, dtypes=["float32"],
         nms_thresh=0.5, min_size=1.0, pre_nms_top_n=6, post_nms_top_n=6, pixel_offset=0)  # fmt: skip

# **** matching: of equal distances, the lower column first, then the lower row ****

_match = table_of("BipartiteMatch", "lite")
_match("ties,all-equal", values(np.full((3, 5), 0.5)), outputs=2, dtypes=["float32"])
_match("ties,some-equal", values([[0.5, 0.75, 0.25, 0.5], [0.75, 0.5, 0.5, 0.5], [0.5, 0.75, 0.75, 0.25]]), outputs=2,
       dtypes=["float32"])  # fmt: skip
_match("ties,per-prediction", values(np.full((2, 4), 0.5)), outputs=2, dtypes=["float32"],
       match_type="per_prediction", dist_threshold=0.5)  # fmt: skip
