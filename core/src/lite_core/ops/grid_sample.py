"""GridSample and AffineGrid: sampling an image at arbitrary coordinates."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from lite_core.ir import DType, Shape, fresh_dim
from lite_core.ops.dtypes import ALL, FLOATS
from lite_core.ops.inference import Inference, fail, unknown_shape
from lite_core.ops.interpolation import cubic_kernel, linear_kernel, to_element_type
from lite_core.ops.registry import choice, op
from lite_core.ops.shape_checks import differ, format_shape, merge_dims

Array = np.ndarray[Any, Any]

_CUBIC_COEFFICIENT = -0.75
_FAR = 2.0**31


# **** GridSample ****


def _infer_grid_sample(inference: Inference) -> list[Shape | None]:
    x, grid = inference.shape(0), inference.shape(1)
    if inference.dtype(0) is DType.BOOL and inference.attributes["mode"] != "nearest":
        raise fail(f"mode {inference.attributes['mode']} cannot interpolate bool; use nearest")
    for shape, name in ((x, "X"), (grid, "grid")):
        if shape is not None and len(shape) < 3:
            raise fail(f"{name} must have rank 3 or more, has shape {format_shape(shape)}")
    if x is None or grid is None:
        known = x if x is not None else grid
        return [None if known is None else unknown_shape(len(known))]
    if len(x) != len(grid) or differ(grid[-1], len(x) - 2) or differ(x[0], grid[0]):
        raise fail(
            f"grid must have shape [{x[0]}, {'.., ' * (len(x) - 2)}{len(x) - 2}] for X {format_shape(x)}, "
            f"has {format_shape(grid)}"
        )
    if any(isinstance(d, int) and d == 0 for d in x[2:]):
        raise fail(f"X {format_shape(x)} has no elements to sample from")
    return [(merge_dims(x[0], grid[0]), x[1], *grid[1:-1])]


def _reflect(x: Array, low: float, high: float) -> Array:
    """Mirror coordinates at both borders until they lie between them."""
    span = high - low
    if span == 0:
        return np.zeros_like(x)
    distance = np.mod(x - low, 2 * span)
    return low + np.where(distance > span, 2 * span - distance, distance)


def _unnormalized(grid: Array, size: int, mode: str, padding_mode: str, align_corners: int) -> Array:
    """Convert coordinates from [-1, 1] to elements, and move coordinates outside as ``padding_mode`` requires."""
    x = (grid + 1) / 2 * (size - 1) if align_corners else ((grid + 1) * size - 1) / 2
    # NOTE: NaN counts as far outside. Coordinates are clipped because huge ones overflow as integer indices.
    x = np.clip(np.where(np.isnan(x), -_FAR, x), -_FAR, _FAR)
    if mode == "nearest":
        x = np.rint(x)
    low, high = (0.0, size - 1.0) if align_corners else (-0.5, size - 0.5)
    outside = (x < low) | (x > high)
    if padding_mode == "border":
        return np.where(outside, np.clip(x, 0, size - 1), x)
    return np.where(outside, _reflect(x, low, high), x) if padding_mode == "reflection" else x


def _neighbours(x: Array, mode: str) -> tuple[Array, Array]:
    """Return indices (possibly outside) and weights of neighbours along one axis, each ``[neighbours, *x.shape]``."""
    if mode == "nearest":
        return np.rint(x)[np.newaxis].astype(np.int64), np.ones((1, *x.shape), dtype=x.dtype)
    base = np.floor(x)
    reach = np.arange(2) if mode == "linear" else np.arange(-1, 3)
    offsets = reach.reshape((-1,) + (1,) * x.ndim)
    distance = (offsets - (x - base)).astype(x.dtype)
    weights = linear_kernel(distance) if mode == "linear" else cubic_kernel(distance, _CUBIC_COEFFICIENT)
    return base.astype(np.int64) + offsets, weights


def _inside(index: Array, size: int, padding_mode: str, align_corners: int) -> tuple[Array, Array]:
    """Return indices moved into the axis, and a mask that is False for elements that count as zero."""
    within = (index >= 0) & (index < size)
    if padding_mode == "reflection":
        low, high = (0.0, size - 1.0) if align_corners else (-0.5, size - 0.5)
        index = np.where(within, index, _reflect(index.astype(np.float64), low, high).astype(np.int64))
    counts = within if padding_mode == "zeros" else np.ones_like(within)
    return np.clip(index, 0, size - 1), counts


@op(
    "GridSample",
    "X: T1, grid: T2 -> Y: T1",
    types={"T1": ALL, "T2": FLOATS},
    attributes={
        "align_corners": 0,
        "mode": choice("linear", "nearest", "cubic"),
        "padding_mode": choice("zeros", "border", "reflection"),
    },
    infer=_infer_grid_sample,
)
def grid_sample(x: Array, grid: Array, *, align_corners: int, mode: str, padding_mode: str) -> Array:
    """``X`` ``[N, C, D1, .., Dr]`` sampled at ``grid`` ``[N, O1, .., Or, r]``: ``[N, C, O1, .., Or]``.

    Coordinates range from -1 to 1 along each axis and are listed innermost axis first. -1 and 1 are the
    centres of the outermost elements with ``align_corners``, and their outer edges without it.
    """
    dtype = DType.of(x.dtype)
    n, channels, *spatial = x.shape
    points = grid.reshape(n, int(np.prod(grid.shape[1:-1])), len(spatial))
    axes = []
    for axis, size in enumerate(spatial):
        coordinates = _unnormalized(points[..., len(spatial) - 1 - axis], size, mode, padding_mode, align_corners)
        index, weight = _neighbours(coordinates, mode)
        index, counts = _inside(index, size, padding_mode, align_corners)
        stride = int(np.prod(spatial[axis + 1 :]))
        axes.append(list(zip(index * stride, weight, counts)))

    image = np.moveaxis(x.reshape(n, channels, int(np.prod(spatial))), 1, 2)  # [N, elements, C]
    if mode != "nearest":
        image = image.astype(np.result_type(grid.dtype, x.dtype if dtype.is_floating else np.float64))
    batch = np.arange(n)[:, np.newaxis]
    result = np.zeros((n, points.shape[1], channels), dtype=image.dtype)
    for corner in itertools.product(*axes):
        index = sum(i for i, _, _ in corner)
        counts = np.logical_and.reduce([c for _, _, c in corner])
        values = np.where(counts[..., np.newaxis], image[batch, index], image.dtype.type(0))
        if mode == "nearest":
            result = values
        else:
            result += values * np.prod([w for _, w, _ in corner], axis=0)[..., np.newaxis]
    if mode != "nearest":
        result = to_element_type(result, dtype)
    return np.moveaxis(result, 2, 1).reshape(n, channels, *grid.shape[1:-1])


# **** AffineGrid ****


def _infer_affine_grid(inference: Inference) -> list[Shape | None]:
    theta, size, vector = inference.shape(0), inference.dims(1), inference.shape(1)
    if theta is not None:
        wrong = len(theta) != 3 or differ(theta[2], theta[1] + 1)
        if wrong or (isinstance(theta[1], int) and theta[1] not in (2, 3)):
            raise fail(f"theta must have shape [N, 2, 3] or [N, 3, 4], has {format_shape(theta)}")
    if size is not None:
        if len(size) not in (4, 5) or (theta is not None and differ(theta[1], len(size) - 2)):
            of_theta = "" if theta is None else f" for theta {format_shape(theta)}"
            raise fail(f"size must be [N, C, H, W] or [N, C, D, H, W]{of_theta}, is {format_shape(size)}")
        if theta is not None and differ(theta[0], size[0]):
            raise fail(f"theta has batch {theta[0]}, size {format_shape(size)} has {size[0]}")
        batch = size[0] if theta is None else merge_dims(theta[0], size[0])
        return [(batch, *size[2:], len(size) - 2)]
    rank = theta[1] if theta is not None else None
    if not isinstance(rank, int):
        entries = vector[0] if vector is not None and len(vector) == 1 else None
        if not isinstance(entries, int):
            return [None]
        rank = entries - 2
    return [(theta[0] if theta is not None else fresh_dim(), *unknown_shape(rank), rank)]


@op(
    "AffineGrid",
    "theta: T1, size: int64 -> grid: T1",
    types={"T1": FLOATS},
    attributes={"align_corners": 0},
    infer=_infer_affine_grid,
    numbers=("size",),
)
def affine_grid(theta: Array, size: Array, *, align_corners: int) -> Array:
    """A grid for GridSample ``[N, H, W, 2]`` (or ``[N, D, H, W, 3]``): ``theta`` applied to each position.

    Positions range from -1 to 1 along each axis and are listed innermost axis first, as GridSample reads them.
    """
    spatial = size.tolist()[2:]
    lines = []
    for length in spatial:
        steps = np.arange(length, dtype=np.float64)
        if align_corners:
            lines.append(2 * steps / (length - 1) - 1 if length > 1 else np.zeros(length))
        else:
            lines.append((2 * steps + 1) / max(length, 1) - 1)
    mesh = np.meshgrid(*lines, indexing="ij")
    positions = np.stack([*mesh[::-1], np.ones(spatial)], axis=-1).astype(theta.dtype)
    # einsum's axes: batch n, row of the matrix r, homogeneous coordinate h
    return np.asarray(np.einsum("nrh,...h->n...r", theta, positions))
