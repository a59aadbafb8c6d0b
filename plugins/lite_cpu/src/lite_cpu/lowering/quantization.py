"""Rewriting of quantized operators to integer products and element-wise operators.

Rules:
    1. Conv, MatMul and Gemm of dequantized 8-bit tensors (the form that quantization tools write)
       -> ConvInteger or MatMulInteger; the sums are dequantized by the product of the scales, then the bias is added.
    2. QLinearConv, QLinearMatMul -> the same, quantized again by one factor, ``x_scale * w_scale / y_scale``.
    3. QuantizeLinear of such sums, or of dequantized tensors, or of their sums -> if all scales are known, its division
       is folded into the factors and the bias, with the constants that multiply them.
    4. DynamicQuantizeLinear -> the extremes, the scale and the zero point by their definitions.
    5. DequantizeLinear or QuantizeLinear of constants outside integer products -> a constant.
    6. MaxPool of dequantized bytes -> the dequantized MaxPool of the bytes; bytes that are dequantized, then quantized
       with the same parameters -> the bytes.
    7. A scale or zero point for each element of an axis, or for each block -> the same, reshaped to broadcast.

Every operator after an integer product is element-wise and therefore fused into it.

A QuantizeLinear without a scale (its second input) marks an input that is already divided by the scale, and never NaN.
Rule 3 is in :mod:`.requantization`.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from math import prod
from typing import Any

import numpy as np

from lite_compiler.rewriting import Rewriter
from lite_core.ir import Attribute, DType, Graph, Node, Value
from lite_core.ops import attributes_of
from lite_core.ops.evaluate import evaluate_node
from lite_cpu.lowering.int8_convolution import refuse_conv_integer
from lite_cpu.lowering.int8_matmul import refuse_matmul_integer
from lite_cpu.lowering.int8_operands import is_single
from lite_cpu.lowering.registry import register_rewritten
from lite_cpu.lowering.requantization import fold_division, products_are_finite
from lite_cpu.lowering.shape import input_of, required_input
from lite_cpu.lowering.weights import WeightCache

__all__ = ["dequantize_weights", "rewrite_quantized"]

Array = np.ndarray[Any, Any]
F32, I32 = DType.FLOAT32, DType.INT32
_BYTES = (DType.INT8, DType.UINT8)
_QUANTIZED = ("DequantizeLinear", "DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul", "QuantizeLinear")
#: Attributes for factors of the last axis; factors of other axes have trailing dimensions of size 1.
_LAST: dict[str, Attribute] = {"axis": -1}


def rewrite_quantized(graph: Graph, weights: WeightCache) -> None:
    """Apply the rules to a graph whose shapes are all known, in place; ``weights`` caches the computed constants."""
    rewriter = Rewriter(graph)
    for node in list(rewriter.scope.nodes()):
        rule = _RULES.get(node.qualified_op)
        if rule is not None:
            rewriter.begin(node)
            rule(rewriter, node)
    rewriter.finish()
    rewriter = Rewriter(graph)
    for node in list(rewriter.scope.nodes()):
        if node.qualified_op == "QuantizeLinear":
            rewriter.begin(node)
            fold_division(rewriter, node)
    for node in list(rewriter.scope.nodes()):
        if node.qualified_op in ("QuantizeLinear", "DequantizeLinear"):
            rewriter.begin(node)
            if not _fold_constants(rewriter, node, weights):
                _broadcast_parameters(rewriter, node)
    rewriter.finish()


def dequantize_weights(graph: Graph, weights: WeightCache) -> Graph | None:
    """Apply rule 5 to a graph in which only constants are dequantized; this is a fast path for each new plan.

    Returns:
        A graph of the same values, with constants instead of these nodes; None if other values are quantized.
    """
    quantized = [node for node in graph.nodes if node.qualified_op in _QUANTIZED]

    def is_constant(node: Node) -> bool:
        known = all(v is None or v in graph.constants for v in node.inputs)
        return known and node.op == "DequantizeLinear" and node.outputs[0] is not None

    # Tested before anything is computed: the weights of a quantized model would take four times their size.
    if not all(map(is_constant, quantized)):
        return None
    constants = dict(graph.constants)
    for node in quantized:
        arrays = [None if v is None else graph.constants[v] for v in node.inputs]
        constants[node.outputs[0]] = _evaluate(node, arrays, weights)  # type: ignore[index]  # it has an output
    nodes = [node for node in graph.nodes if node.qualified_op not in _QUANTIZED]
    return Graph(graph.name, inputs=graph.inputs, outputs=graph.outputs, nodes=nodes, constants=constants)


# **** products of dequantized tensors ****


def _dequantizer(r: Rewriter, value: Value | None) -> Node | None:
    """Return the node that dequantized ``value`` from 8-bit integers, or None."""
    node = r.scope.producer(value, "DequantizeLinear")
    if node is None or required_input(node).dtype not in _BYTES or required_input(node, 1).dtype is not F32:
        return None
    return None if attributes_of(node)["block_size"] else node


def _has_parameters_along(node: Node, axis: int) -> bool:
    """Return True if scale and zero point are single numbers, or have one element for each element of ``axis``."""
    parameters = [required_input(node, 1), input_of(node, 2)]
    rank = len(required_input(node).shape)
    of_axis = attributes_of(node)["axis"] % max(1, rank) == axis % max(1, rank)
    return of_axis or all(is_single(v) for v in parameters)


def _fuse_conv(r: Rewriter, node: Node) -> None:
    x, w = _dequantizer(r, node.inputs[0]), _dequantizer(r, node.inputs[1])
    y = node.outputs[0]
    assert y is not None
    if x is None or w is None or not _is_per_tensor(x) or not _has_parameters_along(w, 0) or len(y.shape) not in (3, 4):
        return
    inputs = [x.inputs[0], w.inputs[0], input_of(x, 2), input_of(w, 2)]
    sums = r.add("ConvInteger", inputs, I32, y.shape, node.attributes)
    factor = _product(r, required_input(x, 1), _channelwise(r, required_input(w, 1), len(y.shape)))
    bias = _bias(r, input_of(node, 2))
    _dequantize_sums(r, sums, factor, None if bias is None else _channelwise(r, bias, len(y.shape)))


def _is_per_tensor(node: Node) -> bool:
    return is_single(required_input(node, 1)) and is_single(input_of(node, 2))


def _fuse_matmul(r: Rewriter, node: Node) -> None:
    a, b = _dequantizer(r, node.inputs[0]), _dequantizer(r, node.inputs[1])
    y = node.outputs[0]
    assert y is not None
    if a is None or b is None or not _is_per_tensor(a) or not _has_parameters_along(b, -1):
        return
    if len(required_input(b).shape) == 1 and not _is_per_tensor(b):
        return
    sums = r.add("MatMulInteger", [a.inputs[0], b.inputs[0], input_of(a, 2), input_of(b, 2)], I32, y.shape)
    _dequantize_sums(r, sums, _product(r, required_input(a, 1), required_input(b, 1)), None)


def _fuse_gemm(r: Rewriter, node: Node) -> None:
    a, b = _dequantizer(r, node.inputs[0]), _dequantizer(r, node.inputs[1])
    attributes, y = attributes_of(node), node.outputs[0]
    assert y is not None
    columns_axis = 0 if attributes["transB"] else 1
    if a is None or b is None or not _is_per_tensor(a) or not _has_parameters_along(b, columns_axis):
        return
    if attributes["alpha"] != 1 or attributes["beta"] != 1:
        return
    left, right = (
        _transposed(r, required_input(operand)) if attributes[name] else required_input(operand)
        for operand, name in ((a, "transA"), (b, "transB"))
    )
    sums = r.add("MatMulInteger", [left, right, input_of(a, 2), input_of(b, 2)], I32, y.shape)
    _dequantize_sums(r, sums, _product(r, required_input(a, 1), required_input(b, 1)), _bias(r, input_of(node, 2)))


def _transposed(r: Rewriter, value: Value) -> Value:
    return r.add("Transpose", [value], value.dtype, tuple(reversed(value.shape)), {"perm": (1, 0)})


def _bias(r: Rewriter, value: Value | None) -> Value | None:
    """Return a bias, as a constant if it is dequantized from constants."""
    node = r.scope.producer(value, "DequantizeLinear")
    arrays = [] if node is None else _constants(r, node)
    return value if node is None or not arrays else r.constant(evaluate_node(node, arrays)[0])


def _dequantize_sums(r: Rewriter, sums: Value, factor: Value, bias: Value | None) -> None:
    real = r.add("DequantizeLinear", [sums, factor], F32, sums.shape, _LAST)
    r.replace([real if bias is None else r.like("Add", [real, bias])])


# **** integers between quantized layers ****


def _pool_integers(r: Rewriter, node: Node) -> None:
    """Rewrite the maximum of dequantized bytes to the dequantized maximum of bytes: the order is the same."""
    source, y = _dequantizer(r, node.inputs[0]), node.outputs[0]
    scale = None if source is None else r.scope.constant(required_input(source, 1))
    if source is None or scale is None or not _is_per_tensor(source) or not np.all(scale > 0) or len(node.outputs) > 1:
        return
    assert y is not None
    x = required_input(source)
    highest = r.add("MaxPool", [x], x.dtype, y.shape, node.attributes)
    r.replace([r.add("DequantizeLinear", [highest, *source.inputs[1:]], F32, y.shape)])


def _drop_quantization(r: Rewriter, node: Node) -> None:
    """Rewrite bytes that are dequantized and quantized again with the same parameters to the bytes."""
    source, y = _dequantizer(r, node.inputs[0]), node.outputs[0]
    if source is None or y is None or not _is_per_tensor(source) or required_input(source).dtype is not y.dtype:
        return
    for i in (1, 2):
        mine, theirs = (r.scope.constant(input_of(n, i)) for n in (node, source))
        if mine is None or theirs is None or mine.size != 1 or mine.reshape(()) != theirs.reshape(()):
            return
    scale = float(r.scope.constant(node.inputs[1]).reshape(()))  # type: ignore[union-attr]  # it is not None
    # Within these limits, products with bytes neither overflow nor lose bits.
    if 1e-30 < scale < 1e30:
        r.replace([r.add("Identity", [required_input(source)], y.dtype, y.shape)])


# **** parameters ****


def _channelwise(r: Rewriter, value: Value, rank: int) -> Value:
    """Return a vector over channels, reshaped to broadcast with [batch, channels, ...]."""
    if is_single(value):
        return value
    return r.reshape(value, (*value.shape, *(1 for _ in range(rank - 2))))


def _product(r: Rewriter, a: Value, b: Value, divisor: Value | None = None) -> Value:
    """Return ``a * b / divisor`` in float32, computed now in float64 if all are constants."""
    arrays = [r.scope.constant(v) for v in (a, b) if v is not None]
    denominator = r.scope.constant(divisor)
    if all(array is not None for array in arrays) and (divisor is None or denominator is not None):
        first, second = (np.asarray(array, np.float64) for array in arrays)
        with np.errstate(all="ignore"):
            result = first * second if denominator is None else first * second / np.asarray(denominator, np.float64)
            return r.constant(np.asarray(result, np.float32))
    shape = np.broadcast_shapes(a.shape, b.shape)
    result_ = r.add("Mul", [_float32(r, a), _float32(r, b)], F32, shape)
    if divisor is None:
        return result_
    return r.add("Div", [result_, _float32(r, divisor)], F32, np.broadcast_shapes(shape, divisor.shape))


def _float32(r: Rewriter, value: Value) -> Value:
    return value if value.dtype is F32 else r.add("Cast", [value], F32, value.shape, {"to": F32})


# **** quantized layers ****


def _rewrite_qlinear_conv(r: Rewriter, node: Node) -> None:
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero = node.inputs[:8]
    y, bias = node.outputs[0], input_of(node, 8)
    assert x_scale is not None
    assert w_scale is not None
    assert y is not None
    rank = len(y.shape)
    sums = r.add("ConvInteger", [x, w, x_zero, w_zero], I32, y.shape, node.attributes)
    if bias is not None:
        sums = r.like("Add", [sums, _channelwise(r, bias, rank)])
    _requantize(r, sums, _product(r, x_scale, _channelwise(r, w_scale, rank), y_scale), y_zero, y.dtype)


def _rewrite_qlinear_matmul(r: Rewriter, node: Node) -> None:
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = node.inputs
    y = node.outputs[0]
    assert a_scale is not None
    assert b_scale is not None
    assert y_scale is not None
    assert y is not None
    sums = r.add("MatMulInteger", [a, b, a_zero, b_zero], I32, y.shape)
    factor = _product(r, _per_row(r, a_scale), b_scale, _per_row(r, y_scale))
    _requantize(r, sums, factor, None if y_zero is None else _per_row(r, y_zero), y.dtype)


def _per_row(r: Rewriter, value: Value) -> Value:
    """Reshape a scale or a zero point of the left operand or the result; a vector has one element for each row."""
    if prod(value.shape) == 1:
        return r.reshape(value, ())
    return r.reshape(value, (*value.shape, 1)) if len(value.shape) == 1 else value


def _requantize(r: Rewriter, sums: Value, factor: Value, zero: Value | None, dtype: DType) -> None:
    scaled = r.add("DequantizeLinear", [sums, factor], F32, sums.shape, _LAST)
    known = r.scope.constant(factor)
    has_limits = known is not None and products_are_finite(known)
    scale = None if has_limits else r.constant(np.array(1, np.float32))
    r.replace([r.add("QuantizeLinear", [scaled, scale, zero], dtype, sums.shape)])


def _rewrite_dynamic_quantize(r: Rewriter, node: Node) -> None:
    x = required_input(node)
    zero, one, most = (r.constant(np.array(n, np.float32)) for n in (0, 1, 255))
    lowest = r.add("ReduceMin", [x], F32, (), {"keepdims": 0}) if x.shape else x
    highest = r.add("ReduceMax", [x], F32, (), {"keepdims": 0}) if x.shape else x
    low, high = r.like("Min", [lowest, zero]), r.like("Max", [highest, zero])
    step = r.like("Div", [r.like("Sub", [high, low]), most])
    is_zero = r.add("Equal", [step, zero], DType.BOOL, ())
    scale = r.add("Where", [is_zero, one, step], F32, ())
    point = r.add("QuantizeLinear", [r.like("Neg", [low]), scale], DType.UINT8, ())
    r.replace([r.add("QuantizeLinear", [x, scale, point], DType.UINT8, x.shape), scale, point])


# **** parameters of an axis ****


def _fold_constants(r: Rewriter, node: Node, weights: WeightCache) -> bool:
    """Replace a node by its result if all its inputs are constants; return True if so."""
    arrays = _constants(r, node)
    if not arrays or input_of(node, 1) is None:
        return False
    r.scope.make_constant(node, [_evaluate(node, arrays, weights)])
    return True


def _evaluate(node: Node, arrays: Sequence[Any], weights: WeightCache) -> Array:
    parameters = b" ".join(b"" if a is None else a.tobytes() for a in arrays[1:])
    derivation = (node.op, str(node.attributes), blake2b(parameters, digest_size=16).hexdigest())
    return weights.derived(derivation, arrays[0], lambda _: evaluate_node(node, arrays)[0])


def _constants(r: Rewriter, node: Node) -> list[Any]:
    """Return the inputs of a node, None for omitted ones; an empty list if one is not a constant."""
    arrays = [r.scope.constant(v) for v in node.inputs]
    return [] if any(a is None and v is not None for a, v in zip(arrays, node.inputs)) else arrays


def _broadcast_parameters(r: Rewriter, node: Node) -> None:
    """Reshape scale and zero point to broadcast, because element-wise operators have no axis attribute."""
    x, attributes = required_input(node), attributes_of(node)
    y = node.outputs[0]
    assert y is not None
    parameters = [input_of(node, 1), input_of(node, 2)]
    shaped = [None if v is None else _shaped(r, v, tuple(x.shape), attributes) for v in parameters]
    if shaped != parameters or node.attributes:
        r.replace([r.add(node.op, [x, *shaped], y.dtype, y.shape)])


def _shaped(r: Rewriter, value: Value, shape: tuple[int, ...], attributes: dict[str, Any]) -> Value:
    if is_single(value):
        return r.reshape(value, ())
    rank, size = len(shape), attributes["block_size"]
    axis = 0 if rank == 1 and attributes["axis"] == 1 else attributes["axis"] % rank
    if not size:
        # Factors created by the other rules have more dimensions and broadcast already.
        trailing = rank - 1 - axis if len(value.shape) == 1 else 0
        return r.reshape(value, (*value.shape, *(1 for _ in range(trailing))))
    blocks, array = value.shape[axis], r.scope.constant(value)
    if array is not None:
        return r.constant(np.repeat(array, size, axis).take(range(shape[axis]), axis))
    separated = r.reshape(value, (*value.shape[: axis + 1], 1, *value.shape[axis + 1 :]))
    wide = (*value.shape[: axis + 1], size, *value.shape[axis + 1 :])
    repeated = r.add("Expand", [separated, r.constant(np.array(wide, np.int64))], value.dtype, wide)
    flat = r.reshape(repeated, (*value.shape[:axis], blocks * size, *value.shape[axis + 1 :]))
    if blocks * size == shape[axis]:
        return flat
    bounds = [r.constant(np.array([n], np.int64)) for n in (0, shape[axis], axis)]
    return r.add("Slice", [flat, *bounds], value.dtype, shape)


_RULES = {
    "Conv": _fuse_conv,
    "DynamicQuantizeLinear": _rewrite_dynamic_quantize,
    "Gemm": _fuse_gemm,
    "MatMul": _fuse_matmul,
    "MaxPool": _pool_integers,
    "QLinearConv": _rewrite_qlinear_conv,
    "QLinearMatMul": _rewrite_qlinear_matmul,
    "QuantizeLinear": _drop_quantization,
}

register_rewritten(__name__, "DynamicQuantizeLinear")
register_rewritten(__name__, "QLinearConv", refuse=refuse_conv_integer)
register_rewritten(__name__, "QLinearMatMul", refuse=refuse_matmul_integer)
