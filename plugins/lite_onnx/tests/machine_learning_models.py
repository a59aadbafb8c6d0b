"""Attributes of random models of the domain ai.onnx.ml."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper

__all__ = ["random_forest", "random_machine", "random_trees", "tensor"]

_ORDERED = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT")


def random_trees(
    *, trees: int = 5, depth: int = 4, features: int = 6, modes: tuple[str, ...] = ("BRANCH_LEQ",), seed: int = 0
) -> tuple[dict[str, Any], list[tuple[int, int]]]:
    """Return attributes ``nodes_*`` of trees of different depths, and tree and node of each leaf."""
    chance = np.random.default_rng(seed)
    columns: dict[str, list[Any]] = {
        name: []
        for name in (
            "treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids",
            "missing_value_tracks_true",
        )
    }  # fmt: skip
    leaves = []

    def grow(tree: int, node: int, level: int) -> int:
        """Add a subtree whose root has the given node number; return the next free number."""
        is_leaf = level == depth or (level > 0 and chance.random() < 0.2)
        mode = "LEAF" if is_leaf else str(chance.choice(modes))
        value = float(np.round(chance.normal(), 1 if mode in _ORDERED else 0))
        row_index = len(columns["modes"])
        row = (tree, node, int(chance.integers(features)), value, mode, 0, 0, int(chance.integers(2)))
        for column, content in zip(columns.values(), row):
            column.append(content)
        if is_leaf:
            leaves.append((tree, node))
            return node + 1
        middle = grow(tree, node + 1, level + 1)
        columns["truenodeids"][row_index], columns["falsenodeids"][row_index] = node + 1, middle
        return grow(tree, middle, level + 1)

    for tree in range(trees):
        grow(tree, 0, 0)
    return {f"nodes_{name}": column for name, column in columns.items()}, leaves


def random_forest(
    kind: str,
    *,
    ids: tuple[int, ...] = (0,),
    positive: bool = False,
    sparse: bool = False,
    seed: int = 0,
    **shape: Any,
) -> dict[str, Any]:
    """Return attributes of trees and of their leaves.

    Args:
        kind: "target" or "class".
        ids: the targets or classes that leaves have weights for.
        positive: True if no weight is negative.
        sparse: True if each leaf has a weight for only one target or class.
        seed: the seed of the random numbers.
        **shape: further arguments of :func:`random_trees`.
    """
    found, leaves = random_trees(seed=seed, **shape)
    chance = np.random.default_rng(seed + 1)
    chosen = [(leaf, i) for leaf in leaves for i in ((int(chance.choice(ids)),) if sparse else ids)]
    weights = chance.uniform(0, 0.3, len(chosen)) if positive else chance.normal(0, 1, len(chosen))
    found[f"{kind}_treeids"] = [tree for (tree, _), _ in chosen]
    found[f"{kind}_nodeids"] = [node for (_, node), _ in chosen]
    found[f"{kind}_ids"] = [i for _, i in chosen]
    found[f"{kind}_weights"] = weights.tolist()
    return found


def random_machine(classes: int, *, kernel: str = "RBF", features: int = 5, chances: bool = False) -> dict[str, Any]:
    """Return attributes of an SVMClassifier; ``chances``: include those for probabilities."""
    chance = np.random.default_rng(classes)
    sizes = chance.integers(2, 5, classes).tolist()
    pairs, total = classes * (classes - 1) // 2, sum(sizes)
    found = {
        "kernel_type": kernel,
        "kernel_params": [0.3, 0.5, 2.0],
        "vectors_per_class": sizes,
        "support_vectors": chance.normal(0, 1, total * features).tolist(),
        "coefficients": chance.normal(0, 1, total * (classes - 1)).tolist(),
        "rho": chance.normal(0, 0.5, pairs).tolist(),
        "classlabels_ints": [int(label) for label in np.arange(classes) * 10 + 5],
    }
    if chances:
        found["prob_a"] = chance.uniform(-2, -0.5, pairs).tolist()
        found["prob_b"] = chance.normal(0, 0.2, pairs).tolist()
    return found


def tensor(name: str, content: Any, dtype: Any) -> Any:
    """Convert an array to a tensor for an attribute."""
    array = np.asarray(content, dtype)
    return helper.make_tensor(
        name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape, array.tobytes(), raw=True
    )
