"""TreeEnsemble, of version 5: leaves are apart from inner nodes, and nodes may ask for members of a set."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import Item, SourceNode
from lite_onnx.lowering.operators.ai_onnx_ml.attributes import MACHINE_LEARNING, Array, array, shaped
from lite_onnx.lowering.operators.ai_onnx_ml.forest import LEAF, MEMBER, Forest
from lite_onnx.lowering.operators.ai_onnx_ml.scores import TRANSFORMS, transformed_targets
from lite_onnx.lowering.operators.ai_onnx_ml.tree_ensembles import aggregated, tree_input
from lite_onnx.lowering.reading import number
from lite_onnx.lowering.registry import lowers
from lite_onnx.lowering.unlowerable import Unlowerable

_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")


@lowers("TreeEnsemble", domain=MACHINE_LEARNING)
def tree_ensemble(node: SourceNode, context: Context) -> Sequence[Item]:
    """For each target the mean, sum, smallest or largest of what the leaves say; of the input's type."""
    targets = int(number(node, "n_targets", 1))
    how, kind = int(number(node, "aggregate_function", 1)), int(number(node, "post_transform", 0))
    if not 0 <= how < len(_AGGREGATES) or not 0 <= kind < len(TRANSFORMS):
        raise Unlowerable(f"its aggregate_function is {how} and its post_transform {kind}")
    x = tree_input(node, context)
    scores = transformed_targets(
        aggregated(_forest(node, targets), _AGGREGATES[how], x, context), targets, TRANSFORMS[kind], context
    )
    return [context.add("Cast", [scores], {"to": context.value(node, 0).dtype})]


def _forest(node: SourceNode, targets: int) -> Forest:
    """Inner nodes, then leaves."""
    splits = array(node, "nodes_splits", np.float64)
    inner = len(splits)
    modes = shaped(node, "nodes_modes", np.int64, inner)
    targetids, given = array(node, "leaf_targetids", np.int64), array(node, "leaf_weights", np.float64)
    leaves = len(targetids)
    if len(given) != leaves or (leaves and not 0 <= targetids.min() <= targetids.max() < targets):
        raise Unlowerable(f"its leaves do not fit its {targets} targets")
    if modes.size and not 0 <= modes.min() <= modes.max() <= MEMBER:
        raise Unlowerable(f"its nodes_modes has the number {int(modes.max())}")
    missing = array(node, "nodes_missing_value_tracks_true", np.int64).astype(bool)
    weights = np.full((leaves, targets), np.nan)
    weights[np.arange(leaves), targetids] = given
    own = np.arange(inner, inner + leaves)
    return Forest(
        features=_with_leaves(shaped(node, "nodes_featureids", np.int64, inner), leaves),
        values=_with_leaves(np.where(modes == MEMBER, 0, splits), leaves),
        modes=np.concatenate([modes, np.full(leaves, LEAF)]),
        yes=np.concatenate([_following(node, "true", inner, leaves), own]),
        no=np.concatenate([_following(node, "false", inner, leaves), own]),
        missing=_with_leaves(missing if missing.size == inner else np.zeros(inner, bool), leaves),
        roots=array(node, "tree_roots", np.int64),
        weights=weights,
        leaves=np.concatenate([np.zeros(inner, np.int64), np.arange(leaves)]),
        members=_members(node, modes, leaves),
    )


def _with_leaves(nodes: Array, leaves: int) -> Array:
    return np.concatenate([nodes, np.zeros(leaves, nodes.dtype)])


def _following(node: SourceNode, kind: str, inner: int, leaves: int) -> Array:
    """Where a branch leads: to an inner node, or to a leaf, which come after these."""
    ids = shaped(node, f"nodes_{kind}nodeids", np.int64, inner)
    is_leaf = shaped(node, f"nodes_{kind}leafs", np.int64, inner) != 0
    if ids.min(initial=0) < 0 or (ids >= np.where(is_leaf, leaves, inner)).any():
        raise Unlowerable(
            f"its attribute 'nodes_{kind}nodeids' has a node outside of its {inner} nodes and {leaves} leaves"
        )
    return np.where(is_leaf, inner + ids, ids)


def _members(node: SourceNode, modes: Array, leaves: int) -> Array | None:
    """For each node that asks for a set its members, one set after another in the attribute with NaN behind each."""
    if not (modes == MEMBER).any():
        return None
    values = array(node, "membership_values", np.float64)
    sets = [part[~np.isnan(part)] for part in np.split(values, np.flatnonzero(np.isnan(values)) + 1)]
    asking = np.flatnonzero(modes == MEMBER)
    if len(sets) < len(asking):
        raise Unlowerable(f"it has {len(asking)} nodes that ask for a set, and {len(sets)} sets")
    table = np.full((len(modes) + leaves, max(1, *(len(s) for s in sets))), np.nan)
    for place, members in zip(asking, sets):
        table[place, : len(members)] = members
    return table
