"""TreeEnsembleRegressor and TreeEnsembleClassifier."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lite_core.ir import DType, Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import Item, SourceNode
from lite_onnx.lowering.operators.ai_onnx_ml.attributes import (
    MACHINE_LEARNING,
    Array,
    array,
    as_real,
    rows,
    shaped,
    text,
)
from lite_onnx.lowering.operators.ai_onnx_ml.forest import LEAF, Forest, walk
from lite_onnx.lowering.operators.ai_onnx_ml.labels import class_labels, labelled
from lite_onnx.lowering.operators.ai_onnx_ml.scores import (
    above,
    best,
    second_class,
    transform_of,
    transformed,
    transformed_targets,
)
from lite_onnx.lowering.reading import number
from lite_onnx.lowering.registry import lowers
from lite_onnx.lowering.unlowerable import Unlowerable

__all__ = ["aggregated", "with_base"]

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
    """For each target the sum, mean, smallest or largest of what the leaves say."""
    targets, kind = int(number(node, "n_targets", 1)), transform_of(node)
    how = text(node, "aggregate_function", "SUM", "AVERAGE", "MIN", "MAX")
    x = tree_input(node, context)
    forest = _forest(node, "target", targets)
    scores = with_base(aggregated(forest, how, x, context), _fitting(_base(node), targets), context)
    return [as_real(transformed_targets(scores, targets, kind, context), context)]


@lowers("TreeEnsembleClassifier", domain=MACHINE_LEARNING)
def tree_ensemble_classifier(node: SourceNode, context: Context) -> Sequence[Item]:
    """The label of the class with the highest sum, and the sums after a transform."""
    labels, kind = class_labels(node, context), transform_of(node)
    ids, weights = array(node, "class_ids", np.int64), _numbers(node, "class_weights")
    x = tree_input(node, context)
    base, columns = _base(node), np.unique(ids).tolist()
    is_signed = bool((weights < 0).any())
    if len(labels) == 2 and columns == [0]:  # what the trees say is of the second class
        scores = with_base(aggregated(_forest(node, "class", 1), "SUM", x, context), _fitting(base, 1), context)
        chosen = above(scores, 0.0 if is_signed else 0.5, context)
        return [labelled(chosen, labels, context), as_real(second_class(scores, kind, is_signed, context), context)]
    scores = aggregated(_forest(node, "class", len(labels)), "SUM", x, context)
    scores = with_base(scores, _fitting(base, len(labels)), context)
    if len(labels) == 2 and columns == [1]:
        second = context.add("Slice", [scores, context.ints(1), context.ints(2), context.ints(1)])
        chosen = above(second, 0.0 if is_signed else 0.5, context)
    else:
        # NOTE: ONNX Runtime has 1 and 0 in the place of two labels here, by the sign of the second score.
        chosen = best(scores, context)
    return [labelled(chosen, labels, context), as_real(transformed(scores, kind, context), context)]


def tree_input(node: SourceNode, context: Context) -> Value:
    """The features [N, F]: float64 stays what it is, as a threshold may lie between two numbers of float32."""
    x = rows(context.value(node, 0), context)
    return x if x.dtype is DType.FLOAT64 else as_real(x, context)


def aggregated(forest: Forest, how: str, x: Value, context: Context) -> Value:
    """[N, targets]: what the leaves of all trees say together."""
    leaves, weights = walk(forest, x, context), forest.weights.astype(x.dtype.numpy)
    trees = len(forest.roots)
    filler = {"MIN": np.inf, "MAX": -np.inf}.get(how, 0.0)
    table = context.constant(np.where(np.isnan(weights), filler, weights).astype(weights.dtype))
    if not context.rank(leaves):  # every tree is the same single leaf
        batch = context.add("Shape", [x], {"start": 0, "end": 1})
        leaves = context.add("Expand", [leaves, context.add("Concat", [batch, context.ints(trees)], {"axis": 0})])
    said = context.add("Gather", [table, leaves])  # [N, trees, targets]
    op = {"MIN": "ReduceMin", "MAX": "ReduceMax"}.get(how, "ReduceSum")
    result = context.add(op, [said, context.ints(1)], {"keepdims": 0})
    if how == "AVERAGE":
        return context.add("Div", [result, context.scalar_like(trees, result)])
    if how != "SUM" and np.isnan(weights).any():
        nothing = context.add("IsInf", [result])
        return context.add("Where", [nothing, context.scalar_like(0, result), result])
    return result


def with_base(scores: Value, base: Array, context: Context) -> Value:
    """Scores and what they begin with."""
    return context.add("Add", [scores, context.constant(base.astype(scores.dtype.numpy))]) if base.size else scores


def _numbers(node: SourceNode, name: str) -> Array:
    """A list of float32, or the tensor that stands for one of float64."""
    return (
        array(node, f"{name}_as_tensor", np.float64)
        if f"{name}_as_tensor" in node.attributes
        else array(node, name, np.float32)
    )


def _base(node: SourceNode) -> Array:
    return _numbers(node, "base_values")


def _fitting(base: Array, count: int) -> Array:
    if base.size not in (0, count):
        raise Unlowerable(f"its attribute 'base_values' has {base.size} elements for {count} scores")
    return base


def _forest(node: SourceNode, kind: str, targets: int) -> Forest:
    """The trees of a node; ``kind``: what its leaves' attributes begin with."""
    trees, ids = array(node, "nodes_treeids", np.int64), array(node, "nodes_nodeids", np.int64)
    count = len(trees)
    values = _numbers(node, "nodes_values")
    yes, no = (shaped(node, f"nodes_{name}nodeids", np.int64, count) for name in ("true", "false"))
    features = shaped(node, "nodes_featureids", np.int64, count)
    words = node.attributes.get("nodes_modes", [])
    assert isinstance(words, list)
    if not len(ids) == len(values) == len(words) == count:
        raise Unlowerable(f"it has {count} nodes by nodes_treeids, and not as many of each other attribute")
    unknown = {str(word) for word in words} - set(_MODES)
    if unknown:
        raise Unlowerable(f"its nodes_modes has {', '.join(sorted(unknown))}")
    modes = np.array([_MODES[str(word)] for word in words], np.int64)
    missing = array(node, "nodes_missing_value_tracks_true", np.int64).astype(bool)
    places = {key: place for place, key in enumerate(zip(trees.tolist(), ids.tolist()))}
    is_leaf = modes == LEAF
    own = np.arange(count)
    follow = [_places(places, trees, next_, own, is_leaf) for next_ in (yes, no)]
    weights, leaves = _weights(node, kind, targets, places, count)
    return Forest(
        features=np.where(is_leaf, 0, features),
        values=np.where(is_leaf, 0, values),
        modes=modes,
        yes=follow[0],
        no=follow[1],
        missing=missing if missing.size == count else np.zeros(count, bool),
        roots=np.sort(np.unique(trees, return_index=True)[1]),
        weights=weights,
        leaves=leaves,
    )


