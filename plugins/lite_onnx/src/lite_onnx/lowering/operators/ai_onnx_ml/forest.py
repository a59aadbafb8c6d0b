"""Decision trees as one table of nodes, for lite.DecisionForest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lite_core.ir import Value
from lite_core.ops.lite_forest import LEAF, MEMBER, NAN_IS_TRUE
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.operators.ai_onnx_ml.attributes import Array
from lite_onnx.lowering.unlowerable import Unlowerable

__all__ = ["LEAF", "MEMBER", "Forest", "reached_scores"]

#: Deeper trees are a sign of a damaged file: scikit-learn's limit is about 1,000.
_MAX_DEPTH = 2000


@dataclass(frozen=True)
class Forest:
    """All nodes of a set of trees.

    Attributes:
        features: the column that each node compares.
        values: the value it is compared with.
        modes: the comparison: a kind of node of lite.DecisionForest.
        if_true: the child to go to if the comparison is true.
        if_false: the child to go to if it is false.
        nan_is_true: True if the comparison is true for NaN.
        roots: the root of each tree.
        weights: the weights of leaves, [leaves, targets]; NaN if a leaf has no weight for a target.
        leaves: the row of ``weights`` of each node; 0 for inner nodes.
        members: the sets of MEMBER nodes, [nodes, largest set], padded with NaN; None if there are no such nodes.
    """

    features: Array
    values: Array
    modes: Array
    if_true: Array
    if_false: Array
    nan_is_true: Array
    roots: Array
    weights: Array
    leaves: Array
    members: Array | None = None

    def __post_init__(self) -> None:
        count = len(self.features)
        if not count or not len(self.roots):
            raise Unlowerable("it has no nodes")
        for next_ in (self.if_true, self.if_false, self.roots):
            if next_.min() < 0 or next_.max() >= count:
                raise Unlowerable(f"one of its branches leads to none of its {count} nodes")

    def depth(self) -> int:
        """Return the number of steps from a root to the deepest leaf.

        Raises:
            Unlowerable: the trees have cycles or too many levels.
        """
        steps, nodes = 0, np.unique(self.roots)
        while (inner := nodes[self.modes[nodes] != LEAF]).size:
            nodes = np.unique(np.concatenate([self.if_true[inner], self.if_false[inner]]))
            steps += 1
            if steps > _MAX_DEPTH:
                raise Unlowerable(f"its trees have cycles, or more than {_MAX_DEPTH} levels")
        return steps


def reached_scores(forest: Forest, aggregate: str, x: Value, context: Context) -> Value:
    """Return the aggregated weights [N, targets] of the leaves that each row of x [N, features] reaches.

    Args:
        forest: the trees; NaN in its weights stands for the neutral element.
        aggregate: sum, min or max.
        x: the features, float32 or float64.
        context: the context that the node is added to.
    """
    width, dtype = context.size(x, 1), x.dtype.numpy
    if forest.features.min() < 0 or forest.features.max() >= width:
        raise Unlowerable(f"its nodes compare feature {int(forest.features.max())}, but its input has {width} features")
    neutral = {"min": np.inf, "max": -np.inf, "sum": 0.0}[aggregate]
    weights = np.where(np.isnan(forest.weights), neutral, forest.weights)
    nodes = np.stack([forest.features, forest.if_false, forest.if_true, forest.leaves], axis=1)
    members = None if forest.members is None else context.constant(forest.members.astype(dtype))
    inputs = [
        context.constant(nodes.astype(np.int32)),
        context.constant(forest.values.astype(dtype)),
        context.constant((forest.modes + NAN_IS_TRUE * forest.nan_is_true).astype(np.uint8)),
        context.constant(forest.roots.astype(np.int32)),
        context.constant(weights.astype(dtype)),
    ]
    attributes = {"aggregate": aggregate, "depth": forest.depth()}
    return context.add("DecisionForest", [x, *inputs, members], attributes, domain="lite")
