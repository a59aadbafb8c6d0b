"""TreeEnsemble of version 5: leaves are separate from inner nodes, and nodes may test membership in a set."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import Item, SourceNode
from lite_onnx.lowering.node_attributes import number
from lite_onnx.lowering.operators.ai_onnx_ml.attributes import (
    MACHINE_LEARNING,
    Array,
    array,
    empty_weights,
    shaped_array,
)
from lite_onnx.lowering.operators.ai_onnx_ml.forest import LEAF, MEMBER, Forest
from lite_onnx.lowering.operators.ai_onnx_ml.scores import TRANSFORMS, apply_target_transform
from lite_onnx.lowering.operators.ai_onnx_ml.tree_ensembles import aggregate_leaves, tree_input
from lite_onnx.lowering.registry import lowers
from lite_onnx.lowering.unlowerable import Unlowerable

_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")


@lowers("TreeEnsemble", domain=MACHINE_LEARNING)
def tree_ensemble(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower the mean, sum, minimum or maximum of the leaves' weights for each target, in the input's type."""
    targets = int(number(node, "n_targets", 1))
    aggregate, kind = int(number(node, "aggregate_function", 1)), int(number(node, "post_transform", 0))
    if not 0 <= aggregate < len(_AGGREGATES) or not 0 <= kind < len(TRANSFORMS):
        raise Unlowerable(f"its aggregate_function is {aggregate} and its post_transform {kind}")
    x = tree_input(node, context)
    scores = apply_target_transform(
        aggregate_leaves(_forest(node, targets), _AGGREGATES[aggregate], x, context), targets, TRANSFORMS[kind], context
    )
    return [context.add("Cast", [scores], {"to": context.value(node, 0).dtype})]


def _forest(node: SourceNode, targets: int) -> Forest:
    """Read the trees of a node: the table has inner nodes first, then leaves."""
    splits = array(node, "nodes_splits", np.float64)
    inner = len(splits)
    modes = shaped_array(node, "nodes_modes", np.int64, inner)
    targetids, listed = array(node, "leaf_targetids", np.int64), array(node, "leaf_weights", np.float64)
    leaves = len(targetids)
    if len(listed) != leaves or (leaves and not 0 <= targetids.min() <= targetids.max() < targets):
        raise Unlowerable(f"its leaves do not fit its {targets} targets")
    if modes.size and not 0 <= modes.min() <= modes.max() <= MEMBER:
        raise Unlowerable(f"its nodes_modes has the number {int(modes.max())}")
    nan_is_true = array(node, "nodes_missing_value_tracks_true", np.int64).astype(bool)
    weights = empty_weights(leaves, targets, len(listed))
    weights[np.arange(leaves), targetids] = listed
    own = np.arange(inner, inner + leaves)
    return Forest(
        features=_with_leaves(shaped_array(node, "nodes_featureids", np.int64, inner), leaves),
        values=_with_leaves(np.where(modes == MEMBER, 0, splits), leaves),
        modes=np.concatenate([modes, np.full(leaves, LEAF)]),
        if_true=np.concatenate([_children(node, "true", inner, leaves), own]),
        if_false=np.concatenate([_children(node, "false", inner, leaves), own]),
        nan_is_true=_with_leaves(nan_is_true if nan_is_true.size == inner else np.zeros(inner, bool), leaves),
        roots=array(node, "tree_roots", np.int64),
        weights=weights,
        leaves=np.concatenate([np.zeros(inner, np.int64), np.arange(leaves)]),
        members=_members(node, modes, leaves),
    )


def _with_leaves(nodes: Array, leaves: int) -> Array:
    return np.concatenate([nodes, np.zeros(leaves, nodes.dtype)])


def _children(node: SourceNode, kind: str, inner: int, leaves: int) -> Array:
    """Return the indices of children: inner nodes, or leaves, which come after inner nodes."""
    ids = shaped_array(node, f"nodes_{kind}nodeids", np.int64, inner)
    is_leaf = shaped_array(node, f"nodes_{kind}leafs", np.int64, inner) != 0
    if ids.min(initial=0) < 0 or (ids >= np.where(is_leaf, leaves, inner)).any():
        raise Unlowerable(
            f"its attribute 'nodes_{kind}nodeids' has a number that is not one of {inner} nodes or {leaves} leaves"
        )
    return np.where(is_leaf, inner + ids, ids)


def _members(node: SourceNode, modes: Array, leaves: int) -> Array | None:
    """Read the set of each MEMBER node. The attribute lists the sets one after another, separated by NaN."""
    if not (modes == MEMBER).any():
        return None
    values = array(node, "membership_values", np.float64)
    sets = [part[~np.isnan(part)] for part in np.split(values, np.flatnonzero(np.isnan(values)) + 1)]
    testing = np.flatnonzero(modes == MEMBER)
    if len(sets) < len(testing):
        raise Unlowerable(f"it has {len(testing)} nodes that test membership, but {len(sets)} sets")
    table = np.full((len(modes) + leaves, max(1, *(len(s) for s in sets))), np.nan)
    for index, members in zip(testing, sets):
        table[index, : len(members)] = members
    return table
