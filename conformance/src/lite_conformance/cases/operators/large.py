"""Tensors larger than one block of a blocked loop or one work group, so that borders of tiles and threads are tested.

In float32 only, for the operators in which networks spend their time; the sizes are no multiples of tile sizes.
"""

from __future__ import annotations

from typing import Any

from lite_conformance.cases.op_cases import table_of
from lite_conformance.cases.operators import (  # noqa: F401 - these modules create the tables extended here
    activation,
    convolution,
    elementwise_binary,
    elementwise_unary,
    gather,
    matmul,
    movement,
    normalization,
    pooling,
    reduction,
    search,
    shape,
    softmax,
)
from lite_conformance.cases.tensors import Tensor, const, distinct, integers, ints, t


def _large(op: str, label: str, *inputs: Tensor | None, **attributes: Any) -> None:
    table_of(op)(f"large,{label}", *inputs, dtypes=["float32"], **attributes)


_large("MatMul", "531x263,263x397", t(531, 263), t(263, 397))
_large("MatMul", "1x1031,1031x517,weights", t(1, 1031), const(1031, 517))
_large("Gemm", "257x300,521x300,transB", t(257, 300), const(521, 300), const(521), transB=1)
_large("Conv", "n1c61h58w59,o67,k3p1", t(1, 61, 58, 59), const(67, 61, 3, 3), const(67), pads=(1, 1, 1, 1))
_large("Conv", "n1c130h29w29,o257,k1", t(1, 130, 29, 29), const(257, 130, 1, 1))
_large("Conv", "n1c97h61w61,depthwise,k3s2", t(1, 97, 61, 61), const(97, 1, 3, 3), group=97, strides=(2, 2))
_large("Conv", "n2c3h113w115,o16,k7s2p3", t(2, 3, 113, 115), const(16, 3, 7, 7), strides=(2, 2), pads=(3, 3, 3, 3))
for _op in ("Add", "Mul"):
    _large(_op, "3x70001", t(3, 70001), t(3, 70001))
    _large(_op, "1x61x58x59,61x1x1", t(1, 61, 58, 59), const(61, 1, 1))
    _large(_op, "301x403,403", t(301, 403), t(403))
for _op in ("Relu", "Sigmoid", "HardSwish", "Exp", "Tanh"):
    _large(_op, "200003", t(200003))
_large("Softmax", "301x1003", t(301, 1003))
_large("Softmax", "1003x31,axis0", t(1003, 31), axis=0)
_large("LayerNormalization", "301x771", t(301, 771), const(771), const(771))
for _op in ("ReduceSum", "ReduceMean", "ReduceMax"):
    _large(_op, "601x403,axis0", t(601, 403), ints(0), keepdims=0)
    _large(_op, "601x403,axis1", t(601, 403), ints(1), keepdims=0)
_large("GlobalAveragePool", "1x257x31x33", t(1, 257, 31, 33))
_large("MaxPool", "1x33x113x115,k3s2p1", t(1, 33, 113, 115), kernel_shape=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1))
_large("AveragePool", "1x33x61x63,k3s2", t(1, 33, 61, 63), kernel_shape=(3, 3), strides=(2, 2))
_large("Transpose", "301x503", t(301, 503), perm=(1, 0))
_large("Transpose", "1x61x58x59,to-channels-last", t(1, 61, 58, 59), perm=(0, 2, 3, 1))
_large("Concat", "301x203,301x305", t(301, 203), t(301, 305), axis=1)
_large("Gather", "1003x131,703", t(1003, 131), t(703, init=integers(0, 1003), dtype="int64"), axis=0)
_large("ArgMax", "301x1003", t(301, 1003, init=distinct), axis=1)
