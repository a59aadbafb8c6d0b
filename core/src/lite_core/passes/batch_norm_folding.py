"""Folding per-channel scales and offsets into the weights of the preceding convolution or matrix product."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np

from lite_core import ops
from lite_core.ir import Array, Node, Value, aligned_empty, release_pages
from lite_core.passes.rewriting import Scope, ScopePass

__all__ = ["BatchNormFolding"]

# Between these limits, a float32 has full precision, and products with it neither overflow nor underflow easily.
_LEAST_ORDINARY, _GREATEST_ORDINARY = 1e-30, 1e30

_PRODUCERS = ("Conv", "ConvTranspose", "Gemm", "MatMul")


class _Affine(NamedTuple):
    """``y = scale * x + offset``; both are float64 vectors of one value per channel, or of a single value."""

    scale: Array
    offset: Array

    @property
    def scales(self) -> bool:
        return bool((self.scale != 1).any())

    @property
    def offsets(self) -> bool:
        return bool((self.offset != 0).any())


class BatchNormFolding(ScopePass):
    """Pass that folds per-channel affine nodes (https://arxiv.org/abs/1502.03167, section 3.1, at inference).

    With ``scale = gamma / sqrt(variance + epsilon)`` and ``offset = beta - mean * scale``:

    Rules:
        1. BatchNormalization after Conv, ConvTranspose, Gemm or MatMul without other users becomes
           ``weights * scale`` along the output channel, and ``bias * scale + offset``.
        2. Mul, Div, Add, Sub by a constant, one value or one per channel, after the same operators: as rule 1,
           with an offset of 0 or a scale of 1.
        3. MatMul has no bias: with an offset it becomes a Gemm if its operands are matrices, otherwise the
           offset is not folded. The channel of a MatMul is its last axis, so that a BatchNormalization
           (axis 1) folds only into a product of matrices.
        4. A BatchNormalization that does not fold becomes Mul and Add by constants.

    Weights, bias and statistics must be floating-point constants. Arithmetic is done in float64 and rounded once,
    except for float32 weights: they are multiplied by the rounded scale, because there are many of them.
    If a folded weight would overflow the element type, the nodes are not folded.
    """

    name = "batch_norm_folding"

    def rewrite(self, scope: Scope) -> None:
        for node in scope.nodes():
            if node.domain or node.op not in ("BatchNormalization", "Mul", "Div", "Add", "Sub"):
                continue
            data = node.inputs[0]
            if node.op in ("Mul", "Add") and scope.constant(data) is not None:
                data = node.inputs[1]
            if data is None or not data.dtype.is_floating:
                continue
            if not _fold(scope, node, data) and node.op == "BatchNormalization":
                _split(scope, node)


# **** nodes as affine functions of channels ****


def _affine_of(scope: Scope, node: Node, data: Value, producer: Node) -> _Affine | None:
    rank = 2 if producer.op == "Gemm" else data.type.rank
    if rank is None:
        return None
    if node.op == "BatchNormalization":
        # NOTE: the channel of BatchNormalization is axis 1, that of a matrix product is the last axis.
        return _normalization(scope, node) if producer.op != "MatMul" or rank == 2 else None
    axis = 1 if producer.op in ("Conv", "ConvTranspose") else rank - 1
    other = next(v for v in node.inputs if v is not data) if node.inputs[0] is not node.inputs[1] else None
    array = scope.constant(other)
    if array is None or array.ndim > rank or (node.op in ("Div", "Sub") and node.inputs[0] is not data):
        return None
    padded = (1,) * (rank - array.ndim) + array.shape
    if any(size != 1 for i, size in enumerate(padded) if i != axis):
        return None
    vector = array.reshape(-1).astype(np.float64)
    with np.errstate(all="ignore"):
        if node.op in ("Mul", "Div"):
            affine = _Affine(vector if node.op == "Mul" else 1 / vector, np.zeros(1))
        else:
            affine = _Affine(np.ones(1), vector if node.op == "Add" else -vector)
    return affine if np.isfinite(affine.scale).all() and np.isfinite(affine.offset).all() else None


def _normalization(scope: Scope, node: Node) -> _Affine | None:
    parameters = [scope.constant(v) for v in node.inputs[1:5]]
    attributes = ops.attributes_of(node)
    if attributes["training_mode"] or any(v is not None for v in node.outputs[1:]):
        return None
    gamma, beta, mean, variance = (None if a is None else a.astype(np.float64) for a in parameters)
    if gamma is None or beta is None or mean is None or variance is None:
        return None
    with np.errstate(all="ignore"):
        scale = gamma / np.sqrt(variance + attributes["epsilon"])
    return _Affine(scale, beta - mean * scale)


# **** folding into the preceding node ****


def _fold(scope: Scope, node: Node, data: Value) -> bool:
    """Fold a node into the one that writes ``data``; return False if that is impossible."""
    producer = scope.producer(data, *_PRODUCERS)
    if producer is None or scope.sole_consumer(data) is not node:
        return False
    affine, weights = _affine_of(scope, node, data, producer), scope.constant(producer.inputs[1])
    if affine is None or weights is None:
        return False
    attributes = ops.attributes_of(producer)
    if (found := _by_channel(producer, weights, attributes)) is None:
        return False
    view, shape = found
    channels = prod(shape)
    if any(a.size not in (1, channels) for a in (affine.scale, affine.offset)):
        return False
    bias_value = producer.inputs[2] if len(producer.inputs) > 2 else None
    bias = scope.constant(bias_value)
    if bias_value is not None and bias is None:
        return False
    op, first = producer.op, producer.inputs[0]
    if op == "MatMul" and affine.offsets:
        if first is None or first.type.rank != 2:
            return False
        op = "Gemm"
    factors = affine.scale.reshape(() if affine.scale.size == 1 else shape)
    new_weights = _product(view, factors).reshape(weights.shape) if affine.scales else weights
    new_bias = _new_bias(producer, bias, affine, channels, weights.dtype)
    if not _is_finite(new_weights, weights) or (new_bias is not None and not _is_finite(new_bias, bias)):
        return False

    inputs = [first, producer.inputs[1]]
    if affine.scales:
        inputs[1] = _new_constant(scope, producer.inputs[1], "folded", new_weights)
        release_pages(weights)
    if new_bias is not None:
        inputs.append(_new_constant(scope, bias_value or producer.inputs[1], "bias", new_bias))
    kept = dict(producer.attributes)
    if producer.op == "Gemm":
        kept["beta"] = 1.0  # the new bias includes beta
    scope.substitute([producer, node], op, inputs, kept)
    return True


def _new_constant(scope: Scope, base: Value | None, suffix: str, array: Array) -> Value:
    assert base is not None
    name = base.name if base.name.endswith(f".{suffix}") else f"{base.name}.{suffix}"
    return scope.new_constant(name, array)


def _by_channel(node: Node, weights: Array, attributes: dict[str, Any]) -> tuple[Array, tuple[int, ...]] | None:
    """Return a view of the weights, and the shape in which a vector of the output channels broadcasts to it."""
    if node.op == "Conv":
        return weights, (len(weights), *[1] * (weights.ndim - 1))
    if node.op == "ConvTranspose":
        # Input channels are ordered by group, and each group has separate output channels.
        groups = attributes["group"]
        split = weights.reshape(groups, len(weights) // groups, *weights.shape[1:])
        return split, (groups, 1, weights.shape[1], *[1] * (weights.ndim - 2))
    if weights.ndim != 2:
        return None
    is_transposed = node.op == "Gemm" and attributes["transB"]
    return weights, (len(weights), 1) if is_transposed else (1, weights.shape[1])


def _product(weights: Array, scale: Array) -> Array:
    """Multiply weights by a float64 scale, and round to the weights' element type."""
    magnitude = np.abs(scale)
    is_ordinary = (magnitude == 0) | ((magnitude > _LEAST_ORDINARY) & (magnitude < _GREATEST_ORDINARY))
    if weights.dtype == np.float32 and is_ordinary.all():
        with np.errstate(all="ignore"):  # overflow is checked afterwards, see _is_finite
            return np.multiply(weights, scale.astype(np.float32), out=aligned_empty(weights.shape, np.float32))
    return _rounded(weights.astype(np.float64) * scale, weights.dtype)


def _new_bias(node: Node, bias: Array | None, affine: _Affine, channels: int, dtype: np.dtype[Any]) -> Array | None:
    """Return the bias after folding; None if there was none and none is needed."""
    if bias is None and not affine.offsets:
        return None
    old = np.zeros(channels) if bias is None else bias.astype(np.float64)
    if node.op == "Gemm":
        old = old * ops.attributes_of(node)["beta"]
    new = old * affine.scale + affine.offset
    # A Gemm's bias may have any shape that broadcasts to its output; a convolution's is a vector.
    return _rounded(new if node.op == "Gemm" else np.broadcast_to(new, (channels,)), dtype)


def _rounded(array: Array, dtype: np.dtype[Any]) -> Array:
    with np.errstate(over="ignore"):  # overflow is checked afterwards, see _is_finite
        return array.astype(dtype)


def _is_finite(array: Array, before: Array | None) -> bool:
    """Return False if rounding to the element type overflowed although the numbers were finite before."""
    return bool(np.isfinite(array).all()) or (before is not None and not np.isfinite(before).all())


# **** BatchNormalization that does not fold ****


def _split(scope: Scope, node: Node) -> None:
    data, output = node.inputs[0], node.outputs[0]
    affine = _normalization(scope, node)
    if affine is None or data is None or output is None or data.type.rank is None or data.type.rank < 2:
        return
    dtype = data.dtype.numpy
    shape = (-1, *[1] * (data.type.rank - 2))
    scale, offset = (_rounded(a, dtype).reshape(shape) for a in (affine.scale, affine.offset))
    if not (_is_finite(scale, None) and _is_finite(offset, None)):
        return
    product = scope.new_value(f"{output.name}.scaled", output.type)
    factor = scope.new_constant(f"{output.name}.scale", scale)
    term = scope.new_constant(f"{output.name}.offset", offset)
    multiply = Node("Mul", [data, factor], [product], name=f"{node.name}.scale", origin=node.origin)
    add = Node("Add", [product, term], [output], name=node.name, origin=node.origin)
    scope.replace([node], [multiply, add])
