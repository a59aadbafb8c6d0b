"""Matrix products and convolutions that were fused with what is around them."""

from __future__ import annotations

from collections.abc import Sequence

from lite_core.ir import Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import Item, SourceNode
from lite_onnx.lowering.operators.com_microsoft.naming import MICROSOFT, activated
from lite_onnx.lowering.reading import given, number, numbers
from lite_onnx.lowering.registry import lowers

_CONVOLUTION = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")


@lowers("FusedMatMul", "TransposeMatMul", "FusedMatMulActivation", domain=MICROSOFT)
def fused_matmul(node: SourceNode, context: Context) -> Sequence[Item]:
    """``alpha * op(A) @ op(B)``, where op may swap the last two axes, and move the first batch axis before them."""
    a = _transposed(context.value(node, 0), "A", node, context)
    b = _transposed(context.value(node, 1), "B", node, context)
    product = context.add("MatMul", [a, b])
    alpha = number(node, "alpha", 1.0)
    if alpha != 1:
        product = context.add("Mul", [product, context.scalar_like(alpha, product)])
    parameters = [number(node, f"activation_{name}", None) for name in ("alpha", "beta", "gamma")]
    return [activated(product, number(node, "activation", ""), [p for p in parameters if p is not None], context)]


def _transposed(x: Value, letter: str, node: SourceNode, context: Context) -> Value:
    swaps, moves = (number(node, f"{kind}{letter}", 0) for kind in ("trans", "transBatch"))
    rank = context.rank(x) if swaps or moves else 0
    if rank < 2:  # a vector has nothing to swap
        return x
    order = list(range(rank))
    if moves:  # [first, ..., rows, columns] as [..., rows, first, columns]
        order = [*order[1:-1], order[0], order[-1]]
    if swaps:
        order[-2:] = order[:-3:-1]
    return context.add("Transpose", [x], {"perm": tuple(order)})


@lowers("FusedGemm", domain=MICROSOFT)
def fused_gemm(node: SourceNode, context: Context) -> Sequence[Item]:
    """Gemm and an activation."""
    result = context.add("Gemm", context.values(node), given(node, ("alpha", "beta", "transA", "transB")))
    parameters = [number(node, f"activation_{name}", None) for name in ("alpha", "beta", "gamma")]
    return [activated(result, number(node, "activation", ""), [p for p in parameters if p is not None], context)]


@lowers("GemmFastGelu", domain=MICROSOFT)
def gemm_fast_gelu(node: SourceNode, context: Context) -> Sequence[Item]:
    """Gelu, by its approximation with tanh, of a product and a bias."""
    total = context.add("MatMul", [context.value(node, 0), context.value(node, 1)])
    if node.has(2):
        total = context.add("Add", [total, context.value(node, 2)])
    return [context.add("Gelu", [total], {"approximate": "tanh"})]


@lowers("FusedConv", domain=MICROSOFT)
def fused_conv(node: SourceNode, context: Context) -> Sequence[Item]:
    """Conv, then a sum with a fourth input if it is there, then an activation."""
    result = context.add("Conv", context.values(node)[:3], given(node, _CONVOLUTION))
    addend = context.optional(node, 3)
    if addend is not None:
        result = context.add("Add", [result, addend])
    return [activated(result, number(node, "activation", ""), numbers(node, "activation_params"), context)]
