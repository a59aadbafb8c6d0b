"""Activations of the domain com.microsoft, compared with ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from runtime_models import RuntimeModels, numbers

_DIMS = {0: ("batch", "sequence", 8)}


@pytest.mark.parametrize("op", ["Gelu", "FastGelu", "QuickGelu"])
def test_gelu_without_a_bias(models: RuntimeModels, op: str) -> None:
    models.compare(op, [numbers(2, 3, 8, scale=3)], dims=_DIMS)


@pytest.mark.parametrize("op", ["BiasGelu", "FastGelu"])
def test_gelu_with_a_bias(models: RuntimeModels, op: str) -> None:
    models.compare(op, [numbers(2, 3, 8, scale=3), numbers(8, seed=1)], dims=_DIMS)


@pytest.mark.parametrize("alpha", [1.0, 0.5, 2.5])
def test_quick_gelu_with_another_factor(models: RuntimeModels, alpha: float) -> None:
    models.compare("QuickGelu", [numbers(2, 3, 8, scale=3)], alpha=alpha)


@pytest.mark.parametrize(
    ("bias", "is_inner"), [((2, 1, 1, 5), 1), ((1, 3, 4, 5), 0), ((4, 5), 0), ((2, 3, 4, 5), 1)], ids=str
)
@pytest.mark.parametrize("axis", [3, -1, 2, 1])
def test_bias_softmax(models: RuntimeModels, axis: int, bias: tuple[int, ...], is_inner: int) -> None:
    """ONNX Runtime has this operator only on GPUs: the oracle follows its documentation."""
    x, addend = numbers(2, 3, 4, 5), numbers(*bias, seed=1)
    powers = np.exp(x + addend)
    expected = powers / powers.sum(axis=tuple(range(axis % 4, 4)), keepdims=True)
    dims = {0: ("batch", "heads", "queries", "keys")} if len(bias) == 4 and axis == 3 else None
    models.compare(
        "BiasSoftmax",
        [x, addend],
        axis=axis,
        is_inner_broadcast=is_inner,
        dims=dims,
        expected={"output_0": expected},
    )
