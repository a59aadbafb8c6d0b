"""Resize: interpolation along one axis after another."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from lite_core.ir import Dim, DType, Shape, SymbolicDim, fresh_dim
from lite_core.ops.dtypes import ALL
from lite_core.ops.inference import Inference, fail, normalize_axis, unknown_shape
from lite_core.ops.interpolation import cubic_kernel, linear_kernel, to_element_type
from lite_core.ops.registry import choice, op, optional
from lite_core.ops.shape_checks import differ, format_shape

Array = np.ndarray[Any, Any]

# A scale is taken as a rounded fraction only if the fraction's denominator is at most this; else it is exact.
_LARGEST_DENOMINATOR = 4096


# **** sizes ****


def _fraction(number: Any) -> Fraction:
    """Return the fraction that a float was rounded from: 1/3 for 0.33333334.

    NOTE: computed from the float itself, sizes and coordinates that should be integers would be slightly smaller.
    """
    if not np.isfinite(number):
        raise fail(f"scales and roi must be finite, one is {number}")
    exact = Fraction(float(number))
    simple = exact.limit_denominator(_LARGEST_DENOMINATOR)
    return simple if type(number)(float(simple)) == number else exact


def _fractions(array: Array) -> list[Fraction]:
    if array.dtype.itemsize == 2:
        array = array.astype(np.float32)
    return [_fraction(number) for number in array]


def _floor_scaled(size: Dim, factor: Fraction) -> Dim:
    return size * factor.numerator // factor.denominator


def _common_scale(sizes: Sequence[int], shape: Sequence[int], policy: str) -> Fraction:
    """Return the scale shared by all axes that makes no axis larger (or smaller) than its wanted size."""
    if 0 in shape:
        raise fail(f"the aspect ratio of {format_shape(shape)} is not defined")
    ratios = [Fraction(wanted, size) for wanted, size in zip(sizes, shape)]
    return min(ratios) if policy == "not_larger" else max(ratios)


def _round_half_up(number: Fraction) -> int:
    return math.floor(number + Fraction(1, 2))


def _scaled_sizes(shape: Sequence[Dim], scales: Sequence[Fraction], roi: Sequence[Fraction] | None) -> list[Dim]:
    if any(scale <= 0 for scale in scales):
        raise fail(f"scales must be positive, are {[float(s) for s in scales]}")
    extents = [Fraction(1)] * len(shape)
    if roi is not None:
        extents = [end - start for start, end in zip(roi, roi[len(shape) :])]
    return [_floor_scaled(size, scale * extent) for size, scale, extent in zip(shape, scales, extents)]


def _wanted_sizes(shape: Sequence[Dim], sizes: Sequence[Dim], policy: str) -> list[Dim]:
    if any(isinstance(d, int) and d < 0 for d in sizes):
        raise fail(f"sizes {format_shape(sizes)} has a negative entry")
    if policy == "stretch":
        return list(sizes)
    known = [d for d in shape if isinstance(d, int)]
    wanted = [d for d in sizes if isinstance(d, int)]
    if len(known) < len(shape) or len(wanted) < len(sizes):
        return list(unknown_shape(len(shape), "resized"))
    scale = _common_scale(wanted, known, policy)
    return [_round_half_up(size * scale) for size in known]


# **** inference ****


def _given(inference: Inference, index: int) -> bool:
    """Return True if an optional input is given; older exporters write an empty tensor for "left out"."""
    return inference.has(index) and inference.shape(index) != (0,)


def _infer_resize(inference: Inference) -> list[Shape | None]:
    attributes, shape = inference.attributes, inference.shape(0)
    if inference.dtype(0) is DType.BOOL and attributes["mode"] != "nearest":
        raise fail(f"mode {attributes['mode']} cannot interpolate bool; use nearest")
    has_scales, has_sizes = _given(inference, 2), _given(inference, 3)
    if has_scales == has_sizes:
        raise fail(f"give either scales or sizes, {'not both' if has_scales else 'neither is given'}")
    cropped = attributes["coordinate_transformation_mode"] == "tf_crop_and_resize"
    if cropped and not _given(inference, 1):
        raise fail("coordinate_transformation_mode tf_crop_and_resize needs the input roi")
    for index, name in ((1, "roi"), (2, "scales"), (3, "sizes")):
        vector = inference.shape(index) if _given(inference, index) else None
        if vector is not None and len(vector) != 1:
            raise fail(f"{name} must be a vector, has the shape [{', '.join(map(str, vector))}]")
    if shape is None:
        vector = inference.shape(3 if has_sizes else 2)
        known_rank = attributes["axes"] is None and vector is not None and isinstance(vector[0], int)
        return [unknown_shape(vector[0]) if known_rank and vector else None]  # type: ignore[arg-type]
    axes = _axes(attributes["axes"], len(shape))
    for index, name, per_axis in ((1, "roi", 2), (2, "scales", 1), (3, "sizes", 1)):
        vector = inference.shape(index) if _given(inference, index) else None
        wanted = per_axis * len(axes)
        if vector is not None and (index > 1 or cropped) and differ(vector[0], wanted):
            raise fail(f"{name} must have {wanted} entries for {len(axes)} axes, has {vector[0]}")
    resized = _infer_sizes(inference, [shape[a] for a in axes], has_sizes, cropped)
    result = list(shape)
    for axis, new_size in zip(axes, resized):
        if shape[axis] == 0 and isinstance(new_size, int) and new_size > 0:
            raise fail(f"axis {axis} has no elements and cannot be resized to {new_size}")
        result[axis] = new_size
    return [tuple(result)]


def _axes(axes: tuple[int, ...] | None, rank: int) -> list[int]:
    resized = list(range(rank)) if axes is None else [normalize_axis(a, rank) for a in axes]
    if len(set(resized)) != len(resized):
        raise fail(f"axes {list(axes or ())} name an axis twice")
    return resized


def _infer_sizes(inference: Inference, shape: list[Dim], has_sizes: bool, cropped: bool) -> list[Dim]:
    if has_sizes:
        sizes = inference.dims(3)
        if sizes is not None:
            return _wanted_sizes(shape, sizes, inference.attributes["keep_aspect_ratio_policy"])
    else:
        scales, roi = inference.value(2), inference.value(1) if cropped else None
        if scales is not None and (roi is not None or not cropped):
            return _scaled_sizes(shape, _fractions(scales), None if roi is None else _fractions(roi))
    return [fresh_dim("resized") for _ in shape]


# **** coordinates of output elements in the input ****


def _coordinates(
    transformation: str, old: int, new: int, scale: Fraction, roi: tuple[Fraction, Fraction] | None
) -> Array:
    """Return the input coordinate, in elements, of each output element along one axis: float64 ``[new]``.

    The formulas of ONNX's Resize are written with a single division so that integer results are exact.
    """
    x = np.arange(new, dtype=np.float64)
    p, q = scale.numerator, scale.denominator
    if transformation == "tf_crop_and_resize":
        assert roi is not None, "inference requires roi for tf_crop_and_resize"
        start, end = float(roi[0]), float(roi[1])
        if new == 1:
            return x + 0.5 * (start + end) * (old - 1)
        return start * (old - 1) + x * (end - start) * (old - 1) / (new - 1)
    if transformation == "align_corners":
        return x * (old - 1) / (new - 1) if new > 1 else x
    if transformation == "asymmetric":
        return x * q / p
    if transformation == "pytorch_half_pixel" and new == 1:
        return x
    half_pixel = (2 * x + 1) * q - p
    if transformation == "half_pixel_symmetric":  # the rounding of new is divided between both ends
        half_pixel += old * p - new * q
    return half_pixel / (2 * p)


_NEAREST: dict[str, Callable[[Array], Array]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


def _weighted_neighbours(
    x: Array, size: int, mode: str, a: float, stretch: float, exclude_outside: int, normalize: bool
) -> tuple[Array, Array]:
    """Return indices and weights, each ``[neighbours, new]``, of the input elements of each output element.

    Args:
        x: coordinates in the input.
        size: elements along the axis.
        mode: linear or cubic.
        a: the coefficient of the cubic kernel.
        stretch: values below 1 widen the kernel, for antialiasing.
        exclude_outside: if true, neighbours outside the axis have weight 0, else the edge element is repeated.
        normalize: if True, scale the weights to add up to 1.
    """
    reach = math.ceil((1 if mode == "linear" else 2) / stretch)
    base = np.floor(x)
    offsets = np.arange(1 - reach, reach + 1)[:, np.newaxis]
    distance = (offsets - (x - base)) * stretch
    weights = linear_kernel(distance) if mode == "linear" else cubic_kernel(distance, a)
    indices = base.astype(np.int64) + offsets
    if exclude_outside:
        weights = np.where((indices >= 0) & (indices < size), weights, 0)
    if normalize or exclude_outside:
        weights = weights / weights.sum(axis=0)
    return np.clip(indices, 0, size - 1), weights


def _weighted_sum(data: Array, axis: int, indices: Array, weights: Array) -> Array:
    """Compute the sum over k of ``weights[k] * data[.., indices[k], ..]`` along one axis."""
    along = (-1,) + (1,) * (data.ndim - 1 - axis)
    weights = weights.astype(data.dtype)
    total: Array | None = None
    for index, weight in zip(indices, weights):
        if weight.any():
            part = np.take(data, index, axis=axis)
            part *= weight.reshape(along)
            total = part if total is None else np.add(total, part, out=total)
    return np.zeros_like(np.take(data, indices[0], axis=axis)) if total is None else total


@op(
    "Resize",
    "X: T1, roi: T2?, scales: float32?, sizes: int64? -> Y: T1",
    types={"T1": ALL, "T2": (DType.FLOAT16, DType.FLOAT32, DType.FLOAT64)},
    attributes={
        "antialias": 0,
        "axes": optional("ints"),
        "coordinate_transformation_mode": choice(
            "half_pixel",
            "half_pixel_symmetric",
            "pytorch_half_pixel",
            "align_corners",
            "asymmetric",
            "tf_crop_and_resize",
        ),
        "cubic_coeff_a": -0.75,
        "exclude_outside": 0,
        "extrapolation_value": 0.0,
        "keep_aspect_ratio_policy": choice("stretch", "not_larger", "not_smaller"),
        "mode": choice("nearest", "linear", "cubic"),
        "nearest_mode": choice("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"),
    },
    infer=_infer_resize,
    numbers=("roi", "scales", "sizes"),
)
def resize(
    x: Array,
    roi: Array | None = None,
    scales: Array | None = None,
    sizes: Array | None = None,
    *,
    antialias: int,
    axes: tuple[int, ...] | None,
    coordinate_transformation_mode: str,
    cubic_coeff_a: float,
    exclude_outside: int,
    extrapolation_value: float,
    keep_aspect_ratio_policy: str,
    mode: str,
    nearest_mode: str,
) -> Array:
    """``X`` resized along ``axes`` by ``scales`` or to ``sizes``, by nearest, linear or cubic interpolation.

    ``roi`` (starts of all axes, then ends, as fractions of the size) applies to tf_crop_and_resize only, in
    which output elements outside the input become ``extrapolation_value``.
    """
    cropped = coordinate_transformation_mode == "tf_crop_and_resize"
    resized = _axes(axes, x.ndim)
    old = [x.shape[a] for a in resized]
    region = _fractions(roi) if cropped and roi is not None else None
    factors, new = _factors(old, scales, sizes, region, keep_aspect_ratio_policy)
    new_shape = list(x.shape)
    for axis, size in zip(resized, new):
        new_shape[axis] = size
    if 0 in new_shape:
        return np.zeros(new_shape, dtype=x.dtype)

    dtype = DType.of(x.dtype)
    result = x if mode == "nearest" or dtype.is_floating else x.astype(np.float64)
    outside = np.zeros([1] * x.ndim, dtype=bool)
    # The last axis first: gathering within rows is the slowest part, and resizing other axes first adds rows.
    for i in sorted(range(len(resized)), key=lambda i: -resized[i]):
        axis, factor = resized[i], factors[i]
        if factor == 1 and new[i] == old[i] and not cropped:
            continue
        bounds = None if region is None else (region[i], region[len(resized) + i])
        coordinates = _coordinates(coordinate_transformation_mode, old[i], new[i], factor, bounds)
        if cropped:
            beyond = (coordinates < 0) | (coordinates > old[i] - 1)
            outside = outside | beyond.reshape((-1,) + (1,) * (x.ndim - 1 - axis))
            coordinates = np.clip(coordinates, 0, old[i] - 1)
        if mode == "nearest":
            index = np.clip(_NEAREST[nearest_mode](coordinates), 0, old[i] - 1).astype(np.int64)
            result = np.take(result, index, axis=axis)
        else:
            stretch = min(float(factor), 1.0) if antialias else 1.0
            indices, weights = _weighted_neighbours(
                coordinates, old[i], mode, cubic_coeff_a, stretch, exclude_outside, bool(antialias)
            )
            result = _weighted_sum(result, axis, indices, weights)
    if outside.any():
        result = np.where(outside, result.dtype.type(extrapolation_value), result)
    return result if mode == "nearest" else to_element_type(result, dtype)


def _factors(
    old: list[int], scales: Array | None, sizes: Array | None, roi: list[Fraction] | None, policy: str
) -> tuple[list[Fraction], list[int]]:
    """Return the scale and the new size of each axis."""
    if sizes is None or not sizes.size:
        assert scales is not None, "inference requires scales or sizes"
        factors = _fractions(scales)
        return factors, [d for d in _scaled_sizes(old, factors, roi) if not isinstance(d, SymbolicDim)]
    wanted = sizes.tolist()
    if policy == "stretch":
        return [Fraction(n, o) if o else Fraction(1) for o, n in zip(old, wanted)], wanted
    factor = _common_scale(wanted, old, policy)
    return [factor] * len(old), [_round_half_up(factor * size) for size in old]
