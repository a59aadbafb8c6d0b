"""Products with weights of 8 or 4 bits: weight_only_linear, llm_int8_linear and the operators around them."""

from __future__ import annotations

import numpy as np

from lite_core.ir import DType, Value
from lite_paddle.lowering.context import Array, Context
from lite_paddle.lowering.registry import lowers
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.lowering.weight_layouts import stored_numbers
from lite_paddle.source import SourceOp

_NOT_CONSTANT = "its weight and scales must be parameters, because Paddle stores their numbers in an order of its own"


def _constant(context: Context, value: Value) -> Array:
    known = context.known(value)
    if known is None or known.dtype == object:
        raise Unlowerable(f"{_NOT_CONSTANT}, and {value.name!r} is computed")
    return known


def _weights(op: SourceOp, context: Context, bits: int, arch: int | None) -> Value:
    """Return the weight [K, N] dequantized by nodes, in the type of the scales; without ``arch`` it is kept [N, K]."""
    content = _constant(context, context.any_input(op, "weight", "x"))
    scales = _constant(context, context.any_input(op, "weight_scale", "scale"))
    if content.ndim != 2 or content.dtype.itemsize != 1:
        raise Unlowerable(f"its weight is {content.dtype.name}{list(content.shape)}, expected a matrix of int8")
    numbers = content.view(np.int8) if arch is None else stored_numbers(content, bits, arch)
    columns, depth = numbers.shape
    group = int(op.attrs.get("group_size", -1))
    attributes, expected = {"axis": 0}, [columns]
    if group > 0:
        attributes, expected = {"axis": 1, "block_size": group}, [-(-depth // group), columns]
    if list(scales.shape) != expected:
        raise Unlowerable(
            f"its scales have the shape {list(scales.shape)}, expected {expected} for a weight "
            f"[{depth}, {columns}] in groups of {group}"
        )
    narrow = numbers.astype((DType.INT8 if bits == 8 else DType.INT4).numpy)
    constants = [context.builder.constant(np.ascontiguousarray(array)) for array in (narrow, scales.T)]
    wide = context.node("DequantizeLinear", constants, attributes)
    return context.node("Transpose", [wide], {"perm": (1, 0)})


def _product(op: SourceOp, context: Context, weights: Value) -> None:
    """Compute ``x @ weights + bias`` in the type of the weights, which have that of the scales."""
    x, bias = context.any_input(op, "x"), context.any_optional(op, "bias")
    product = context.node("MatMul", [context.cast(x, weights.dtype), weights])
    if bias is not None:
        product = context.node("Add", [product, context.cast(bias, weights.dtype)])
    context.bind(op, "out", context.cast(product, x.dtype))


@lowers("weight_only_linear")
def weight_only_linear(op: SourceOp, context: Context) -> None:
    """Multiply by weights of 8 or 4 bits with a scale for each column, or for each column of a group of rows."""
    bits = {"int8": 8, "int4": 4}.get(str(op.attrs.get("weight_dtype")))
    if bits is None:
        raise Unlowerable(f"its weight_dtype is {op.attrs.get('weight_dtype')!r}, expected int8 or int4")
    _product(op, context, _weights(op, context, bits, int(op.attrs.get("arch", 80))))


@lowers("llm_int8_linear")
def llm_int8_linear(op: SourceOp, context: Context) -> None:
    """Multiply by weights of 8 bits with a scale for each column.

    NOTE: Paddle rounds columns of x to 8 bits, unless they have an element above ``threshold``. Here no element of x is
    rounded, so that results are nearer to those of the model before it was quantized.
    """
    _product(op, context, _weights(op, context, 8, None))


@lowers("weight_dequantize")
def weight_dequantize(op: SourceOp, context: Context) -> None:
    """Return the weight [K, N] in the type of its scales. Without an attribute for it, ``arch`` is Paddle's default."""
    orders = {"weight_only_int8": (8, 80), "weight_only_int4": (4, 80), "llm.int8": (8, None)}
    algorithm = str(op.attrs.get("algo"))
    if algorithm not in orders:
        raise Unlowerable(f"its algo is {algorithm!r}, expected one of {', '.join(orders)}")
    context.bind(op, "out", _weights(op, context, *orders[algorithm]))


@lowers("apply_per_channel_scale")
def apply_per_channel_scale(op: SourceOp, context: Context) -> None:
    """Multiply the last axis by scales, which smooth activations before they are quantized."""
    x, scales = context.any_input(op, "x"), context.any_input(op, "scales")
    context.bind(op, "out", context.node("Mul", [x, context.cast(scales, x.dtype)]))
