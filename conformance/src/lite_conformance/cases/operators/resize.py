"""Cases of Resize."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, table
from lite_conformance.cases.operators.layer_initializers import multiples_of
from lite_conformance.cases.tensors import Tensor, big, ints, t, values
from lite_conformance.judge.tolerances import EXACT, SCALED
from lite_core.ir import DType

REAL = ("float64", "float32", "float16", "bfloat16")


def by(*factors: float) -> tuple[None, Tensor]:
    """Return the operands after the first for scales without a region."""
    return None, values(factors, "float32", constant=True)


def to(*sizes: int) -> tuple[None, None, Tensor]:
    """Return the operands after the first for sizes without a region or scales."""
    return None, None, ints(*sizes)


def region(*edges: float) -> Tensor:
    """Return the region to crop: the starts along all axes, then the ends, as fractions of the sizes."""
    return values(edges, "float32", constant=True)


inside = region(0, 0, 5 / 16, 3 / 16, 1, 1, 15 / 16, 11 / 16)
across = region(0, 0, -5 / 16, 7 / 16, 1, 1, 15 / 16, 21 / 16)

# **** nearest: only moves elements ****

# NOTE: where a coordinate is half-way between two elements (on an element, for floor and ceil), its last bit decides
# the rounding. In these cases only scales that are powers of two, whose coordinates are exact, lead to such ties.
resize = table("Resize", SCALED)


def nearest(label: str, *operands: Tensor | None, **attributes: Any) -> None:
    """Add a case of mode nearest, which is the default."""
    resize(f"nearest,{label}", *operands, numerics=EXACT, **attributes)


nearest("1x2x3x4,by2", t(1, 2, 3, 4), *by(1, 1, 2, 2))
nearest("1x2x4x6,by0.5,halves", t(1, 2, 4, 6), *by(1, 1, 0.5, 0.5))
nearest("1x2x3x5,to5x7", t(1, 2, 3, 5), *to(1, 2, 5, 7))
nearest("1x2x7x9,to5x4", t(1, 2, 7, 9), *to(1, 2, 5, 4))
nearest("1x1x2x33,to2x47", t(1, 1, 2, 33), *to(1, 1, 2, 47))
nearest("1x1x4x5,by0.7x2.3,scale-is-not-the-ratio", t(1, 1, 4, 5), *by(1, 1, 0.7, 2.3))
nearest("1x2x3x4,by2,asymmetric,floor", t(1, 2, 3, 4), *by(1, 1, 2, 2), nearest_mode="floor",
        coordinate_transformation_mode="asymmetric")  # fmt: skip
nearest("1x2x3x4,by4,asymmetric,ceil", t(1, 2, 3, 4), *by(1, 1, 4, 4), nearest_mode="ceil",
        coordinate_transformation_mode="asymmetric")  # fmt: skip
nearest("1x2x4x4,by2,asymmetric,prefer-floor", t(1, 2, 4, 4), *by(1, 1, 2, 2),
        coordinate_transformation_mode="asymmetric")  # fmt: skip
nearest("1x2x4x4,by2,asymmetric,prefer-ceil", t(1, 2, 4, 4), *by(1, 1, 2, 2), nearest_mode="round_prefer_ceil",
        coordinate_transformation_mode="asymmetric")  # fmt: skip
nearest("1x2x4x6,by0.5,prefer-ceil,halves", t(1, 2, 4, 6), *by(1, 1, 0.5, 0.5), nearest_mode="round_prefer_ceil")
nearest("1x2x3x5,to7x8,half-pixel,floor", t(1, 2, 3, 5), *to(1, 2, 7, 8), nearest_mode="floor")
nearest("1x2x3x5,to5x9,align-corners", t(1, 2, 3, 5), *to(1, 2, 5, 9), coordinate_transformation_mode="align_corners")
nearest("1x2x5x5,to1x3,align-corners", t(1, 2, 5, 5), *to(1, 2, 1, 3), coordinate_transformation_mode="align_corners")
nearest("2x3x4,by1x1x2,1d", t(2, 3, 4), *by(1, 1, 2))
nearest("1x2x2x3x2,by2,3d", t(1, 2, 2, 3, 2), *by(1, 1, 2, 2, 2))
nearest("3x4,by2,every-axis", t(3, 4), *by(2, 2))
nearest("1x2x3x4,axes3", t(1, 2, 3, 4), *to(8), axes=(3,))
nearest("1x2x3x4,axes-1x-2", t(1, 2, 3, 4), *to(8, 6), axes=(-1, -2))
nearest("1x2x3x4,not-larger", t(1, 2, 3, 4), *to(9, 8), axes=(2, 3), keep_aspect_ratio_policy="not_larger")
nearest("1x2x3x4,not-smaller", t(1, 2, 3, 4), *to(9, 8), axes=(2, 3), keep_aspect_ratio_policy="not_smaller")
nearest("1x2x3x4,to-the-same", t(1, 2, 3, 4), *to(1, 2, 3, 4))
nearest("1x2x3x4,scales-at-run-time", t(1, 2, 3, 4), None, values([1, 1, 2, 2], "float32"))
nearest("1x2x3x4,sizes-at-run-time", t(1, 2, 3, 4), None, None, values([1, 2, 6, 8], "int64"))
nearest("1x2x3x4,unused-region,empty-scales", t(1, 2, 3, 4), region(), values([], "float32", constant=True),
        ints(1, 2, 6, 8))  # fmt: skip
nearest("0x2x3x4,by2,empty", t(0, 2, 3, 4), *by(1, 1, 2, 2))
nearest("1x1x5x6,cropped", t(1, 1, 5, 6), inside, None, ints(1, 1, 4, 5),
        coordinate_transformation_mode="tf_crop_and_resize")  # fmt: skip
nearest("1x1x5x6,cropped,outside", t(1, 1, 5, 6), across, None, ints(1, 1, 4, 5),
        dtypes=REAL, coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=7.0)  # fmt: skip

# **** linear ****


def linear(label: str, *operands: Tensor | None, **attributes: Any) -> None:
    """Add a case of mode linear."""
    resize(f"linear,{label}", *operands, mode="linear", **{"dtypes": REAL, **attributes})


linear("1x2x3x4,by2", t(1, 2, 3, 4), *by(1, 1, 2, 2))
linear("1x2x3x4,to5x9", t(1, 2, 3, 4), *to(1, 2, 5, 9))
linear("1x2x7x9,to5x4", t(1, 2, 7, 9), *to(1, 2, 5, 4))
linear("1x3x33x7,to17x13", t(1, 3, 33, 7), *to(1, 3, 17, 13))
linear("1x1x4x5,by0.7x2.3,scale-is-not-the-ratio", t(1, 1, 4, 5), *by(1, 1, 0.7, 2.3))
linear("1x1x4x5,by0.7x2.3,symmetric", t(1, 1, 4, 5), *by(1, 1, 0.7, 2.3),
       coordinate_transformation_mode="half_pixel_symmetric")  # fmt: skip
linear("1x2x3x4,by2,asymmetric", t(1, 2, 3, 4), *by(1, 1, 2, 2), coordinate_transformation_mode="asymmetric")
linear("1x2x3x4,to5x9,align-corners", t(1, 2, 3, 4), *to(1, 2, 5, 9), coordinate_transformation_mode="align_corners")
linear("1x2x5x4,to1x3,align-corners", t(1, 2, 5, 4), *to(1, 2, 1, 3), coordinate_transformation_mode="align_corners")
linear("1x2x5x4,to1x3,pytorch", t(1, 2, 5, 4), *to(1, 2, 1, 3), coordinate_transformation_mode="pytorch_half_pixel")
linear("1x2x5x4,to1x3", t(1, 2, 5, 4), *to(1, 2, 1, 3))
linear("2x3x5,to8,1d", t(2, 3, 5), *to(2, 3, 8))
linear("1x2x2x3x4,to3x5x3,3d", t(1, 2, 2, 3, 4), *to(1, 2, 3, 5, 3))
linear("3x4,to5x3,every-axis", t(3, 4), *to(5, 3))
linear("1x3x4x2,channels-last", t(1, 3, 4, 2), *by(1, 2, 2, 1))
linear("1x2x3x4,axes-1x2", t(1, 2, 3, 4), *to(7, 5), axes=(-1, 2))
linear("1x2x3x4,not-larger", t(1, 2, 3, 4), *to(7, 7), axes=(2, 3), keep_aspect_ratio_policy="not_larger")
linear("1x2x7x9,to4x5,antialias", t(1, 2, 7, 9), *to(1, 2, 4, 5), antialias=1)
linear("1x2x3x4,to5x9,antialias", t(1, 2, 3, 4), *to(1, 2, 5, 9), antialias=1)
linear("1x1x5x6,cropped", t(1, 1, 5, 6), inside, None, ints(1, 1, 4, 5),
       coordinate_transformation_mode="tf_crop_and_resize")  # fmt: skip
linear("1x1x5x6,cropped,outside", t(1, 1, 5, 6), across, None, ints(1, 1, 4, 5),
       coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=7.0)  # fmt: skip
linear("1x1x5x6,cropped,by0.5x2", t(1, 1, 5, 6), inside, values([1, 1, 0.5, 2], "float32", constant=True),
       coordinate_transformation_mode="tf_crop_and_resize")  # fmt: skip
linear("1x1x5x6,cropped,at-run-time", t(1, 1, 5, 6), values([0.125, 0.1875, 0.8125, 0.6875], "float32"), None,
       ints(1, 4), axes=(2, 3), coordinate_transformation_mode="tf_crop_and_resize")  # fmt: skip
linear("1x2x3x4,scales-at-run-time", t(1, 2, 3, 4), None, values([1, 1, 2, 1.5], "float32"))
linear("1x2x3x4,sizes-at-run-time", t(1, 2, 3, 4), None, None, values([1, 2, 5, 7], "int64"))
linear("0x2x3x4,by2,empty", t(0, 2, 3, 4), *by(1, 1, 2, 2))
linear("big", t(1, 2, 3, 4, init=big), *to(1, 2, 5, 9))
# The weights are multiples of 1/16: every result is a whole number.
linear("1x3x4x5,by2,whole-numbers", t(1, 3, 4, 5, init=multiples_of(16, 8)), *by(1, 1, 2, 2),
       dtypes=("uint8", "int8", "int32", "float32"))  # fmt: skip

# **** cubic ****


def cubic(label: str, *operands: Tensor | None, **attributes: Any) -> None:
    """Add a case of mode cubic."""
    resize(f"cubic,{label}", *operands, mode="cubic", dtypes=REAL, **attributes)


cubic("1x2x5x4,by2", t(1, 2, 5, 4), *by(1, 1, 2, 2))
cubic("1x2x5x4,to8x9", t(1, 2, 5, 4), *to(1, 2, 8, 9))
cubic("1x2x9x7,to4x5", t(1, 2, 9, 7), *to(1, 2, 4, 5))
cubic("1x2x3x2,to5x3,smaller-than-kernel", t(1, 2, 3, 2), *to(1, 2, 5, 3))
cubic("1x2x5x4,to8x9,a-0.5", t(1, 2, 5, 4), *to(1, 2, 8, 9), cubic_coeff_a=-0.5)
cubic("1x2x5x4,to8x9,exclude-outside", t(1, 2, 5, 4), *to(1, 2, 8, 9), exclude_outside=1)
cubic("1x2x5x4,to8x9,align-corners", t(1, 2, 5, 4), *to(1, 2, 8, 9), coordinate_transformation_mode="align_corners")
cubic("1x2x5x4,by2,asymmetric", t(1, 2, 5, 4), *by(1, 1, 2, 2), coordinate_transformation_mode="asymmetric")
cubic("1x2x9x7,to4x5,antialias", t(1, 2, 9, 7), *to(1, 2, 4, 5), antialias=1)
cubic("1x2x9x7,to4x5,antialias,exclude-outside", t(1, 2, 9, 7), *to(1, 2, 4, 5), antialias=1, exclude_outside=1)
cubic("1x2x3x4,sizes-at-run-time", t(1, 2, 3, 4), None, None, values([1, 2, 5, 7], "int64"))


# **** drawn ****


def _is_clear(old: int, new: int, transformation: str, rounding: str) -> bool:
    """Return True if no coordinate along an axis is so close to a rounding tie that its last bit decides."""
    if transformation == "align_corners":
        step = Fraction(old - 1, new - 1) if new > 1 else Fraction(0)
        positions = [x * step for x in range(new)]
    else:
        step = Fraction(old, new)
        middle = Fraction(0) if transformation == "asymmetric" else Fraction(1, 2)
        positions = [(x + middle) * step - middle for x in range(new)]
    if step.denominator & (step.denominator - 1) == 0 and step.numerator & (step.numerator - 1) == 0:
        return True  # powers of two, so that coordinates are exact
    edge = 0 if rounding in ("floor", "ceil") else Fraction(1, 2)
    return all(abs(x - edge - round(x - edge)) > Fraction(1, 64) for x in positions if x > 0)


@resize.drawn
def draw_resize(draw: Draw, dtype: DType) -> OpCase:
    mode = draw(st.sampled_from(("nearest", "linear", "cubic"))) if dtype.is_floating else "nearest"
    rank = draw(st.integers(1, 2))
    old = [draw(st.integers(1, 9)) for _ in range(rank)]
    new = [draw(st.integers(1, 9)) for _ in range(rank)]
    transformations = ("half_pixel", "pytorch_half_pixel", "asymmetric", "align_corners", "half_pixel_symmetric")
    transformation = draw(st.sampled_from(transformations))
    attributes: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": transformation}
    if mode == "nearest":
        rounding = draw(st.sampled_from(("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")))
        new = [n if _is_clear(o, n, transformation, rounding) else o for o, n in zip(old, new)]
        attributes["nearest_mode"] = rounding
    elif mode == "cubic":
        attributes["cubic_coeff_a"] = draw(st.sampled_from((-0.75, -0.5)))
        attributes["exclude_outside"] = draw(st.integers(0, 1))
    outer = (draw(st.integers(1, 2)), draw(st.integers(1, 3)))
    operands: tuple[Tensor | None, ...]
    if draw(st.booleans()):
        operands = (None, None, ints(*new))
        attributes["axes"] = tuple(range(2, 2 + rank))
    elif mode != "nearest" and transformation in ("half_pixel", "asymmetric") and draw(st.booleans()):
        factors = st.sampled_from((0.75, 1.0, 1.25, 1.5, 2.5))
        operands = by(1, 1, *(max(1 / size, draw(factors)) if size > 1 else 2.0 for size in old))
    else:
        operands = to(*outer, *new)
    case = resize.case(t(*outer, *old), *operands, **attributes)
    return replace(case, numerics=EXACT) if mode == "nearest" else case
