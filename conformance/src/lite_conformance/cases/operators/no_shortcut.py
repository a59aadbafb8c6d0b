"""Nodes that look like a special case and are none: a shortcut taken there, or a branch left out, is an error."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from lite_conformance.cases.op_cases import table_of
from lite_conformance.cases.operators import (  # noqa: F401 - these modules create the tables extended here
    convolution,
    deformable_convolution,
    einsum,
    elementwise_binary,
    grid_sample,
    matmul,
    movement,
    normalization,
    padding,
    pooling,
    quantization,
    resize,
    shape,
    transposed_convolution,
    window,
)
from lite_conformance.cases.operators.layer_initializers import all_integers, negative
from lite_conformance.cases.operators.spatial import scales
from lite_conformance.cases.tensors import Tensor, const, integers, ints, t, values
from lite_core.ir import DType
from lite_core.ops.dtypes import FLOATS

_FLOAT32 = ["float32"]
_point = const(init=integers(3, 9))


def _quantized(x: Tensor, w: Tensor, result_scale: float) -> tuple[Tensor, ...]:
    """Return the operands of QLinearConv for an image and weights."""
    return x, scales(0.5), _point, w, scales(0.5), _point, scales(result_scale), _point


def _convolutions(label: str, x: tuple[int, ...], w: tuple[int, ...], result_scale: float, **attributes: Any) -> None:
    """Add a case of Conv, ConvInteger and QLinearConv."""
    image, weights = t(*x, init=all_integers), const(*w, init=all_integers)
    table_of("Conv")(label, t(*x), const(*w), **attributes)
    table_of("ConvInteger")(label, image, weights, **attributes)
    table_of("QLinearConv")(label, *_quantized(image, weights, result_scale), **attributes)


# **** convolutions and pools ****

# A kernel of one element is a product of matrices only without padding, at either end.
_convolutions("k1,padding-before", (1, 3, 4, 5), (2, 3, 1, 1), 16, pads=(1, 1, 0, 0))
_convolutions("k1,padding-after", (1, 3, 4, 5), (2, 3, 1, 1), 16, pads=(0, 0, 1, 1))
# The last tap lies so far in the padding that it reads no element in any window; others read in all of them.
_far: dict[str, Any] = {"dilations": (2, 1), "pads": (0, 0, 4, 1)}
_convolutions("tap-beyond-the-image", (1, 2, 3, 4), (3, 2, 3, 2), 32, **_far)
table_of("ConvTranspose")("tap-beyond-the-image", t(1, 2, 3, 4), const(2, 3, 3, 2), **_far)
for _op in ("MaxPool", "AveragePool", "LpPool"):
    table_of(_op)("tap-beyond-the-image", t(1, 2, 3, 4, init=negative), kernel_shape=(3, 2), **_far)
# Groups of two channels are no single channels, even where the kernel has one row.
_convolutions("group2,k1x3", (1, 4, 3, 5), (6, 2, 1, 3), 16, group=2)
# One row under all taps has more than 2**20 elements.
_wide, _wide_kernel = (1, 64, 4, 1850), (1, 64, 3, 3)
table_of("Conv")("wide-rows", t(*_wide), const(*_wide_kernel), dtypes=_FLOAT32)
_bytes, _few = t(*_wide, init=integers(0, 9)), const(*_wide_kernel, init=integers(0, 9))
table_of("ConvInteger")("wide-rows", _bytes, _few, dtypes=["uint8"])
table_of("QLinearConv")("wide-rows", *_quantized(_bytes, _few, 64), dtypes=["uint8"])
# auto_pad along three axes.
for _mode in ("VALID", "SAME_LOWER"):
    _label = f"3d,{_mode.lower().replace('_', '-')}"
    _k: dict[str, Any] = {"strides": (2, 1, 2), "auto_pad": _mode}
    _convolutions(_label, (1, 2, 4, 5, 4), (2, 2, 2, 3, 3), 64, **_k)
    table_of("ConvTranspose")(_label, t(1, 2, 2, 3, 2), const(2, 2, 2, 3, 3), **_k)
    for _op in ("MaxPool", "AveragePool", "LpPool"):
        table_of(_op)(_label, t(1, 2, 4, 5, 4, init=negative), kernel_shape=(2, 3, 3), **_k)
# kernel_shape is the shape of the weights, beside attributes of other numbers.
table_of("DeformConv")("kernel-shape-given", t(1, 2, 6, 7), const(2, 2, 2, 3), t(1, 12, 3, 3), kernel_shape=(2, 3),
                       strides=(2, 1), dilations=(1, 3), pads=(0, 1, 0, 1))  # fmt: skip
table_of("ConvTranspose")("kernel-shape-given", t(1, 2, 3, 4), const(2, 3, 4, 2), kernel_shape=(4, 2), strides=(3, 2),
                          pads=(1, 0, 2, 1), output_padding=(2, 1))  # fmt: skip
table_of("ConvTranspose")("output-shape-counts,not-pads", t(1, 2, 3, 4), const(2, 3, 4, 2), strides=(3, 2),
                          pads=(1, 0, 2, 1), output_padding=(1, 0), output_shape=(9, 7))  # fmt: skip
table_of("ConvTranspose")("kernel-shape-given,output-shape", t(1, 2, 3, 4), const(2, 3, 4, 2), kernel_shape=(4, 2),
                          strides=(3, 2), output_shape=(9, 7))  # fmt: skip

# **** products ****

table_of("Gemm")("2x3,3x4,minus-c", t(2, 3), const(3, 4), t(2, 4), beta=-1.0, dtypes=(*FLOATS, "int32", "int64"))
# An axis of ... has one element in the operand that comes later.
table_of("Einsum")("broadcast-later", t(2, 3, 4), t(1, 4, 5), equation="...ij,...jk->...ik")
_rows, _columns = const(2, init=integers(0, 9)), const(2, init=integers(0, 9))
_a, _b = t(2, 5, init=all_integers), const(5, 2, init=all_integers)
table_of("MatMulInteger")("2x5,5x2,per-row,per-column", _a, _b, _rows, _columns)
table_of("QLinearMatMul")("2x5,5x2,per-row,per-column", _a, scales(0.5, 0.25), _rows, _b, scales(0.5, 0.25), _columns,
                          scales(16), _point)  # fmt: skip
# Zero points of a stack of matrices, one for each row of each matrix; zero points of no columns.
_stack, _each = t(2, 3, 4, init=all_integers), const(2, 3, 1, init=integers(0, 9))
_right = const(4, 5, init=all_integers)
table_of("MatMulInteger")("2x3x4,4x5,per-row-of-each", _stack, _right, _each)
table_of("MatMulInteger")("3x4,4x0,per-column", t(3, 4), const(4, 0), None, const(0))
_scale_of_each = scales(0.5, 0.25, 1, 0.5, 0.25, 1, shape=(2, 3, 1))
table_of("QLinearMatMul")("2x3x4,4x5,per-row-of-each", _stack, _scale_of_each, _each, _right, scales(0.5), _point,
                          scales(16), _point)  # fmt: skip
table_of("QLinearMatMul")("3x4,4x0,per-column", t(3, 4), scales(0.5), _point, const(4, 0), t(0, dtype="float32"),
                          const(0), scales(16), _point)  # fmt: skip
# A vector has only axis 0, although 1 is the default; one scale may be a vector, even of a scalar.
_bytes_of_vector = values([3, 250, 7, 90, 0], "uint8")
_five = scales(0.5, 0.25, 2, 4, 1)
table_of("QuantizeLinear")("vector,default-axis", t(5, dtype="float32"), _five, const(5, init=integers(3, 9)))
_points = const(5, init=integers(3, 9), dtype="uint8")
table_of("DequantizeLinear")("vector,default-axis", _bytes_of_vector, _five, _points, dtypes=_FLOAT32)
table_of("QuantizeLinear")("scalar,scale-vector-of-1", t(dtype="float32"), scales(0.5, shape=(1,)), dtypes=["uint8"])
table_of("DequantizeLinear")("scalar,scale-vector-of-1", values(9, "uint8"), scales(0.5, shape=(1,)), dtypes=_FLOAT32)
table_of("LayerNormalization")("one-element,all-outputs", t(4, 3, 1), const(1), const(1), outputs=3)

# **** moved elements ****

for _mode in ("edge", "reflect", "wrap"):
    table_of("Pad")(f"{_mode},crop-and-pad", t(5, 6), ints(-1, 2, 3, -2), mode=_mode)
for _upper in (0, 1):
    table_of("Trilu")(f"2x9,k6,upper{_upper}", t(2, 9), values(6, "int64"), upper=_upper)
    table_of("Trilu")(f"9x2,k-6,upper{_upper}", t(9, 2), values(-6, "int64"), upper=_upper)

table_of("Flatten")("vector,axis-1", t(5), axis=-1)

# **** Resize: the size stays, and the elements do not ****

_resize = table_of("Resize")
_similar = values([1, 1, 1.15, 1.125], "float32")
_resize("linear,same-size,other-scale", t(1, 2, 5, 6), None, _similar, mode="linear", dtypes=FLOATS)
_resize("nearest,same-size,other-scale", t(1, 2, 5, 6), None, _similar, mode="nearest",
        coordinate_transformation_mode="asymmetric", nearest_mode="floor")  # fmt: skip
_part = values([0, 0, 0.25, 0.125, 1, 1, 0.75, 0.875], "float32")
_resize("linear,crop,same-size", t(1, 2, 5, 6), _part, None, ints(1, 2, 5, 6), mode="linear", dtypes=FLOATS,
        coordinate_transformation_mode="tf_crop_and_resize")  # fmt: skip
_resize("linear,n0,to-size", t(0, 2, 3, 3), None, None, ints(0, 2, 6, 6), mode="linear", dtypes=FLOATS)

# **** GridSample ****

_sample = table_of("GridSample")
_outside = values([[[[x, y] for x in (-2.5, -1.25, 1.5, 3.25)] for y in (-1.75, 0.5, 2.25)]], "float32")
for _align in (0, 1):
    _mirror: dict[str, Any] = {"padding_mode": "reflection", "align_corners": _align, "dtypes": _FLOAT32}
    _sample(f"linear,h2w2,reflection,align{_align}", t(1, 2, 2, 2), _outside, mode="linear", **_mirror)
    # Half-way between elements outside: first the even one is chosen, then mirrored. Coordinates are exact.
    _sizes = (5, 5) if _align else (4, 4)
    _sample(
        f"nearest,half-way,reflection,align{_align}",
        t(1, 2, *_sizes),
        values(np.array([[[[k / 4, -k / 4] for k in range(-11, 12)]]]), "float32"),
        mode="nearest",
        **_mirror,
    )
    # Coordinates are some thousand elements outside, and exact.
    _thousands = values([[[[1499.625, -1000.25], [-2047.75, 4099.125], [0.25, 3001.5]]]], "float32")
    _sample(f"linear,far,reflection,align{_align}", t(1, 2, *_sizes), _thousands, mode="linear", **_mirror)
_sample("linear,wide-image", t(1, 1, 1, 2049), values([[[[k / 8, 0] for k in (-7, -2, 1, 5, 7)]]], "float32"),
        dtypes=_FLOAT32, align_corners=1, padding_mode="border")  # fmt: skip
# Infinities lie just beyond the neighbours of the point: columns 1 to 4 in mode cubic, 2 and 3 in mode linear.
_point_between = values([[[[-0.275, -0.2]]]], "float32")
for _mode, _columns_beyond in (("linear", (1, 4)), ("cubic", (0, 5))):
    _infinite = np.arange(48.0).reshape(1, 1, 6, 8)
    _infinite[..., _columns_beyond] = inf
    _sample(f"{_mode},infinity-elsewhere", values(_infinite), _point_between, mode=_mode, dtypes=_FLOAT32)
_quarters = values([[[[-0.125, 0.375], [0.375, -0.375], [-0.375, -0.125]]]], "float32")
for _type, _number in (("uint16", 60000), ("int32", 2**30 + 16), ("uint32", 3 * 2**30 + 16)):
    _numbers = np.array([[[[0, _number, 16, _number], [_number, 32, 48, _number], [_number] * 4, [0, _number] * 2]]])
    _sample(f"linear,large-integers-{_type}", values(_numbers), _quarters, dtypes=[_type])

# **** Clip: an infinity stays one where infinite bounds are given; without bounds it may become ONNX's default ****

table_of("Clip")("infinities,infinite-bounds", values([inf, 1, -inf, 0]), values(-inf), values(inf), dtypes=FLOATS)

# **** windows: a symmetric one of one element has any value, but one; sizes that 16 bits do not hold ****

for _op in ("HannWindow", "HammingWindow", "BlackmanWindow"):
    table_of(_op)("1,symmetric", values(1, constant=True), periodic=0, unspecified=lambda *_: np.array(True))
    table_of(_op)("40000", values(40000, constant=True), output_datatype=DType.FLOAT32, dtypes=["int32"])
