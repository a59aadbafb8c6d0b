"""Trees of the domain ai.onnx.ml against ONNX Runtime."""

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


def _rows(*, missing: bool = False, dtype: Any = np.float32) -> Array:
    x = np.round(numbers(50, 6, seed=9), 1)
    if missing:
        x[np.random.default_rng(1).random(x.shape) < 0.2] = np.nan
    return (x * 2).astype(dtype) if np.dtype(dtype).kind == "i" else x.astype(dtype)


@pytest.mark.parametrize("how", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("targets", [1, 3])
def test_trees_of_targets(compare: Compare, targets: int, sparse: bool, how: str) -> None:
    forest = random_forest("target", ids=tuple(range(targets)), sparse=sparse)
    compare("TreeEnsembleRegressor", [_rows()], n_targets=targets, aggregate_function=how, dims=_DIMS, **forest)


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
def test_trees_of_other_comparisons(compare: Compare, modes: tuple[str, ...]) -> None:
    compare("TreeEnsembleRegressor", [_rows()], n_targets=1, **random_forest("target", modes=modes))


@pytest.mark.parametrize("modes", [("BRANCH_LEQ",), ("BRANCH_LT", "BRANCH_GTE")], ids=str)
def test_trees_of_missing_values(compare: Compare, modes: tuple[str, ...]) -> None:
    compare("TreeEnsembleRegressor", [_rows(missing=True)], n_targets=1, **random_forest("target", modes=modes))


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.int32])
def test_trees_of_other_types(compare: Compare, dtype: Any) -> None:
    forest = random_forest("class", ids=(0, 1, 2))
    compare("TreeEnsembleClassifier", [_rows(dtype=dtype)], outputs=2, classlabels_int64s=[0, 1, 2], **forest)


def test_trees_of_double_precision(compare: Compare) -> None:
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


def test_trees_of_one_leaf(compare: Compare) -> None:
    compare("TreeEnsembleRegressor", [_rows()], n_targets=1, dims=_DIMS, **random_forest("target", depth=0))
    compare("TreeEnsembleRegressor", [_rows()], n_targets=1, dims=_DIMS, **random_forest("target", depth=0, trees=1))


@pytest.mark.parametrize("transform", _TRANSFORMS[:4])
@pytest.mark.parametrize("base", [False, True])
@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("classes", [3, 4])
def test_trees_of_classes(compare: Compare, classes: int, positive: bool, base: bool, transform: str) -> None:
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
def test_trees_of_one_of_two_classes(
    compare: Compare, ids: tuple[int, ...], base: int, positive: bool, transform: str
) -> None:
    """What binary classifiers are exported as: the trees speak of one class alone."""
    forest = random_forest("class", ids=ids, positive=positive)
    if base:
        forest["base_values"] = [0.15]
    attributes = {"classlabels_int64s": [4, 9], "post_transform": transform}
    compare("TreeEnsembleClassifier", [_rows()], outputs=2, dims=_DIMS, **attributes, **forest)


@pytest.mark.parametrize("transform", _TRANSFORMS[:4])
@pytest.mark.parametrize("positive", [False, True])
def test_trees_of_both_of_two_classes(models: RuntimeModels, positive: bool, transform: str) -> None:
    forest = random_forest("class", ids=(0, 1), positive=positive)
    attributes = {"classlabels_int64s": [4, 9], "post_transform": transform}
    options = {"outputs": ["label", "scores"], "domain": "ai.onnx.ml", "version": 3}
    model = node_model("TreeEnsembleClassifier", [_rows()], {**attributes, **forest}, **options)
    # Its labels are 0 and 1, which are none of the two, by the sign of the second score.
    expected = {"scores": models.onnxruntime(model, {"input_0": _rows()})["scores"]}
    models.compare("TreeEnsembleClassifier", [_rows()], expected=expected, **options, **attributes, **forest)


