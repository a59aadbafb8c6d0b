"""Fusing rotary embedding written out in arithmetic into one node."""

from __future__ import annotations

from lite_core.ir import Node, Value
from lite_core.passes.rewriting import Scope

__all__ = ["fuse_rotary"]


def fuse_rotary(scope: Scope, node: Node) -> None:
    """Fuse ``x * cos + Concat(-x[half:], x[:half]) * sin``, where both halves of the angles are equal."""
    for straight, turned in (node.inputs, node.inputs[::-1]):
        x = _turned_source(scope, turned)
        cosine, sine = (
            _half_angles(scope, scope.producer(v, "Mul"), op) for v, op in ((straight, "Cos"), (turned, "Sin"))
        )
        if x is None or cosine is None or sine is None or x not in scope.producer(straight, "Mul").inputs:  # type: ignore[union-attr]
            continue
        nodes: list[Node] = []
        tables = []
        for op, angles in (("Cos", cosine), ("Sin", sine)):
            result = scope.new_value(f"{angles.name}.{op}", angles.type)
            nodes.append(Node(op, [angles], [result], name=node.name, origin=node.origin))
            tables.append(result)
        nodes.append(Node("RotaryEmbedding", [x, *tables], node.outputs, name=node.name, origin=node.origin))
        scope.replace([node], nodes)
        return


def _turned_source(scope: Scope, value: Value | None) -> Value | None:
    """Return ``x`` of ``Concat(-x[half:], x[:half]) * sin`` with heads [batch, heads, positions, size]."""
    product = scope.producer(value, "Mul")
    for operand in () if product is None else product.inputs:
        halves = scope.producer(operand, "Concat")
        if halves is None or len(halves.inputs) != 2 or halves.attributes.get("axis") not in (-1, 3):
            continue
        negated = scope.producer(halves.inputs[0], "Neg")
        first = _half(scope, halves.inputs[1])
        second = None if negated is None else _half(scope, negated.inputs[0])
        if first is None or second is None or first[0] is not second[0]:
            continue
        x = first[0]
        size = x.type.shape[-1] if x.type.rank == 4 and x.type.shape else None
        if isinstance(size, int) and size % 2 == 0 and (first[1:], second[1:]) == ((0, size // 2), (size // 2, size)):
            return x
    return None


def _half(scope: Scope, value: Value | None) -> tuple[Value, int, int] | None:
    """Return the source of a value, and the range of its last axis that the value has."""
    node = scope.producer(value, "Slice", "Split")
    source = None if node is None else node.inputs[0]
    if node is None or source is None or source.type.rank != 4 or not isinstance(source.type.shape[-1], int):  # type: ignore[index]
        return None
    size = int(source.type.shape[-1])  # type: ignore[index]
    if node.op == "Split":
        if node.attributes.get("axis") not in (-1, 3) or len(node.outputs) != 2:
            return None
        return (source, 0, size // 2) if value is node.outputs[0] else (source, size // 2, size)
    bounds = [scope.integers(v) for v in node.inputs[1:]]
    if any(b is None or len(b) != 1 for b in bounds) or len(bounds) < 3:
        return None
    start, stop, axis, *step = (b[0] for b in bounds if b is not None)
    if axis not in (-1, 3) or step not in ([], [1]):
        return None
    return source, *slice(start, stop).indices(size)[:2]


def _half_angles(scope: Scope, product: Node | None, op: str) -> Value | None:
    """Return ``angles`` [batch, positions, half] if a factor is ``Unsqueeze(op(Concat(angles, angles)), 1)``."""
    for operand in () if product is None else product.inputs:
        wide = scope.producer(operand, "Unsqueeze")
        function = (
            None if wide is None or scope.integers(wide.inputs[1]) != (1,) else scope.producer(wide.inputs[0], op)
        )
        both = None if function is None else scope.producer(function.inputs[0], "Concat")
        if both is not None and len(both.inputs) == 2 and both.inputs[0] is both.inputs[1]:
            angles = both.inputs[0]
            if angles is not None and angles.type.rank == 3 and both.attributes.get("axis") in (-1, 2):
                return angles
    return None
