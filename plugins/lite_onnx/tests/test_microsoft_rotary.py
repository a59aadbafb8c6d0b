"""RotaryEmbedding and GroupQueryAttention of the domain com.microsoft, compared with ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from runtime_models import RuntimeModels, node_model, numbers

from lite_core.errors import UnsupportedOperatorError

Array = np.ndarray[Any, Any]

_MAX_LENGTH = 32


def _tables(size: int) -> list[Array]:
    """Return cosines and sines [positions, size / 2]."""
    angles = np.arange(_MAX_LENGTH)[:, None] / 100.0 ** (np.arange(size // 2) * 2 / size)
    return [np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)]


# **** RotaryEmbedding ****

_ROWS = np.array([[3, 4, 5], [0, 1, 2]], np.int64)


@pytest.mark.parametrize("positions", [_ROWS, np.array([4], np.int64)], ids=["rows", "first"])
@pytest.mark.parametrize("interleaved", [0, 1])
def test_rotation_of_rows(models: RuntimeModels, interleaved: int, positions: Array) -> None:
    inputs = [numbers(2, 3, 32), positions, *_tables(8)]
    dims = {0: ("batch", "sequence", 32), 1: ("batch", "sequence") if positions.ndim == 2 else (1,)}
    models.compare("RotaryEmbedding", inputs, interleaved=interleaved, constants=(2, 3), dims=dims)


@pytest.mark.parametrize("positions", [_ROWS, np.array([4], np.int64)], ids=["rows", "first"])
@pytest.mark.parametrize("interleaved", [0, 1])
def test_rotation_of_heads(models: RuntimeModels, interleaved: int, positions: Array) -> None:
    inputs = [numbers(2, 4, 3, 8), positions, *_tables(8)]
    dims = {0: ("batch", 4, "sequence", 8), 1: ("batch", "sequence") if positions.ndim == 2 else (1,)}
    models.compare("RotaryEmbedding", inputs, interleaved=interleaved, constants=(2, 3), dims=dims)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("shape", [(2, 3, 32), (2, 4, 3, 8)], ids=str)
def test_partial_rotation(models: RuntimeModels, shape: tuple[int, ...], interleaved: int) -> None:
    attributes = {"rotary_embedding_dim": 4, "num_heads": 4, "interleaved": interleaved}
    models.compare("RotaryEmbedding", [numbers(*shape), _ROWS, *_tables(4)], **attributes)


def test_rotation_with_ignored_attributes(models: RuntimeModels) -> None:
    """ONNX Runtime ignores ``scale``; ``is_packed_batching`` is only for GPUs."""
    models.compare("RotaryEmbedding", [numbers(2, 3, 32), _ROWS, *_tables(8)], scale=1.0, is_packed_batching=0)


# **** GroupQueryAttention ****

_N, _SHARED, _H = 4, 2, 16


def _group(
    batch: int,
    new: int,
    lengths: list[int],
    *,
    past: int | None = 0,
    is_packed: bool = False,
    do_rotary: bool = False,
) -> list[Array | None]:
    """Return inputs for rows of some lengths, with ``new`` new positions and a buffer of ``past`` positions."""
    width = (_N + 2 * _SHARED) * _H if is_packed else _N * _H
    inputs: list[Array | None] = [numbers(batch, new, width)]
    inputs += [None, None] if is_packed else [numbers(batch, new, _SHARED * _H, seed=i) for i in (1, 2)]
    inputs += [None, None] if past is None else [numbers(batch, _SHARED, past, _H, seed=i) for i in (3, 4)]
    inputs += [np.array(lengths, np.int32) - 1, np.array(max(lengths), np.int32)]
    return inputs + (_tables(_H) if do_rotary else [])


_ATTRIBUTES = {"num_heads": _N, "kv_num_heads": _SHARED}
_CACHE = ("batch", _SHARED, "past", _H)
_DIMS: dict[int, Any] = {
    0: ("batch", "sequence", _N * _H),
    1: ("batch", "sequence", _SHARED * _H),
    2: ("batch", "sequence", _SHARED * _H),
    3: _CACHE,
    4: _CACHE,
    5: ("batch",),
}


@pytest.mark.parametrize("do_rotary", [False, True])
@pytest.mark.parametrize("past", [None, 0])
def test_groups_of_a_prompt(models: RuntimeModels, past: int | None, do_rotary: bool) -> None:
    inputs = _group(2, 5, [5, 5], past=past, do_rotary=do_rotary)
    models.compare("GroupQueryAttention", inputs, outputs=3, do_rotary=int(do_rotary), dims=_DIMS, **_ATTRIBUTES)


@pytest.mark.parametrize("do_rotary", [False, True])
@pytest.mark.parametrize("is_packed", [False, True])
def test_groups_of_the_next_position(models: RuntimeModels, is_packed: bool, do_rotary: bool) -> None:
    inputs = _group(2, 1, [8, 8], past=7, is_packed=is_packed, do_rotary=do_rotary)
    dims = {**_DIMS, 0: ("batch", "sequence", inputs[0].shape[2])}  # type: ignore[union-attr]
    models.compare("GroupQueryAttention", inputs, outputs=3, do_rotary=int(do_rotary), dims=dims, **_ATTRIBUTES)


def _compare_valid_positions(models: RuntimeModels, inputs: list[Array | None], lengths: list[int], new: int) -> None:
    """Compare results and caches up to each row's length; the rest is undefined."""
    model = node_model("GroupQueryAttention", inputs, {**_ATTRIBUTES, "do_rotary": 1}, outputs=["y", "k", "v"])
    arrays = {f"input_{i}": a for i, a in enumerate(inputs) if a is not None}
    found, expected = models.lite(model, arrays), models.onnxruntime(model, arrays)
    for row, length in enumerate(lengths):
        differences = [found["y"][row, :new] - expected["y"][row, :new]]
        differences += [found[name][row, :, :length] - expected[name][row, :, :length] for name in ("k", "v")]
        assert all(np.abs(difference).max() < 1e-5 for difference in differences)
    assert all(found[name].shape == expected[name].shape for name in expected)


