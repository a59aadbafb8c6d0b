"""Cases of RoiPool, PsRoiPool, GenerateProposals, DistributeFpnProposals, CollectFpnProposals (domain ``lite``)."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, table
from lite_conformance.cases.operators.box_initializers import (
    boxes,
    draw_box,
    first_accepted,
    is_clear_of_thresholds,
    joint_tensors,
    pooled_regions,
    scores,
)
from lite_conformance.cases.tensors import Array, Initializer, Tensor, big, const, distinct, normal, positive, t, values
from lite_conformance.judge.tolerances import EXACT, SCALED
from lite_core.ir import DType
from lite_core.ops.dtypes import FLOATS

# **** RoiPool, PsRoiPool ****


def _counts(*numbers: int) -> Tensor:
    return values(np.array(numbers, np.int64), "int32")


roi_pool = table("RoiPool", EXACT, domain="lite")


def _pool(
    label: str, x: Tensor, counts: list[int], bins: tuple[int, int], scale: float = 1.0, rois: Tensor | None = None
) -> None:
    init = pooled_regions((x.shape[2], x.shape[3]), bins, scale, sensitive=False)
    attributes: dict[str, Any] = {"pooled_height": bins[0], "pooled_width": bins[1], "spatial_scale": scale}
    roi_pool(label, x, rois or t(sum(counts), 4, init=init), _counts(*counts), **attributes)


_halves = values([[0.5, 1.5, 2.5, 4.5], [-0.5, -1.5, 3.5, 2.5]])
_inside, _beyond = values([[0, 1, 5, 4]]), values([[-6, 1, -3, 4], [1, 9, 3, 12], [4, 4, 9, 9]])
_pool("n2c3h9w7,k5,o3x2", t(2, 3, 9, 7), [3, 2], (3, 2))
_pool("n3c2h8w9,k6,o2x3,one-image-without", t(3, 2, 8, 9), [4, 0, 2], (2, 3))
_pool("n2c2h12w10,k5,o2x2,scale0.125", t(2, 2, 12, 10), [2, 3], (2, 2), 0.125)
_pool("n1c2h12w10,k4,o7x7,scale0.5", t(1, 2, 12, 10), [4], (7, 7), 0.5)
_pool("n1c33h6w5,k2,o1x1", t(1, 33, 6, 5), [2], (1, 1))
_pool("n1c1h7w7,more-bins-than-elements", t(1, 1, 7, 7), [1], (4, 4), rois=values([[2, 3, 3, 3]]))
_pool("one-element", t(1, 2, 6, 6), [1], (1, 1), rois=values([[3, 2, 3, 2]]))
_pool("last-element-belongs", t(1, 2, 6, 6, init=distinct), [1], (2, 2), rois=_inside)
_pool("outside-is-0", t(1, 2, 6, 6), [3], (2, 2), rois=_beyond)
_pool("halves-away-from-zero", t(1, 2, 6, 6, init=distinct), [2], (2, 2), rois=_halves)
_pool("corners-exchanged-is-one-element", t(1, 2, 6, 6, init=distinct), [1], (2, 2), rois=values([[4, 3, 2, 1]]))
_pool("k0,no-region", t(1, 2, 6, 6), [0], (2, 3))
_pool("big", t(1, 2, 6, 6, init=big), [2], (2, 2))
roi_pool("no-counts", t(1, 2, 6, 6), _inside, pooled_height=2, pooled_width=3)
roi_pool("defaults", t(1, 2, 6, 6), _inside, _counts(1))
roi_pool("constant-regions", t(1, 2, 6, 6), const(2, 4, init=pooled_regions((6, 6), (1, 1), 1.0, False)), _counts(2))


@roi_pool.drawn
def draw_roi_pool(draw: Draw, dtype: DType) -> OpCase:
    counts = draw(st.lists(st.integers(0, 3), min_size=1, max_size=3))
    size, bins = draw(st.tuples(*[st.integers(1, 9)] * 2)), draw(st.tuples(*[st.integers(1, 4)] * 2))
    scale = draw(st.sampled_from([1.0, 0.5, 0.25]))
    return roi_pool.case(
        t(len(counts), draw(st.integers(1, 3)), *size),
        t(sum(counts), 4, init=pooled_regions(size, bins, scale, sensitive=False)),
        _counts(*counts),
        pooled_height=bins[0],
        pooled_width=bins[1],
        spatial_scale=scale,
    )


psroi_pool = table("PsRoiPool", SCALED, domain="lite")


def _psroi_case(
    counts: list[int],
    channels: int,
    size: tuple[int, int],
    bins: tuple[int, int],
    scale: float = 1.0,
    rois: Tensor | None = None,
    init: Initializer = normal,
) -> OpCase:
    return psroi_pool.case(
        t(len(counts), channels * bins[0] * bins[1], *size, init=init),
        rois or t(sum(counts), 4, init=pooled_regions(size, bins, scale, sensitive=True)),
        _counts(*counts),
        pooled_height=bins[0],
        pooled_width=bins[1],
        output_channels=channels,
        spatial_scale=scale,
    )


def _psroi(label: str, *arguments: Any, **more: Any) -> None:
    case = _psroi_case(*arguments, **more)
    psroi_pool(label, *case.inputs, **case.attributes)


_psroi("n2c2h9w7,k5,o3x2", [3, 2], 2, (9, 7), (3, 2))
_psroi("n3c1h8w9,k6,o2x3,one-image-without", [4, 0, 2], 1, (8, 9), (2, 3))
_psroi("n2c2h12w10,k5,o2x2,scale0.25", [2, 3], 2, (12, 10), (2, 2), 0.25)
_psroi("n1c3h12w10,k4,o4x4,scale0.5", [4], 3, (12, 10), (4, 4), 0.5)
_psroi("n1c17h6w5,k2,o1x1", [2], 17, (6, 5), (1, 1))
_psroi("last-element-belongs", [1], 2, (6, 6), (2, 2), rois=_inside)
_psroi("outside-is-0", [3], 2, (6, 6), (2, 2), rois=_beyond)
_psroi("halves-away-from-zero", [2], 2, (6, 6), (2, 2), rois=_halves)
_psroi("rounded-before-it-is-scaled", [1], 2, (6, 6), (1, 1), 0.5, rois=values([[1.25, 2.75, 6.25, 6.75]]))
_psroi("corners-exchanged-is-one-element", [1], 2, (6, 6), (2, 2), rois=values([[4, 3, 2, 1]]))
_psroi("k0,no-region", [0], 2, (6, 6), (2, 3))
psroi_pool("no-counts", t(1, 8, 6, 6), _inside, pooled_height=2, pooled_width=2, output_channels=2)
psroi_pool("defaults", t(1, 3, 6, 6), _inside, _counts(1), output_channels=3)


@psroi_pool.drawn
def draw_psroi_pool(draw: Draw, dtype: DType) -> OpCase:
    counts = draw(st.lists(st.integers(0, 3), min_size=1, max_size=3))
    size, bins = draw(st.tuples(*[st.integers(1, 9)] * 2)), draw(st.tuples(*[st.integers(1, 3)] * 2))
    scale = draw(st.sampled_from([1.0, 0.5, 0.25]))
    # The mean of numbers of both signs may be far smaller than the numbers.
    return _psroi_case(counts, draw(st.integers(1, 3)), size, bins, scale, init=positive)


# **** GenerateProposals ****

#: Corners are differences: errors are relative to the largest coordinate.
proposals = table("GenerateProposals", SCALED, domain="lite")
_ALL: dict[str, Any] = {"pre_nms_top_n": 100, "post_nms_top_n": 100, "nms_thresh": 0.5, "min_size": 4.0}


def _decoded(anchor: Array, delta: Array, variance: Array, image: Array, offset: float) -> Array:
    """Return the region decoded from an anchor and its delta, clipped to the image's (height, width)."""
    size = anchor[2:] - anchor[:2] + offset
    center = anchor[:2] + size / 2 + variance[:2] * delta[:2] * size
    half = np.exp(variance[2:] * delta[2:]) * size / 2
    region = np.concatenate([center - half, center + half - offset])
    inside: Array = np.clip(region, 0, np.tile(image[::-1], 2) - offset)
    return inside


