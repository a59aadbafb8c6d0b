"""TreeEnsembleRegressor and TreeEnsembleClassifier."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lite_core.ir import DType, Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import Item, SourceNode
from lite_onnx.lowering.node_attributes import number
from lite_onnx.lowering.operators.ai_onnx_ml.attributes import (
    MACHINE_LEARNING,
    Array,
    array,
    as_float32,
    as_rows,
    empty_weights,
    shaped_array,
    string,
)
from lite_onnx.lowering.operators.ai_onnx_ml.forest import LEAF, Forest, reached_scores
from lite_onnx.lowering.operators.ai_onnx_ml.labels import class_labels, labels_at
from lite_onnx.lowering.operators.ai_onnx_ml.scores import (
    above_threshold,
    apply_target_transform,
    apply_transform,
    best_class,
    post_transform,
    second_class,
)
from lite_onnx.lowering.registry import lowers
from lite_onnx.lowering.unlowerable import Unlowerable

__all__ = ["add_base_values", "aggregate_leaves"]

_MODES = {
    "BRANCH_LEQ": 0,
    "BRANCH_LT": 1,
    "BRANCH_GTE": 2,
    "BRANCH_GT": 3,
    "BRANCH_EQ": 4,
    "BRANCH_NEQ": 5,
    "LEAF": LEAF,
}


@lowers("TreeEnsembleRegressor", domain=MACHINE_LEARNING)
def tree_ensemble_regressor(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower the sum, mean, minimum or maximum of the leaves' weights for each target."""
    targets, kind = int(number(node, "n_targets", 1)), post_transform(node)
    aggregate = string(node, "aggregate_function", "SUM", "AVERAGE", "MIN", "MAX")
    x = tree_input(node, context)
    forest = _forest(node, "target", targets)
    scores = add_base_values(
        aggregate_leaves(forest, aggregate, x, context), _checked_base(_base(node), targets), context
    )
    return [as_float32(apply_target_transform(scores, targets, kind, context), context)]


