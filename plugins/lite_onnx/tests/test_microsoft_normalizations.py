"""Normalizations of the domain com.microsoft, compared with ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from runtime_models import RuntimeModels, numbers, quantized

_DIMS = {0: ("batch", "sequence", 8), 1: ("batch", "sequence", 8)}


# **** of a sum ****


@pytest.mark.parametrize("count", [3, 4, 5], ids=["gamma", "beta", "bias"])
def test_layer_norm_of_a_sum(models: RuntimeModels, count: int) -> None:
    inputs = [numbers(2, 3, 8), numbers(2, 3, 8, seed=1), *(numbers(8, seed=i) for i in range(2, count))]
    names = ["output", "", "", "sum"]
    models.compare("SkipLayerNormalization", inputs, outputs=names, epsilon=1e-5, dims=_DIMS, constants=(2, 3, 4))


def test_layer_norm_of_a_sum_without_a_beta(models: RuntimeModels) -> None:
    inputs = [numbers(2, 3, 8), numbers(2, 3, 8, seed=1), numbers(8, seed=2), None, numbers(8, seed=4)]
    models.compare("SkipLayerNormalization", inputs, dims=_DIMS)


@pytest.mark.parametrize("op", ["SkipLayerNormalization", "SkipSimplifiedLayerNormalization"])
@pytest.mark.parametrize("skip", [(3, 8), (1, 3, 8)], ids=str)
def test_layer_norm_of_a_sum_with_a_broadcast_skip(models: RuntimeModels, op: str, skip: tuple[int, ...]) -> None:
    models.compare(op, [numbers(2, 3, 8), numbers(*skip, seed=1), numbers(8, seed=2)], epsilon=1e-6)


def test_layer_norm_of_a_sum_of_matrices(models: RuntimeModels) -> None:
    inputs = [numbers(6, 8), numbers(6, 8, seed=1), numbers(8, seed=2), numbers(8, seed=3)]
    models.compare("SkipLayerNormalization", inputs, dims={0: ("tokens", 8), 1: ("tokens", 8)})


@pytest.mark.parametrize("count", [3, 4], ids=["gamma", "bias"])
def test_rms_of_a_sum(models: RuntimeModels, count: int) -> None:
    inputs = [numbers(2, 3, 8), numbers(2, 3, 8, seed=1), *(numbers(8, seed=i) for i in range(2, count))]
    names = ["output", "", "", "sum"]
    models.compare("SkipSimplifiedLayerNormalization", inputs, outputs=names, epsilon=1e-6, dims=_DIMS)


def test_mean_and_deviation_of_a_sum(models: RuntimeModels) -> None:
    """ONNX Runtime has these outputs only on GPUs: the oracle is LayerNormalization as ONNX specifies it."""
    x, skip, gamma, beta = numbers(2, 3, 8), numbers(2, 3, 8, seed=1), numbers(8, seed=2), numbers(8, seed=3)
    total = x + skip
    mean, inverse = total.mean(-1, keepdims=True), 1 / np.sqrt(total.var(-1, keepdims=True) + 1e-3)
    expected = {"y": (total - mean) * inverse * gamma + beta, "mean": mean, "inverse": inverse, "sum": total}
    models.compare(
        "SkipLayerNormalization", [x, skip, gamma, beta], outputs=list(expected), epsilon=1e-3, expected=expected
    )


# **** RMS normalization ****


@pytest.mark.parametrize("axis", [-1, 2, 1])
def test_rms(models: RuntimeModels, axis: int) -> None:
    x = numbers(2, 3, 8, scale=2)
    inputs, dims = [x, numbers(*x.shape[axis:], seed=1)], {0: ("batch", "sequence", 8)} if axis != 1 else None
    found = models.compare("SimplifiedLayerNormalization", inputs, axis=axis, domain="", dims=dims)
    # ONNX Runtime has it only in ONNX's own domain.
    models.compare("SimplifiedLayerNormalization", inputs, axis=axis, expected=found)


def test_rms_in_float16(models: RuntimeModels) -> None:
    inputs = [numbers(2, 3, 64).astype(np.float16), numbers(64, seed=1).astype(np.float16)]
    models.compare("SimplifiedLayerNormalization", inputs, axis=-1, epsilon=1e-6, domain="", tolerance=2e-3)


# **** of embeddings ****


def _embedding(*, segments: bool, mask: bool, positions: bool) -> list[Any]:
    generator = np.random.default_rng(0)
    ids = generator.integers(0, 20, (2, 5)).astype(np.int32)
    kinds = generator.integers(0, 2, (2, 5)).astype(np.int32) if segments else None
    inputs = [ids, kinds, numbers(20, 8), numbers(9, 8, seed=1), numbers(2, 8, seed=2) if segments else None]
    inputs += [numbers(8, seed=3), numbers(8, seed=4)]
    inputs.append(np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32) if mask else None)
    inputs.append(np.array([[1, 2, 3, 4, 5], [0, 0, 1, 2, 3]], np.int32) if positions else None)
    return inputs


@pytest.mark.parametrize("positions", [False, True])
@pytest.mark.parametrize("mask", [False, True])
@pytest.mark.parametrize("segments", [False, True])
def test_layer_norm_of_embeddings(models: RuntimeModels, segments: bool, mask: bool, positions: bool) -> None:
    inputs = _embedding(segments=segments, mask=mask, positions=positions)
    dims = dict.fromkeys((0, 1, 7, 8), ("batch", "sequence"))
    attributes = {"epsilon": 1e-5, "constants": range(2, 7), "dims": dims}
    names = ["output", "mask_index", "sum"] if mask else ["output", "", "sum"]
    models.compare("EmbedLayerNormalization", inputs, outputs=names, **attributes)


def test_layer_norm_of_embeddings_without_a_mask_index(models: RuntimeModels) -> None:
    """ONNX Runtime returns zeros if there is no mask; ``mask_index_type=0`` means none."""
    inputs = _embedding(segments=True, mask=False, positions=False)
    models.compare("EmbedLayerNormalization", inputs, outputs=2, mask_index_type=0)


@pytest.mark.parametrize("mask", [False, True])
@pytest.mark.parametrize("segments", [False, True])
def test_layer_norm_of_quantized_embeddings(models: RuntimeModels, segments: bool, mask: bool) -> None:
    inputs = _embedding(segments=segments, mask=mask, positions=False)[:8]
    shapes = [None if a is None else a.shape for a in inputs]
    for i in range(2, 7):
        inputs[i] = None if shapes[i] is None else quantized(*shapes[i], seed=i)
    inputs += [None if inputs[i] is None else np.array(0.01 * i, np.float32) for i in range(2, 7)]
    inputs += [None if inputs[i] is None else np.array(120 + i, np.uint8) for i in range(2, 7)]
    options = {"constants": (*range(2, 7), *range(8, 18)), "dims": {0: ("batch", "sequence")}, "epsilon": 1e-5}
    models.compare("QEmbedLayerNormalization", inputs, outputs=2, **options)


# **** of groups ****


def _group_norm(x: Any, gamma: Any, beta: Any, groups: int, is_last: bool, activation: int) -> Any:
    planes = np.moveaxis(x, -1, 1) if is_last else x
    rows = planes.reshape(len(x), groups, -1).astype(np.float64)
    normal = (rows - rows.mean(-1, keepdims=True)) / np.sqrt(rows.var(-1, keepdims=True) + 1e-5)
    result = normal.reshape(planes.shape) * gamma[:, None, None] + beta[:, None, None]
    if activation:
        result = result / (1 + np.exp(-result))
    return (np.moveaxis(result, 1, -1) if is_last else result).astype(np.float32)


@pytest.mark.parametrize("activation", [0, 1])
@pytest.mark.parametrize("is_last", [False, True])
def test_group_norm(models: RuntimeModels, is_last: bool, activation: int) -> None:
    """ONNX Runtime has this operator only on GPUs: the oracle follows its documentation."""
    x = numbers(2, 5, 4, 6) if is_last else numbers(2, 6, 5, 4)
    gamma, beta = numbers(6, seed=1), numbers(6, seed=2)
    dims = {0: ("batch", "height", "width", 6) if is_last else ("batch", 6, "height", "width")}
    attributes = {"groups": 3, "channels_last": int(is_last), "activation": activation, "epsilon": 1e-5}
    expected = {"output_0": _group_norm(x, gamma, beta, 3, is_last, activation)}
    models.compare("GroupNorm", [x, gamma, beta], **attributes, expected=expected, dims=dims)
