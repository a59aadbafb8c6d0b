"""Rounding at exact ties, at limits and beyond: Cast, quantization, coordinates of Resize, GridSample, RoiAlign."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_conformance.cases.op_cases import Unspecified, table_of
from lite_conformance.cases.operators import (  # noqa: F401 - these modules create the tables extended here
    convolution,
    detection,
    grid_sample,
    matmul,
    quantization,
    resize,
    shape,
)
from lite_conformance.cases.operators.operands import FLOATS, INTEGERS, whole_range
from lite_conformance.cases.operators.spatial import scales
from lite_conformance.cases.tensors import Array, Initializer, Tensor, as_type, ints, short_name, t, values
from lite_conformance.judge.tolerances import EXACT, epsilon
from lite_core.ir import DType

_INF, _NAN = float("inf"), float("nan")

# **** Cast between integers: higher bits are dropped ****

_cast = table_of("Cast")
for _to in INTEGERS:
    _smaller = [d for d in INTEGERS if d.itemsize > _to.itemsize]
    _same_size = [d for d in INTEGERS if d.itemsize == _to.itemsize and d is not _to]
    _cast(f"wraps,to-{short_name(_to)}", t(259, init=whole_range), to=_to, dtypes=[*_smaller, *_same_size])
    _cast(f"wraps,sign-extends,to-{short_name(_to)}", values([-1, -2, -128, 127]), to=_to, dtypes=["int8"])

# **** Cast of floats to integers: towards zero. Out of range, any value ****


def in_range(to: DType) -> Unspecified:
    """Return a function that is True for elements which are no number, or out of the range of an integer type."""
    low, high = int(np.iinfo(to.numpy).min), int(np.iinfo(to.numpy).max)

    def out_of_range(x: Array) -> Array:
        whole = np.trunc(x.astype(np.float64))
        # NOTE: not "<= high", which float64 would round up to a power of two for 64-bit types.
        return np.asarray(~((whole >= low) & (whole < high + 1)))

    return out_of_range


def limits_of(to: DType) -> Initializer:
    """Return an initializer of the numbers of a floating type around zero and next to the limits of an integer type."""

    def limits(random: np.random.Generator, size: tuple[int, ...], dtype: DType) -> Array:
        low, high = float(np.iinfo(to.numpy).min), float(np.iinfo(to.numpy).max)
        step = epsilon(dtype)
        found = [0.0, -0.0, 0.5, -0.5, 0.9375, -0.9375, 1.5, -1.5, 2.5]
        # The largest number below a power of two, and numbers with as many digits as the type has.
        found += [(high + 1) * (1 - step / 2), (high + 1) * (0.5 + step), low, low / 2 * (1 + step), 1 / step - 0.5]
        found += [low - 0.5, high + 0.5]
        near = np.resize(as_type(found, dtype), size)
        return np.where(in_range(to)(near), as_type(0, dtype), near)

    return limits


def beyond(random: np.random.Generator, size: tuple[int, ...], dtype: DType) -> Array:
    """Return numbers that no integer type holds, between ordinary ones."""
    return np.resize(as_type([1.5, _NAN, -1.5, _INF, 100.0, -_INF, -100.0, 1e30, 2.5, -1e30, 0.0, 300.0], dtype), size)


for _to in INTEGERS:
    _cast(f"limits,to-{short_name(_to)}", t(32, init=limits_of(_to)), to=_to, dtypes=FLOATS)
    _cast(f"beyond,to-{short_name(_to)}", t(37, init=beyond), to=_to, dtypes=FLOATS, unspecified=in_range(_to))

# **** Cast to floats: the nearest number, halves to even; beyond the largest, infinity ****


def halves_of(to: DType) -> Initializer:
    """Return an initializer of numbers half-way between two of a floating type, below even and odd ones."""

    def halves(random: np.random.Generator, size: tuple[int, ...], dtype: DType) -> Array:
        digits = round(1 / epsilon(to))
        odd = 2 * (digits + random.integers(0, digits, size)) + 1
        signs = random.choice([-1, 1], size) if dtype.is_signed else 1
        return as_type(odd * signs, dtype)

    return halves


#: The types in which numbers half-way between two of a smaller type exist.
_HALVES = {
    DType.BFLOAT16: ("float64", "float32", "float16", "int32", "int64", "uint16"),
    DType.FLOAT16: ("float64", "float32", "int32", "int64", "uint16"),
    DType.FLOAT32: ("float64", "int32", "uint32", "int64", "uint64"),
    DType.FLOAT64: ("int64", "uint64"),
}
for _to, _from in _HALVES.items():
    _cast(f"halves,to-{short_name(_to)}", t(67, init=halves_of(_to)), to=_to, dtypes=_from)
    _cast(f"unsigned,above-half,to-{short_name(_to)}", values([2**63, 2**63 + 2**62, 2**63 + 2**61]), to=_to,
          dtypes=["uint64"])  # fmt: skip
#: Next to the half between the largest number and the next power of two, from which on the result is infinite.
_cast("overflow,to-f16", values([65519.0, -65519, 65520, -65520, 1e30, -1e30, 65504]), to=DType.FLOAT16,
      dtypes=("float32", "float64"))  # fmt: skip
_cast("overflow,to-bf16", values([3.3961e38, -3.3961e38, 3.3895e38, -3.3895e38, 1e30]), to=DType.BFLOAT16,
      dtypes=["float32"])  # fmt: skip
_cast("overflow,to-f32", values([3.5e38, -3.5e38, 1e300, 3.4e38]), to=DType.FLOAT32, dtypes=["float64"])
_cast("overflow,to-f16,integers", values([65519, 65520, -65519, -65520, 10**6]), to=DType.FLOAT16,
      dtypes=("int32", "int64"))  # fmt: skip

# **** quantization: halves to even, then the zero point is added, then the sum saturates ****

_quantize = table_of("QuantizeLinear")
_EIGHT_BITS = ("int8", "uint8")
_edges = [126.5, 127.5, 128.5, 254.5, 255.5, 256.5, -0.5, -1.5, -127.5, -128.5, -129.5, 0.5]
for _point in (0, 1):
    _quantize(f"halves-at-the-limits,point{_point}", values(_edges, "float32"), scales(1),
              values(_point, constant=True), dtypes=_EIGHT_BITS)  # fmt: skip
_quantize("halves-to-even,scale4", values(np.arange(-41, 43) * 2.0, "float32"), scales(4), values(50, constant=True))
_quantize("halves-to-even,from-float16", values(np.arange(-41, 43) / 4, "float16"), scales(0.5, dtype="float16"),
          values(50, constant=True), dtypes=_EIGHT_BITS)  # fmt: skip
_quantize("halves-to-even,axis0", values(np.arange(-12, 12).reshape(3, 8) / 2, "float32"), scales(1, 0.5, 0.25),
          values([30, 31, 32], constant=True), axis=0)  # fmt: skip
_quantize("nan", values([1.0, _NAN, -3.0, _NAN, 2.5], "float32"), scales(0.5), values(20, constant=True),
          unspecified=lambda x, *_: np.isnan(x))  # fmt: skip

# **** Resize: sizes whose halves every arithmetic finds ****

# NOTE: for these sizes the formulas of ONNX give the same neighbours in float32, float64 and exact arithmetic, which
# the tests of the suite check. For others, such as 6 to 7, the half-way coordinate depends on the arithmetic.
_resize = table_of("Resize")
_SIZES = {
    "half_pixel": ((4, 6), (6, 9)),
    "half_pixel_symmetric": ((4, 6), (8, 5)),
    "pytorch_half_pixel": ((8, 12), (2, 7)),
    "asymmetric": ((2, 12), (1, 6)),
    "align_corners": ((4, 7), (6, 11)),
}
for _transformation, _sizes in _SIZES.items():
    for _mode in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
        (_old_height, _height), (_old_width, _width) = _sizes
        if _mode in ("floor", "ceil") and _transformation in ("asymmetric", "align_corners"):
            continue  # there, the coordinate of an element of the input may be slightly below or above it
        _resize(f"nearest,halves,{_transformation},{_mode}", t(1, 2, _old_height, _old_width), None, None,
                ints(1, 2, _height, _width), numerics=EXACT, dtypes=("float32", "uint8"),
                coordinate_transformation_mode=_transformation, nearest_mode=_mode)  # fmt: skip

# **** GridSample: halves to even, and points far outside ****

_sample = table_of("GridSample")


def half_way(random: np.random.Generator, size: tuple[int, ...], dtype: DType) -> Array:
    """Return points half-way between the elements of an image of 4 rows and columns, and on its edges."""
    return as_type(random.integers(-5, 6, size) / 2, dtype)


_FAR = (1e6, -1e6, 1e12, -1e12, 1e30, -1e30, _INF, -_INF)


def _points(*coordinates: float) -> Tensor:
    return values(np.array([[[[c, 0.125], [0.125, c]] for c in coordinates]]), "float32")


for _padding in ("zeros", "border"):
    _more: dict[str, Any] = {"padding_mode": _padding, "dtypes": ("float32", "uint8")}
    _sample(f"nearest,half-way,{_padding}", t(1, 2, 4, 4), t(1, 7, 9, 2, init=half_way, dtype="float32"),
            numerics=EXACT, mode="nearest", **_more)  # fmt: skip
    _far: dict[str, Any] = {"padding_mode": _padding, "dtypes": ("float32", "float16")}
    for _mode in ("linear", "nearest"):
        _sample(f"{_mode},far-away,{_padding}", t(1, 2, 4, 4), _points(*_FAR), mode=_mode, **_far)
        _sample(f"{_mode},nan,{_padding}", t(1, 2, 4, 4), _points(0.25, _NAN, -0.25, _NAN), mode=_mode,
                unspecified=lambda x, grid: np.isnan(grid).any(-1)[:, np.newaxis], **_far)  # fmt: skip
for _mode in ("linear", "nearest"):
    _sample(f"{_mode},far-away,reflection", t(1, 2, 4, 4), _points(0.25, 1e12, -1e30, _INF, _NAN, -_INF), mode=_mode,
            padding_mode="reflection", dtypes=("float32", "float16"),
            unspecified=lambda x, grid: (~(np.abs(grid) < 1e6)).any(-1)[:, np.newaxis])  # fmt: skip

# **** RoiAlign: samples exactly one element outside the image count, samples further outside do not ****

_align = table_of("RoiAlign")
_image = t(1, 2, 4, 4)
_first = values([0] * 4, "int64")
_at_the_edges = values([[-1.5, 0, 0.5, 2], [-1.625, 0, 0.375, 2], [3.5, 1, 5.5, 3], [3.625, 1, 5.625, 3]])
_align("edges,exactly-one-outside", _image, _at_the_edges, _first, sampling_ratio=1)
_align("edges,exactly-one-outside,max", _image, _at_the_edges, _first, sampling_ratio=1, mode="max")
# Bins of exactly two elements have two samples along each axis, not three.
_align("edges,whole-bins", _image, values([[0, 0, 4, 4], [1, 0, 3, 2], [0.5, 0.5, 2.5, 4.5], [0, 0, 2, 2]]), _first,
       output_height=2, output_width=2)  # fmt: skip

# **** quantized products: halves to even, of both signs ****

_one, _zero = scales(1), values(0, "uint8", constant=True)
for _name, _output in (("int8", values(3, "int8", constant=True)), ("uint8", values(131, "uint8", constant=True))):
    # The sums are -16 to 15; with the scale 1/2 half of them are ties.
    table_of("QLinearMatMul")(
        f"halves,both-signs,to-{_name}", values(np.arange(32).reshape(32, 1), "uint8"), scales(0.5),
        values(16, "uint8", constant=True), values([[1]], "uint8", constant=True), _one, _zero, _one, _output,
        dtypes=["uint8"])  # fmt: skip
    table_of("QLinearConv")(
        f"halves,both-signs,to-{_name}", values(np.arange(32).reshape(1, 1, 4, 8), "uint8"), scales(0.5),
        values(16, "uint8", constant=True), values([[[[1]]]], "uint8", constant=True), _one, _zero, _one, _output,
        dtypes=["uint8"])  # fmt: skip
