"""Attention and MultiHeadAttention of the domain com.microsoft, compared with ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from runtime_models import RuntimeModels, node_model, numbers, quantized

from lite_core.errors import UnsupportedOperatorError

Array = np.ndarray[Any, Any]

_B, _N, _S, _P, _H, _WIDTH = 2, 3, 4, 5, 8, 12  # batch, heads, positions, past positions, head size, input width


def _weighted(*sizes: int) -> list[Array]:
    """Return input, weights and bias."""
    total = sum(sizes) or 3 * _N * _H
    return [numbers(_B, _S, _WIDTH), numbers(_WIDTH, total, seed=1, scale=0.3), numbers(total, seed=2)]


def _mask(*shape: int, seed: int = 9) -> Array:
    """Return a random mask that excludes some keys, but never the first one."""
    mask = np.random.default_rng(seed).integers(0, 2, shape).astype(np.int32)
    mask[..., 0] = 1
    return mask


_INPUT = {0: ("batch", "sequence", _WIDTH)}
_FIXED = (1, 2)

# **** Attention ****

_MASKS: dict[str, tuple[Array, tuple[str | int, ...]]] = {
    "keys": (_mask(_B, _S), ("batch", "sequence")),
    "keys of each query": (_mask(_B, _S, _S), ("batch", "sequence", "sequence")),
    "lengths": (np.array([2, 4], np.int32), ("batch",)),
    "ends and beginnings": (np.array([4, 3, 2, 1], np.int32), ("twice",)),
}


@pytest.mark.parametrize("unidirectional", [0, 1])
@pytest.mark.parametrize("mask", _MASKS)
def test_attention_with_a_mask(models: RuntimeModels, mask: str, unidirectional: int) -> None:
    array, dims = _MASKS[mask]
    models.compare(
        "Attention",
        [*_weighted(), array],
        num_heads=_N,
        unidirectional=unidirectional,
        constants=_FIXED,
        dims={**_INPUT, 3: dims},
    )


@pytest.mark.parametrize("attributes", [{}, {"unidirectional": 1}, {"scale": 0.2}], ids=str)
def test_attention_without_a_mask(models: RuntimeModels, attributes: dict[str, Any]) -> None:
    models.compare("Attention", _weighted(), num_heads=_N, constants=_FIXED, dims=_INPUT, **attributes)


def test_attention_without_a_bias(models: RuntimeModels) -> None:
    """ONNX Runtime crashes on this model on CPUs: the oracle is its result for a bias of zeros."""
    x, weights, bias = _weighted()
    expected = models.compare("Attention", [x, weights, np.zeros_like(bias), _mask(_B, _S)], num_heads=_N)
    inputs = [x, weights, None, _mask(_B, _S)]
    models.compare("Attention", inputs, num_heads=_N, constants=(1,), dims=_INPUT, expected=expected)


def test_attention_with_values_of_another_size(models: RuntimeModels) -> None:
    sizes = [24, 24, 36]
    models.compare("Attention", _weighted(*sizes), num_heads=_N, qkv_hidden_sizes=sizes, constants=_FIXED, dims=_INPUT)


@pytest.mark.parametrize("masked", [-10000.0, float(np.finfo(np.float32).min)])
def test_attention_of_queries_without_visible_keys(models: RuntimeModels, masked: float) -> None:
    """With left padding in a causal model, all keys of the first queries are masked."""
    inputs = [*_weighted(), np.array([[0, 0, 1, 1], [0, 1, 1, 1]], np.int32)]
    models.compare("Attention", inputs, num_heads=_N, unidirectional=1, mask_filter_value=masked)


@pytest.mark.parametrize("past", [0, _P])
@pytest.mark.parametrize("with_mask", [False, True])
def test_attention_with_a_past(models: RuntimeModels, with_mask: bool, past: int) -> None:
    mask = _mask(_B, past + _S) if with_mask else None
    inputs = [*_weighted(), mask, numbers(2, _B, _N, past, _H, seed=4)]
    dims = {**_INPUT, 3: ("batch", "total"), 4: (2, "batch", _N, "past", _H)}
    attributes = {"num_heads": _N, "unidirectional": 1, "constants": _FIXED}
    models.compare("Attention", inputs, outputs=2, dims=dims, **attributes)


def test_attention_returns_a_present_without_a_past(models: RuntimeModels) -> None:
    models.compare("Attention", _weighted(), outputs=2, num_heads=_N, unidirectional=1, constants=_FIXED, dims=_INPUT)


@pytest.mark.parametrize("shape", [(_B, _N, _S, _S), (1, _N, _S, _S), (_B, 1, _S, _S), (1, 1, _S, _S)], ids=str)
def test_attention_with_a_bias_of_the_products(models: RuntimeModels, shape: tuple[int, ...]) -> None:
    inputs = [*_weighted(), _mask(_B, _S), None, numbers(*shape, seed=5)]
    models.compare("Attention", inputs, num_heads=_N, constants=_FIXED)


def test_attention_with_a_mask_of_maximum_length(models: RuntimeModels) -> None:
    """ONNX Runtime has Megatron's mask only on GPUs; here it equals a causal mask, which is the oracle."""
    largest = np.tril(np.ones((1, 1, 16, 16), np.int32)).repeat(_B, 0)
    inputs = [*_weighted(), None, numbers(2, _B, _N, _P, _H, seed=4)]
    expected = models.compare("Attention", inputs, outputs=2, num_heads=_N, unidirectional=1)
    inputs[3] = largest
    models.compare("Attention", inputs, outputs=2, num_heads=_N, expected=expected)


