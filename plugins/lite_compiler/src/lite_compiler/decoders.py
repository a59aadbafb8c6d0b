"""The operators of decoders, expressed by other operators, for backends and sizes without kernels of their own.

Rules:
    1. Attention with a past -> Concat of past and new positions, and attention without a past.
    2. Attention without a past -> MatMul, additions, Softmax, MatMul, in which query heads broadcast over their group.
    3. RMSNormalization -> Mul, ReduceMean, Add, Sqrt, Div, Mul.
    4. RotaryEmbedding -> Gather of the angles, Split, products, Concat.
    5. TensorScatter -> ScatterND, with the position axis moved behind the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from lite_compiler.rewriting import Rewriter
from lite_core import ops
from lite_core.ir import DType, Graph, Node, Value

__all__ = ["EXPANDED", "expand", "join_past", "without_past"]

F32, I64, BOOL = DType.FLOAT32, DType.INT64, DType.BOOL

_LOWEST = {DType.FLOAT16: -65504.0, DType.BFLOAT16: -3.3895313892515355e38}


def expand(graph: Graph, is_wanted: Callable[[Node], bool]) -> None:
    """Apply the rules to the nodes that ``is_wanted`` chooses; the shapes of the graph are known, and it is changed."""
    rewriter = Rewriter(graph)
    for node in list(rewriter.scope.nodes()):
        if not node.domain and node.op in EXPANDED and is_wanted(node):
            rewriter.begin(node)
            rewriter.replace(EXPANDED[node.op](rewriter, node))
    rewriter.finish()


def join_past(graph: Graph) -> None:
    """Apply rule 1 to all nodes of a graph whose shapes are known."""
    rewriter = Rewriter(graph)
    for node in list(rewriter.scope.nodes()):
        if not node.domain and node.op == "Attention" and not without_past(node):
            rewriter.begin(node)
            heads, presents = _joined(rewriter, node)
            attributes = dict(node.attributes)
            inputs = [*heads, _input(node, 3), None, None, _lengths(rewriter, node)]
            shape = (*heads[0].shape[:3], heads[2].shape[3])
            result = rewriter.add("Attention", inputs, heads[0].dtype, shape, attributes)
            rewriter.replace([_like_query(rewriter, node, result), *presents][: len(node.outputs)])
    rewriter.finish()


def without_past(node: Node) -> bool:
    """Return True if attention has neither a past nor a present."""
    return _input(node, 4) is None and not any(node.outputs[1:])


def _input(node: Node, index: int) -> Value | None:
    return node.inputs[index] if index < len(node.inputs) else None


def _given(node: Node, index: int = 0) -> Value:
    value = _input(node, index)
    assert value is not None
    return value


# **** attention ****


def _joined(r: Rewriter, node: Node) -> tuple[list[Value], list[Value]]:
    """Return queries, keys and values as heads, with the past before the new positions; and keys and values again."""
    attributes = ops.attributes_of(node)
    counts = (attributes[name] for name in ("q_num_heads", "kv_num_heads", "kv_num_heads"))
    heads = [_as_heads(r, _given(node, i), count) for i, count in enumerate(counts)]
    for index in (1, 2):
        past, new = _input(node, index + 3), heads[index]
        if past is not None:
            shape = (*new.shape[:2], past.shape[2] + new.shape[2], new.shape[3])
            heads[index] = r.add("Concat", [past, new], new.dtype, shape, {"axis": 2})
    # NOTE: a result of a node may be no input of the graph, and one value cannot be two results.
    given = {_given(node, i) for i in range(3)}
    presents = [r.like("Identity", [x]) if x in given else x for x in heads[1:]]
    return [heads[0], *presents], presents


def _lengths(r: Rewriter, node: Node) -> Value | None:
    """Return the lengths of the rows of the batch: where the past is joined, causal queries are at their end."""
    past, lengths = _input(node, 4), _input(node, 6)
    if lengths is not None or past is None or not ops.attributes_of(node)["is_causal"]:
        return lengths
    queries = _given(node).shape[1 if len(_given(node).shape) == 3 else 2]
    return r.constant(np.full(past.shape[0], past.shape[2] + queries, np.int64))


def _as_heads(r: Rewriter, x: Value, count: int) -> Value:
    if len(x.shape) == 4:
        return x
    batch, rows, width = x.shape
    split = r.reshape(x, (batch, rows, count, width // count))
    return r.add("Transpose", [split], x.dtype, (batch, count, rows, width // count), {"perm": (0, 2, 1, 3)})


def _attention(r: Rewriter, node: Node) -> list[Value]:
    attributes = ops.attributes_of(node)
    (query, keys, values), presents = _joined(r, node)
    dtype, (batch, heads, queries, size) = query.dtype, query.shape
    groups, tokens, columns = keys.shape[1], keys.shape[2], values.shape[3]
    times = heads // groups
    scale = attributes["scale"]
    factor = _scalar(r, size**-0.5 if scale is None else scale, dtype)
    grouped = r.reshape(r.like("Mul", [query, factor]), (batch, groups, times, queries, size))
    swapped = r.add("Transpose", [keys], dtype, (batch, groups, size, tokens), {"perm": (0, 1, 3, 2)})
    wide = (batch, groups, times, queries, tokens)
    scores = r.add("MatMul", [grouped, r.reshape(swapped, (batch, groups, 1, size, tokens))], dtype, wide)
    if attributes["softcap"]:
        cap = _scalar(r, attributes["softcap"], dtype)
        scores = r.like("Mul", [r.like("Tanh", [r.like("Div", [scores, cap])]), cap])
    mask, visible = _input(node, 3), _visible(r, node, queries, tokens)
    if mask is not None and mask.dtype is not BOOL:
        lowest = _scalar(r, _LOWEST.get(mask.dtype, -3.4028234663852886e38), mask.dtype)
        scores = r.like("Add", [scores, _grouped_mask(r, mask, groups, times, tokens, lowest)])
    elif mask is not None:
        flags = _grouped_mask(r, mask, groups, times, tokens, r.constant(np.array(False)))
        visible = flags if visible is None else _both(r, flags, visible)
    if visible is not None:
        zero, lowest = _scalar(r, 0.0, dtype), _scalar(r, _LOWEST.get(dtype, -3.4028234663852886e38), dtype)
        bias = r.add("Where", [visible, zero, lowest], dtype, visible.shape)
        scores = r.like("Add", [scores, bias])
    weights = r.like("Softmax", [scores], {"axis": -1})
    if visible is not None:
        numbers = r.add("Cast", [visible], F32, visible.shape, {"to": F32})
        shape = (*visible.shape[:-1], 1)
        most = r.add("ReduceMax", [numbers, r.constant(np.array([-1], np.int64))], F32, shape, {"keepdims": 1})
        kept = r.add("Cast", [most], dtype, shape, {"to": dtype})
        weights = r.like("Mul", [weights, kept])
    spread = r.reshape(values, (batch, groups, 1, tokens, columns))
    result = r.add("MatMul", [weights, spread], dtype, (*wide[:-1], columns))
    result = r.reshape(result, (batch, heads, queries, columns))
    return [_like_query(r, node, result), *presents][: len(node.outputs)]


def _like_query(r: Rewriter, node: Node, result: Value) -> Value:
    """Return the result [batch, heads, queries, size] as rows if the queries are given as rows."""
    if len(_given(node).shape) == 4:
        return result
    batch, heads, queries, columns = result.shape
    rows = r.add("Transpose", [result], result.dtype, (batch, queries, heads, columns), {"perm": (0, 2, 1, 3)})
    return r.reshape(rows, (batch, queries, heads * columns))


def _scalar(r: Rewriter, number: float, dtype: DType) -> Value:
    return r.constant(np.array(number, dtype.numpy))


def _visible(r: Rewriter, node: Node, queries: int, tokens: int) -> Value | None:
    """Return what the lengths and causality leave visible, [batch or 1, 1, 1, queries or 1, tokens]; None for all."""
    is_causal, lengths, past = ops.attributes_of(node)["is_causal"], _input(node, 6), _input(node, 4)
    keys = np.arange(tokens).reshape(1, 1, 1, 1, tokens)
    rows = np.arange(queries).reshape(1, 1, 1, queries, 1)
    if lengths is None:
        first = 0 if past is None else past.shape[2]
        return r.constant(keys <= rows + first) if is_causal else None
    ends = r.reshape(lengths, (lengths.shape[0], 1, 1, 1, 1))
    inside = r.add("Less", [r.constant(keys), ends], BOOL, (lengths.shape[0], 1, 1, 1, tokens))
    if not is_causal:
        return inside
    if past is not None:
        return _both(r, inside, r.constant(keys <= rows + past.shape[2]))
    # Query i is at ends - queries + i.
    ahead = r.constant(keys - rows + queries)
    shape = (lengths.shape[0], 1, 1, queries, tokens)
    return _both(r, inside, r.add("LessOrEqual", [ahead, ends], BOOL, shape))


def _both(r: Rewriter, a: Value, b: Value) -> Value:
    return r.add("And", [a, b], BOOL, np.broadcast_shapes(tuple(a.shape), tuple(b.shape)))


def _grouped_mask(r: Rewriter, mask: Value, groups: int, times: int, tokens: int, hidden: Value) -> Value:
    """Return a mask as [batch, groups, times, queries, tokens]; behind its end it is ``hidden``."""
    shape = (*(1 for _ in range(4 - len(mask.shape))), *mask.shape)
    if shape[3] not in (1, tokens):
        missing = tokens - shape[3]
        pads = r.constant(np.array([0] * (2 * len(mask.shape) - 1) + [missing], np.int64))
        shape = (*shape[:3], tokens)
        mask = r.add("Pad", [mask, pads, hidden], mask.dtype, (*mask.shape[:-1], tokens))
    split = (groups, times) if shape[1] > 1 else (1, 1)
    return r.reshape(mask, (shape[0], *split, *shape[2:]))


# **** other operators ****


def _rms_normalization(r: Rewriter, node: Node) -> list[Value]:
    attributes = ops.attributes_of(node)
    x, scale = _given(node), _given(node, 1)
    result = node.outputs[0]
    assert result is not None
    axes = range(attributes["axis"] % len(x.shape), len(x.shape))
    wide = r.add("Cast", [x], F32, x.shape, {"to": F32}) if x.dtype.is_half else x
    shape = tuple(1 if axis in axes else n for axis, n in enumerate(x.shape))
    listed = r.constant(np.array(list(axes), np.int64))
    mean = r.add("ReduceMean", [r.like("Mul", [wide, wide]), listed], wide.dtype, shape, {"keepdims": 1})
    root = r.like("Sqrt", [r.like("Add", [mean, _scalar(r, attributes["epsilon"], wide.dtype)])])
    normal = r.like("Div", [wide, root])
    if normal.dtype is not scale.dtype:
        normal = r.add("Cast", [normal], scale.dtype, x.shape, {"to": scale.dtype})
    return [r.like("Mul", [normal, scale])]


def _rotary_embedding(r: Rewriter, node: Node) -> list[Value]:
    attributes = ops.attributes_of(node)
    x = _given(node)
    heads = _as_heads(r, x, attributes["num_heads"])
    dtype, (batch, count, rows, width) = heads.dtype, heads.shape
    size = attributes["rotary_embedding_dim"] or width
    half = size // 2
    angles = [_given(node, 1), _given(node, 2)]
    positions = _input(node, 3)
    if positions is not None:
        angles = [r.add("Gather", [t, positions], dtype, (*positions.shape, half)) for t in angles]
    cosine, sine = (r.reshape(t, (t.shape[0], 1, t.shape[1], half)) for t in angles)
    rotated = _slice(r, heads, 0, size)
    shape = (batch, count, rows, half)
    if attributes["interleaved"]:
        pairs = r.reshape(rotated, (*shape, 2))
        left, right = (r.reshape(_slice(r, pairs, i, i + 1), shape) for i in (0, 1))
    else:
        left, right = _slice(r, rotated, 0, half), _slice(r, rotated, half, size)
    first = r.like("Sub", [r.like("Mul", [left, cosine]), r.like("Mul", [right, sine])])
    second = r.like("Add", [r.like("Mul", [left, sine]), r.like("Mul", [right, cosine])])
    if attributes["interleaved"]:
        spread = [r.reshape(half_, (*shape, 1)) for half_ in (first, second)]
        both = r.add("Concat", spread, dtype, (*shape, 2), {"axis": -1})
        result = r.reshape(both, (batch, count, rows, size))
    else:
        result = r.add("Concat", [first, second], dtype, (batch, count, rows, size), {"axis": -1})
    if size < width:
        parts = [result, _slice(r, heads, size, width)]
        result = r.add("Concat", parts, dtype, (batch, count, rows, width), {"axis": -1})
    if len(x.shape) == 3:
        moved = r.add("Transpose", [result], dtype, (batch, rows, count, width), {"perm": (0, 2, 1, 3)})
        result = r.reshape(moved, x.shape)
    return [result]


def _slice(r: Rewriter, x: Value, start: int, stop: int) -> Value:
    """Return elements of the last axis."""
    if (start, stop) == (0, x.shape[-1]):
        return x
    bounds = [r.constant(np.array([n], np.int64)) for n in (start, stop, len(x.shape) - 1)]
    return r.add("Slice", [x, *bounds], x.dtype, (*x.shape[:-1], stop - start))


def _tensor_scatter(r: Rewriter, node: Node) -> list[Value]:
    attributes = ops.attributes_of(node)
    cache, new, starts = _given(node), _given(node, 1), _input(node, 2)
    rank, axis = len(cache.shape), attributes["axis"] % len(cache.shape)
    order = (0, axis, *(a for a in range(1, rank) if a != axis))
    moved, updates = (_transposed(r, x, order) for x in (cache, new))
    batch, count = updates.shape[:2]
    rows = r.constant(np.broadcast_to(np.arange(batch)[:, None, None], (batch, count, 1)).copy())
    columns = r.constant(np.broadcast_to(np.arange(count)[None, :, None], (batch, count, 1)).copy())
    if starts is not None:
        columns = r.like("Add", [columns, r.reshape(starts, (batch, 1, 1))])
    if attributes["mode"] == "circular":
        columns = r.like("Mod", [columns, r.constant(np.array(moved.shape[1], np.int64))])
    indices = r.add("Concat", [rows, columns], I64, (batch, count, 2), {"axis": 2})
    written = r.like("ScatterND", [moved, indices, updates])
    return [_transposed(r, written, [order.index(a) for a in range(rank)])]


def _transposed(r: Rewriter, x: Value, order: Sequence[int]) -> Value:
    if list(order) == sorted(order):
        return x
    return r.add("Transpose", [x], x.dtype, [x.shape[a] for a in order], {"perm": tuple(order)})


#: The operators that have rules, each with the function that applies them and returns the new outputs.
EXPANDED: dict[str, Callable[[Rewriter, Node], list[Value]]] = {
    "Attention": _attention,
    "RMSNormalization": _rms_normalization,
    "RotaryEmbedding": _rotary_embedding,
    "TensorScatter": _tensor_scatter,
}
