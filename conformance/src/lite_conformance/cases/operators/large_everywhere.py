"""For every operator an operand and a result of more than 65,536 elements: counters of 16 bits and grids of threads.

:mod:`large` has the larger tensors of the operators in which networks spend their time. Left out are control flow,
whose bodies compute, and detection, whose tensors are lists of some thousand boxes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_conformance.cases.op_cases import table_of
from lite_conformance.cases.operators import (  # noqa: F401 - these modules create the tables extended here
    comparison,
    cumulative,
    deformable_convolution,
    determinant,
    einsum,
    generate,
    grid_sample,
    large,
    lite_boxes,
    padding,
    quantization,
    recurrent,
    resize,
    scatter,
    slicing,
    transposed_convolution,
    window,
)
from lite_conformance.cases.operators.box_initializers import boxes, on_grid
from lite_conformance.cases.operators.determinant import well_conditioned
from lite_conformance.cases.operators.layer_initializers import all_integers, small
from lite_conformance.cases.operators.operands import distinct_indices, indices
from lite_conformance.cases.operators.spatial import scales
from lite_conformance.cases.tensors import (
    Array,
    Tensor,
    const,
    distinct,
    integers,
    ints,
    positive,
    special,
    t,
    uniform,
    values,
)
from lite_core.ir import DType

_SIZES = (263, 257)  # more than 65,536 elements, odd in both directions
_MAPS = (1, 5, 120, 121)


def _add(op: str, *inputs: Tensor | None, dtype: str = "float32", domain: str = "", **attributes: Any) -> None:
    table_of(op, domain)("beyond-16-bits", *inputs, dtypes=[dtype], **attributes)


def _steps(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return the numbers 0, 1, ... in order, each for its own place."""
    return np.arange(int(np.prod(shape))).reshape(shape).astype(dtype.numpy)


# **** element-wise ****

for _op in (
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Celu", "Cos", "Cosh", "Dropout", "Elu", "Erf",
    "Floor", "Gelu", "HardSigmoid", "Identity", "LeakyRelu", "LogSoftmax", "Mish", "Neg", "Round",
    "Selu", "Shrink", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Tan", "ThresholdedRelu", "LpNormalization",
):  # fmt: skip
    _add(_op, t(*_SIZES))
_add("Swish", t(*_SIZES), domain="lite")
for _op in ("IsInf", "IsNaN"):
    _add(_op, t(*_SIZES, init=special))
_add("Equal", t(*_SIZES, init=integers(0, 2)), t(*_SIZES, init=integers(0, 2)))
for _op in ("Log", "Reciprocal", "Sqrt"):
    _add(_op, t(*_SIZES, init=positive))
