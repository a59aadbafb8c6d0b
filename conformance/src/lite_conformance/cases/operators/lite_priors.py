"""Domain ``lite``: PriorBox, DensityPriorBox, AnchorGenerator.

They read only the shapes of their inputs, no element; sizes, steps and offsets are exact in every floating type.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, table
from lite_conformance.cases.tensors import Tensor, special, t
from lite_conformance.judge.tolerances import FUNCTION, SCALED
from lite_core.ir import DType

_VARIANCES = (0.25, 0.5, 0.75, 1.0)


def _maps(feature: tuple[int, int], image: tuple[int, int], batch: int = 1) -> tuple[Tensor, Tensor]:
    """Return a feature map, whose contents do not matter, and an image, by height and width."""
    return t(batch, 2, *feature, init=special), t(batch, 3, *image)


# **** PriorBox ****

prior = table("PriorBox", FUNCTION, domain="lite")


def _prior(label: str, feature: tuple[int, int], image: tuple[int, int], **attributes: Any) -> None:
    prior(label, *_maps(feature, image), outputs=2, **attributes)


_RATIOS: dict[str, Any] = {"min_sizes": (8.0,), "aspect_ratios": (2.0, 3.0)}
_MANY: dict[str, Any] = {"min_sizes": (8.0, 12.0), "max_sizes": (20.0, 32.0), "aspect_ratios": (2.0, 0.25)}
_prior("h3w5,image24x50,1-size", (3, 5), (24, 50), min_sizes=(8.0,))
_prior("h3w5,image24x50,ratios", (3, 5), (24, 50), **_RATIOS, clip=0)
_prior("h3w5,image24x50,ratios,no-flip", (3, 5), (24, 50), **_RATIOS, flip=0, clip=0)
_prior("ratio-1-and-repeated-ones-count-once", (2, 2), (32, 32), min_sizes=(8.0,), aspect_ratios=(1.0, 2.0, 2.0, 0.5))
_prior("h3w5,image24x50,max-sizes", (3, 5), (24, 50), **_MANY, clip=0)
_prior("h3w5,image24x50,max-sizes,squares-first", (3, 5), (24, 50), **_MANY, clip=0, min_max_aspect_ratios_order=1)
_prior("ratios,squares-first", (2, 3), (30, 30), **_RATIOS, min_max_aspect_ratios_order=1)
_prior("clip", (2, 3), (20, 30), min_sizes=(24.0,), aspect_ratios=(2.0,))
_prior("no-clip", (2, 3), (20, 30), min_sizes=(24.0,), aspect_ratios=(2.0,), clip=0)
_prior("steps", (4, 3), (64, 48), min_sizes=(8.0,), step_w=12.0, step_h=20.0, clip=0)
_prior("one-step-is-none", (4, 3), (64, 48), min_sizes=(8.0,), step_w=12.0, clip=0)
_prior("offset0", (4, 3), (64, 48), min_sizes=(8.0,), offset=0.0, clip=0)
_prior("offset0.25,variances", (4, 3), (64, 48), min_sizes=(8.0,), offset=0.25, variances=_VARIANCES)
_prior("h33w17,odd", (33, 17), (100, 70), **_MANY)
_prior("h1w1", (1, 1), (37, 53), **_MANY)
prior("n2,batch-counts-once", *_maps((3, 2), (24, 24), batch=2), outputs=2, min_sizes=(8.0,))
prior("variances-left-out", *_maps((3, 2), (24, 24)), outputs=1, **_RATIOS)


@prior.drawn
def draw_prior(draw: Draw, dtype: DType) -> OpCase:
    sizes = draw(st.lists(st.sampled_from([4.0, 10.0, 24.0]), min_size=1, max_size=3))
    attributes: dict[str, Any] = {"max_sizes": tuple(2 * s for s in sizes)} if draw(st.booleans()) else {}
    step = draw(st.sampled_from([0.0, 8.0, 12.0]))
    return prior.case(
        *_maps(draw(st.tuples(*[st.integers(1, 7)] * 2)), draw(st.tuples(*[st.integers(16, 99)] * 2))),
        outputs=2,
        min_sizes=tuple(sizes),
        aspect_ratios=tuple(draw(st.lists(st.sampled_from([1.0, 2.0, 0.5, 3.0, 0.25]), max_size=3))),
        flip=draw(st.integers(0, 1)),
        clip=draw(st.integers(0, 1)),
        step_w=step,
        step_h=step * draw(st.sampled_from([1.0, 0.5])),
        offset=draw(st.sampled_from([0.5, 0.0, 0.25])),
        min_max_aspect_ratios_order=draw(st.integers(0, 1)),
        **attributes,
    )


# **** DensityPriorBox ****

density = table("DensityPriorBox", FUNCTION, domain="lite")


def _density(label: str, feature: tuple[int, int], image: tuple[int, int], outputs: int = 2, **attributes: Any) -> None:
    density(label, *_maps(feature, image), outputs=outputs, **attributes)


_ONE: dict[str, Any] = {"fixed_sizes": (8.0,), "fixed_ratios": (1.0,), "densities": (2,)}
_LARGE: dict[str, Any] = {"fixed_sizes": (24.0,), "fixed_ratios": (1.0,), "densities": (2,)}
_TWO: dict[str, Any] = {"fixed_sizes": (8.0, 12.0), "fixed_ratios": (1.0, 2.0), "densities": (3, 1)}
_density("h3w5,image48x80,density2", (3, 5), (48, 80), **_ONE)
_density("h3w5,image48x80,2-sizes", (3, 5), (48, 80), **_TWO)
_density("h3w5,image48x80,2-sizes,flat", (3, 5), (48, 80), **_TWO, flatten_to_2d=1)
_density("density4", (2, 2), (64, 64), fixed_sizes=(6.0,), fixed_ratios=(0.5, 1.0), densities=(4,))
_density("shifts-are-whole-pixels", (2, 2), (22, 22), fixed_sizes=(4.0,), fixed_ratios=(1.0,), densities=(4,))
_density("wide-ratio", (3, 4), (60, 60), fixed_sizes=(10.0,), fixed_ratios=(4.0, 0.25), densities=(1,))
_density("image-is-not-square", (4, 3), (40, 90), **_TWO)
_density("steps-are-fractions", (3, 4), (50, 70), **_ONE)
_density("one-step-is-none", (3, 4), (50, 70), **_ONE, step_w=9.0)
_density("steps", (4, 3), (64, 48), **_TWO, step_w=10.0, step_h=18.0)
_density("offset0.25,variances", (4, 3), (64, 48), **_ONE, offset=0.25, variances=_VARIANCES)
_density("clip", (2, 3), (20, 30), **_LARGE, clip=1)
_density("cut-off-without-clip", (2, 3), (20, 30), **_LARGE, clip=0)
_density("beyond-without-clip", (1, 3), (20, 20), **_ONE, clip=0, step_w=12.0, step_h=12.0)
_density("beyond-with-clip", (1, 3), (20, 20), **_ONE, clip=1, step_w=12.0, step_h=12.0)
_density("h17w9,odd", (17, 9), (99, 77), **_TWO, step_w=8.0, step_h=6.0)
_density("variances-left-out", (3, 2), (24, 24), outputs=1, **_ONE)


@density.drawn
def draw_density(draw: Draw, dtype: DType) -> OpCase:
    sizes = draw(st.lists(st.sampled_from([4.0, 10.0, 24.0]), min_size=1, max_size=2))
    step = draw(st.sampled_from([8.0, 12.0, 15.0]))
    return density.case(
        *_maps(draw(st.tuples(*[st.integers(1, 5)] * 2)), draw(st.tuples(*[st.integers(16, 99)] * 2))),
        outputs=2,
        fixed_sizes=tuple(sizes),
        fixed_ratios=tuple(draw(st.lists(st.sampled_from([1.0, 2.0, 0.5]), min_size=1, max_size=2))),
        densities=tuple(draw(st.integers(1, 4)) for _ in sizes),
        clip=draw(st.integers(0, 1)),
        flatten_to_2d=draw(st.integers(0, 1)),
        step_w=step,
        step_h=step + draw(st.sampled_from([0.0, 4.0])),
        offset=draw(st.sampled_from([0.5, 0.0])),
    )


# **** AnchorGenerator ****

#: Corners are differences: errors are relative to the largest coordinate.
anchor = table("AnchorGenerator", SCALED, domain="lite")


def _anchor(label: str, feature: tuple[int, int], outputs: int = 2, **attributes: Any) -> None:
    anchor(label, t(1, 2, *feature, init=special), outputs=outputs, **attributes)


_SIZES: dict[str, Any] = {"anchor_sizes": (32.0, 64.0, 24.0), "aspect_ratios": (0.5, 1.0, 2.0)}
_anchor("h3w5,1-anchor", (3, 5), anchor_sizes=(32.0,), aspect_ratios=(1.0,))
_anchor("h3w5,9-anchors", (3, 5), **_SIZES)
_anchor("stride8x4", (5, 3), **_SIZES, stride=(8.0, 4.0))
_anchor("offset0", (4, 3), **_SIZES, offset=0.0)
_anchor("offset0.25,variances", (4, 3), **_SIZES, offset=0.25, variances=_VARIANCES)
_anchor("ratios-are-rounded", (2, 2), anchor_sizes=(16.0,), aspect_ratios=(0.5, 0.75, 1.5, 3.0))
_anchor("halves-are-rounded-up", (2, 2), anchor_sizes=(18.0,), aspect_ratios=(0.5,), stride=(18.0, 18.0))
_anchor("h33w17,odd", (33, 17), anchor_sizes=(16.0,), aspect_ratios=(1.0, 2.0), stride=(4.0, 4.0))
_anchor("h1w1", (1, 1), **_SIZES)
_anchor("areas-are-no-multiples-of-ratios", (2, 2), anchor_sizes=(16.0,), aspect_ratios=(2.0, 0.7), stride=(41.0, 1.0))
_anchor("variances-left-out", (3, 2), outputs=1, **_SIZES)


@anchor.drawn
def draw_anchor(draw: Draw, dtype: DType) -> OpCase:
    return anchor.case(
        t(draw(st.integers(1, 2)), 2, *draw(st.tuples(*[st.integers(1, 7)] * 2)), init=special),
        outputs=2,
        anchor_sizes=tuple(draw(st.lists(st.sampled_from([16.0, 32.0, 48.0]), min_size=1, max_size=3))),
        aspect_ratios=tuple(draw(st.lists(st.sampled_from([0.5, 1.0, 2.0]), min_size=1, max_size=3))),
        stride=draw(st.sampled_from([(16.0, 16.0), (8.0, 8.0), (4.0, 8.0)])),
        offset=draw(st.sampled_from([0.5, 0.0])),
    )