def _unambiguous_deltas(
    random: np.random.Generator, anchors: Array, variances: Array, image: Array, attributes: dict[str, Any]
) -> Array:
    """Return deltas whose regions keep a margin from the overlap thresholds and from the smallest size."""
    offset, least = float(attributes.get("pixel_offset", 1)), max(attributes["min_size"], 1.0)
    thresholds = [attributes["nms_thresh"]]
    while attributes.get("eta", 1.0) < 1 and thresholds[-1] > 0.5:
        thresholds.append(thresholds[-1] * attributes["eta"])
    deltas, regions = np.zeros_like(anchors), np.zeros((0, 4))
    for index, (anchor, variance) in enumerate(zip(anchors, variances)):

        def attempt(
            anchor: Array = anchor, variance: Array = variance, before: Array = regions
        ) -> tuple[Array, Array, Array] | None:
            delta = random.integers(-16, 17, 4) / random.choice([16, 64])
            region = _decoded(anchor, delta, variance, image, offset)
            margin = region[2:] - region[:2] + offset - least
            is_clear = (np.abs(margin) > 0.25).all() and (
                margin.min() < 0 or is_clear_of_thresholds(region, before, thresholds, offset)
            )
            return (delta, region, margin) if is_clear else None

        deltas[index], region, margin = first_accepted(attempt, "delta whose region is clear of every limit")
        if margin.min() > 0:  # regions below the smallest size are removed before the suppression
            regions = np.append(regions, region[None], axis=0)
    return deltas