def test_attention_with_rotary_embedding_is_refused(models: RuntimeModels) -> None:
    model = node_model("Attention", _weighted(), {"num_heads": _N, "do_rotary": 1}, outputs=["output"])
    with pytest.raises(UnsupportedOperatorError, match="rotary"):
        models.load(model)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("per_column", [False, True])
@pytest.mark.parametrize("past", [None, _P])
def test_quantized_attention(models: RuntimeModels, past: int | None, per_column: bool, dtype: Any) -> None:
    """Compare QAttention, which ONNX Runtime's quantizer generates from Attention."""
    total = 3 * _N * _H
    scale = np.linspace(0.002, 0.004, total, dtype=np.float32) if per_column else np.array(0.003, np.float32)
    inputs = [quantized(_B, _S, _WIDTH), quantized(_WIDTH, total, seed=1, dtype=dtype), numbers(total, seed=2)]
    inputs += [np.array(0.01, np.float32), scale, _mask(_B, (past or 0) + _S), np.array(120, np.uint8)]
    inputs += [np.full(scale.shape, 3, dtype)]
    inputs += [numbers(2, _B, _N, past, _H, seed=4)] if past else []
    attributes = {"num_heads": _N, "unidirectional": 1, "outputs": 2 if past else 1, "tolerance": 1e-4}
    dims = {0: ("batch", "sequence", _WIDTH), 5: ("batch", "total")}
    models.compare("QAttention", inputs, constants=(1, 2, 3, 4, 6, 7), dims=dims, **attributes)


# **** MultiHeadAttention ****

_T, _HIDDEN = 6, _N * _H
_CROSS = {0: ("batch", "queries", _HIDDEN), 1: ("batch", "keys", _HIDDEN), 2: ("batch", "keys", "width")}


def _inputs(keys: int = _T, width: int = _HIDDEN) -> list[Array]:
    """Return query, key and value."""
    return [numbers(_B, _S, _HIDDEN), numbers(_B, keys, _HIDDEN, seed=1), numbers(_B, keys, width, seed=2)]


@pytest.mark.parametrize("width", [_HIDDEN, 36])
@pytest.mark.parametrize("with_bias", [False, True])
def test_heads_with_cross_attention(models: RuntimeModels, with_bias: bool, width: int) -> None:
    inputs = [*_inputs(width=width), *([numbers(2 * _HIDDEN + width, seed=3)] if with_bias else [])]
    dims = {**_CROSS, 2: ("batch", "keys", width)}
    models.compare("MultiHeadAttention", inputs, num_heads=_N, dims=dims)


@pytest.mark.parametrize("attributes", [{"unidirectional": 1}, {"scale": 0.3}], ids=str)
def test_heads_with_attributes(models: RuntimeModels, attributes: dict[str, Any]) -> None:
    dims = dict.fromkeys(range(3), ("batch", "sequence", _HIDDEN))
    models.compare("MultiHeadAttention", _inputs(_S), num_heads=_N, dims=dims, **attributes)


