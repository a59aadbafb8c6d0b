"""MatMulNBits and GatherBlockQuantized: weights of 2 to 8 bits with a scale for each block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import Item, SourceNode
from lite_onnx.lowering.node_attributes import number
from lite_onnx.lowering.operators.com_microsoft.fused_activations import MICROSOFT
from lite_onnx.lowering.registry import lowers
from lite_onnx.lowering.unlowerable import Unlowerable

Array = np.ndarray[Any, Any]


@lowers("MatMulNBits", domain=MICROSOFT)
def matmul_n_bits(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower ``A @ W^T + bias`` with W [N, K], which is quantized in blocks along K.

    NOTE: the weights are dequantized to A's type when the model is read: they need more memory, and the product is an
    ordinary MatMul.
    """
    a = context.value(node, 0)
    rows, depth = int(number(node, "N", 0)), int(number(node, "K", 0))
    bits, block = int(number(node, "bits", 4)), int(number(node, "block_size", 0))
    if bits not in (2, 4, 8) or block < 1 or rows < 1 or depth < 1:
        raise Unlowerable(f"it has {bits} bits and blocks of {block} for weights [{rows}, {depth}]")
    blocks = -(-depth // block)
    if node.has(4):
        order = context.must_know(node, 4, "g_idx")
        if order.shape != (depth,) or not ((order >= 0) & (order < blocks)).all():
            raise Unlowerable(f"its g_idx {list(order.shape)} does not name a block for each of {depth} columns")
    else:
        order = np.arange(depth) // block
    numbers = _unpacked(context.must_know(node, 1, "B").reshape(rows, -1), bits)[:, :depth]
    scales = context.must_know(node, 2, "scales").reshape(rows, blocks).astype(np.float32)
    zeros = _zero_points(node, rows, blocks, bits, context)
    weights = (numbers - zeros[:, order]) * scales[:, order]
    right = context.constant(np.ascontiguousarray(weights.T.astype(a.dtype.numpy)))
    product = context.add("MatMul", [a, right])
    bias = context.optional(node, 5)
    return [product if bias is None else context.add("Add", [product, bias])]


@lowers("GatherBlockQuantized", domain=MICROSOFT)
def gather_block_quantized(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower a Gather of rows of a quantized table of embeddings.

    NOTE: the table is dequantized when the model is read, like the weights of MatMulNBits.
    """
    data, scales = context.must_know(node, 0, "data"), context.must_know(node, 2, "scales")
    zeros = context.must_know(node, 3, "zero_points") if node.has(3) else None
    bits, block = int(number(node, "bits", 4)), int(number(node, "block_size", 128))
    axis, along = int(number(node, "gather_axis", 0)), int(number(node, "quantize_axis", 1)) % data.ndim
    middle = 0
    if data.dtype == np.uint8:
        if bits not in (2, 4, 8) or along != data.ndim - 1:
            raise Unlowerable(f"it has {bits} bits in bytes, in blocks along axis {along} of {data.ndim}")
        middle = 1 << (bits - 1)
        data = _unpacked(data.reshape(-1, data.shape[-1]), bits).reshape(*data.shape[:-1], -1)
        if zeros is not None:
            zeros = _unpacked(zeros.reshape(-1, zeros.shape[-1]), bits).reshape(*zeros.shape[:-1], -1)
    if block < 1 or scales.ndim != data.ndim or scales.shape[along] != -(-data.shape[along] // block):
        raise Unlowerable(f"its scales {list(scales.shape)} do not fit blocks of {block} in {list(data.shape)}")
    order = np.arange(data.shape[along]) // block
    shift = np.float32(middle) if zeros is None else np.take(zeros.astype(np.float32), order, along)
    table = (data.astype(np.float32) - shift) * np.take(scales.astype(np.float32), order, along)
    return [
        context.add("Gather", [context.constant(table.astype(scales.dtype)), context.value(node, 1)], {"axis": axis})
    ]


def _unpacked(content: Array, bits: int) -> Array:
    """Unpack rows of bytes to rows of unsigned numbers, lowest bits first."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    numbers = (content.view(np.uint8)[:, :, None] >> shifts) & ((1 << bits) - 1)
    return numbers.reshape(len(content), -1).astype(np.float32)


def _zero_points(node: SourceNode, rows: int, blocks: int, bits: int, context: Context) -> Array:
    """Return the zero point of each row and block; by default the middle of the range."""
    if not node.has(3):
        return np.full((rows, blocks), 1 << (bits - 1), np.float32)
    zeros = context.must_know(node, 3, "zero_points")
    if zeros.dtype != np.uint8:
        return zeros.reshape(rows, blocks).astype(np.float32)
    return _unpacked(zeros.reshape(rows, -1), bits)[:, :blocks]
