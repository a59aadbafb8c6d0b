"""Fused products and convolutions of the domain com.microsoft, compared with ONNX Runtime."""

from __future__ import annotations

from typing import Any

import pytest
from runtime_models import RuntimeModels, numbers


@pytest.mark.parametrize(
    ("a", "b", "attributes"),
    [
        ((2, 3, 4), (4, 5), {}),
        ((2, 3, 4), (2, 4, 5), {"alpha": 0.125}),
        ((2, 4, 3), (2, 4, 5), {"transA": 1}),
        ((2, 3, 4), (2, 5, 4), {"transB": 1, "alpha": 2.0}),
        ((2, 2, 4, 3), (2, 2, 5, 4), {"transA": 1, "transB": 1}),
        ((3, 2, 6, 4), (2, 6, 4, 5), {"transBatchA": 1}),
        ((2, 6, 3, 4), (4, 2, 6, 5), {"transBatchB": 1}),
        ((4, 2, 6, 3), (2, 6, 4, 5), {"transA": 1, "transBatchA": 1}),
        ((2, 6, 3, 4), (5, 2, 6, 4), {"transB": 1, "transBatchB": 1}),
        ((4,), (4, 5), {}),
        ((3, 4), (4,), {"alpha": 0.5}),
    ],
    ids=str,
)
def test_matmul(models: RuntimeModels, a: tuple[int, ...], b: tuple[int, ...], attributes: dict[str, Any]) -> None:
    models.compare("FusedMatMul", [numbers(*a), numbers(*b, seed=1)], **attributes)


def test_matmul_of_unknown_sizes(models: RuntimeModels) -> None:
    dims = {0: ("batch", "heads", "queries", 8), 1: ("batch", "heads", "keys", 8)}
    inputs = [numbers(2, 3, 4, 8), numbers(2, 3, 5, 8, seed=1)]
    models.compare("FusedMatMul", inputs, transB=1, alpha=0.35, dims=dims)


@pytest.mark.parametrize(
    "activation",
    [
        {"activation": "Relu"},
        {"activation": "LeakyRelu", "activation_alpha": 0.2},
        {"activation": "Tanh"},
        {"activation": "Sigmoid"},
        {"activation": "HardSigmoid", "activation_alpha": 0.3, "activation_beta": 0.4},
        {"activation": "Elu", "activation_alpha": 0.7},
        {"activation": "Softplus"},
        {"activation": "Softsign"},
        {"activation": "ThresholdedRelu", "activation_alpha": 0.6},
    ],
    ids=str,
)
def test_gemm(models: RuntimeModels, activation: dict[str, Any]) -> None:
    inputs = [numbers(3, 4), numbers(5, 4, seed=1), numbers(5, seed=2)]
    models.compare("FusedGemm", inputs, transB=1, alpha=0.5, beta=2.0, **activation, dims={0: ("batch", 4)})


def test_gemm_without_an_addend(models: RuntimeModels) -> None:
    models.compare("FusedGemm", [numbers(4, 3), numbers(4, 5, seed=1)], transA=1, activation="Relu")


@pytest.mark.parametrize(
    "activation",
    [
        {"activation": "Relu"},
        {"activation": "LeakyRelu", "activation_params": [0.2]},
        {"activation": "Tanh"},
        {"activation": "Sigmoid"},
        {"activation": "HardSigmoid", "activation_params": [0.3, 0.4]},
        {"activation": "Clip", "activation_params": [-0.5, 1.5]},
        {"activation": "HardSwish"},
    ],
    ids=str,
)
def test_convolution(models: RuntimeModels, activation: dict[str, Any]) -> None:
    inputs = [numbers(2, 4, 7, 6), numbers(6, 2, 3, 3, seed=1), numbers(6, seed=2)]
    attributes = {"group": 2, "pads": [1, 0, 1, 1], "strides": [2, 1], "kernel_shape": [3, 3], "dilations": [1, 1]}
    dims = {0: ("batch", 4, "height", "width")}
    models.compare("FusedConv", inputs, **attributes, **activation, constants=(1, 2), dims=dims)


def test_convolution_with_an_addend(models: RuntimeModels) -> None:
    inputs = [numbers(1, 3, 6, 6), numbers(4, 3, 3, 3, seed=1), numbers(4, seed=2), numbers(1, 4, 6, 6, seed=3)]
    models.compare("FusedConv", inputs, pads=[1, 1, 1, 1], activation="Relu", constants=(1, 2))


def test_convolution_without_bias_and_activation(models: RuntimeModels) -> None:
    models.compare("FusedConv", [numbers(1, 3, 6, 6), numbers(4, 3, 3, 3, seed=1)], auto_pad="SAME_UPPER")


@pytest.mark.parametrize("with_bias", [False, True])
def test_product_and_gelu(models: RuntimeModels, with_bias: bool) -> None:
    """ONNX Runtime has this operator only on GPUs: the oracle is a product followed by FastGelu."""
    x, weights, bias = numbers(2, 3, 4), numbers(4, 5, seed=1), numbers(5, seed=2)
    added = [bias] if with_bias else []
    expected = models.compare("FastGelu", [x @ weights, *added])
    models.compare("GemmFastGelu", [x, weights, *added], expected=expected, dims={0: ("batch", "sequence", 4)})
