"""Operators on 8-bit integers of the domain com.microsoft, compared with ONNX Runtime within one quantization step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from runtime_models import RuntimeModels, numbers, quantized

Array = np.ndarray[Any, Any]

_TYPES = [np.uint8, np.int8]


def _scale(number: float) -> Array:
    return np.array(number, np.float32)


def _zero(number: int, dtype: Any) -> Array:
    """Return a zero point: the number itself for uint8, shifted by -128 for int8."""
    return np.array(number - (128 if dtype is np.int8 else 0), dtype)


# **** several tensors ****


@pytest.mark.parametrize("dtype", _TYPES)
@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_binary(models: RuntimeModels, op: str, dtype: Any) -> None:
    scales = (_scale(0.02), _scale(0.03), _scale(0.05))
    inputs = [quantized(2, 3, 8, dtype=dtype), scales[0], _zero(120, dtype)]
    inputs += [quantized(3, 8, seed=1, dtype=dtype), scales[1], _zero(130, dtype), scales[2], _zero(125, dtype)]
    dims = {0: ("batch", 3, 8), 3: (3, 8)}
    models.compare(op, inputs, steps=1, constants=(1, 2, 4, 5, 6, 7), dims=dims)


@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_binary_without_zero_points(models: RuntimeModels, op: str) -> None:
    """ONNX Runtime rejects such nodes, although it documents zero points as optional."""
    inputs = [quantized(2, 8), _scale(0.02), None, quantized(2, 8, seed=1), _scale(0.03), None, _scale(0.06)]
    expected = models.compare(op, [np.array(0, np.uint8) if a is None else a for a in (*inputs, None)])
    models.compare(op, inputs, steps=1, expected=expected)


def test_concat(models: RuntimeModels) -> None:
    inputs = [_scale(0.03), _zero(110, np.uint8)]
    for seed, size in enumerate((2, 3, 1)):
        inputs += [quantized(2, size, 4, seed=seed), _scale(0.01 * (seed + 1)), _zero(120 + seed, np.uint8)]
    dims = {2: ("batch", 2, 4), 5: ("batch", 3, 4), 8: ("batch", 1, 4)}
    models.compare("QLinearConcat", inputs, axis=1, steps=1, constants=(0, 1, 3, 4, 6, 7, 9, 10), dims=dims)


@pytest.mark.parametrize("dtype", _TYPES)
def test_where(models: RuntimeModels, dtype: Any) -> None:
    inputs = [np.arange(24).reshape(2, 3, 4) % 3 == 0, quantized(2, 3, 4, dtype=dtype), _scale(0.02)]
    inputs += [_zero(120, dtype), quantized(1, dtype=dtype, seed=3), _scale(0.05), _zero(10, dtype)]
    inputs += [_scale(0.04), _zero(100, dtype)]
    models.compare("QLinearWhere", inputs, steps=1, constants=(2, 3, 5, 6, 7, 8))


# **** one tensor ****


def _unary(*shape: int, dtype: Any, scale: float = 0.03, to: float = 0.004, zero: int = 0) -> list[Array | None]:
    return [quantized(*shape, dtype=dtype), _scale(scale), _zero(125, dtype), _scale(to), _zero(zero, dtype)]


_FIXED = (1, 2, 3, 4)


@pytest.mark.parametrize("dtype", _TYPES)
@pytest.mark.parametrize("op", ["QLinearSigmoid", "QLinearLeakyRelu"])
def test_unary(models: RuntimeModels, op: str, dtype: Any) -> None:
    attributes = {"alpha": 0.2} if op == "QLinearLeakyRelu" else {}
    inputs = _unary(2, 3, 16, dtype=dtype, to=1 / 256 if op == "QLinearSigmoid" else 0.02, zero=20)
    dims = {0: ("batch", "sequence", 16)}
    models.compare(op, inputs, steps=1, constants=_FIXED, dims=dims, **attributes)


@pytest.mark.parametrize("dtype", _TYPES)
@pytest.mark.parametrize(("axis", "opset"), [(-1, 13), (1, 13), (1, 12), (2, 12)])
def test_softmax(models: RuntimeModels, axis: int, opset: int, dtype: Any) -> None:
    inputs = _unary(2, 3, 8, dtype=dtype, to=1 / 256)
    models.compare("QLinearSoftmax", inputs, steps=1, constants=_FIXED, axis=axis, opset=opset)


@pytest.mark.parametrize("dtype", _TYPES)
@pytest.mark.parametrize("channels_last", [0, 1])
@pytest.mark.parametrize("count_include_pad", [0, 1])
def test_average_pool(models: RuntimeModels, count_include_pad: int, channels_last: int, dtype: Any) -> None:
    inputs = _unary(2, 3, 7, 6, dtype=dtype, to=0.03, zero=120)
    attributes = {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1], "channels_last": channels_last}
    attributes["count_include_pad"] = count_include_pad
    dims = {0: ("batch", 3, 7, 6)}
    models.compare("QLinearAveragePool", inputs, steps=1, constants=_FIXED, dims=dims, **attributes)


@pytest.mark.parametrize("dtype", _TYPES)
@pytest.mark.parametrize("channels_last", [0, 1])
def test_global_average_pool(models: RuntimeModels, channels_last: int, dtype: Any) -> None:
    inputs = _unary(2, 3, 7, 6, dtype=dtype, to=0.01, zero=120)
    dims = {0: ("batch", 3, "height", "width") if not channels_last else ("batch", "height", "width", 6)}
    models.compare(
        "QLinearGlobalAveragePool", inputs, steps=1, constants=_FIXED, dims=dims, channels_last=channels_last
    )


@pytest.mark.parametrize(("axes", "keepdims"), [([1], 1), ([-1, 1], 0), ([0, 1, 2], 0)])
def test_mean(models: RuntimeModels, axes: list[int], keepdims: int) -> None:
    """ONNX Runtime documents this operator but implements it on no device."""
    inputs = _unary(2, 3, 8, dtype=np.uint8, to=0.01, zero=120)
    real = (inputs[0].astype(np.float32) - 125) * 0.03  # type: ignore[union-attr]
    mean = real.mean(tuple(axes), keepdims=bool(keepdims))
    expected = {"output_0": np.clip(np.rint(mean / np.float32(0.01)) + 120, 0, 255).astype(np.uint8)}
    models.compare("QLinearReduceMean", inputs, steps=1, axes=axes, keepdims=keepdims, expected=expected)


# **** products ****


@pytest.mark.parametrize("per_column", [False, True])
@pytest.mark.parametrize(("a", "b"), [(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)])
@pytest.mark.parametrize("is_quantized", [False, True])
def test_gemm(models: RuntimeModels, is_quantized: bool, a: Any, b: Any, per_column: bool) -> None:
    scales = np.linspace(0.01, 0.02, 6, dtype=np.float32) if per_column else _scale(0.015)
    zeros = np.arange(6).astype(b) if per_column else np.array(3, b)
    inputs: list[Array | None] = [quantized(4, 8, dtype=a), _scale(0.02), _zero(120, a)]
    inputs += [quantized(8, 6, seed=1, dtype=b), scales, zeros]
    inputs += [(numbers(6, seed=2) * 1000).astype(np.int32)]
    inputs += [_scale(0.05), _zero(128, a)] if is_quantized else []
    models.compare("QGemm", inputs, steps=1, constants=range(1, 9), dims={0: ("batch", 8)})


@pytest.mark.parametrize(
    "attributes", [{"transB": 1}, {"transA": 1}, {"alpha": 0.5}, {"transA": 1, "transB": 1}], ids=str
)
def test_gemm_with_attributes(models: RuntimeModels, attributes: dict[str, Any]) -> None:
    shapes = [(8, 4) if attributes.get("transA") else (4, 8), (6, 8) if attributes.get("transB") else (8, 6)]
    inputs: list[Array | None] = [quantized(*shapes[0]), _scale(0.02), _zero(120, np.uint8)]
    inputs += [quantized(*shapes[1], seed=1, dtype=np.int8), np.full(6, 0.01, np.float32), np.zeros(6, np.int8)]
    inputs += [(numbers(6, seed=2) * 1000).astype(np.int32)]
    models.compare("QGemm", inputs, constants=range(1, 7), **attributes)


def test_gemm_without_an_addend(models: RuntimeModels) -> None:
    inputs = [quantized(4, 8), _scale(0.02), _zero(120, np.uint8), quantized(8, 6), _scale(0.01), _zero(128, np.uint8)]
    models.compare("QGemm", inputs)


@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("per_column", [False, True])
def test_matmul_integer_to_float(models: RuntimeModels, per_column: bool, with_bias: bool) -> None:
    scales = np.linspace(0.01, 0.02, 6, dtype=np.float32) if per_column else _scale(0.015)
    zeros = np.arange(6, dtype=np.int8) if per_column else np.array(3, np.int8)
    inputs = [quantized(2, 4, 8), quantized(8, 6, seed=1, dtype=np.int8), _scale(0.02), scales]
    inputs += [np.array(120, np.uint8), zeros, *([numbers(6)] if with_bias else [])]
    dims = {0: ("batch", "sequence", 8)}
    models.compare("MatMulIntegerToFloat", inputs, constants=(1, 3, 5, 6), dims=dims)


def test_matmul_integer_to_float_without_zero_points(models: RuntimeModels) -> None:
    inputs = [quantized(4, 8), quantized(8, 6, seed=1), _scale(0.02), _scale(0.01)]
    models.compare("MatMulIntegerToFloat", inputs)


@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("per_column", [False, True])
@pytest.mark.parametrize("with_zeros", [False, True])
def test_dynamic_quantize_matmul(models: RuntimeModels, with_zeros: bool, per_column: bool, with_bias: bool) -> None:
    scales = np.linspace(0.01, 0.02, 6, dtype=np.float32) if per_column else _scale(0.015)
    zeros = np.arange(6, dtype=np.int8) if per_column else np.array(3, np.int8)
    inputs = [numbers(2, 4, 8), quantized(8, 6, seed=1, dtype=np.int8), scales]
    inputs += [zeros if with_zeros else None, numbers(6) if with_bias else None]
    dims = {0: ("batch", "sequence", 8)}
    models.compare("DynamicQuantizeMatMul", inputs, constants=(1, 2, 3, 4), dims=dims)


@pytest.mark.parametrize("channels_last", [0, 1])
def test_convolution(models: RuntimeModels, channels_last: int) -> None:
    inputs: list[Array | None] = [quantized(2, 5, 6, 4) if channels_last else quantized(2, 4, 5, 6), _scale(0.02)]
    inputs += [_zero(120, np.uint8), quantized(6, 2, 3, 3, seed=1, dtype=np.int8)]
    inputs += [np.linspace(0.01, 0.02, 6, dtype=np.float32), np.zeros(6, np.int8), _scale(0.3), _zero(128, np.uint8)]
    inputs += [(numbers(6, seed=2) * 1000).astype(np.int32)]
    attributes = {"group": 2, "pads": [1, 1, 1, 1], "strides": [2, 1], "channels_last": channels_last}
    models.compare("QLinearConv", inputs, steps=1, constants=range(1, 9), **attributes)


# **** recurrent ****


def _lstm(directions: int, *, per_column: bool, dtype: Any = np.uint8, batch: int = 2) -> list[Array | None]:
    size, hidden = 6, 8
    columns = 4 * hidden if per_column else None
    inputs: list[Array | None] = [numbers(5, batch, size)]
    inputs += [quantized(directions, rows, 4 * hidden, seed=rows, dtype=dtype) for rows in (size, hidden)]
    inputs += [numbers(directions, 8 * hidden, seed=3, scale=0.3), None, None, None, None]
    for seed in (5, 6):
        shape = (directions, columns) if columns else (directions,)
        scales = np.random.default_rng(seed).uniform(0.002, 0.005, shape).astype(np.float32)
        inputs += [scales, np.full(shape, 128 if dtype is np.uint8 else 0, dtype)]
    return inputs


@pytest.mark.parametrize("dtype", _TYPES)
@pytest.mark.parametrize("per_column", [False, True])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_lstm(models: RuntimeModels, direction: str, per_column: bool, dtype: Any) -> None:
    inputs = _lstm(2 if direction == "bidirectional" else 1, per_column=per_column, dtype=dtype, batch=1)
    attributes = {"direction": direction, "hidden_size": 8, "constants": range(1, 12)}
    dims = {0: ("steps", "batch", 6)}
    models.compare("DynamicQuantizeLSTM", inputs, outputs=3, dims=dims, **attributes)


def test_lstm_with_several_sequences(models: RuntimeModels) -> None:
    """ONNX Runtime quantizes the states of several sequences by their common range, Lite each by its own."""
    inputs = _lstm(1, per_column=False, batch=3)
    models.compare(
        "DynamicQuantizeLSTM", inputs, outputs=3, tolerance=0.02, hidden_size=8, constants=(1, 2, *range(7, 12))
    )


def test_lstm_with_states_and_lengths(models: RuntimeModels) -> None:
    inputs = _lstm(1, per_column=False)
    inputs[4] = np.array([5, 3], np.int32)
    inputs[5], inputs[6] = numbers(1, 2, 8, seed=7, scale=0.3), numbers(1, 2, 8, seed=8, scale=0.3)
    inputs[7] = numbers(1, 24, seed=9, scale=0.3)
    models.compare(
        "DynamicQuantizeLSTM", inputs, outputs=3, tolerance=0.02, hidden_size=8, constants=(1, 2, *range(7, 12))
    )


# **** quantization and dequantization ****


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16])
def test_quantize(models: RuntimeModels, dtype: Any) -> None:
    inputs = [numbers(2, 3, 8, scale=30), _scale(0.3), np.array(7, dtype)]
    dims = {0: ("batch", "sequence", 8)}
    found = models.compare("QuantizeLinear", inputs, constants=(1, 2), dims=dims)
    models.compare("DequantizeLinear", [found["output_0"], *inputs[1:]], constants=(1, 2), dims=dims)


@pytest.mark.parametrize("axis", [1, -1])
def test_quantize_along_an_axis(models: RuntimeModels, axis: int) -> None:
    size = (2, 3, 8)[axis]
    inputs = [
        numbers(2, 3, 8, scale=30),
        np.linspace(0.2, 0.4, size, dtype=np.float32),
        np.arange(size, dtype=np.uint8),
    ]
    found = models.compare("QuantizeLinear", inputs, axis=axis)
    models.compare("DequantizeLinear", [found["output_0"], *inputs[1:]], axis=axis)


def test_dequantize_int32(models: RuntimeModels) -> None:
    models.compare("DequantizeLinear", [np.arange(-4, 4, dtype=np.int32), _scale(0.25), np.array(0, np.int32)])