def _proposal_case(
    seed: int, images: int, per_cell: int, size: tuple[int, int], outputs: int = 3, **more: Any
) -> OpCase:
    attributes = {**_ALL, **more}
    cells = (*size, per_cell)
    shapes = (images, 4 * per_cell, *size), (images, 2), (*cells, 4), (*cells, 4)

    def make() -> list[Array]:
        random = np.random.default_rng(seed)
        sizes = random.integers(48, 80, (images, 2)).astype(np.float64)  # every anchor starts inside the image
        anchors = np.zeros((int(np.prod(cells)), 4))
        for index in range(len(anchors)):
            anchors[index] = draw_box(random, 44, anchors[:index])
        variances = random.integers(2, 5, anchors.shape) / 4
        deltas = np.array([_unambiguous_deltas(random, anchors, variances, image, attributes) for image in sizes])
        deltas = deltas.reshape(images, *cells, 4).transpose(0, 3, 4, 1, 2)
        return [deltas, sizes, anchors, variances]

    inputs = t(images, per_cell, *size, init=scores()), *joint_tensors(make, *shapes)
    return proposals.case(*inputs, outputs=outputs, **attributes)


def _proposals(label: str, images: int, per_cell: int, size: tuple[int, int], outputs: int = 3, **more: Any) -> None:
    case = _proposal_case(len(label), images, per_cell, size, outputs, **more)
    proposals(label, *case.inputs, outputs=outputs, **case.attributes)


