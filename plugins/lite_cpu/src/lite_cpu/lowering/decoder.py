"""Lowering of the operators of decoders: RMS normalization, rotary embedding, caches, and attention to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from lite_compiler.decoders import expand, join_past, without_past
from lite_compiler.fusion import Group
from lite_compiler.tensors import memory_order
from lite_compiler.tracing.numbers import largest
from lite_core.ir import DType, Graph, Node
from lite_core.ops import attributes_of
from lite_cpu.emitter import float_bits
from lite_cpu.kernels import cached_attention, rotary
from lite_cpu.kernels.cached_attention import BLOCK, CachedAttention, CombineParts, scratch_bytes
from lite_cpu.kernels.rms import RmsNormalization
from lite_cpu.kernels.rotary import Rotary
from lite_cpu.lowering.caches import emit_update, find_caches
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.products import with_contiguous_rows
from lite_cpu.lowering.registry import lowers
from lite_cpu.lowering.rows import plan_rows
from lite_cpu.lowering.shape import input_of, required_input
from lite_cpu.tensors import Tensor

F32 = DType.FLOAT32

#: The most rows of a work item of attention: their scores and results stay in the second-level cache.
_ITEM_ROWS = 64
#: The positions of a cache from which on items share those of a head.
_LEAST_DIVIDED = 4 * BLOCK
#: The number of queries from which on products of packed matrices are faster.
_MANY_QUERIES = 16
#: Minimum number of elements of a work item that moves or rotates them.
_ITEM_ELEMENTS = 8192


def rewrite_attention(graph: Graph) -> Graph:
    """Return a graph whose attention has no past, as a copy if anything changes.

    With many queries and a known number of positions, attention becomes products: :mod:`.attention` fuses these.
    """
    caches = find_caches(graph)

    def is_product(node: Node) -> bool:
        return node.op == "Attention" and caches.keys().isdisjoint(node.inputs[1:3]) and _is_product(node)

    nodes = [node for node in graph.nodes if node.op == "Attention" and not node.domain]
    if not any(is_product(node) or not without_past(node) for node in nodes):
        return graph
    graph = graph.copy()
    caches = find_caches(graph)
    expand(graph, is_product)
    join_past(graph)
    return graph


def _is_product(node: Node) -> bool:
    """Return True if attention is faster as products, or has a past and lengths that may end before it."""
    query, lengths = required_input(node), input_of(node, 6)
    if lengths is not None:
        return not without_past(node) and input_of(node, 4) is not None
    return int(query.shape[-2]) >= _MANY_QUERIES if len(query.shape) == 4 else int(query.shape[1]) >= _MANY_QUERIES


def _refuse(node: Node) -> str | None:
    """Refuse other floats than float32; 16-bit floats are converted before."""
    for value in node.inputs:
        if value is not None and value.dtype.is_floating and value.dtype is not F32:
            return f"{node.op} of {value.dtype}: the CPU kernels compute in float32"
    return None


@lowers("RMSNormalization", refuse=_refuse)
def rms_normalization(lowering: Lowering, group: Group) -> None:
    """Divide by the root mean square over an axis and all axes after it."""
    attributes = attributes_of(group.head)
    x, scale = (lowering.tensor(required_input(group.head, i)) for i in range(2))
    tensors = [x, lowering.target(group.output, memory_order(x)), scale.expand(x.shape)]
    plan = plan_rows(lowering, tensors, range(attributes["axis"] % x.rank, x.rank))
    params = [*plan.params, float_bits(attributes["epsilon"])]
    lowering.step(RmsNormalization(plan.layout), tensors, params, plan.tasks, plan.grain, flops=5 * x.size)


@lowers("RotaryEmbedding", refuse=_refuse)
def rotary_embedding(lowering: Lowering, group: Group) -> None:
    """Rotate the pairs of each head; the result has the memory layout of the input."""
    node, attributes = group.head, attributes_of(group.head)
    x = with_contiguous_rows(lowering, lowering.tensor(required_input(node)))
    target = lowering.target(group.output, memory_order(x))
    y = target if target.strides[-1] == 1 else lowering.allocate(x.shape, F32, memory_order(x))
    tables = [lowering.dense(lowering.tensor(required_input(node, i))) for i in (1, 2)]
    heads, result = (_as_heads(t, attributes["num_heads"]) for t in (x, y))
    _, count, rows, width = heads.shape
    half = tables[0].shape[-1]
    tensors, numbers = [heads, result, *tables], {"angle_batch": rows * half, "angle_row": half}
    positions = input_of(node, 3)
    if positions is not None:
        there = tables[0].shape[0]
        message = lowering.text(
            lambda: f"{node.describe()}: position {{}} is not in the tables, which have {there} rows"
        )
        fault, number = lowering.fault(message)
        tensors += [lowering.dense(lowering.tensor(positions)), fault]
        numbers = {"angle_batch": rows, "angle_row": 1, "table_rows": tables[0].shape[0], "fault": number}
    numbers.update(heads=count, rows=rows, half=half, width=width)
    for name, tensor in (("x", heads), ("y", result)):
        numbers.update(zip((f"{name}_batch", f"{name}_head", f"{name}_row"), tensor.strides))
    kernel = Rotary(bool(attributes["interleaved"]), positions is not None)
    params = [numbers.get(name, 0) for name in rotary.PARAMETERS]
    items, grain = prod(heads.shape[:3]), largest(1, _ITEM_ELEMENTS // largest(1, width))
    if heads.size:
        lowering.step(kernel, tensors, params, items, grain, flops=3 * x.size, streams=True)
    if y is not target:
        lowering.copy(y, target)


@lowers("TensorScatter")
def tensor_scatter(lowering: Lowering, group: Group) -> None:
    """Write new positions into a copy of the cache; into the cache itself if both are in the same memory."""
    node, attributes = group.head, attributes_of(group.head)
    old, new = lowering.dense(lowering.tensor(required_input(node))), lowering.tensor(required_input(node, 1))
    axis = attributes["axis"] % old.rank
    if axis != old.rank - 2 or axis > 2 or new.strides[-1] != 1:
        new = lowering.dense(new)
    inner, size, length = prod(old.shape[1:axis]), old.shape[axis], prod(old.shape[axis + 1 :])
    target = lowering.target(group.output)
    result = target if target.is_dense else lowering.allocate(old.shape, old.dtype)
    numbers = {"inner": inner, "size": size, "old": size, "count": new.shape[axis], "length": length}
    numbers.update(new_batch=new.strides[0], new_position=new.strides[axis])
    numbers["new_line"] = new.shape[axis] * length if axis > 2 else new.strides[1]
    starts = input_of(node, 2)
    if starts is None:
        given = lowering.constant(np.zeros(old.shape[0], np.int64))
    else:
        given = lowering.dense(lowering.tensor(starts))
    where = "{} new positions from index {{}} on do not fit into a cache of {}"
    message = lowering.text(lambda: f"{node.describe()}: {where.format(new.shape[axis], size)}")
    fault, numbers["fault"] = lowering.fault(message)
    strides = [lowering.strides(value) for value in (required_input(node), group.output)]
    is_circular = attributes["mode"] == "circular"
    emit_update(lowering, [old, new, result], numbers, strides, [given, fault], circular=is_circular)
    if result is not target:
        lowering.copy(result, target)


@lowers("Attention", refuse=_refuse)
def attention(lowering: Lowering, group: Group) -> None:
    """Emit attention without a past, which :mod:`lite_compiler.decoders` has put before the keys and values."""
    node, attributes = group.head, attributes_of(group.head)
    counts = [attributes[name] for name in ("q_num_heads", "kv_num_heads", "kv_num_heads")]
    inputs = (with_contiguous_rows(lowering, lowering.tensor(required_input(node, i))) for i in range(3))
    q, keys, values = (_as_heads(t, count) for t, count in zip(inputs, counts))
    is_flat = len(required_input(node).shape) == 3
    target = lowering.target(group.output, None if is_flat else (0, 2, 1, 3))
    c = target if target.strides[-1] == 1 else lowering.allocate(target.shape, F32)
    result = _as_heads(c, counts[0])
    mask, lengths = input_of(node, 3), input_of(node, 6)
    tensors = [q, keys, values, result]
    if lengths is not None:
        tensors.append(lowering.dense(lowering.tensor(lengths)))
    if mask is not None:
        tensors.append(_mask(lowering, lowering.tensor(mask), (*q.shape[:3], keys.shape[2])))
    strides = [lowering.strides(required_input(node, i)) for i in (1, 2)]
    tensors += [t for t in strides if t is not None]
    kernel = CachedAttention(
        1, bool(attributes["is_causal"]), lengths is not None, None if mask is None else mask.dtype,
        bool(attributes["softcap"]), False, *(t is not None for t in strides),
    )  # fmt: skip
    if result.size:
        _emit(lowering, node, tensors, kernel)
    if c is not target:
        lowering.copy(c, target)


def _emit(lowering: Lowering, node: Node, tensors: Sequence[Tensor], kernel: CachedAttention) -> None:
    """Emit the steps; ``kernel`` is the kernel for a single row and one part."""
    attributes = attributes_of(node)
    q, keys, values, result, *more = tensors
    batches, groups, tokens, _ = keys.shape
    times, queries = q.shape[1] // groups, q.shape[2]
    rows = times * queries
    tile = next(n for n in (4, 2, 1) if rows % n == 0)
    item_rows = min(rows, _ITEM_ROWS // tile * tile)
    threads, items = lowering.options.threads, batches * groups * -(-rows // item_rows)
    is_even = items >= 2 * threads or items % threads == 0
    parts = 1 if is_even or tokens < _LEAST_DIVIDED else -(-2 * threads // items)
    scale = attributes["scale"]
    numbers = {
        "batches": batches, "groups": groups, "times": times, "queries": queries, "tokens": tokens,
        "depth": q.shape[3], "columns": values.shape[3], "item_rows": item_rows, "parts": parts,
        "scale": float_bits(q.shape[3] ** -0.5 if scale is None else scale), "cap": float_bits(attributes["softcap"]),
    }  # fmt: skip
    for name, last, tensor in (("q", "row", q), ("k", "token", keys), ("v", "token", values), ("c", "row", result)):
        numbers.update(zip((f"{name}_batch", f"{name}_head", f"{name}_{last}"), tensor.strides))
    if kernel.mask is not None:
        mask = more[int(kernel.lengths)]
        numbers.update(zip(("m_batch", "m_head", "m_row"), mask.strides), m_tokens=mask.shape[3])
    params = [numbers.get(name, 0) for name in cached_attention.PARAMETERS]
    kernel = replace(kernel, tile=tile, in_parts=parts > 1)
    scratch = scratch_bytes(item_rows, values.shape[3])
    flops = 2 * batches * q.shape[1] * queries * tokens * (q.shape[3] + values.shape[3])
    if parts == 1:
        lowering.step(kernel, tensors, params, items, flops=flops, scratch_bytes=scratch)
        return
    partial = lowering.allocate((items * parts, item_rows, values.shape[3] + 2), F32)
    lowering.step(kernel, [q, keys, values, partial, *more], params, items * parts, flops=flops, scratch_bytes=scratch)
    lowering.step(CombineParts(), [partial, result], params, batches * groups * rows)


def _as_heads(tensor: Tensor, count: int) -> Tensor:
    """Return heads [batch, heads, positions, size], or a view of rows [batch, positions, heads * size] as heads."""
    if tensor.rank == 4:
        return tensor
    batch, rows, width = tensor.shape
    size = width // max(1, count)
    return tensor.view((batch, count, rows, size), (tensor.strides[0], size, tensor.strides[1], 1))


def _mask(lowering: Lowering, mask: Tensor, shape: Sequence[int]) -> Tensor:
    """Return a mask broadcast to [batch, heads, queries, ...], with contiguous rows."""
    tokens = shape[3] if mask.shape[-1] == 1 else mask.shape[-1]
    wide = (*mask.shape[:-1], tokens)
    if mask.shape[-1] != tokens or (mask.strides[-1] != 1 and tokens > 1):
        copy = lowering.allocate(wide, mask.dtype)
        lowering.copy(mask.expand(wide), copy)
        mask = copy
    return mask.expand((*shape[:3], tokens))
