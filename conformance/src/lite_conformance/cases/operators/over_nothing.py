"""Operators over no elements: reductions, sums of products, windows in the padding, empty tensors.

A sum is 0, a product 1, a maximum the lowest number, a minimum the highest, a mean NaN: kernels that start from the
first element, or that skip empty tensors altogether, leave something else in the result.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_conformance.cases.op_cases import table_of
from lite_conformance.cases.operators import (  # noqa: F401 - these modules create the tables extended here
    convolution,
    grid_sample,
    matmul,
    movement,
    normalization,
    pooling,
    quantization,
    recurrent,
    reduction,
    search,
    softmax,
    transposed_convolution,
)
from lite_conformance.cases.operators.operands import FLOATS, INTEGERS, data, run_time_ints
from lite_conformance.cases.operators.spatial import scales
from lite_conformance.cases.tensors import const, integers, ints, t, values
from lite_conformance.judge.tolerances import ARITHMETIC

#: Element types of every kind: enough, because the cases of each operator have empty tensors in every type.
_SOME = ("float32", "float16", "int64", "uint8")

# **** reductions ****

_REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
#: Reductions whose result over nothing is no integer.
_NO_INTEGER = ("LogSum", "LogSumExp", "Mean")

for _name in _REDUCTIONS:
    _reduce = table_of(f"Reduce{_name}")
    _has_value = FLOATS if _name in _NO_INTEGER else None
    _some = ("float32", "float16") if _name in _NO_INTEGER else ("float32", "float16", "int64", "int32")
    _reduce("over-nothing,all,drop", t(0, 3), keepdims=0, dtypes=_has_value)
    _reduce("over-nothing,67x0,axis1,drop", t(67, 0), ints(1), keepdims=0, dtypes=_some)
    _reduce("over-nothing,0x67,axis0", t(0, 67), ints(0), dtypes=_some)
    _reduce("over-nothing,2x0x3x0,two-axes", t(2, 0, 3, 0), ints(1, 3), dtypes=_some)
    _reduce("over-nothing,2x0x3,axes1+2", t(2, 0, 3), ints(1, 2), keepdims=0, dtypes=_some)
    _reduce("over-nothing,2x0,axis-at-run-time", t(2, 0), run_time_ints(1), dtypes=_some)
    if _name in _NO_INTEGER:  # must not trap
        _reduce("over-nothing,integers", t(2, 0), ints(1), dtypes=INTEGERS, unspecified=lambda *_: np.array(True))

# **** sums of products: zeros, the bias, or the zero point ****

_gemm = table_of("Gemm")
_gemm("over-nothing,2x0,0x3", t(2, 0), const(0, 3), dtypes=_SOME)
_gemm("over-nothing,0x2,3x0,both-transposed,beta2", t(0, 2), t(3, 0), t(2, 3), dtypes=["float32"], transA=1, transB=1,
      alpha=0.5, beta=2.0)  # fmt: skip
_matmul = table_of("MatMul")
_matmul("over-nothing,67x0,0x65", t(67, 0), const(0, 65), dtypes=_SOME)
_matmul("over-nothing,0,0", t(0), t(0), dtypes=_SOME)
_matmul("over-nothing,2x3x0,2x0x4", t(2, 3, 0), t(2, 0, 4), dtypes=_SOME)
_point = const(init=integers(3, 9))
table_of("QLinearMatMul")("over-nothing,2x0,0x3", t(2, 0), scales(0.5), _point, const(0, 3), scales(0.5), _point,
                          scales(1), _point)  # fmt: skip
_conv = table_of("Conv")
_conv("over-nothing,n1c0h5w5,o4,k3", t(1, 0, 5, 5), const(4, 0, 3, 3), dtypes=FLOATS)
_conv("over-nothing,n1c0h5w5,o4,k3,bias", t(1, 0, 5, 5), const(4, 0, 3, 3), const(4), dtypes=FLOATS)
_conv("no-outputs,n1c3h5w5,o0,k3", t(1, 3, 5, 5), const(0, 3, 3, 3), dtypes=FLOATS)
table_of("ConvTranspose")("over-nothing,n1c0h3w3,o4,k3,bias", t(1, 0, 3, 3), const(0, 4, 3, 3), const(4), dtypes=FLOATS)
table_of("ConvInteger")("over-nothing,n1c0h5w5,o4,k3", t(1, 0, 5, 5), const(4, 0, 3, 3))
table_of("QLinearConv")("over-nothing,n1c0h5w5,o4,k3", t(1, 0, 5, 5), scales(0.5), _point, const(4, 0, 3, 3),
                        scales(0.5), _point, scales(1), _point)  # fmt: skip

# **** pooling: windows that lie in the padding ****

# The two taps of each window lie on both sides of an image of one element.
_astride: dict[str, Any] = {"kernel_shape": (2, 2), "dilations": (2, 2), "pads": (1, 1, 1, 1)}
table_of("MaxPool")("over-nothing,padding-only", t(1, 2, 1, 1), **_astride)
_average = table_of("AveragePool")
_average("over-nothing,padding-only", t(1, 2, 1, 1), **_astride)
_average("over-nothing,padding-only,counting-padding", t(1, 2, 1, 1), count_include_pad=1, **_astride)
table_of("LpPool")("over-nothing,padding-only", t(1, 2, 1, 1), **_astride)
for _name in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"):
    table_of(_name)("over-nothing,n2c3h0w4", t(2, 3, 0, 4))

# **** normalizations without elements to normalize, or without channels ****

table_of("LayerNormalization")("over-nothing,3x0", t(3, 0), const(0), const(0), dtypes=["float32"])
table_of("InstanceNormalization")("over-nothing,n2c3w0", t(2, 3, 0), const(3), const(3))
table_of("BatchNormalization")("over-nothing,n2c0w3", t(2, 0, 3), const(0), const(0), const(0), const(0))
table_of("LpNormalization")("over-nothing,3x0", t(3, 0))
for _name in ("Softmax", "LogSoftmax", "Hardmax"):
    table_of(_name)("over-nothing,2x0x3,axis1", t(2, 0, 3), axis=1)

# **** the rest ****

_concat = table_of("Concat")
_concat("over-nothing,0x3,0x3,0x3,axis0", data(0, 3), data(0, 3), data(0, 3), axis=0, dtypes=_SOME)
_concat("over-nothing,0,0", data(0), data(0), axis=0, dtypes=_SOME)
_concat("over-nothing,0x3,2x3,0x3,axis0", data(0, 3), data(2, 3), data(0, 3), axis=0, dtypes=_SOME)
_top = table_of("TopK")
_top("over-nothing,3x0,k0", t(3, 0), ints(0), outputs=2, dtypes=_SOME)
_top("over-nothing,3x4,axis0,k0,at-run-time", t(3, 4), run_time_ints(0), outputs=2, axis=0, dtypes=_SOME)
for _sorted in (0, 1):
    table_of("Unique")(f"over-nothing,sorted{_sorted}", t(0), outputs=4, sorted=_sorted, dtypes=_SOME)
table_of("NonZero")("over-nothing,0x3", t(0, 3), dtypes=_SOME)
table_of("DynamicQuantizeLinear")("over-nothing,0", t(0), outputs=3, numerics=ARITHMETIC)
table_of("GridSample")("over-nothing,no-points", t(1, 2, 4, 5), t(1, 0, 3, 2, dtype="float32"), dtypes=_SOME,
                       mode="nearest")  # fmt: skip
_steps = values([0, 3, 0], "int32")
table_of("LSTM")("over-nothing,lengths-of-0", t(3, 3, 2), const(1, 16, 2), const(1, 16, 4), const(1, 32), _steps,
                 outputs=3, hidden_size=4)  # fmt: skip
table_of("GRU")("over-nothing,lengths-of-0", t(3, 3, 2), const(1, 12, 2), const(1, 12, 4), const(1, 24), _steps,
                outputs=2, hidden_size=4)  # fmt: skip
table_of("RNN")("over-nothing,lengths-of-0", t(3, 3, 2), const(1, 4, 2), const(1, 4, 4), const(1, 8), _steps,
                t(1, 3, 4), outputs=2, hidden_size=4)  # fmt: skip
