"""lite.DecisionForest: decision trees that are walked from their roots to leaves."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_core.ir import DType, Shape
from lite_core.ops.inference import Inference, fail
from lite_core.ops.registry import choice, op, required
from lite_core.ops.shape_checks import check_rank, differ, format_shape

__all__ = ["COMPARISONS", "LEAF", "MEMBER", "NAN_IS_TRUE"]

Array = np.ndarray[Any, Any]

#: The kinds of nodes: comparisons of a feature with a number, membership in a set, or a leaf.
COMPARISONS = (np.less_equal, np.less, np.greater_equal, np.greater, np.equal, np.not_equal)
MEMBER, LEAF = 6, 7
#: Added to the kind of a node whose comparison is true for NaN.
NAN_IS_TRUE = 8


def _infer(inference: Inference) -> list[Shape | None]:
    x, nodes, weights = (inference.shape(i) for i in (0, 1, 5))
    for shape, rank, name in ((x, 2, "x"), (nodes, 2, "nodes"), (weights, 2, "weights")):
        check_rank(shape, rank, name)
    if nodes is not None and differ(nodes[1], 4):
        raise fail(f"nodes {format_shape(nodes)} must have 4 columns: feature, child if false, child if true, leaf")
    if inference.attributes["depth"] < 0:
        raise fail(f"depth must not be negative, is {inference.attributes['depth']}")
    if x is None or weights is None:
        return [None]
    return [(x[0], weights[1])]


@op(
    "DecisionForest",
    "x: T, nodes: int32, splits: T, kinds: uint8, roots: int32, weights: T, members: T? -> scores: T",
    domain="lite",
    types={"T": (DType.FLOAT32, DType.FLOAT64)},
    attributes={"aggregate": choice("sum", "min", "max"), "depth": required("int")},
    infer=_infer,
)
def decision_forest(
    x: Array,
    nodes: Array,
    splits: Array,
    kinds: Array,
    roots: Array,
    weights: Array,
    members: Array | None,
    *,
    aggregate: str,
    depth: int,
) -> Array:
    """The sum, minimum or maximum over all trees of the weights of the leaves that a row reaches.

    A row of ``x`` [N, features] begins at the root of each tree, and moves to one of two children ``depth`` times, the
    number of steps to the deepest leaf. Both children of a leaf are the leaf itself.

    The trees share a table of nodes [nodes, 4]: the feature that a node compares, the child to go to if the comparison
    is false, the one if it is true, and for a leaf its row of ``weights`` [rows, targets]. ``splits`` [nodes] has the
    numbers to compare with, and ``kinds`` [nodes] the comparison: 0 to 5 stand for <=, <, >=, >, == and !=, 6 for
    membership in the row of ``members`` [nodes, largest set], padded with NaN, and 7 for a leaf; 8 more where the
    comparison is true for NaN. Sums are computed in float64.
    """
    _check(nodes, roots, len(weights), x.shape[1])
    at = np.broadcast_to(roots, (len(x), len(roots)))
    rows = np.arange(len(x))[:, None]
    modes, nan_is_true = kinds % NAN_IS_TRUE, kinds >= NAN_IS_TRUE
    for _ in range(depth):
        values, kind = x[rows, nodes[at, 0]], modes[at]
        is_true = np.isnan(values) & nan_is_true[at]
        for number, compare in enumerate(COMPARISONS):
            is_true |= (kind == number) & compare(values, splits[at])
        if members is not None:
            is_true |= (kind == MEMBER) & (values[..., None] == members[at]).any(-1)
        at = np.where(is_true, nodes[at, 2], nodes[at, 1])
    reached = weights[nodes[at, 3]].astype(np.float64)  # [N, trees, targets]
    if aggregate == "sum":
        return np.asarray(reached.sum(axis=1)).astype(x.dtype)
    return np.asarray(reached.min(axis=1) if aggregate == "min" else reached.max(axis=1)).astype(x.dtype)


def _check(nodes: Array, roots: Array, leaves: int, features: int) -> None:
    if not roots.size:
        raise fail("the forest has no trees")
    count = len(nodes)
    for name, numbers, size in (
        ("feature", nodes[:, 0], features), ("child", nodes[:, 1:3], count),
        ("row of weights", nodes[:, 3], leaves), ("root", roots, count),
    ):  # fmt: skip
        wrong = numbers[(numbers < 0) | (numbers >= size)]
        if wrong.size:
            raise fail(f"{name} {wrong[0]} is out of range, it must be from 0 to {size - 1}")