@pytest.mark.parametrize(("lengths", "past"), [([8, 5], 7), ([8], 12), ([8, 8], 12)], ids=str)
def test_groups_in_a_cache_with_free_space(models: RuntimeModels, lengths: list[int], past: int) -> None:
    """Rows have different lengths, and the cache keeps its length, as if past and present shared a buffer."""
    _compare_valid_positions(models, _group(len(lengths), 1, lengths, past=past, do_rotary=True), lengths, 1)


def test_groups_of_a_prompt_that_ends_in_padding(models: RuntimeModels) -> None:
    _compare_valid_positions(models, _group(2, 5, [5, 3], past=None, do_rotary=True), [5, 3], 3)


def test_groups_of_several_positions_with_a_past(models: RuntimeModels) -> None:
    _compare_valid_positions(models, _group(1, 3, [8], past=5, do_rotary=True), [8], 3)


@pytest.mark.parametrize(
    "attributes",
    [{"scale": 0.2}, {"local_window_size": 3}, {"softcap": 1.5}, {"smooth_softmax": 1}, {"rotary_interleaved": 1}],
    ids=str,
)
def test_groups_with_attributes(models: RuntimeModels, attributes: dict[str, Any]) -> None:
    for inputs in (_group(2, 5, [5, 5], do_rotary=True), _group(2, 1, [8, 8], past=7, do_rotary=True)):
        models.compare("GroupQueryAttention", inputs, outputs=3, do_rotary=1, **attributes, **_ATTRIBUTES)


def test_groups_with_positions_a_bias_and_sinks(models: RuntimeModels) -> None:
    inputs = _group(2, 1, [8, 8], past=7, do_rotary=True)
    inputs += [np.array([[9], [4]], np.int64), numbers(1, _N, 1, 8, seed=5), numbers(_N, seed=6)]
    models.compare("GroupQueryAttention", inputs, outputs=3, do_rotary=1, **_ATTRIBUTES)
    models.compare("GroupQueryAttention", inputs, outputs=3, softcap=2.0, do_rotary=1, **_ATTRIBUTES)


def test_groups_without_a_causal_mask(models: RuntimeModels) -> None:
    models.compare("GroupQueryAttention", _group(2, 5, [5, 5]), causal=0, **_ATTRIBUTES)


def test_groups_of_normalized_queries_and_keys(models: RuntimeModels) -> None:
    """ONNX Runtime has the norms of queries and keys only on GPUs: the oracle applies them to the inputs."""
    inputs = _group(2, 5, [5, 5])
    weights = [numbers(_H, seed=7), numbers(_H, seed=8)]
    normal = list(inputs)
    for position, weight in enumerate(weights):
        x = inputs[position].reshape(2, 5, -1, _H)  # type: ignore[union-attr]
        scaled = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * weight
        normal[position] = scaled.reshape(2, 5, -1)
    expected = models.compare("GroupQueryAttention", normal, outputs=3, **_ATTRIBUTES)
    inputs += [None] * 7 + weights  # type: ignore[operator]
    models.compare("GroupQueryAttention", inputs, outputs=3, expected=expected, **_ATTRIBUTES)


def test_groups_with_a_quantized_cache_are_refused(models: RuntimeModels) -> None:
    attributes = {**_ATTRIBUTES, "k_quant_type": "PER_TENSOR"}
    with pytest.raises(UnsupportedOperatorError, match="cache is quantized"):
        models.load(node_model("GroupQueryAttention", _group(1, 1, [8], past=7), attributes, outputs=["output"]))