def test_labels_of_both_of_two_classes(models: RuntimeModels) -> None:
    attributes = {"classlabels_int64s": [4, 9], **random_forest("class", ids=(0, 1))}
    options = {"outputs": ["label", "scores"], "domain": "ai.onnx.ml", "version": 3}
    found = models.lite(node_model("TreeEnsembleClassifier", [_rows()], attributes, **options), {"input_0": _rows()})
    assert found["label"].tolist() == np.where(found["scores"][:, 1] > found["scores"][:, 0], 9, 4).tolist()


def test_trees_of_classes_that_each_tree_is_for_one_of(compare: Compare) -> None:
    """As gradient boosting has them: a tree speaks of one class."""
    forest = random_forest("class", ids=(0, 1, 2), trees=9)
    kept = [i for i, (tree, c) in enumerate(zip(forest["class_treeids"], forest["class_ids"])) if tree % 3 == c]
    for name in ("treeids", "nodeids", "ids", "weights"):
        forest[f"class_{name}"] = [forest[f"class_{name}"][i] for i in kept]
    attributes = {"classlabels_int64s": [0, 1, 2], "post_transform": "SOFTMAX"}
    compare("TreeEnsembleClassifier", [_rows()], outputs=2, dims=_DIMS, **attributes, **forest)


# **** trees of version 5 ****


def _ensemble(dtype: Any, *, targets: int = 2) -> dict[str, Any]:
    """Two trees with a set, another comparison and missing values; the second one is a leaf alone."""
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
@pytest.mark.parametrize("how", [0, 1, 2, 3])
@pytest.mark.parametrize("targets", [1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_trees_of_version_5(models: RuntimeModels, dtype: Any, targets: int, how: int, transform: int) -> None:
    x = _rows(missing=True, dtype=dtype)
    x[:, 1] = np.round(x[:, 1])
    attributes = {**_ensemble(dtype, targets=targets), "aggregate_function": how}
    # ONNX says that 1 is softmax and 2 logistic, and ONNX Runtime has them the other way round.
    other = {**attributes, "post_transform": {1: 2, 2: 1}.get(transform, transform)}
    model = node_model("TreeEnsemble", [x], other, outputs=["y"], domain="ai.onnx.ml", version=5)
    options = {"domain": "ai.onnx.ml", "version": 5, "outputs": ["y"], "dims": _DIMS}
    expected = models.onnxruntime(model, {"input_0": x})
    models.compare("TreeEnsemble", [x], expected=expected, post_transform=transform, **options, **attributes)


def test_a_classifier_as_it_is_exported(models: RuntimeModels) -> None:
    """Features scaled, trees, labels that are texts, and a list of maps at the end."""
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
    assert [names[i] for i in found["label"]] == list(expected["label"])
    shares: Any = [[row[name] for name in names] for row in expected["maps"]]
    assert np.abs(found["maps"] - shares).max() < 1e-5


def test_tables_are_there_once(models: RuntimeModels) -> None:
    """However many levels look into them."""
    forest = random_forest("target", depth=9)
    options = {"outputs": ["y"], "domain": "ai.onnx.ml", "version": 3}
    graph = models.load(node_model("TreeEnsembleRegressor", [_rows()], {"n_targets": 1, **forest}, **options)).graph
    nodes = len(forest["nodes_nodeids"])
    assert sum(array.size >= nodes for array in graph.constants.values()) <= 7


# **** damaged models ****


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"nodes_featureids": 99}, "look at feature 99"),
        ({"nodes_truenodeids": 0, "nodes_falsenodeids": 0}, "cycles"),
        ({"nodes_truenodeids": 99}, "outside of its"),
        ({"target_ids": 5}, "outside of 1"),
        ({"target_nodeids": 999}, "none of its nodes"),
    ],
    ids=["features", "cycle", "nodes", "targets", "leaves"],
)
def test_damaged_trees(models: RuntimeModels, change: dict[str, int], words: str) -> None:
    forest = random_forest("target")
    for name, number in change.items():
        forest[name] = [number] * len(forest[name])
    attributes = {"n_targets": 1, **forest}
    model = node_model("TreeEnsembleRegressor", [_rows()], attributes, outputs=["y"], domain="ai.onnx.ml", version=3)
    with pytest.raises(UnsupportedOperatorError, match=words):
        models.load(model)
