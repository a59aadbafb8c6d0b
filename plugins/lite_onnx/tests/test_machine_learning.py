"""Operators of the domain ai.onnx.ml, compared with ONNX Runtime."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from machine_learning_models import random_machine, tensor
from runtime_models import RuntimeModels, node_model, numbers

Array = np.ndarray[Any, Any]
Compare = Callable[..., dict[str, Array]]

_DIMS = {0: ("batch", 6)}
_TRANSFORMS = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"]


@pytest.fixture
def compare(models: RuntimeModels) -> Compare:
    return partial(models.compare, domain="ai.onnx.ml", version=3)


# **** features ****


@pytest.mark.parametrize("shape", [(4, 6), (2, 3, 6), (6,)], ids=str)
def test_array_feature_extractor(compare: Compare, shape: tuple[int, ...]) -> None:
    compare("ArrayFeatureExtractor", [numbers(*shape), np.array([[1, 5, 1]], np.int64)])


def test_array_feature_extractor_of_labels(compare: Compare) -> None:
    """Look up labels as scikit-learn's exporter does: the classes are a constant."""
    inputs = [np.array([7, 8, 9], np.int64), np.array([2, 0, 0, 1], np.int64)]
    compare("ArrayFeatureExtractor", inputs, constants=(0,), dims={1: ("batch",)})


def test_binarizer(compare: Compare) -> None:
    compare("Binarizer", [numbers(4, 6)], threshold=0.3, dims=_DIMS)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32])
@pytest.mark.parametrize("count", [1, 6])
def test_scaler(compare: Compare, count: int, dtype: Any) -> None:
    x = (numbers(4, 6) * 10).astype(dtype)
    compare("Scaler", [x], offset=numbers(count).tolist(), scale=numbers(count, seed=1).tolist(), dims=_DIMS)


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_normalizer(compare: Compare, norm: str) -> None:
    x = np.abs(numbers(4, 6)) if norm == "MAX" else numbers(4, 6)
    x[2] = 0
    compare("Normalizer", [x], norm=norm, dims=_DIMS)


@pytest.mark.parametrize("replaced", [float("nan"), -1.0])
@pytest.mark.parametrize("count", [1, 6])
def test_imputer(compare: Compare, count: int, replaced: float) -> None:
    x = numbers(4, 6)
    x[[0, 1, 3], [2, 5, 0]] = replaced
    compare("Imputer", [x], imputed_value_floats=numbers(count).tolist(), replaced_value_float=replaced, dims=_DIMS)


def test_imputer_of_integers(compare: Compare) -> None:
    x = np.array([[1, -1, 3], [-1, 5, 6]], np.int64)
    compare("Imputer", [x], imputed_value_int64s=[7, 8, 9], replaced_value_int64=-1)


def test_feature_vectorizer(compare: Compare) -> None:
    inputs = [numbers(4, 6), numbers(4, 2, seed=1)]
    dims = {0: ("batch", 6), 1: ("batch", 2)}
    compare("FeatureVectorizer", inputs, inputdimensions=[6, 2], dims=dims)


def test_feature_vectorizer_of_other_widths(compare: Compare) -> None:
    compare("FeatureVectorizer", [numbers(4, 6), numbers(4, 2, seed=1)], inputdimensions=[4, 3])


@pytest.mark.parametrize("dtype", [np.int64, np.float32])
@pytest.mark.parametrize("shape", [(5,), (5, 1)], ids=str)
def test_one_hot_encoder(compare: Compare, shape: tuple[int, ...], dtype: Any) -> None:
    x = np.array([3, 7, 1, 4, 3], dtype).reshape(shape)
    compare("OneHotEncoder", [x], cats_int64s=[1, 3, 4], zeros=1, dims={0: ("batch", *shape[1:])})


# **** labels ****


@pytest.mark.parametrize(
    ("x", "attributes"),
    [
        (np.array([3, 1, 9, 2]), {"keys_int64s": [1, 2, 3], "values_int64s": [10, 20, 30], "default_int64": 7}),
        (np.array([3, 1, 9, 2]), {"keys_int64s": [1, 2, 3], "values_floats": [1.5, 2.5, 3.5], "default_float": 0.5}),
        (np.array([3, 1, 9, 2]), {"keys_int64s": [1, 2, 3], "values_int64s": [10, 20, 30]}),
        (np.float32([[0.5, 4], [2, 0.5]]), {"keys_floats": [0.5, 2.0], "values_int64s": [1, 2]}),
        (
            np.float32([np.nan, 4, 2]),
            {"keys_floats": [2.0, float("nan")], "values_floats": [1.0, 2.0], "default_float": 9.0},
        ),
    ],
    ids=["ints", "floats", "default", "float keys", "nan"],
)
def test_label_encoder(compare: Compare, x: Array, attributes: dict[str, Any]) -> None:
    compare("LabelEncoder", [x], version=2, **attributes)
    compare("LabelEncoder", [x], version=4, **attributes)


def test_label_encoder_of_tensors(compare: Compare) -> None:
    attributes = {
        "keys_tensor": tensor("keys", [1, 2, 3], np.int64),
        "values_tensor": tensor("values", [10, 20, 30], np.int64),
        "default_tensor": tensor("default", [-5], np.int64),
    }
    compare("LabelEncoder", [np.array([3, 1, 9, 2])], version=4, **attributes)


def test_label_encoder_with_string_values(models: RuntimeModels) -> None:
    attributes = {"keys_int64s": [5, 6], "values_strings": ["cat", "dog"]}
    inputs = {"input_0": np.array([6, 5, 9])}
    model = node_model("LabelEncoder", [*inputs.values()], attributes, outputs=["y"], domain="ai.onnx.ml", version=2)
    assert models.lite(model, inputs)["y"].tolist() == models.onnxruntime(model, inputs)["y"].tolist()


