"""Operators of ONNX's opsets 23 to 25, compared with ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from runtime_models import RuntimeModels, numbers

Array = np.ndarray[Any, Any]

_B, _N, _S, _P, _H = 2, 4, 3, 5, 8  # batch, heads, positions, past positions, head size


@pytest.fixture
def compare(models: RuntimeModels) -> Any:
    def compare(op: str, inputs: list[Any], *, opset: int = 23, **options: Any) -> dict[str, Array]:
        return models.compare(op, inputs, domain="", onnx_opset=opset, **options)

    return compare


@pytest.mark.parametrize("alpha", [1.0, 1.7])
def test_swish(compare: Any, alpha: float) -> None:
    compare("Swish", [numbers(3, 8)], opset=24, alpha=alpha, dims={0: ("batch", 8)})


@pytest.mark.parametrize("axis", [-1, 1])
def test_rms_normalization(compare: Any, axis: int) -> None:
    x = numbers(2, 3, 8)
    compare("RMSNormalization", [x, numbers(*x.shape[axis:], seed=1)], axis=axis, epsilon=1e-6)


# **** positions ****


def _angles(*shape: int) -> list[Array]:
    angles = numbers(*shape, seed=5)
    return [np.cos(angles), np.sin(angles)]


@pytest.mark.parametrize("size", [0, 4])
@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("with_positions", [False, True])
@pytest.mark.parametrize("is_flat", [False, True])
def test_rotary_embedding(compare: Any, is_flat: bool, with_positions: bool, interleaved: int, size: int) -> None:
    x = numbers(_B, _S, _N * _H) if is_flat else numbers(_B, _N, _S, _H)
    half = (size or _H) // 2
    inputs = [x, *(_angles(20, half) if with_positions else _angles(_B, _S, half))]
    inputs += [np.array([[3, 4, 5], [0, 1, 2]])] if with_positions else []
    attributes = {"interleaved": interleaved, "rotary_embedding_dim": size, "num_heads": _N}
    dims = {0: ("batch", "sequence", _N * _H) if is_flat else ("batch", _N, "sequence", _H)}
    compare("RotaryEmbedding", inputs, dims=dims, **attributes)


# **** caches ****


@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize("with_starts", [False, True])
@pytest.mark.parametrize(("cache", "new", "axis"), [((2, 3, 6, 4), (2, 3, 2, 4), -2), ((2, 6, 4), (2, 2, 4), 1)])
def test_tensor_scatter(
    compare: Any, cache: tuple[int, ...], new: tuple[int, ...], axis: int, with_starts: bool, mode: str
) -> None:
    starts = [np.array([1, 5 if mode == "circular" else 4])] if with_starts else []
    compare("TensorScatter", [numbers(*cache), numbers(*new, seed=1), *starts], opset=24, axis=axis, mode=mode)


# **** attention ****


def _inputs(*, is_flat: bool, shared: int = _N, keys: int = _S, size: int = _H) -> list[Array]:
    """Return query, key and value."""
    if is_flat:
        shapes = [(_B, _S, _N * _H), (_B, keys, shared * _H), (_B, keys, shared * size)]
    else:
        shapes = [(_B, _N, _S, _H), (_B, shared, keys, _H), (_B, shared, keys, size)]
    return [numbers(*shape, seed=i) for i, shape in enumerate(shapes)]


def _heads(is_flat: bool, shared: int = _N) -> dict[str, int]:
    return {"q_num_heads": _N, "kv_num_heads": shared} if is_flat else {}


@pytest.mark.parametrize("opset", [23, 24])
@pytest.mark.parametrize("is_causal", [0, 1])
@pytest.mark.parametrize("shared", [_N, 2])
@pytest.mark.parametrize("is_flat", [False, True])
def test_attention(compare: Any, is_flat: bool, shared: int, is_causal: int, opset: int) -> None:
    inputs = _inputs(is_flat=is_flat, shared=shared, size=6)
    shapes = [
        ("batch", "positions", a.shape[2]) if is_flat else ("batch", a.shape[1], "positions", a.shape[3])
        for a in inputs
    ]
    attributes = {**_heads(is_flat, shared), "is_causal": is_causal, "dims": dict(enumerate(shapes))}
    compare("Attention", inputs, opset=opset, **attributes)


@pytest.mark.parametrize("shape", [(_S, 6), (_B, 1, _S, 6), (1, _N, _S, 6), (_B, _N, _S, 6)], ids=str)
@pytest.mark.parametrize("dtype", [np.bool_, np.float32])
def test_attention_with_a_mask(compare: Any, dtype: Any, shape: tuple[int, ...]) -> None:
    mask = numbers(*shape, seed=7) if dtype is np.float32 else np.random.default_rng(0).random(shape) < 0.6
    mask[..., 0] = 1
    compare("Attention", [*_inputs(is_flat=False, keys=6), mask.astype(dtype)])


@pytest.mark.parametrize("opset", [23, 24])
@pytest.mark.parametrize("is_causal", [0, 1])
@pytest.mark.parametrize("is_flat", [False, True])
def test_attention_with_a_past(compare: Any, is_flat: bool, is_causal: int, opset: int) -> None:
    past = [numbers(_B, 2, _P, _H, seed=i) for i in (4, 5)]
    inputs = [*_inputs(is_flat=is_flat, shared=2), None, *past]
    attributes = {**_heads(is_flat, 2), "is_causal": is_causal, "opset": opset}
    dims = {4: ("batch", 2, "past", _H), 5: ("batch", 2, "past", _H)}
    compare("Attention", inputs, outputs=3, dims=dims, **attributes)


@pytest.mark.parametrize("opset", [23, 24])
@pytest.mark.parametrize("mode", [0, 1, 2, 3])
@pytest.mark.parametrize("softcap", [0.0, 1.5])
def test_attention_with_the_products_as_output(compare: Any, softcap: float, mode: int, opset: int) -> None:
    inputs = [*_inputs(is_flat=False), numbers(_S, _S, seed=7)]
    names = ["y", "", "", "products"]
    attributes = {"softcap": softcap, "scale": 0.4, "qk_matmul_output_mode": mode, "opset": opset}
    compare("Attention", inputs, outputs=names, **attributes)


@pytest.mark.parametrize("is_causal", [0, 1])
def test_attention_with_padded_keys(compare: Any, is_causal: int) -> None:
    inputs = [*_inputs(is_flat=False, keys=6), None, None, None, np.array([4, 6])]
    compare("Attention", inputs, opset=24, is_causal=is_causal, dims={6: ("batch",)})


def test_attention_of_queries_without_visible_keys(compare: Any) -> None:
    mask = np.random.default_rng(0).random((_S, 6)) < 0.6
    mask[1] = False
    found = compare("Attention", [*_inputs(is_flat=False, keys=6), mask], opset=24)
    assert not found["output_0"][:, :, 1].any()


@pytest.mark.parametrize(("left", "right"), [(1, -1), (-1, 2), (2, 1), (0, 0)])
def test_attention_in_a_window(models: RuntimeModels, left: int, right: int) -> None:
    """The attributes are of opset 25: the oracle uses an equivalent mask."""
    inputs = [*_inputs(is_flat=False, keys=6), None, *(numbers(_B, _N, _P, _H, seed=i) for i in (4, 5))]
    ahead = np.arange(_P + 6) - (np.arange(_S)[:, None] + _P)
    inputs[3] = ((ahead >= -left) | (left < 0)) & ((ahead <= right) | (right < 0))
    options: dict[str, Any] = {"domain": "", "onnx_opset": 24, "outputs": 3}
    expected = models.compare("Attention", inputs, **options)
    inputs[3] = None
    windows = {"left_window_size": left, "right_window_size": right}
    models.compare("Attention", inputs, **options, **windows, expected=expected)
