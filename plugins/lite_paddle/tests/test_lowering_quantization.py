"""Quantization operators against their formulas, and the int8 tensors that backends can compute with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hand_made import graph_of, run

from lite_core.errors import UnsupportedOperatorError
from lite_core.ops.evaluate import evaluate_graph
from lite_paddle.lowering import lower
from lite_paddle.reader.attributes import complete_attributes
from lite_paddle.source import SourceBlock, SourceOp, SourceProgram, SourceType, SourceValue

RNG = np.random.default_rng(0)
Array = np.ndarray[Any, Any]
X = (RNG.standard_normal((2, 3, 4, 5)) * 2).astype(np.float32)
ONE = np.array([1.5], np.float32)
CHANNELS = np.array([0.7, 1.9, 3.2], np.float32)
ZERO = np.zeros(1, np.int32)


def half_away(x: Array) -> Array:
    return np.sign(x) * np.floor(np.abs(x) + 0.5)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("round_type", [0, 1])
def test_quantize_linear(known: bool, bits: int, round_type: int) -> None:
    n = 2 ** (bits - 1) - 1
    rounded = half_away if round_type else np.round
    for scale, axis, broadcast_scale in ((ONE, -1, ONE[0]), (CHANNELS, 1, CHANNELS[:, None, None])):
        inputs = {"X": X, "Scale": scale, "ZeroPoint": ZERO}
        attrs = {"quant_axis": axis, "bit_length": bits, "round_type": round_type}
        (y,) = run("quantize_linear", inputs, attrs, outputs=["Y"], parameters=["Scale"] if known else [])
        # Measured with Paddle 2.6 and 3.3: only rounding to even reaches the lowest number.
        expected = np.clip(rounded(X * n / broadcast_scale), -n - (round_type == 0), n)
        assert y.dtype == np.float32
        # Numbers half way between two integers may round to either: the scale is divided by 127 first.
        assert np.abs(y - expected).max() <= 1
        assert np.mean(y != expected) < 0.02


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_dequantize_linear(known: bool, dtype: type) -> None:
    x = RNG.integers(-128, 128, (3, 4, 5)).astype(dtype)
    for scale, axis, broadcast_scale in ((ONE, -1, ONE[0]), (CHANNELS, 0, CHANNELS[:, None, None])):
        inputs = {"X": x, "Scale": scale, "ZeroPoint": ZERO}
        options = {"outputs": ["Y"], "parameters": ["X", "Scale"] if known else []}
        (y,) = run("dequantize_linear", inputs, {"quant_axis": axis}, **options)
        np.testing.assert_allclose(y, x.astype(np.float32) * broadcast_scale / 127, rtol=1e-6)


@pytest.mark.parametrize("channels", [3, 2048])
def test_integral_weights_become_int8(channels: int) -> None:
    """Also weights and scales that are too many to be known as numbers while the model is read."""
    weights = np.arange(4 * channels, dtype=np.float32).reshape(channels, 4) % 11 - 5
    inputs = {"X": weights, "Scale": np.linspace(1, 2, channels, dtype=np.float32), "ZeroPoint": ZERO}
    options = {"outputs": ["Y"], "parameters": ["X", "Scale", "ZeroPoint"]}
    graph = graph_of("dequantize_linear", inputs, {"quant_axis": 0}, **options)
    (node,) = graph.nodes
    assert node.op == "DequantizeLinear"
    assert node.inputs[0] is not None
    assert node.inputs[0].dtype == "int8"


def test_quantize_dequantize_pair_keeps_int8_between() -> None:
    x, q, y = (SourceValue(n, SourceType("float32", X.shape)) for n in "xqy")
    scale = SourceValue("scale", SourceType("float32", (1,)))
    program = SourceProgram(
        "legacy", 2_006_000, [("x", x)], [("y", y)], {"scale": ONE}, {"scale": scale}, SourceBlock(), Path("m")
    )
    for type_, source, target in (("quantize_linear", x, q), ("dequantize_linear", q, y)):
        attrs = complete_attributes(type_, {"quant_axis": -1})
        program.block.ops.append(SourceOp(type_, {"X": [source], "Scale": [scale]}, {"Y": [target]}, attrs))
    graph = lower(program)
    last = next(n for n in graph.nodes if graph.outputs[0] in n.outputs)
    assert last.inputs[0] is next(n for n in graph.nodes if n.op == "QuantizeLinear").outputs[0]
    (found,) = evaluate_graph(graph, [X])
    np.testing.assert_allclose(
        found, np.clip(np.round(X * 127 / 1.5), -128, 127) * 1.5 / 127, rtol=1e-5, atol=1.5 / 127
    )


def test_a_zero_point_is_refused() -> None:
    inputs = {"X": X, "Scale": ONE, "ZeroPoint": np.array([3], np.int32)}
    with pytest.raises(UnsupportedOperatorError, match="zero point is not 0"):
        run("quantize_linear", inputs, outputs=["Y"], parameters=["ZeroPoint"])


def fake_quantized(x: Array, s: Any) -> Array:
    result: Array = half_away(np.clip(x, -s, s) * 127 / s)
    return result


def test_fake_quantization_with_a_stored_scale() -> None:
    inputs = {"X": X, "InScale": ONE}
    for name in ("fake_quantize_moving_average_abs_max", "fake_quantize_range_abs_max"):
        out, scale = run(name, inputs, outputs=["Out", "OutScale"])
        np.testing.assert_allclose(out, fake_quantized(X, np.float32(1.5)), atol=1e-4)
        np.testing.assert_array_equal(scale, ONE)
    (out,) = run("fake_quantize_dequantize_moving_average_abs_max", inputs)
    np.testing.assert_allclose(out, fake_quantized(X, np.float32(1.5)) * 1.5 / 127, rtol=1e-5)


def test_fake_quantization_with_the_maximum() -> None:
    largest = np.abs(X).max()
    out, scale = run("fake_quantize_abs_max", {"X": X}, outputs=["Out", "OutScale"])
    np.testing.assert_allclose(scale, [largest])
    np.testing.assert_allclose(out, fake_quantized(X, largest), atol=1e-4)
    (out,) = run("fake_quantize_dequantize_abs_max", {"X": X})
    np.testing.assert_allclose(out, fake_quantized(X, largest) * largest / 127, rtol=1e-5)
    per_channel = np.abs(X).max((0, 2, 3), keepdims=True)
    attrs = {"quant_axis": 1}
    out, scale = run("fake_channel_wise_quantize_abs_max", {"X": X}, attrs, outputs=["Out", "OutScale"])
    np.testing.assert_allclose(scale, per_channel.ravel())
    np.testing.assert_allclose(out, fake_quantized(X, per_channel), atol=1e-4)


def test_dequantization_of_old_files() -> None:
    (y,) = run("fake_dequantize_max_abs", {"X": X, "Scale": ONE}, {"max_range": 127.0})
    np.testing.assert_allclose(y, X * 1.5 / 127, rtol=1e-5)
    name = "fake_channel_wise_dequantize_max_abs"
    (y,) = run(name, {"X": X, "Scales": [CHANNELS[:2]]}, {"quant_axis": 0})
    np.testing.assert_allclose(y, X * CHANNELS[:2, None, None, None] / 127, rtol=1e-5)
    (y,) = run(name, {"X": X, "Scales": [CHANNELS, ONE]}, {"quant_bits": [8, 8]})
    np.testing.assert_allclose(y, X * CHANNELS[:, None, None] * 1.5 / 127**2, rtol=1e-5)


def test_an_observer_changes_nothing() -> None:
    np.testing.assert_array_equal(run("moving_average_abs_max_scale", {"X": X})[0], X)


def test_numbers_from_a_table_of_logarithms() -> None:
    """The result is that of Paddle 2.6.2: the table holds positive numbers, the sign is in the index."""
    table = np.linspace(0.5, 3, 128).astype(np.float32)
    (out,) = run("dequantize_log", {"X": np.array([[-128, -127, -1, 0, 1, 127]], np.int8), "Dict": table})
    np.testing.assert_array_equal(out, [[-table[0], -table[1], -table[127], table[0], table[1], table[127]]])
