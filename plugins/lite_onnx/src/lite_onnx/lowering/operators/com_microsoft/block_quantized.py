"""MatMulNBits and GatherBlockQuantized: weights of 2 to 8 bits with a scale for each block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lite_core.ir import DType, Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import Item, SourceNode
from lite_onnx.lowering.node_attributes import number
from lite_onnx.lowering.operators.com_microsoft.fused_activations import MICROSOFT
from lite_onnx.lowering.registry import lowers
from lite_onnx.lowering.unlowerable import Unlowerable

Array = np.ndarray[Any, Any]


@lowers("MatMulNBits", domain=MICROSOFT)
def matmul_n_bits(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower ``A @ W^T + bias`` with W [N, K], which is quantized in blocks along K, to a product with W dequantized.

    W stays in few bits: 8 bits as int8 or uint8, fewer as int4 or uint4. Only zero points that are no integers, and
    ``g_idx`` with groups of several sizes, are dequantized when the model is read.
    """
    a = context.value(node, 0)
    rows, depth = int(number(node, "N", 0)), int(number(node, "K", 0))
    bits, block = int(number(node, "bits", 4)), int(number(node, "block_size", 0))
    if bits not in (2, 4, 8) or block < 1 or rows < 1 or depth < 1:
        raise Unlowerable(f"it has {bits} bits and blocks of {block} for weights [{rows}, {depth}]")
    blocks = -(-depth // block)
    numbers = _unpacked(context.must_know(node, 1, "B").reshape(rows, -1), bits)[:, :depth]
    scales = context.must_know(node, 2, "scales").reshape(rows, blocks)
    zeros = _zero_points(node, rows, blocks, bits, context)
    order = np.arange(depth) // block
    if node.has(4):
        order = context.must_know(node, 4, "g_idx")
        if order.shape != (depth,) or not ((order >= 0) & (order < blocks)).all():
            raise Unlowerable(f"its g_idx {list(order.shape)} does not name a block for each of {depth} columns")
    sorted_columns = np.argsort(order, kind="stable")
    in_blocks = np.array_equal(order[sorted_columns], np.arange(depth) // block)
    if not in_blocks or (zeros is not None and not _are_codes(zeros, bits)):
        shift = np.float32(1 << (bits - 1)) if zeros is None else zeros.astype(np.float32)[:, order]
        weights = (numbers.astype(np.float32) - shift) * scales.astype(np.float32)[:, order]
        right = context.constant(np.ascontiguousarray(weights.T.astype(a.dtype.numpy)))
    else:
        if not np.array_equal(sorted_columns, np.arange(depth)):
            a = context.add("Gather", [a, context.constant(sorted_columns.astype(np.int64))], {"axis": -1})
            numbers = numbers[:, sorted_columns]
        right = _dequantized(context, numbers, scales.astype(a.dtype.numpy), zeros, bits, block)
    product = context.add("MatMul", [a, right])
    bias = context.optional(node, 5)
    return [product if bias is None else context.add("Add", [product, bias])]


def _dequantized(context: Context, numbers: Array, scales: Array, zeros: Array | None, bits: int, block: int) -> Value:
    """Return W^T, dequantized by nodes; without zero points the middle of the range stands for 0."""
    if zeros is None:
        signed = numbers.astype(np.int8) - np.int8(1 << (bits - 1)) if bits < 8 else (numbers ^ 0x80).view(np.int8)
        arrays = [signed.astype((DType.INT8 if bits == 8 else DType.INT4).numpy), scales]
    else:
        dtype = DType.UINT8 if bits == 8 else DType.UINT4
        arrays = [numbers.astype(dtype.numpy), scales, zeros.astype(np.uint8).astype(dtype.numpy)]
    constants = [context.constant(np.ascontiguousarray(array)) for array in arrays]
    weights = context.add("DequantizeLinear", constants, {"axis": 1, "block_size": block})
    return context.add("Transpose", [weights], {"perm": (1, 0)})


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
    if bits == 8:
        return content.view(np.uint8)
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    numbers = (content.view(np.uint8)[:, :, None] >> shifts) & ((1 << bits) - 1)
    return numbers.reshape(len(content), -1)


def _zero_points(node: SourceNode, rows: int, blocks: int, bits: int, context: Context) -> Array | None:
    """Return the zero point of each row and block; None for the middle of the range."""
    if not node.has(3):
        return None
    zeros = context.must_know(node, 3, "zero_points")
    if zeros.dtype != np.uint8:
        return zeros.reshape(rows, blocks)
    return _unpacked(zeros.reshape(rows, -1), bits)[:, :blocks]


def _are_codes(zeros: Array, bits: int) -> bool:
    """Return True if zero points are integers of the range of the weights."""
    wide = zeros.astype(np.float32)
    return bool(((wide >= 0) & (wide < 1 << bits) & (wide == np.rint(wide))).all())
