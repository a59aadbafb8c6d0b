"""Cases of GridSample and AffineGrid."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw, OpCase, table
from lite_conformance.cases.tensors import Array, Initializer, Tensor, ints, t, uniform, values
from lite_conformance.judge.tolerances import EXACT, SCALED
from lite_core.ir import DType

REAL = ("float64", "float32", "float16", "bfloat16")


def near_elements(*sizes: int, align_corners: int = 0, beyond: int = 1) -> Initializer:
    """Return an initializer of grids whose points have one clearly nearest element: rounding does not decide.

    Args:
        sizes: sizes of the image, outermost axis first.
        align_corners: the operator's attribute.
        beyond: how many elements outside the image a point may lie.
    """

    def initialize(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
        grid = np.empty(shape)
        for coordinate, size in enumerate(reversed(sizes)):
            positions = random.integers(-beyond, size + beyond, shape[:-1]) + random.uniform(-0.3, 0.3, shape[:-1])
            parts = 2 * positions / max(size - 1, 1) if align_corners else (2 * positions + 1) / size
            grid[..., coordinate] = parts - 1
        return grid.astype(dtype.numpy)

    return initialize


#: Grid points, some of them outside the image.
around: Initializer = uniform(-1.4, 1.4)


def grid(*shape: int, init: Initializer = around) -> Tensor:
    """Return a grid of the image's element type."""
    return t(*shape, init=init)


def grid32(*shape: int, init: Initializer = around) -> Tensor:
    """Return a grid of float32."""
    return t(*shape, init=init, dtype="float32")


sample = table("GridSample", SCALED)


def nearest(label: str, x: Tensor, points: Tensor, **attributes: Any) -> None:
    """Add a case of mode nearest, which only copies elements."""
    sample(f"nearest,{label}", x, points, numerics=EXACT, mode="nearest", **attributes)


near = near_elements(4, 5)
aligned = near_elements(4, 5, align_corners=1)
nearest("n2c3h4w5", t(2, 3, 4, 5), grid32(2, 3, 7, 2, init=near))
nearest("n1c2h4w5,border", t(1, 2, 4, 5), grid32(1, 3, 7, 2, init=near), padding_mode="border")
nearest("n1c2h4w5,reflection", t(1, 2, 4, 5), grid32(1, 3, 7, 2, init=near_elements(4, 5, beyond=7)),
        padding_mode="reflection")  # fmt: skip
nearest("n1c2h4w5,align-corners", t(1, 2, 4, 5), grid32(1, 3, 7, 2, init=aligned), align_corners=1)
nearest("n1c2h4w5,align-corners,border", t(1, 2, 4, 5), grid32(1, 3, 7, 2, init=aligned), align_corners=1,
        padding_mode="border")  # fmt: skip
nearest("n1c2h4w5,align-corners,reflection", t(1, 2, 4, 5),
        grid32(1, 3, 7, 2, init=near_elements(4, 5, align_corners=1, beyond=6)), align_corners=1,
        padding_mode="reflection")  # fmt: skip
nearest("n1c2w9,1d", t(1, 2, 9), grid32(1, 7, 1, init=near_elements(9)))
nearest("n1c2d2h3w4,3d", t(1, 2, 2, 3, 4), grid32(1, 2, 2, 3, 3, init=near_elements(2, 3, 4)))
nearest("n0c3h4w5,empty-batch", t(0, 3, 4, 5), grid32(0, 2, 2, 2))

padding_modes = ("zeros", "border", "reflection")
for _padding in padding_modes:
    for _align in (0, 1):
        _label = f"{_padding}{',align-corners' if _align else ''}"
        _same: dict[str, Any] = {"dtypes": REAL, "padding_mode": _padding, "align_corners": _align}
        sample(f"linear,n2c3h4w5,{_label}", t(2, 3, 4, 5), grid(2, 3, 7, 2), **_same)
        # Points outside the image are in rare_coordinates.py.
        sample(f"cubic,n1c2h5w4,{_label}", t(1, 2, 5, 4), grid(1, 3, 7, 2, init=uniform(-0.7, 0.7)), mode="cubic",
               **_same)  # fmt: skip