def test_zip_map(models: RuntimeModels) -> None:
    x = numbers(4, 3)
    attributes = {"classlabels_strings": ["a", "b", "c"]}
    model = node_model("ZipMap", [x], attributes, outputs=["y"], domain="ai.onnx.ml")
    maps = models.onnxruntime(model, {"input_0": x})["y"]
    found = models.lite(model, {"input_0": x})["y"]
    assert [dict(zip("abc", row)) for row in found] == maps


# **** linear ****


@pytest.mark.parametrize("transform", _TRANSFORMS)
@pytest.mark.parametrize("targets", [1, 3])
def test_linear_regressor(compare: Compare, targets: int, transform: str) -> None:
    x = np.abs(numbers(5, 6))
    weights = np.abs(numbers(targets * 6, seed=1)) * 0.05
    attributes = {"coefficients": weights.tolist(), "intercepts": [0.1] * targets, "targets": targets}
    compare("LinearRegressor", [x], version=1, post_transform=transform, dims=_DIMS, **attributes)


def test_linear_regressor_without_intercepts(compare: Compare) -> None:
    compare("LinearRegressor", [numbers(5, 6)], version=1, coefficients=numbers(6, seed=1).tolist())


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("transform", _TRANSFORMS)
@pytest.mark.parametrize(("count", "labels"), [(1, [3, 8]), (2, [3, 8]), (3, [3, 8, 1])], ids=str)
def test_linear_classifier(compare: Compare, count: int, labels: list[int], transform: str, dtype: Any) -> None:
    x = (np.abs(numbers(7, 6)) * 2).astype(dtype)
    weights = numbers(count * 6, seed=1)
    if transform == "PROBIT":
        if count == 1:
            pytest.skip("ONNX Runtime leaves a column uninitialized")
        weights = np.abs(weights) * 0.05
    attributes = {"coefficients": weights.tolist(), "intercepts": (np.arange(count) * 0.1).tolist()}
    attributes |= {"classlabels_ints": labels, "post_transform": transform}
    compare("LinearClassifier", [x], version=1, outputs=2, dims=_DIMS, **attributes)


def test_string_labels(models: RuntimeModels) -> None:
    x, names = numbers(7, 6), ["ape", "bee", "cat"]
    attributes = {
        "coefficients": numbers(18, seed=1).tolist(),
        "intercepts": [0.0, 0.1, 0.2],
        "classlabels_strings": names,
    }
    model = node_model("LinearClassifier", [x], attributes, outputs=["label", "scores"], domain="ai.onnx.ml", version=1)
    found, expected = models.lite(model, {"input_0": x}), models.onnxruntime(model, {"input_0": x})
    assert found["label"].tolist() == expected["label"].tolist()
    assert json.loads(models.load(model).graph.metadata["labels.label"]) == names


# **** support vectors ****

_KERNELS = ["LINEAR", "POLY", "RBF", "SIGMOID"]


@pytest.mark.parametrize("one_class", [0, 1])
@pytest.mark.parametrize("kernel", _KERNELS)
def test_svm_regressor(compare: Compare, kernel: str, one_class: int) -> None:
    attributes = {"kernel_type": kernel, "kernel_params": [0.3, 0.5, 2.0], "n_supports": 4, "rho": [0.2]}
    attributes |= {"coefficients": numbers(4).tolist(), "support_vectors": numbers(24, seed=1).tolist()}
    compare("SVMRegressor", [numbers(7, 6, seed=2)], version=1, one_class=one_class, dims=_DIMS, **attributes)


def test_svm_regressor_without_vectors(compare: Compare) -> None:
    attributes = {
        "kernel_type": "LINEAR",
        "kernel_params": [1.0, 0.0, 3.0],
        "rho": [0.2],
        "coefficients": numbers(6).tolist(),
    }
    compare("SVMRegressor", [numbers(7, 6, seed=2)], version=1, **attributes)


@pytest.mark.parametrize("kernel", _KERNELS)
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_svm_classifier(compare: Compare, classes: int, kernel: str) -> None:
    attributes = random_machine(classes, kernel=kernel)
    dims = {0: ("batch", 5)}
    compare("SVMClassifier", [numbers(40, 5)], version=1, outputs=2, dims=dims, **attributes)


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_svm_classifier_with_probabilities(compare: Compare, classes: int) -> None:
    attributes = random_machine(classes, chances=True)
    dims = {0: ("batch", 5)}
    compare("SVMClassifier", [numbers(40, 5)], version=1, outputs=2, dims=dims, **attributes)


@pytest.mark.parametrize("transform", _TRANSFORMS[:4])
@pytest.mark.parametrize("classes", [2, 3])
def test_svm_classifier_with_a_transform(compare: Compare, classes: int, transform: str) -> None:
    attributes = random_machine(classes)
    compare("SVMClassifier", [numbers(40, 5)], version=1, outputs=2, post_transform=transform, **attributes)


@pytest.mark.parametrize(("classes", "labels"), [(2, [4, 9]), (3, [4, 9, 2])])
def test_svm_classifier_without_vectors(compare: Compare, classes: int, labels: list[int]) -> None:
    attributes = {"kernel_type": "LINEAR", "kernel_params": [1.0, 0.0, 3.0], "rho": [0.2] * classes}
    attributes["coefficients"] = numbers(5 * classes).tolist()
    compare("SVMClassifier", [numbers(40, 5, seed=1)], version=1, outputs=2, classlabels_ints=labels, **attributes)