_proposals("n1a3h2w3", 1, 3, (2, 3))
_proposals("n2a2h3w4", 2, 2, (3, 4))
_proposals("n2a3h4w3,no-pixel-offset", 2, 3, (4, 3), pixel_offset=0)
_proposals("n2a2h3w4,pre7", 2, 2, (3, 4), pre_nms_top_n=7)
_proposals("n2a2h3w4,pre0-is-all", 2, 2, (3, 4), pre_nms_top_n=0)
_proposals("n2a2h3w4,post3", 2, 2, (3, 4), post_nms_top_n=3)
_proposals("n2a2h3w4,post0-is-all", 2, 2, (3, 4), post_nms_top_n=0)
_proposals("n2a2h3w4,iou0.8", 2, 2, (3, 4), nms_thresh=0.8)
_proposals("n2a2h3w4,iou0.8,eta0.8", 2, 2, (3, 4), nms_thresh=0.8, eta=0.8)
_proposals("n2a2h3w4,min-size24", 2, 2, (3, 4), min_size=24.0)
_proposals("n2a2h3w4,min-size0-is-1", 2, 2, (3, 4), min_size=0.0)
_proposals("none-is-large-enough", 2, 2, (2, 2), min_size=1000.0)
_proposals("n1a1h1w1", 1, 1, (1, 1))
_proposals("n1a5h5w5", 1, 5, (5, 5))
_proposals("n0,no-image", 0, 2, (2, 2))
_proposals("1-output", 2, 2, (3, 4), 1)
_proposals("2-outputs", 2, 2, (3, 4), 2)
proposals(
    "growth-is-limited",
    values([[[[0.5]]]]),
    values([[[[0.0]], [[0.0]], [[8.0]], [[6.0]]]]),
    values([[240.0, 250.0]]),
    values([[[[119.0, 117.0, 120.0, 119.0]]]]),
    values(np.ones((1, 1, 1, 4))),
    outputs=3,
    **_ALL,
)


@proposals.drawn
def draw_proposals(draw: Draw, dtype: DType) -> OpCase:
    return _proposal_case(
        draw(st.integers(0, 999)),
        draw(st.integers(0, 2)),
        draw(st.integers(1, 3)),
        draw(st.tuples(*[st.integers(1, 3)] * 2)),
        pre_nms_top_n=draw(st.sampled_from([5, 12, 100])),
        post_nms_top_n=draw(st.sampled_from([2, 5, 100])),
        nms_thresh=draw(st.sampled_from([0.3, 0.5, 0.7])),
        min_size=draw(st.sampled_from([2.0, 20.0])),
        pixel_offset=draw(st.integers(0, 1)),
    )


# **** DistributeFpnProposals ****

distribute = table("DistributeFpnProposals", EXACT, domain="lite")
_LEVELS: dict[str, Any] = {"min_level": 2, "max_level": 5, "refer_level": 4, "refer_scale": 32}


