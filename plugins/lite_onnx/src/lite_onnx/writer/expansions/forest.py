"""Expansion of DecisionForest."""

from __future__ import annotations

from lite_core.ir import DType, Value
from lite_core.ops.lite_forest import COMPARISONS, MEMBER, NAN_IS_TRUE
from lite_onnx.writer.expansions.formula import Formula, expands

_COMPARED_BY = ("LessOrEqual", "Less", "GreaterOrEqual", "Greater", "Equal")


@expands("DecisionForest")
def decision_forest(
    f: Formula,
    x: Value,
    nodes: Value,
    splits: Value,
    kinds: Value,
    roots: Value,
    weights: Value,
    members: Value | None,
    *,
    aggregate: str,
    depth: int,
) -> list[Value]:
    """Move all rows of x from the roots to children ``depth`` times, then aggregate the weights of the leaves."""
    features, no, yes, leaves = (f.item(nodes, column) for column in range(4))
    elements, shape = f("Reshape", x, [-1]), f("Concat", f.size(x, 0), f.size(roots, 0), axis=0)
    rows = f("Mul", f("Unsqueeze", f.count_up(f.size(x, 0), DType.INT64), [1]), f.size(x, 1))
    codes = f.cast(kinds, DType.INT32)
    eight = f.scalar(NAN_IS_TRUE, DType.INT32)
    modes, flags = f("Mod", codes, eight), f("Div", codes, eight)
    at = f("Expand", f.cast(roots, DType.INT64), shape)
    for _ in range(depth):
        value = f("Gather", elements, f("Add", rows, f.cast(f("Gather", features, at), DType.INT64)))
        split, mode = f("Gather", splits, at), f("Gather", modes, at)
        is_true = f("And", f("IsNaN", value), f.cast(f("Gather", flags, at), DType.BOOL))
        for number in range(len(COMPARISONS)):
            if number < len(_COMPARED_BY):
                found = f(_COMPARED_BY[number], value, split)
            else:
                found = f("Not", f("Equal", value, split))
            is_true = f("Or", is_true, f("And", f("Equal", mode, f.scalar(number, DType.INT32)), found))
        if members is not None:
            same = f("Equal", f("Unsqueeze", value, [2]), f("Gather", members, at))
            hits = f("ReduceMax", f.cast(same, DType.INT32), [2], keepdims=0)
            is_member = f("Equal", mode, f.scalar(MEMBER, DType.INT32))
            is_true = f("Or", is_true, f("And", is_member, f.cast(hits, DType.BOOL)))
        at = f.cast(f("Where", is_true, f("Gather", yes, at), f("Gather", no, at)), DType.INT64)
    reached = f("Gather", weights, f("Gather", leaves, at))  # [N, trees, targets]
    if aggregate == "sum":
        total = f("ReduceSum", f.cast(reached, DType.FLOAT64), [1], keepdims=0)
        return [f.cast(total, x.dtype)]
    return [f("ReduceMin" if aggregate == "min" else "ReduceMax", reached, [1], keepdims=0)]
