"""Layer normalization: simplified, of a sum, and of embeddings; and group normalization."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lite_core.ir import Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import Absent, Item, SourceNode
from lite_onnx.lowering.node_attributes import number
from lite_onnx.lowering.operators.ai_onnx.heads import length, position_range
from lite_onnx.lowering.operators.ai_onnx.rms_normalization import (
    rms_normalize,
    rms_normalize_with_root,
    simplified_layer_normalization,
)
from lite_onnx.lowering.operators.com_microsoft.fused_activations import MICROSOFT
from lite_onnx.lowering.registry import lowers
from lite_onnx.lowering.unlowerable import Unlowerable

_EPSILON = 1e-12

lowers("SimplifiedLayerNormalization", domain=MICROSOFT)(simplified_layer_normalization)


@lowers("SkipLayerNormalization", domain=MICROSOFT)
def skip_layer_normalization(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower layer normalization of the sum of an input, a skip connection and a bias; output 3 is the sum."""
    gamma, beta = context.value(node, 2), context.optional(node, 3)
    total = _sum([context.value(node, 0), context.value(node, 1), context.optional(node, 4)], context)
    attributes = {"axis": -1, "epsilon": number(node, "epsilon", _EPSILON)}
    results = context.add_node("LayerNormalization", [total, gamma, beta], attributes, outputs=3)
    return [*results, total][: len(node.outputs)]


@lowers("SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def skip_simplified_layer_normalization(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower RMS normalization of the sum of an input, a skip connection and a bias; output 3 is the sum."""
    gamma = context.value(node, 2)
    total = _sum([context.value(node, 0), context.value(node, 1), context.optional(node, 3)], context)
    epsilon = number(node, "epsilon", _EPSILON)
    if not any(node.outputs[1:3]):
        found: list[Item] = [rms_normalize(total, gamma, epsilon, context), Absent(), Absent(), total]
        return found[: len(node.outputs)]
    result, scale = rms_normalize_with_root(total, gamma, -1, epsilon, context)
    results: list[Item] = [result, Absent(), scale, total]  # RMS normalization computes no mean
    return results[: len(node.outputs)]


@lowers("EmbedLayerNormalization", domain=MICROSOFT)
def embed_layer_normalization(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower layer normalization of the sum of word, position and segment embeddings, and the length of each row."""
    positions, gamma, beta = context.optional(node, 8), context.value(node, 5), context.value(node, 6)
    tables = [context.value(node, 2), context.value(node, 3), context.optional(node, 4)]
    return _embedded(node, tables, [gamma, beta], positions, context)


@lowers("QEmbedLayerNormalization", domain=MICROSOFT)
def quantized_embed_layer_normalization(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower EmbedLayerNormalization with tables of 8-bit integers."""
    real = [
        None
        if context.optional(node, i) is None
        else context.add(
            "DequantizeLinear", [context.value(node, i), context.value(node, i + 6), context.optional(node, i + 11)]
        )
        for i in range(2, 7)
    ]
    return _embedded(node, real[:3], real[3:], None, context)


def _embedded(
    node: SourceNode, tables: list[Value | None], weights: list[Value | None], positions: Value | None, context: Context
) -> Sequence[Item]:
    """Return the outputs, from the tables of words, positions and segments, and the scale and bias (``weights``)."""
    ids, segments = context.value(node, 0), context.optional(node, 1)
    word_table, position_table, segment_table = tables
    parts: list[Value | None] = [context.add("Gather", [word_table, ids])]
    if positions is None:
        positions = position_range(length(ids, context, 1), context)
    parts.append(context.add("Gather", [position_table, positions]))
    if segments is not None and segment_table is not None:
        parts.append(context.add("Gather", [segment_table, segments]))
    total = _sum(parts, context)
    attributes = {"axis": -1, "epsilon": number(node, "epsilon", _EPSILON)}
    result = context.add("LayerNormalization", [total, *weights], attributes)
    return [result, _mask_index(node, ids, context), total][: len(node.outputs)]


def _mask_index(node: SourceNode, ids: Value, context: Context) -> Value:
    """Return the number of set elements of each row of the mask; zeros without a mask."""
    mask = context.optional(node, 7)
    if mask is None:
        batch = context.add("Shape", [ids], {"start": 0, "end": 1})
        return context.add("ConstantOfShape", [batch], {"value": np.zeros(1, np.int32)})
    return context.add("ReduceSum", [mask, context.ints(1)], {"keepdims": 0})


@lowers("GroupNorm", domain=MICROSOFT)
def group_norm(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower group normalization of [N, H, W, C] or [N, C, H, W], followed by SiLU if ``activation`` is 1."""
    x, gamma, beta = (context.value(node, i) for i in range(3))
    is_last = bool(number(node, "channels_last", 1))
    if is_last:
        x = context.add("Transpose", [x], {"perm": (0, 3, 1, 2)})
    attributes = {"num_groups": number(node, "groups", 1), "epsilon": number(node, "epsilon", 1e-5)}
    result = context.add("GroupNormalization", [x, gamma, beta], attributes)
    if number(node, "activation", 0):
        result = context.add("Swish", [result], domain="lite")
    return [context.add("Transpose", [result], {"perm": (0, 2, 3, 1)}) if is_last else result]


def _sum(values: list[Value | None], context: Context) -> Value:
    present = [v for v in values if v is not None]
    if not present:
        raise Unlowerable("it has no inputs to add")
    total = present[0]
    for value in present[1:]:
        total = context.add("Add", [total, value])
    return total