@lowers("TreeEnsembleClassifier", domain=MACHINE_LEARNING)
def tree_ensemble_classifier(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower the label of the class with the highest sum, and the transformed sums."""
    labels, kind = class_labels(node, context), post_transform(node)
    ids, weights = array(node, "class_ids", np.int64), _numbers(node, "class_weights")
    x = tree_input(node, context)
    base, columns = _base(node), np.unique(ids).tolist()
    is_signed = bool((weights < 0).any())
    if len(labels) == 2 and columns == [0]:  # the trees' scores are those of the second class
        scores = add_base_values(
            aggregate_leaves(_forest(node, "class", 1), "SUM", x, context), _checked_base(base, 1), context
        )
        chosen = above_threshold(scores, 0.0 if is_signed else 0.5, context)
        return [labels_at(chosen, labels, context), as_float32(second_class(scores, kind, is_signed, context), context)]
    scores = aggregate_leaves(_forest(node, "class", len(labels)), "SUM", x, context)
    scores = add_base_values(scores, _checked_base(base, len(labels)), context)
    if len(labels) == 2 and columns == [1]:
        second = context.add("Slice", [scores, context.ints(1), context.ints(2), context.ints(1)])
        chosen = above_threshold(second, 0.0 if is_signed else 0.5, context)
    else:
        # NOTE: for two labels, ONNX Runtime returns 1 and 0 here, by the sign of the second score.
        chosen = best_class(scores, context)
    return [labels_at(chosen, labels, context), as_float32(apply_transform(scores, kind, context), context)]


def tree_input(node: SourceNode, context: Context) -> Value:
    """Return the features [N, F]: float64 is kept, because a threshold may lie between two float32 numbers."""
    x = as_rows(context.value(node, 0), context)
    return x if x.dtype is DType.FLOAT64 else as_float32(x, context)


def aggregate_leaves(forest: Forest, aggregate: str, x: Value, context: Context) -> Value:
    """Return the aggregated weights [N, targets] of the leaves that all trees reach."""
    kind = {"MIN": "min", "MAX": "max"}.get(aggregate, "sum")
    result = reached_scores(forest, kind, x, context)
    if aggregate == "AVERAGE":
        return context.add("Div", [result, context.scalar_like(len(forest.roots), result)])
    if kind != "sum" and np.isnan(forest.weights).any():
        is_empty = context.add("IsInf", [result])
        return context.add("Where", [is_empty, context.scalar_like(0, result), result])
    return result


def add_base_values(scores: Value, base: Array, context: Context) -> Value:
    """Add the base values, if there are any, to scores."""
    return context.add("Add", [scores, context.constant(base.astype(scores.dtype.numpy))]) if base.size else scores


def _numbers(node: SourceNode, name: str) -> Array:
    """Return a list of float32, or the tensor attribute that replaces it for float64."""
    return (
        array(node, f"{name}_as_tensor", np.float64)
        if f"{name}_as_tensor" in node.attributes
        else array(node, name, np.float32)
    )


def _base(node: SourceNode) -> Array:
    return _numbers(node, "base_values")


def _checked_base(base: Array, count: int) -> Array:
    if base.size not in (0, count):
        raise Unlowerable(f"its attribute 'base_values' has {base.size} elements for {count} scores")
    return base


def _forest(node: SourceNode, kind: str, targets: int) -> Forest:
    """Read the trees of a node; ``kind``: the prefix of its leaves' attributes."""
    trees, ids = array(node, "nodes_treeids", np.int64), array(node, "nodes_nodeids", np.int64)
    count = len(trees)
    values = _numbers(node, "nodes_values")
    if_true, if_false = (shaped_array(node, f"nodes_{name}nodeids", np.int64, count) for name in ("true", "false"))
    features = shaped_array(node, "nodes_featureids", np.int64, count)
    names = node.attributes.get("nodes_modes", [])
    assert isinstance(names, list)
    if not len(ids) == len(values) == len(names) == count:
        raise Unlowerable(f"its nodes_treeids has {count} elements, and other attributes of nodes have more or fewer")
    unknown = {str(name) for name in names} - set(_MODES)
    if unknown:
        raise Unlowerable(f"its nodes_modes has {', '.join(sorted(unknown))}")
    modes = np.array([_MODES[str(name)] for name in names], np.int64)
    nan_is_true = array(node, "nodes_missing_value_tracks_true", np.int64).astype(bool)
    node_indices = {key: index for index, key in enumerate(zip(trees.tolist(), ids.tolist()))}
    is_leaf = modes == LEAF
    own = np.arange(count)
    children = [_branch_targets(node_indices, trees, next_, own, is_leaf) for next_ in (if_true, if_false)]
    weights, leaves = _weights(node, kind, targets, node_indices, count)
    return Forest(
        features=np.where(is_leaf, 0, features),
        values=np.where(is_leaf, 0, values),
        modes=modes,
        if_true=children[0],
        if_false=children[1],
        nan_is_true=nan_is_true if nan_is_true.size == count else np.zeros(count, bool),
        roots=np.sort(np.unique(trees, return_index=True)[1]),
        weights=weights,
        leaves=leaves,
    )


def _branch_targets(
    node_indices: dict[tuple[int, int], int], trees: Array, ids: Array, own: Array, is_leaf: Array
) -> Array:
    """Return the indices of nodes by their ids; leaves lead to themselves."""
    found = [
        o if leaf else node_indices.get((t, i), -1) for t, i, o, leaf in zip(trees.tolist(), ids.tolist(), own, is_leaf)
    ]
    return np.array(found, np.int64)


def _weights(
    node: SourceNode, kind: str, targets: int, node_indices: dict[tuple[int, int], int], count: int
) -> tuple[Array, Array]:
    """Return the weights of leaves [leaves, targets], and the row of each node."""
    listed = _numbers(node, f"{kind}_weights")
    trees, ids, columns = (
        shaped_array(node, f"{kind}_{name}", np.int64, len(listed)) for name in ("treeids", "nodeids", "ids")
    )
    if columns.size and not 0 <= columns.min() <= columns.max() < targets:
        raise Unlowerable(f"its attribute '{kind}_ids' has a number that is not one of {targets} targets")
    nodes = np.array([node_indices.get(key, -1) for key in zip(trees.tolist(), ids.tolist())], np.int64)
    if (nodes < 0).any():
        raise Unlowerable(f"its attribute '{kind}_nodeids' names a node that does not exist")
    with_weights, row = np.unique(nodes, return_inverse=True)
    weights = empty_weights(len(with_weights) + 1, targets, len(listed))  # the first row: a leaf without weights
    np.put(weights, (row + 1) * targets + columns, 0)
    np.add.at(weights, (row + 1, columns), listed)
    leaves = np.zeros(count, np.int64)
    leaves[with_weights] = np.arange(1, len(with_weights) + 1)
    return weights, leaves
