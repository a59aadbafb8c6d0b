"""Cases for branches of layers that ordinary data passes by: taps in the padding only, parts of large convolutions,
thresholds met exactly, regions of one element, infinities.
"""

from __future__ import annotations

from math import inf, nan
from typing import Any

import numpy as np

from lite_conformance.cases.op_cases import table_of
from lite_conformance.cases.operators import (  # noqa: F401 - these modules create the tables extended here
    activation,
    convolution,
    detection,
    determinant,
    elementwise_binary,
    generate,
    grid_sample,
    matmul,
    normalization,
    pooling,
    quantization,
    recurrent,
    reduction,
    search,
    shape,
    softmax,
    transposed_convolution,
)
from lite_conformance.cases.operators.layer_initializers import all_integers
from lite_conformance.cases.operators.operands import whole_range
from lite_conformance.cases.operators.spatial import scales
from lite_conformance.cases.tensors import Array, Tensor, const, integers, ints, positive, short_name, t, values
from lite_core.ir import DType
from lite_core.ops.dtypes import FLOATS

_FLOAT32 = ["float32"]


def _distinct_in_order(random: np.random.Generator, size: tuple[int, ...], dtype: DType) -> Array:
    """Return falling numbers, every other one twice."""
    return (-(np.arange(size[0]) * 3 // 4)).astype(dtype.numpy)


# **** convolutions: most taps lie in the padding; more data than one part of an unfolded tensor holds ****

_point = const(init=integers(3, 9))
for _group, _name in ((3, "depthwise"), (1, "one-group")):
    _shape = (3, 3 // _group, 3, 3)
    _k: dict[str, Any] = {"pads": (1, 1, 1, 1), "group": _group}
    _label = f"taps-in-the-padding,{_name}"
    table_of("Conv")(_label, t(1, 3, 1, 1), const(*_shape), **_k)
    table_of("ConvInteger")(_label, t(1, 3, 1, 1, init=all_integers), const(*_shape, init=all_integers), **_k)
    table_of("QLinearConv")(_label, t(1, 3, 1, 1, init=all_integers), scales(0.5), _point,
                            const(*_shape, init=all_integers), scales(0.5), _point, scales(8), _point,
                            **_k)  # fmt: skip
    table_of("ConvTranspose")(_label, t(1, 3, 1, 1), const(3, 3 // _group, 3, 3), **_k)
_eight_bits = integers(0, 100)
for _op, _rest in (("ConvInteger", False), ("QLinearConv", True)):
    _x, _w = t(1, 8, 131, 130, init=_eight_bits), const(2, 8, 3, 3, init=_eight_bits)
    _inputs = (_x, scales(0.5), _point, _w, scales(0.5), _point, scales(512), _point) if _rest else (_x, _w)
    table_of(_op)("h131w130,large", *_inputs, dtypes=["uint8"])
_q = (scales(0.5), _point, const(3, 2, 2, 2, 2, init=all_integers), scales(0.5), _point, scales(32), _point)
table_of("QLinearConv")("n2c2d3h4w3,o3,k2,volume", t(2, 2, 3, 4, 3, init=all_integers), *_q)
# With these scales, an error of 1 in the bias is an error of 1 in the result.
table_of("QLinearConv")(
    "bias-at-run-time,every-step-counts", t(1, 2, 3, 3, init=integers(0, 3)), scales(1), values(0, constant=True),
    const(3, 2, 1, 1, init=integers(0, 3)), scales(1), values(0, constant=True), scales(1), values(0, constant=True),
    values([3, 17, 90], "int32"),
)  # fmt: skip
# The range is 255 steps, and its ends are halves: both round up, to a sum of 256, which saturates.
table_of("DynamicQuantizeLinear")("halves-at-both-ends", values([-127.5, 127.5, 0.0]), outputs=3)
table_of("DequantizeLinear")("int32,zero-point0", values([-90000, 5, 7], "int32"), scales(0.5),
                             values(0, "int32", constant=True), dtypes=_FLOAT32)  # fmt: skip

# **** recurrent layers: elements equal to the threshold of ThresholdedRelu, 1 by default, and just above it ****

_steps = values([[[1.0]], [[1.005]], [[0.5]], [[3.0]]])
_one, _none = values([[[1.0]]], constant=True), values([[[0.0]]], constant=True)
table_of("RNN")("on-the-threshold", _steps, _one, _none, hidden_size=1, activations=("ThresholdedRelu",),
                dtypes=_FLOAT32)  # fmt: skip
_w, _r = values([[[1.0]] * 3], constant=True), values([[[0.0]] * 3], constant=True)
table_of("GRU")("on-the-threshold", _steps, _w, _r, hidden_size=1, activations=("Sigmoid", "ThresholdedRelu"),
                dtypes=_FLOAT32)  # fmt: skip
_w, _r = values([[[1.0]] * 4], constant=True), values([[[0.0]] * 4], constant=True)
table_of("LSTM")("on-the-threshold", _steps, _w, _r, hidden_size=1,
                 activations=("Sigmoid", "ThresholdedRelu", "Tanh"), dtypes=_FLOAT32)  # fmt: skip
table_of("RNN")("one-of-two-has-alpha", t(3, 2, 4), const(2, 5, 4), const(2, 5, 5),
                direction="bidirectional", hidden_size=5, activations=("Tanh", "LeakyRelu"),
                activation_alpha=(0.25,), dtypes=_FLOAT32)  # fmt: skip

# **** NaN and infinities ****

table_of("Softmax")("infinity", values([[inf, 1, 2], [-inf, 1, 2], [1, 2, 3]]), dtypes=FLOATS)
table_of("Softsign")("infinity-by-the-formula", values([1e30, -1e30, 1.0]), dtypes=["float32", "float64"])
table_of("GlobalLpPool")("infinity,p1", values([[[inf, 1.0, 2], [1, 2, 3]]]), p=1, dtypes=FLOATS)
table_of("LpPool")("infinity,p1", values([[[inf, 1.0, 2, 3], [1, 2, 3, -inf]]]), p=1, kernel_shape=(2,), dtypes=FLOATS)
table_of("LpNormalization")("infinity,p1", values([[inf, 1.0, 2], [1, 2, 3]]), p=1, dtypes=_FLOAT32)
table_of("LayerNormalization")("infinity", values([[inf, 1.0, 2], [1, 2, 3]]), values([1.0, 2, 3]), dtypes=_FLOAT32)
table_of("LayerNormalization")("infinite-bias", values([[1, 2.0, 4]]), values([1.0, 2, 3]), values([inf, 0, -inf]),
                               dtypes=_FLOAT32)  # fmt: skip
for _op in ("InstanceNormalization", "GroupNormalization"):
    _more: dict[str, Any] = {"num_groups": 2} if _op == "GroupNormalization" else {}
    table_of(_op)("infinite-bias", t(1, 2, 5), const(2), values([inf, 0.5], constant=True), dtypes=_FLOAT32, **_more)
table_of("MeanVarianceNormalization")("infinity", values([[[[inf, 1.0, 2]], [[1, 2, 3]]]]), dtypes=_FLOAT32)
table_of("Det")("infinite", values([[[inf]], [[-inf]], [[2.0]]]), dtypes=_FLOAT32)
table_of("AffineGrid")("infinite-shift", values([[[1, 0, inf], [0, 2, -inf]]]), ints(1, 1, 3, 4), dtypes=_FLOAT32)
table_of("ConstantOfShape")("infinity", ints(2, 3), value=values([inf]), dtypes=_FLOAT32)
table_of("GridSample")(
    "nearest,not-finite", values([[[[nan, inf, 1], [2, -inf, 3]]]]),
    values([[[[x, y] for x in (-0.6, 0.1, 0.6)] for y in (-0.4, 0.4)]], "float32"), mode="nearest", dtypes=FLOATS,
)  # fmt: skip

# **** integers ****

# Multiples of a large power of two: float32 holds them, in which the bias would be subtracted.
_multiples = values([200, 3, 100, 255, 0, *(n * 2**24 for n in (3, 200, 255))])
table_of("Shrink")("above-the-half", _multiples, lambd=4.0, dtypes=("uint32", "uint64"))
table_of("Shrink")("above-the-half,small", t(67, init=whole_range), lambd=4.0, dtypes=("uint8", "uint16"))
table_of("GridSample")(
    "linear,integers", values([[[[0, 100, 200], [7, 254, 60]]]]),
    values([[[[-0.3, 0.2], [0.1, -0.45], [0.6, 0.15]]]], "float64"), dtypes=("uint8", "int32", "int64"),
)  # fmt: skip


def _exact(*elements: int) -> Tensor:
    """Return one row for each of these integers; float64 does not hold all of them."""

    def initialize(random: np.random.Generator, size: tuple[int, ...], dtype: DType) -> Array:
        return np.array(elements, dtype.numpy).reshape(size)

    return Tensor((len(elements), 1), initialize)


_LARGE = {"int32": 2**24 + 1, "uint32": 3 * 2**30 + 1, "int64": 2**53 + 1, "uint64": 2**63 + 2**11 + 1}
for _type, _number in _LARGE.items():
    table_of("ReduceMean")(f"large-numbers-{short_name(_type)}", _exact(_number, _number - 2), ints(1), dtypes=[_type])
for _op in ("ReduceL2", "ReduceLogSum"):
    # Sums of squares that fit; roots and logarithms that are far from the next integer.
    _few = _exact(30001, 40000) if _op == "ReduceL2" else _exact(2**31 - 9, 2**24 + 3)
    table_of(_op)("large-numbers", _few, ints(1), dtypes=("int32", "uint32", "int64", "uint64"))
table_of("ReduceLogSum")("large-numbers-u32", _exact(2**32 - 9), ints(1), dtypes=["uint32"])
for _type in ("int64", "uint64"):
    table_of("ReduceLogSum")(f"large-numbers-{short_name(_type)}", _exact(2**40 + 9), ints(1), dtypes=[_type])

# **** reductions over no axes: the elements themselves, where all versions of ONNX agree ****

for _op in ("ReduceL1", "ReduceL2", "ReduceLogSumExp"):
    table_of(_op)("over-no-axes", t(3, 4, init=positive), noop_with_empty_axes=1, dtypes=FLOATS)
table_of("ReduceSumSquare")("over-no-axes", values([[0.0, 1, 1], [1, 0, 1]]), noop_with_empty_axes=1, dtypes=FLOATS)

# **** regions of an image of one element, and regions without a size ****

_align: dict[str, Any] = {"output_height": 2, "output_width": 2, "dtypes": _FLOAT32}
_image = values([0], "int64")
table_of("RoiAlign")("one-element", values([[[[3.0]]]]), values([[0.0, 0, 1, 1]]), _image, **_align)
table_of("RoiAlign")("no-size", t(1, 2, 5, 5, init=positive), values([[2.0, 2, 2, 2], [1, 2, 1, 4]]),
                     values([0, 0], "int64"), **_align)  # fmt: skip

# **** CastLike: as Cast ****

for _to in ("int8", "uint8", "int16", "int32"):
    table_of("CastLike")(f"wraps,to-{short_name(_to)}", t(259, init=whole_range), t(1, dtype=_to),
                         dtypes=("int32", "int64"))  # fmt: skip
table_of("CastLike")("to-i64,large", values([2.0**24 + 1, -(2.0**40) - 1]), t(1, dtype="int64"), dtypes=["float64"])
table_of("NonZero")("multiples-of-2-to-the-32", _exact(2**32, 0, 2**40), dtypes=("int64", "uint64"))

# **** more elements than 16 bits count ****

table_of("Det")("beyond-16-bits,results", t(65600, 1, 1, init=positive), dtypes=_FLOAT32)
table_of("Unique")("beyond-16-bits,results", Tensor((65600,), _distinct_in_order), outputs=4, dtypes=_FLOAT32)
table_of("RoiAlign")("beyond-16-bits,results", t(1, 5, 120, 121), values([[0.0, 0, 119.5, 118.25]]), _image,
                     output_height=120, output_width=121, sampling_ratio=1, dtypes=_FLOAT32)  # fmt: skip
