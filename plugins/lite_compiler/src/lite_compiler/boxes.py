"""Operators on boxes, expressed by other operators or by constants.

Rules:
    1. PriorBox, DensityPriorBox and AnchorGenerator, which read only the shapes of their inputs -> constants.
    2. BoxCoder -> Split, element-wise operators on corners, centres and sizes, Concat.
    3. BoxClip -> Split, element-wise operators, Concat, Max and Min.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from lite_compiler.rewriting import Rewriter
from lite_core import ops
from lite_core.ir import Graph, Node, Value
from lite_core.ops.evaluate import evaluate_node

__all__ = ["EXPANDED_BOXES", "without_box_operators"]


def without_box_operators(graph: Graph) -> Graph:
    """Return a graph whose shapes are known with the rules applied, as a copy if any applies."""
    if not any(node.qualified_op in EXPANDED_BOXES for node in graph.nodes):
        return graph
    graph = graph.copy()
    rewriter = Rewriter(graph)
    for node in list(rewriter.scope.nodes()):
        rule = EXPANDED_BOXES.get(node.qualified_op)
        if rule is not None:
            rewriter.begin(node)
            rewriter.replace(rule(rewriter, node))
    rewriter.finish()
    return graph


def _grid(r: Rewriter, node: Node) -> list[Value | None]:
    """Apply rule 1."""
    shapes = [tuple(map(int, v.shape)) for v in node.used()]
    arrays = [np.broadcast_to(np.zeros((), v.dtype.numpy), shape) for v, shape in zip(node.used(), shapes)]
    found = [r.constant(array) for array in evaluate_node(node, arrays)]
    # Constants are no results of nodes; Identity is computed when the graph is compiled.
    return [None if v is None else r.like("Identity", [c]) for v, c in zip(node.outputs, found)]


def _box_coder(r: Rewriter, node: Node) -> list[Value | None]:
    """Apply rule 2."""
    attributes = ops.attributes_of(node)
    priors, variances, target = node.inputs[:3]
    assert priors is not None
    assert target is not None
    offset = 0.0 if attributes["box_normalized"] else 1.0
    low, high = _halves(r, priors)
    size = _plus(r, _combine(r, "Sub", high, low), offset)
    center = _combine(r, "Add", low, _times(r, size, 0.5))
    if variances is None and attributes["variance"]:
        variances = r.constant(np.array(attributes["variance"], priors.dtype.numpy)[None])
    encodes = attributes["code_type"] == "encode_center_size"
    between = (1, priors.shape[0]) if encodes or attributes["axis"] == 0 else (priors.shape[0], 1)

    def beside(value: Value) -> Value:
        """Return numbers of each prior as [targets or 1, priors or 1, numbers]."""
        return r.reshape(value, (*((1, 1) if value.shape[0] == 1 else between), value.shape[1]))

    if encodes:
        low, high = (r.reshape(v, (target.shape[0], 1, 2)) for v in _halves(r, target))
        moved = _combine(r, "Sub", _times(r, _combine(r, "Add", low, high), 0.5), beside(center))
        grown = _combine(r, "Div", _plus(r, _combine(r, "Sub", high, low), offset), beside(size))
        logarithm = r.like("Log", [r.like("Abs", [grown])])
        encoded = _joined(r, [_combine(r, "Div", moved, beside(size)), logarithm])
        return [encoded if variances is None else _combine(r, "Div", encoded, beside(variances))]
    scaled = target if variances is None else _combine(r, "Mul", target, beside(variances))
    moved, grown = _halves(r, scaled)
    middle = _combine(r, "Add", _combine(r, "Mul", moved, beside(size)), beside(center))
    half = _times(r, _combine(r, "Mul", r.like("Exp", [grown]), beside(size)), 0.5)
    end = _plus(r, _combine(r, "Add", middle, half), -offset)
    return [_joined(r, [_combine(r, "Sub", middle, half), end])]


def _box_clip(r: Rewriter, node: Node) -> list[Value | None]:
    """Apply rule 3."""
    boxes, info = node.inputs[:2]
    assert boxes is not None
    assert info is not None
    scale = _columns(r, info, 2, 3)
    rounded = r.like("Floor", [_plus(r, _combine(r, "Div", _columns(r, info, 0, 2), scale), 0.5)])
    size = r.like("Max", [_plus(r, rounded, -1.0), _number(r, rounded, 0.0)])
    height, width = (_columns(r, size, i, i + 1) for i in (0, 1))
    last = _joined(r, [width, height, width, height])
    if len(boxes.shape) == 3:
        last = r.reshape(last, (last.shape[0], 1, 4))
    inside = r.like("Max", [boxes, _number(r, boxes, 0.0)])
    return [r.like("Min", [inside, last])]


def _columns(r: Rewriter, value: Value, start: int, stop: int) -> Value:
    """Return some of the numbers in the last dimension."""
    bounds = [r.constant(np.array([n], np.int64)) for n in (start, stop, len(value.shape) - 1)]
    return r.add("Slice", [value, *bounds], value.dtype, (*value.shape[:-1], stop - start))


def _halves(r: Rewriter, boxes: Value) -> tuple[Value, Value]:
    """Return the first and the last two of the numbers of each box."""
    return _columns(r, boxes, 0, 2), _columns(r, boxes, 2, 4)


def _number(r: Rewriter, model: Value, number: float) -> Value:
    return r.constant(np.array(number, model.dtype.numpy))


def _plus(r: Rewriter, value: Value, number: float) -> Value:
    return r.like("Add", [value, _number(r, value, number)]) if number else value


def _times(r: Rewriter, value: Value, number: float) -> Value:
    return r.like("Mul", [value, _number(r, value, number)])


def _combine(r: Rewriter, op: str, a: Value, b: Value) -> Value:
    """Add an element-wise operator on values of one rank whose sizes broadcast."""
    shape = [n if m == 1 else m for m, n in zip(a.shape, b.shape)]
    return r.add(op, [a, b], a.dtype, shape)


def _joined(r: Rewriter, parts: Sequence[Value]) -> Value:
    """Concatenate along the last dimension."""
    shape = (*parts[0].shape[:-1], sum(part.shape[-1] for part in parts))
    return r.add("Concat", parts, parts[0].dtype, shape, {"axis": len(shape) - 1})


#: The rule of each operator; a rule adds nodes and returns the results.
EXPANDED_BOXES: Mapping[str, Callable[[Rewriter, Node], list[Value | None]]] = {
    "lite.AnchorGenerator": _grid,
    "lite.BoxClip": _box_clip,
    "lite.BoxCoder": _box_coder,
    "lite.DensityPriorBox": _grid,
    "lite.PriorBox": _grid,
}