_add("Not", t(*_SIZES), dtype="bool")
_add("BitwiseNot", t(*_SIZES), dtype="int32")
_add("Hardmax", t(*_SIZES, init=distinct))
for _op in ("Sub", "Max", "Min", "Mean", "Sum", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"):
    _add(_op, t(*_SIZES), t(*_SIZES))
for _op in ("Div", "Pow"):
    _add(_op, t(*_SIZES, init=positive), t(*_SIZES, init=positive))
for _op in ("And", "Or", "Xor"):
    _add(_op, t(*_SIZES), t(*_SIZES), dtype="bool")
for _op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor", "Mod"):
    _add(_op, t(*_SIZES, init=integers(1, 99)), t(*_SIZES, init=integers(1, 99)), dtype="int32")
_add("BitShift", t(*_SIZES), t(*_SIZES, init=integers(0, 5)), dtype="uint32", direction="LEFT")
_add("PRelu", t(*_SIZES), const(257))
_add("Clip", t(*_SIZES), values(-1.0), values(0.5))
_add("Where", t(*_SIZES, dtype="bool"), t(*_SIZES), t(*_SIZES))
_add("Cast", t(*_SIZES), to=DType.INT32)
_add("CastLike", t(*_SIZES), t(1, dtype="int32"))

# **** sums and extremes ****

for _op in (
    "ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum",
    "ReduceSumSquare",
):  # fmt: skip
    _add(_op, t(2, *_SIZES), ints(0), keepdims=0)
_add("ReduceLogSum", t(2, *_SIZES, init=positive), ints(0), keepdims=0)
for _op in ("ArgMax", "ArgMin"):
    _add(_op, t(2, *_SIZES, init=distinct), axis=0, keepdims=0)
_add("CumSum", t(*_SIZES), values(1, "int64", constant=True))
_add("TopK", t(*_SIZES, init=distinct), ints(250), outputs=2)
_add("Einsum", t(263, 257), const(257, 259), equation="ij,jk->ik")
for _op, _zero_points in (("MatMulInteger", ()), ("QLinearMatMul", (scales(0.5), const(init=integers(3, 9))))):
    _factors = [t(263, 257, init=all_integers), const(257, 259, init=all_integers)]
    if _zero_points:
        _factors = [_factors[0], *_zero_points, _factors[1], *_zero_points, scales(512), _zero_points[1]]
    _add(_op, *_factors, dtype="uint8")

# **** images ****

_parameters = [const(33), const(33)]
_add("BatchNormalization", t(2, 33, 37, 31), *_parameters, const(33), const(33, init=positive))
_add("InstanceNormalization", t(2, 33, 37, 31), *_parameters)
_add("GroupNormalization", t(2, 33, 37, 31), *_parameters, num_groups=11)
_add("MeanVarianceNormalization", t(2, 33, 37, 31))
_add("LRN", t(2, 33, 37, 31), size=3)
for _op in ("AveragePool", "LpPool", "MaxPool"):
    _add(_op, t(1, 5, 121, 122), kernel_shape=(2, 2))
for _op in ("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool"):
    _add(_op, t(1, 66001, 1, 2))
_add("MaxUnpool", t(1, 1, 257, 263), t(1, 1, 257, 263, init=_steps, dtype="int64"), kernel_shape=(1, 1))
_add("ConvTranspose", t(1, 5, 120, 121), const(5, 3, 3, 3), strides=(2, 2))
_add("ConvInteger", t(*_MAPS, init=all_integers), const(6, 5, 3, 3, init=all_integers), dtype="uint8")
_point = const(init=integers(3, 9))
_add("QLinearConv", t(*_MAPS, init=all_integers), scales(0.5), _point, const(6, 5, 3, 3, init=all_integers),
     scales(0.5), _point, scales(64), _point, dtype="uint8")  # fmt: skip
_add("DeformConv", t(*_MAPS), const(5, 5, 1, 1), t(1, 2, 120, 121))
_add("Resize", t(*_MAPS), None, None, ints(1, 5, 119, 123), mode="linear")
_add("GridSample", t(1, 5, 128, 128), t(1, 120, 123, 2, init=on_grid(-1, 1, 1 / 64)))  # exact coordinates
_add("AffineGrid", t(1, 2, 3), ints(1, 1, 190, 181))
_add("DepthToSpace", t(1, 20, 60, 61), blocksize=2)
_add("SpaceToDepth", t(1, 5, 120, 122), blocksize=2)
_add("Col2Im", t(1, 5 * 4, 119 * 120, init=small), ints(120, 121), ints(2, 2))

# **** moving elements ****

_add("Flatten", t(2, *_SIZES))
_add("Reshape", t(*_SIZES), ints(257, 263))
_add("Squeeze", t(1, *_SIZES), ints(0))
_add("Unsqueeze", t(*_SIZES), ints(0))
_add("Expand", t(1, *_SIZES), ints(2, *_SIZES))
_add("Tile", t(*_SIZES), ints(2, 1))
_add("Pad", t(*_SIZES), ints(1, 2, 3, 4))
_add("CenterCropPad", t(*_SIZES), ints(261, 259))
_add("Slice", t(300, 281), ints(1, 2), ints(299, 280), ints(0, 1))
_add("Split", t(600, 257), ints(300, 300), outputs=2)
_add("Trilu", t(*_SIZES), upper=0)
_add("ReverseSequence", t(*_SIZES), values(np.arange(1, 258), "int64", constant=True))
_add("Compress", t(*_SIZES), const(263, init=lambda r, s, d: np.arange(263) != 131, dtype="bool"), axis=0)
_add("NonZero", t(*_SIZES, init=integers(0, 2)))
_add("GatherElements", t(*_SIZES), indices(257, *_SIZES), axis=1)
_add("GatherND", t(*_SIZES), t(301, 1, init=integers(-263, 263), dtype="int64"))
_add("ScatterElements", t(300, 257), distinct_indices(257, 1, 263, 250), t(263, 250), axis=1)
_add("ScatterND", t(300, 257), values(np.arange(260)[::-1].reshape(-1, 1), "int64", constant=True), t(260, 257))

# **** generating ****

_add("OneHot", t(6601, init=integers(-11, 11), dtype="int64"), values(11, "int64", constant=True), values([0, 1]))
_add("EyeLike", t(*_SIZES))
_add("Range", values(0.0), values(70001.0), values(1.0))
_add("ConstantOfShape", ints(*_SIZES), dtype="int64")
for _op in ("HannWindow", "HammingWindow", "BlackmanWindow"):
    _add(_op, values(70001, constant=True), dtype="int64")

# **** quantization ****

_add("QuantizeLinear", t(*_SIZES, dtype="float32"), scales(0.25), const(init=integers(3, 9)), dtype="uint8")
_add("DequantizeLinear", t(*_SIZES, init=all_integers, dtype="int8"), const(init=uniform(0.1, 2)))
_add("DynamicQuantizeLinear", t(*_SIZES, init=integers(-100, 156)), outputs=3)

# **** matrices, sequences, boxes ****

_add("Det", t(300, 15, 15, init=well_conditioned))
for _op, _gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
    _weights = [const(1, _gates * 50, 53, init=uniform(-0.2, 0.2)), const(1, _gates * 50, 50, init=uniform(-0.2, 0.2))]
    _add(_op, t(3, 450, 53), *_weights, hidden_size=50)
_add("BoxCoder", t(129, 4, init=boxes()), None, t(131, 4, init=boxes()), domain="lite")
_add("BoxClip", t(1, 16501, 4, init=uniform(-30, 90)), values([(40.0, 50.0, 1.0)]), domain="lite")
_add("IouSimilarity", t(263, 4, init=boxes()), t(257, 4, init=boxes()), domain="lite")
