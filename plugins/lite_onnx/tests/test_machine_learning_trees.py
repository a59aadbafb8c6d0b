"""Trees of the domain ai.onnx.ml, compared with ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from machine_learning_models import random_forest, tensor
from onnx import TensorProto, helper
from runtime_models import RuntimeModels, node_model, numbers

from lite_core.errors import UnsupportedOperatorError

Array = np.ndarray[Any, Any]
Compare = Callable[..., dict[str, Array]]

_DIMS = {0: ("batch", 6)}
_TRANSFORMS = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"]


@pytest.fixture
def compare(models: RuntimeModels) -> Compare:
    return partial(models.compare, domain="ai.onnx.ml", version=3)


# **** trees ****


def _rows(*, with_nan: bool = False, dtype: Any = np.float32) -> Array:
    x = np.round(numbers(50, 6, seed=9), 1)
    if with_nan:
        x[np.random.default_rng(1).random(x.shape) < 0.2] = np.nan
    return (x * 2).astype(dtype) if np.dtype(dtype).kind == "i" else x.astype(dtype)


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("targets", [1, 3])
def test_regression_trees(compare: Compare, targets: int, sparse: bool, aggregate: str) -> None:
    forest = random_forest("target", ids=tuple(range(targets)), sparse=sparse)
    compare("TreeEnsembleRegressor", [_rows()], n_targets=targets, aggregate_function=aggregate, dims=_DIMS, **forest)


@pytest.mark.parametrize(
    "modes",
    [
        ("BRANCH_LT",),
        ("BRANCH_GTE",),
        ("BRANCH_GT",),
        ("BRANCH_EQ",),
        ("BRANCH_NEQ",),
        ("BRANCH_LEQ", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"),
    ],
    ids=str,
)
def test_trees_with_other_comparisons(compare: Compare, modes: tuple[str, ...]) -> None:
    compare("TreeEnsembleRegressor", [_rows()], n_targets=1, **random_forest("target", modes=modes))


@pytest.mark.parametrize("modes", [("BRANCH_LEQ",), ("BRANCH_LT", "BRANCH_GTE")], ids=str)
def test_trees_on_nan(compare: Compare, modes: tuple[str, ...]) -> None:
    compare("TreeEnsembleRegressor", [_rows(with_nan=True)], n_targets=1, **random_forest("target", modes=modes))


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.int32])
def test_trees_on_other_types(compare: Compare, dtype: Any) -> None:
    forest = random_forest("class", ids=(0, 1, 2))
    compare("TreeEnsembleClassifier", [_rows(dtype=dtype)], outputs=2, classlabels_int64s=[0, 1, 2], **forest)


def test_trees_in_double_precision(compare: Compare) -> None:
    forest = random_forest("target", depth=6)
    for name in ("nodes_values", "target_weights"):
        forest[f"{name}_as_tensor"] = tensor(name, forest.pop(name), np.float64)
    forest["base_values_as_tensor"] = tensor("base", [0.25], np.float64)
    compare("TreeEnsembleRegressor", [_rows(dtype=np.float64)], n_targets=1, **forest)


@pytest.mark.parametrize("transform", _TRANSFORMS)
@pytest.mark.parametrize("targets", [1, 3])
def test_trees_with_a_transform(compare: Compare, targets: int, transform: str) -> None:
    forest = random_forest("target", ids=tuple(range(targets)), positive=True, trees=3)
    base = [0.01] * targets
    compare("TreeEnsembleRegressor", [_rows()], n_targets=targets, base_values=base, post_transform=transform, **forest)


def test_trees_with_a_single_leaf(compare: Compare) -> None:
    compare("TreeEnsembleRegressor", [_rows()], n_targets=1, dims=_DIMS, **random_forest("target", depth=0))
    compare("TreeEnsembleRegressor", [_rows()], n_targets=1, dims=_DIMS, **random_forest("target", depth=0, trees=1))


@pytest.mark.parametrize("transform", _TRANSFORMS[:4])
@pytest.mark.parametrize("base", [False, True])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("classes", [3, 4])
def test_classification_trees(compare: Compare, classes: int, positive: bool, base: bool, transform: str) -> None:
    forest = random_forest("class", ids=tuple(range(classes)), positive=positive)
    if base:
        forest["base_values"] = (np.arange(classes) * 0.1).tolist()
    labels = list(range(5, 5 + classes))
    compare(
        "TreeEnsembleClassifier", [_rows()], outputs=2, classlabels_int64s=labels, post_transform=transform, dims=_DIMS,
        **forest,
    )  # fmt: skip


@pytest.mark.parametrize("transform", _TRANSFORMS[:4])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize(("ids", "base"), [((0,), 0), ((0,), 1), ((1,), 0)], ids=str)
def test_binary_classification_with_one_weight(
    compare: Compare, ids: tuple[int, ...], base: int, positive: bool, transform: str
) -> None:
    """Binary classifiers are exported like this: all weights are for one class."""
    forest = random_forest("class", ids=ids, positive=positive)
    if base:
        forest["base_values"] = [0.15]
    attributes = {"classlabels_int64s": [4, 9], "post_transform": transform}
    compare("TreeEnsembleClassifier", [_rows()], outputs=2, dims=_DIMS, **attributes, **forest)


@pytest.mark.parametrize("transform", _TRANSFORMS[:4])
@pytest.mark.parametrize("positive", [False, True])
def test_scores_of_binary_classification_with_two_weights(
    models: RuntimeModels, positive: bool, transform: str
) -> None:
    forest = random_forest("class", ids=(0, 1), positive=positive)
    attributes = {"classlabels_int64s": [4, 9], "post_transform": transform}
    options = {"outputs": ["label", "scores"], "domain": "ai.onnx.ml", "version": 3}
    model = node_model("TreeEnsembleClassifier", [_rows()], {**attributes, **forest}, **options)
    # ONNX Runtime's labels are 0 and 1 by the sign of the second score, instead of 4 and 9: only scores are compared.
    expected = {"scores": models.onnxruntime(model, {"input_0": _rows()})["scores"]}
    models.compare("TreeEnsembleClassifier", [_rows()], expected=expected, **options, **attributes, **forest)


def test_labels_of_binary_classification_with_two_weights(models: RuntimeModels) -> None:
    attributes = {"classlabels_int64s": [4, 9], **random_forest("class", ids=(0, 1))}
    options = {"outputs": ["label", "scores"], "domain": "ai.onnx.ml", "version": 3}
    found = models.lite(node_model("TreeEnsembleClassifier", [_rows()], attributes, **options), {"input_0": _rows()})
    assert found["label"].tolist() == np.where(found["scores"][:, 1] > found["scores"][:, 0], 9, 4).tolist()


def test_trees_that_have_weights_for_one_class_each(compare: Compare) -> None:
    """Gradient boosting trains a tree for one class at a time."""
    forest = random_forest("class", ids=(0, 1, 2), trees=9)
    kept = [i for i, (tree, c) in enumerate(zip(forest["class_treeids"], forest["class_ids"])) if tree % 3 == c]
    for name in ("treeids", "nodeids", "ids", "weights"):
        forest[f"class_{name}"] = [forest[f"class_{name}"][i] for i in kept]
    attributes = {"classlabels_int64s": [0, 1, 2], "post_transform": "SOFTMAX"}
    compare("TreeEnsembleClassifier", [_rows()], outputs=2, dims=_DIMS, **attributes, **forest)


# **** trees of version 5 ****


def _ensemble(dtype: Any, *, targets: int = 2) -> dict[str, Any]:
    """Return attributes of two trees: one with a set, another comparison and NaN handling, one of a single node."""
    return {
        "n_targets": targets,
        "nodes_splits": tensor("splits", [0.5, np.nan, 0.2, 1.0], dtype),
        "nodes_featureids": [0, 1, 2, 0],
        "nodes_modes": tensor("modes", [0, 6, 1, 0], np.uint8),
        "nodes_truenodeids": [1, 0, 2, 4],
        "nodes_falsenodeids": [2, 1, 3, 4],
        "nodes_trueleafs": [0, 1, 1, 1],
        "nodes_falseleafs": [0, 1, 1, 1],
        "nodes_missing_value_tracks_true": [1, 0, 0, 0],
        "leaf_targetids": [0, 1 % targets, 0, 1 % targets, 0],
        "leaf_weights": tensor("weights", [1.5, -2.5, 3.5, 0.5, 0.25], dtype),
        "tree_roots": [0, 3],
        "membership_values": tensor("members", [1.0, 0.0, -2.0, np.nan], dtype),
    }


@pytest.mark.parametrize("transform", [0, 1, 2, 3])
@pytest.mark.parametrize("aggregate", [0, 1, 2, 3])
@pytest.mark.parametrize("targets", [1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_trees_of_version_5(models: RuntimeModels, dtype: Any, targets: int, aggregate: int, transform: int) -> None:
    x = _rows(with_nan=True, dtype=dtype)
    x[:, 1] = np.round(x[:, 1])
    attributes = {**_ensemble(dtype, targets=targets), "aggregate_function": aggregate}
    # ONNX specifies 1 as softmax and 2 as logistic; ONNX Runtime swaps them.
    other = {**attributes, "post_transform": {1: 2, 2: 1}.get(transform, transform)}
    model = node_model("TreeEnsemble", [x], other, outputs=["y"], domain="ai.onnx.ml", version=5)
    options = {"domain": "ai.onnx.ml", "version": 5, "outputs": ["y"], "dims": _DIMS}
    expected = models.onnxruntime(model, {"input_0": x})
    models.compare("TreeEnsemble", [x], expected=expected, post_transform=transform, **options, **attributes)


def test_exported_classifier(models: RuntimeModels) -> None:
    """A typical exported model: scaled features, trees, string labels, and a list of maps at the end."""
    names = ["ape", "bee", "cat"]
    forest = {**random_forest("class", ids=(0, 1, 2), positive=True), "classlabels_strings": names}
    options = {"domain": "ai.onnx.ml"}
    nodes = [
        helper.make_node("Scaler", ["X"], ["scaled"], offset=[0.1] * 6, scale=[1.5] * 6, **options),
        helper.make_node("TreeEnsembleClassifier", ["scaled"], ["label", "sums"], **forest, **options),
        helper.make_node("Normalizer", ["sums"], ["shares"], norm="L1", **options),
        helper.make_node("ZipMap", ["shares"], ["maps"], classlabels_strings=names, **options),
    ]
    map_ = helper.make_map_type_proto(TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
    outputs = [
        helper.make_tensor_value_info("label", TensorProto.STRING, [None]),
        helper.make_value_info("maps", helper.make_sequence_type_proto(map_)),
    ]
    x = helper.make_tensor_value_info("X", TensorProto.FLOAT, [None, 6])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 3)]
    model = helper.make_model(helper.make_graph(nodes, "g", [x], outputs), opset_imports=opsets, ir_version=9)
    found, expected = models.lite(model, {"X": _rows()}), models.onnxruntime(model, {"X": _rows()})
    assert found["label"].tolist() == list(expected["label"])
    shares: Any = [[row[name] for name in names] for row in expected["maps"]]
    assert np.abs(found["maps"] - shares).max() < 1e-5


def test_all_levels_share_the_tables(models: RuntimeModels) -> None:
    """The number of constants does not depend on the depth of the trees."""

    def constants(depth: int) -> int:
        forest = random_forest("target", depth=depth)
        options = {"outputs": ["y"], "domain": "ai.onnx.ml", "version": 3}
        model = node_model("TreeEnsembleRegressor", [_rows()], {"n_targets": 1, **forest}, **options)
        return len(models.load(model).graph.constants)

    assert constants(9) == constants(5)


# **** damaged models ****


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"nodes_featureids": 99}, "feature 99"),
        ({"nodes_truenodeids": 0, "nodes_falsenodeids": 0}, "cycles"),
        ({"nodes_truenodeids": 99}, "branches"),
        ({"target_ids": 5}, "'target_ids'"),
        ({"target_nodeids": 999}, "'target_nodeids'"),
    ],
    ids=["features", "cycle", "nodes", "targets", "leaves"],
)
def test_damaged_trees(models: RuntimeModels, change: dict[str, int], reason: str) -> None:
    forest = random_forest("target")
    for name, number in change.items():
        forest[name] = [number] * len(forest[name])
    attributes = {"n_targets": 1, **forest}
    model = node_model("TreeEnsembleRegressor", [_rows()], attributes, outputs=["y"], domain="ai.onnx.ml", version=3)
    with pytest.raises(UnsupportedOperatorError, match=reason):
        models.load(model)