def _sizes_of_every_level(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return regions of 3 to 200 pixels whose sizes, with or without the last pixel, are not near a change of level."""

    def attempt() -> Array | None:
        size: Array = np.round(np.exp2(random.uniform(1.6, 7.6) + random.uniform(-0.5, 0.5, 2)))
        levels = [np.log2(np.sqrt(np.prod(size + offset)) / 32) for offset in (0, 1)]
        is_clear = size.max() <= 200 and all(abs(level - round(level)) > 0.02 for level in levels)
        return size if is_clear else None

    made = np.zeros(shape)
    for row in made:
        size = first_accepted(attempt, "size clear of the levels' limits")
        row[:2] = random.integers(0, 50, 2)
        row[2:] = row[:2] + size
    return made.astype(dtype.numpy)


def _distribute(label: str, counts: list[int] | None, regions: Tensor, with_counts: bool = True, **more: Any) -> None:
    case = _distribute_case(counts, regions, with_counts, **more)
    distribute(label, *case.inputs, outputs=case.outputs, **case.attributes)


def _distribute_case(counts: list[int] | None, regions: Tensor, with_counts: bool = True, **more: Any) -> OpCase:
    attributes = {**_LEVELS, **more}
    levels = attributes["max_level"] - attributes["min_level"] + 1
    numbers = [] if counts is None else [_counts(*counts)]
    return distribute.case(regions, *numbers, outputs=1 + levels * (2 if with_counts else 1), **attributes)


def _mixed_regions(many: int) -> Tensor:
    return t(many, 4, init=_sizes_of_every_level)


_boundary = values([[0, 0, 31, 31], [0, 0, 30, 31], [3, 5, 66, 68], [3, 5, 67, 69], [9, 9, 24, 24]])
_distribute("n2k30", [12, 18], _mixed_regions(30))
_distribute("n3k20,one-image-without", [8, 0, 12], _mixed_regions(20))
_distribute("n1k33,no-counts-given", None, _mixed_regions(33))
_distribute("n1k33,no-counts-at-all", None, _mixed_regions(33), with_counts=False)
_distribute("n2k20,no-counts-wanted", [9, 11], _mixed_regions(20), with_counts=False)
_distribute("n2k20,no-pixel-offset", [9, 11], _mixed_regions(20), pixel_offset=0)
_distribute("n2k20,levels3-4", [9, 11], _mixed_regions(20), min_level=3, max_level=4)
_distribute("n2k20,1-level", [9, 11], _mixed_regions(20), min_level=4, max_level=4)
_distribute("n2k20,refer-level3", [9, 11], _mixed_regions(20), refer_level=3)
_distribute("n2k20,refer-scale64", [9, 11], _mixed_regions(20), refer_scale=64)
_distribute("n1k257,odd", [257], _mixed_regions(257))
_distribute("boundary-belongs-to-the-upper-level", [5], _boundary)
_distribute("boundary,no-pixel-offset", [5], _boundary, pixel_offset=0)
_distribute("one-level-is-full,others-empty", [2, 1], values([[0, 0, 40, 40], [1, 2, 45, 50], [5, 5, 45, 45]]))
_distribute("k0,no-region", [0, 0], _mixed_regions(0))


@distribute.drawn
def draw_distribute(draw: Draw, dtype: DType) -> OpCase:
    counts = draw(st.lists(st.integers(0, 6), min_size=1, max_size=3))
    low = draw(st.integers(2, 4))
    return _distribute_case(
        counts,
        _mixed_regions(sum(counts)),
        draw(st.booleans()),
        min_level=low,
        max_level=low + draw(st.integers(0, 3)),
        pixel_offset=draw(st.integers(0, 1)),
    )


# **** CollectFpnProposals ****

collect = table("CollectFpnProposals", EXACT, domain="lite", dtypes=FLOATS)


def _collect_case(top: int, counts: list[list[int]], column: bool = True, outputs: int = 2) -> OpCase:
    """Return a case; ``counts`` has, for each level, the number of regions of each image."""
    many = [sum(level) for level in counts]
    return collect.case(
        *[t(k, 4, init=boxes()) for k in many],
        *[t(*((k, 1) if column else (k,)), init=scores(i, len(counts))) for i, k in enumerate(many)],
        *[_counts(*level) for level in counts],
        outputs=outputs,
        post_nms_top_n=top,
    )


def _collect(label: str, top: int, counts: list[list[int]], **more: Any) -> None:
    case = _collect_case(top, counts, **more)
    collect(label, *case.inputs, outputs=case.outputs, **case.attributes)


_collect("n2,2-levels,top12", 12, [[4, 5], [8, 6]])
_collect("n2,2-levels,all", 100, [[4, 5], [8, 6]])
_collect("n3,4-levels,top9", 9, [[4, 5, 2], [3, 0, 6], [2, 2, 2], [0, 1, 1]])
_collect("n1,1-level,top5", 5, [[9]])
_collect("n1,3-levels,top1", 1, [[3], [4], [5]])
_collect("empty-level", 9, [[4, 5], [0, 0], [3, 6]])
_collect("image-without-regions", 6, [[4, 0, 5], [3, 0, 2]])
_collect("top-exactly-all", 23, [[4, 5], [8, 6]])
_collect("nothing", 5, [[0, 0], [0, 0]])
_collect("scores-of-rank-1", 7, [[4, 5], [3, 2]], column=False)
_collect("1-output", 7, [[4, 5], [3, 2]], outputs=1)
_collect("n1,2-levels,k80,odd", 33, [[47], [33]])


@collect.drawn
def draw_collect(draw: Draw, dtype: DType) -> OpCase:
    images = draw(st.integers(1, 3))
    counts = draw(st.lists(st.lists(st.integers(0, 5), min_size=images, max_size=images), min_size=1, max_size=4))
    return _collect_case(draw(st.integers(1, 20)), counts)