sample("linear,n1c33h3w3", t(1, 33, 3, 3), grid(1, 5, 5, 2), dtypes=REAL)
sample("linear,n1c2h1w7", t(1, 2, 1, 7), grid(1, 3, 5, 2), dtypes=REAL)
sample("linear,n1c2w9,1d", t(1, 2, 9), grid(1, 7, 1), dtypes=REAL)
sample("linear,n2c2d2h3w4,3d", t(2, 2, 2, 3, 4), grid(2, 2, 2, 3, 3), dtypes=REAL)
sample("linear,n1c2d2h3w4,3d,border", t(1, 2, 2, 3, 4), grid(1, 3, 1, 3, 3), dtypes=REAL, padding_mode="border")
sample("linear,n1c2h4w5,identity", t(1, 2, 3, 3), values([[[[x, y] for x in (-1, 0, 1)] for y in (-1, 0, 1)]]),
       dtypes=REAL, align_corners=1)  # fmt: skip
sample("linear,n1c2h4w5,far-outside", t(1, 2, 4, 5),
       values([[[[1e9, 0.1], [-1e9, -1e9], [0.3, 1e18], [3e9, -5e9]]]]),
       dtypes=("float64", "float32", "bfloat16"))  # fmt: skip
sample("linear,n1c2h4w5,far-outside,border", t(1, 2, 4, 5), values([[[[1e3, 0.1], [-1e3, -2e3], [0.3, 5e2]]]]),
       dtypes=REAL, padding_mode="border")  # fmt: skip
sample("linear,n1c2h4w5,grid-float32", t(1, 2, 4, 5), grid32(1, 3, 7, 2), dtypes=("float16", "bfloat16"))
sample("linear,n1c2h4w5,constant-grid", t(1, 2, 4, 5), values([[[[0.3, -0.4], [0.9, 0.2]]]], constant=True),
       dtypes=REAL)  # fmt: skip


@sample.drawn
def draw_sample(draw: Draw, dtype: DType) -> OpCase:
    mode = draw(st.sampled_from(("nearest", "linear", "cubic"))) if dtype.is_floating else "nearest"
    rank = draw(st.integers(1, 1 if mode == "cubic" else 2))
    rank += mode == "cubic"
    size = [draw(st.integers(1, 7)) for _ in range(rank)]
    batch, align = draw(st.integers(1, 2)), draw(st.integers(0, 1))
    padding = draw(st.sampled_from(padding_modes))
    if mode == "nearest":
        init = near_elements(*size, align_corners=align)
    else:
        init = uniform(-0.7, 0.7) if mode == "cubic" else around
    counts = [draw(st.integers(1, 5)) for _ in range(rank)]
    points = (grid32 if mode == "nearest" else grid)(batch, *counts, rank, init=init)
    x = t(batch, draw(st.integers(1, 4)), *size)
    case = sample.case(x, points, mode=mode, padding_mode=padding, align_corners=align)
    return replace(case, numerics=EXACT) if mode == "nearest" else case


affine = table("AffineGrid", SCALED)
affine("n2c3h4w5", t(2, 2, 3), ints(2, 3, 4, 5))
affine("n2c3h4w5,align-corners", t(2, 2, 3), ints(2, 3, 4, 5), align_corners=1)
affine("n1c1h33w7", t(1, 2, 3), ints(1, 1, 33, 7))
affine("n1c2h1w3", t(1, 2, 3), ints(1, 2, 1, 3))
affine("n2c1d2h3w4,3d", t(2, 3, 4), ints(2, 1, 2, 3, 4))
affine("n2c1d2h3w4,3d,align-corners", t(2, 3, 4), ints(2, 1, 2, 3, 4), align_corners=1)
affine("n1c1h3w3,identity", values([[[1, 0, 0], [0, 1, 0]]]), ints(1, 1, 3, 3))
affine("n2c3h4w5,size-at-run-time", t(2, 2, 3), values([2, 3, 4, 5], "int64"))
# With align_corners, an axis of one point has no defined coordinate: ONNX divides by 0 there.
affine("n0c3h4w5,empty-batch", t(0, 2, 3), ints(0, 3, 4, 5))


@affine.drawn
def draw_affine(draw: Draw, dtype: DType) -> OpCase:
    rank, batch, align = draw(st.integers(2, 3)), draw(st.integers(1, 3)), draw(st.integers(0, 1))
    # With align_corners no axis has size 1: the corners of a single element are not specified.
    sizes = [batch, draw(st.integers(1, 3)), *(draw(st.integers(1 + align, 6)) for _ in range(rank))]
    size = values(sizes, "int64", constant=draw(st.booleans()))
    return affine.case(t(batch, rank, rank + 1), size, align_corners=align)