@pytest.mark.parametrize(
    ("mask", "dims"),
    [
        (_mask(_B, _T), ("batch", "keys")),
        (_mask(_B, _S, _T), ("batch", "queries", "keys")),
        (np.array([3, 6], np.int32), ("batch",)),
    ],
    ids=["keys", "keys of each query", "lengths"],
)
def test_heads_with_a_mask(models: RuntimeModels, mask: Array, dims: tuple[str, ...]) -> None:
    inputs = [*_inputs(), None, mask]
    attributes = {"num_heads": _N, "mask_filter_value": -3000.0}
    dims_ = {**_CROSS, 2: _CROSS[1], 4: dims}
    models.compare("MultiHeadAttention", inputs, dims=dims_, **attributes)


@pytest.mark.parametrize("shape", [(_B, _N, _S, _T), (1, _N, _S, _T), (_B, 1, _S, _T), (1, 1, _S, _T)], ids=str)
def test_heads_with_a_bias_of_the_products(models: RuntimeModels, shape: tuple[int, ...]) -> None:
    models.compare("MultiHeadAttention", [*_inputs(), None, None, numbers(*shape, seed=5)], num_heads=_N)


def test_heads_with_a_mask_and_a_bias_of_the_products(models: RuntimeModels) -> None:
    inputs = [*_inputs(), numbers(3 * _HIDDEN, seed=3), _mask(_B, _T), numbers(1, _N, _S, _T, seed=5)]
    models.compare("MultiHeadAttention", inputs, num_heads=_N)


@pytest.mark.parametrize("unidirectional", [0, 1])
@pytest.mark.parametrize("past", [0, _P])
def test_heads_with_a_past(models: RuntimeModels, past: int, unidirectional: int) -> None:
    before = [numbers(_B, _N, past, _H, seed=i) for i in (6, 7)]
    inputs = [*_inputs(_S), None, _mask(_B, past + _S), None, *before]
    dims: dict[int, Any] = dict.fromkeys(range(3), ("batch", "sequence", _HIDDEN))
    dims |= {4: ("batch", "total"), 6: ("batch", _N, "past", _H), 7: ("batch", _N, "past", _H)}
    attributes = {"num_heads": _N, "unidirectional": unidirectional}
    models.compare("MultiHeadAttention", inputs, outputs=3, dims=dims, **attributes)


def test_heads_with_cached_keys(models: RuntimeModels) -> None:
    """Compare cross attention of a decoder, for which keys and values of the encoder are already heads."""
    inputs = [_inputs()[0], *(numbers(_B, _N, _T, _H, seed=i) for i in (1, 2)), numbers(3 * _HIDDEN, seed=3)]
    dims = {0: _CROSS[0], 1: ("batch", _N, "keys", _H), 2: ("batch", _N, "keys", _H)}
    models.compare("MultiHeadAttention", inputs, num_heads=_N, dims=dims)


def test_heads_with_the_products_as_output(models: RuntimeModels) -> None:
    """The fourth output contains the inputs of the softmax; speech models use it to find the times of words."""
    inputs = [*_inputs(), numbers(3 * _HIDDEN, seed=3), _mask(_B, _T), numbers(1, _N, _S, _T, seed=5)]
    attributes = {"outputs": ["y", "", "", "weights"], "types": {"weights": np.float32}}
    models.compare("MultiHeadAttention", inputs, num_heads=_N, **attributes)


def test_packed_heads(models: RuntimeModels) -> None:
    """ONNX Runtime supports packed inputs only on GPUs: the oracle is its result for separate inputs."""
    query, key, value = _inputs(_S)
    expected = models.compare("MultiHeadAttention", [query, key, value], num_heads=_N)
    planes = [x.reshape(_B, _S, _N, _H) for x in (query, key, value)]
    dims: dict[int, Any] = {0: ("batch", "sequence", _N, 3, _H)}
    packed = np.stack(planes, axis=3)
    models.compare("MultiHeadAttention", [packed], num_heads=_N, expected=expected, dims=dims)
    dims = {0: ("batch", "sequence", _HIDDEN), 1: ("batch", "sequence", _N, 2, _H)}
    inputs = [query, np.stack(planes[1:], axis=3)]
    models.compare("MultiHeadAttention", inputs, num_heads=_N, expected=expected, dims=dims)


def test_heads_in_one_buffer_are_refused(models: RuntimeModels) -> None:
    past = [numbers(_B, _N, _P, _H, seed=i) for i in (6, 7)]
    inputs = [*_inputs(_S), None, None, None, *past, np.array([3], np.int32)]
    with pytest.raises(UnsupportedOperatorError, match="in one buffer"):
        models.load(node_model("MultiHeadAttention", inputs, {"num_heads": _N}, outputs=["output"]))
