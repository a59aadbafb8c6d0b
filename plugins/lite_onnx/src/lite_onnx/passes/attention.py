"""Fusing attention written out as products and a softmax into one node."""

from __future__ import annotations

from typing import NamedTuple

from lite_core.ir import Attribute, Node, Value
from lite_core.passes.rewriting import Scope

__all__ = ["fuse_attention"]


class _Heads(NamedTuple):
    """Heads [batch, heads, positions, size], and True if they are repeated for the query heads of their group."""

    value: Value
    is_repeated: bool


def fuse_attention(scope: Scope, node: Node) -> None:
    """Fuse ``Softmax(scale * q k' + mask) v``, if keys and values are of a cache or shared by several query heads.

    Other attention stays as it is: backends have kernels for it.
    """
    softmax = scope.producer(node.inputs[0], "Softmax")
    if softmax is None or scope.sole_consumer(softmax.outputs[0]) is not node:  # type: ignore[arg-type]
        return
    if softmax.attributes.get("axis", -1) not in (-1, 3):
        return
    values = _heads(scope, node.inputs[1])
    for scores, mask in _summands(scope, softmax.inputs[0]):
        scaled, factor = _unscaled(scope, scores)
        product = scope.producer(scaled, "MatMul")
        swapped, key_factor = _unscaled(scope, None if product is None else product.inputs[1])
        keys = _swapped(scope, swapped)
        if product is None or keys is None or values is None or keys.is_repeated != values.is_repeated:
            continue
        query, query_factor = _unscaled(scope, product.inputs[0])
        if query is None or query.type.rank != 4 or not (keys.is_repeated or _is_cached(scope, keys, values)):
            continue
        if mask is not None and (mask.type.rank is None or mask.type.rank > 4):
            continue
        attributes: dict[str, Attribute] = {"scale": factor * key_factor * query_factor}
        scope.substitute([node], "Attention", [query, keys.value, values.value, mask], attributes)
        return


def _summands(scope: Scope, value: Value | None) -> list[tuple[Value | None, Value | None]]:
    """Return what may be the scores and the mask added to them."""
    added = scope.producer(value, "Add")
    found: list[tuple[Value | None, Value | None]] = [(value, None)]
    return found if added is None else [(added.inputs[0], added.inputs[1]), (added.inputs[1], added.inputs[0])]


def _unscaled(scope: Scope, value: Value | None) -> tuple[Value | None, float]:
    """Return the value before it is multiplied or divided by a constant number, and the factor."""
    node = scope.producer(value, "Mul", "Div")
    if node is None:
        return value, 1.0
    divisor = scope.scalar(node.inputs[1])
    if node.op == "Div":
        return (value, 1.0) if not divisor else (node.inputs[0], 1.0 / divisor)
    parts = scope.tensor_and_scalar(node)
    return (value, 1.0) if parts is None else parts


def _swapped(scope: Scope, value: Value | None) -> _Heads | None:
    """Return the keys of ``Transpose(keys)``."""
    node = scope.producer(value, "Transpose")
    return None if node is None or node.attributes.get("perm") != (0, 1, 3, 2) else _heads(scope, node.inputs[0])


def _heads(scope: Scope, value: Value | None) -> _Heads | None:
    """Return the heads before they are repeated by ``Reshape(Expand(Unsqueeze(heads, 2)))``."""
    if value is None or value.type.rank != 4:
        return None
    reshaped = scope.producer(value, "Reshape")
    wide = scope.producer(None if reshaped is None else reshaped.inputs[0], "Expand", "Tile")
    single = scope.producer(None if wide is None else wide.inputs[0], "Unsqueeze")
    heads = None if single is None or scope.integers(single.inputs[1]) not in ((2,), (-3,)) else single.inputs[0]
    if wide is None or heads is None or heads.type.rank != 4:
        return _Heads(value, is_repeated=False)
    (_, count, _, size), spread, result = heads.shape, wide.outputs[0].shape, value.shape  # type: ignore[union-attr]
    fits = isinstance(count, int) and len(spread) == 5 and isinstance(spread[2], int) and isinstance(result[1], int)
    if not fits or spread[1] != count or count * spread[2] != result[1] or result[3] != size:
        return _Heads(value, is_repeated=False)
    return _Heads(heads, is_repeated=True)


def _is_cached(scope: Scope, *heads: _Heads) -> bool:
    """Return True if positions are appended to an input of the graph."""
    appended = [scope.producer(each.value, "Concat") for each in heads]
    return all(node is not None and node.inputs[0] in scope.graph.inputs for node in appended)
