"""Operators that are one pass of NumPy, a copy, a view, or a matrix product of BLAS: a loop would not be faster."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_core import ops
from lite_core.backend import No, Yes
from lite_core.ir import Array, DType, Node
from lite_core.ops.evaluate import evaluate_op
from lite_numba.backend import backend

#: Loops see float16 and bfloat16 as float32.
FLOATS = ("float16", "bfloat16", "float32", "float64")

_VIEWS_AND_COPIES = """
    CenterCropPad Compress Concat ConstantOfShape DepthToSpace Dropout Expand EyeLike Flatten Gather GatherElements
    GatherND Identity OneHot Pad Range Reshape ReverseSequence Shape Size Slice SpaceToDepth Squeeze Tile Transpose
    Trilu Unsqueeze Where
"""
_ARITHMETIC = """
    Abs Acos Acosh Add AffineGrid And Asin Asinh Atan Atanh BatchNormalization BitShift BitwiseAnd BitwiseNot
    BitwiseOr BitwiseXor Cast CastLike Ceil Celu Clip Cos Cosh DequantizeLinear Div DynamicQuantizeLinear Elu Equal Exp
    Floor Greater GreaterOrEqual IsInf IsNaN Less LessOrEqual Log LpNormalization Max Mean MeanVarianceNormalization
    Min Mod Mul Neg Not Or PRelu Pow QuantizeLinear RMSNormalization Reciprocal Relu Round Selu Shrink Sign Sin Sinh
    Softplus Softsign Sqrt Sub Sum Tan Tanh Xor
"""
_REDUCTIONS = """
    ArgMax ArgMin AveragePool CumSum GlobalAveragePool GlobalLpPool GlobalMaxPool GridSample Hardmax LpPool MaxPool
    NonZero ReduceLogSum ReduceLogSumExp ReduceMax ReduceMin ReduceProd Resize Unique
"""
_PRODUCTS = "Conv ConvInteger ConvTranspose Einsum Gemm MatMul MatMulInteger QLinearConv QLinearMatMul"


def by_reference(op: str, domain: str = "") -> None:
    """Register an operator's NumPy reference as its kernel; it follows kernels that accept only some nodes."""
    definition = ops.find(op, domain)
    assert definition is not None, op
    for outputs in range(1, len(definition.outputs) + 1):
        _with_outputs(definition, outputs)


def _with_outputs(definition: ops.OpDef, outputs: int) -> None:
    """Register a kernel for nodes with so many outputs: a reference computes only those."""

    def call(*inputs: Array | None, **attributes: Any) -> tuple[Array, ...]:
        results = evaluate_op(definition, inputs, attributes, outputs)
        return tuple(np.asarray(result, order="C") for result in results)

    def accepts(node: Node) -> Yes | No:
        if len(node.outputs) != outputs:
            return No(f"this kernel computes {outputs} outputs, the node has {len(node.outputs)}")
        return _no_texts(node)

    call.__name__ = definition.name.lower()
    backend.kernel(definition.name, domain=definition.domain, compiled=False, when=accepts)(call)


def _no_texts(node: Node) -> Yes | No:
    texts = [v.name for v in (*node.inputs, *node.outputs) if v is not None and v.dtype is DType.STRING]
    return No(f"texts are left to host, {texts[0]!r} holds some") if texts else Yes()


for _op in f"{_VIEWS_AND_COPIES} {_ARITHMETIC} {_REDUCTIONS} {_PRODUCTS}".split():
    by_reference(_op)


@backend.kernel("Split", compiled=False, when=_no_texts)
def split(data: Array, lengths: Array | None, *, axis: int, num_outputs: int | None, out: tuple[Array, ...]) -> None:
    start = 0
    for part in out:
        part[...] = np.moveaxis(np.moveaxis(data, axis, 0)[start : start + part.shape[axis]], 0, axis)
        start += part.shape[axis]
