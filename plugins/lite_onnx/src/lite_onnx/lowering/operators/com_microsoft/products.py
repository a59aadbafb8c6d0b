"""Matrix products and convolutions fused with neighboring operators."""

from __future__ import annotations

from collections.abc import Sequence

from lite_core.ir import Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import Item, SourceNode
from lite_onnx.lowering.node_attributes import number, numbers, present_attributes
from lite_onnx.lowering.operators.com_microsoft.fused_activations import MICROSOFT, apply_activation
from lite_onnx.lowering.registry import lowers

_CONVOLUTION = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")


@lowers("FusedMatMul", "TransposeMatMul", "FusedMatMulActivation", domain=MICROSOFT)
def fused_matmul(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower ``alpha * op(A) @ op(B)``; op may move the first axis behind the other batch axes and swap the last two."""
    a = _transposed(context.value(node, 0), "A", node, context)
    b = _transposed(context.value(node, 1), "B", node, context)
    product = context.add("MatMul", [a, b])
    alpha = number(node, "alpha", 1.0)
    if alpha != 1:
        product = context.add("Mul", [product, context.scalar_like(alpha, product)])
    parameters = [number(node, f"activation_{name}", None) for name in ("alpha", "beta", "gamma")]
    return [
        apply_activation(product, number(node, "activation", ""), [p for p in parameters if p is not None], context)
    ]


def _transposed(x: Value, letter: str, node: SourceNode, context: Context) -> Value:
    swaps, moves = (number(node, f"{kind}{letter}", 0) for kind in ("trans", "transBatch"))
    rank = context.rank(x) if swaps or moves else 0
    if rank < 2:  # a vector cannot be transposed
        return x
    order = list(range(rank))
    if moves:  # [first, ..., rows, columns] as [..., rows, first, columns]
        order = [*order[1:-1], order[0], order[-1]]
    if swaps:
        order[-2:] = order[:-3:-1]
    return context.add("Transpose", [x], {"perm": tuple(order)})


@lowers("FusedGemm", domain=MICROSOFT)
def fused_gemm(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower Gemm followed by an activation."""
    result = context.add("Gemm", context.values(node), present_attributes(node, ("alpha", "beta", "transA", "transB")))
    parameters = [number(node, f"activation_{name}", None) for name in ("alpha", "beta", "gamma")]
    return [apply_activation(result, number(node, "activation", ""), [p for p in parameters if p is not None], context)]


@lowers("GemmFastGelu", domain=MICROSOFT)
def gemm_fast_gelu(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower the tanh approximation of Gelu of a product plus a bias."""
    total = context.add("MatMul", [context.value(node, 0), context.value(node, 1)])
    if node.has(2):
        total = context.add("Add", [total, context.value(node, 2)])
    return [context.add("Gelu", [total], {"approximate": "tanh"})]


@lowers("FusedConv", domain=MICROSOFT)
def fused_conv(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower Conv, followed by a sum with the fourth input, if present, and an activation."""
    result = context.add("Conv", context.values(node)[:3], present_attributes(node, _CONVOLUTION))
    addend = context.optional(node, 3)
    if addend is not None:
        result = context.add("Add", [result, addend])
    return [apply_activation(result, number(node, "activation", ""), numbers(node, "activation_params"), context)]