def _places(places: dict[tuple[int, int], int], trees: Array, ids: Array, own: Array, is_leaf: Array) -> Array:
    """Where the nodes with some numbers are; leaves lead to themselves."""
    found = [o if leaf else places.get((t, i), -1) for t, i, o, leaf in zip(trees.tolist(), ids.tolist(), own, is_leaf)]
    return np.array(found, np.int64)


def _weights(
    node: SourceNode, kind: str, targets: int, places: dict[tuple[int, int], int], count: int
) -> tuple[Array, Array]:
    """What leaves say of targets [leaves, targets], and which row of it each node has."""
    given = _numbers(node, f"{kind}_weights")
    trees, ids, columns = (
        shaped(node, f"{kind}_{name}", np.int64, len(given)) for name in ("treeids", "nodeids", "ids")
    )
    if columns.size and not 0 <= columns.min() <= columns.max() < targets:
        raise Unlowerable(f"its attribute '{kind}_ids' has a number outside of {targets}")
    nodes = np.array([places.get(key, -1) for key in zip(trees.tolist(), ids.tolist())], np.int64)
    if (nodes < 0).any():
        raise Unlowerable(f"its attribute '{kind}_nodeids' has a node that is none of its nodes")
    with_weights, row = np.unique(nodes, return_inverse=True)
    weights = np.full((len(with_weights) + 1, targets), np.nan)  # the first row: a leaf that says nothing
    np.put(weights, (row + 1) * targets + columns, 0)
    np.add.at(weights, (row + 1, columns), given)
    leaves = np.zeros(count, np.int64)
    leaves[with_weights] = np.arange(1, len(with_weights) + 1)
    return weights, leaves
