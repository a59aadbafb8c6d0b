"""Normalization operators against Paddle and against formulas."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hand_made import graph_of, run
from paddle_cases import Case, check, parametrize_cases

from lite_core.errors import UnsupportedOperatorError

RNG = np.random.default_rng(0)


def array(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.standard_normal(shape).astype(np.float32)


X = array(2, 6, 5, 4)
OPEN = [(None, 6, None, None)]
LAST = X.transpose(0, 2, 3, 1).copy()


def trained(build: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Give a layer parameters and statistics other than ones and zeros."""

    def build_trained(p: Any) -> Any:
        layer = build(p)
        rng = np.random.default_rng(1)
        for tensor in [*layer.parameters(), *layer.buffers()]:
            tensor.set_value(rng.uniform(0.5, 2, tensor.shape).astype(np.float32))
        return layer

    return build_trained


CASES = [
    Case("batch", trained(lambda p: p.nn.BatchNorm2D(6)), [X]),
    Case("batch_open", trained(lambda p: p.nn.BatchNorm2D(6, epsilon=1e-3)), [X], shapes=OPEN),
    Case("batch_last", trained(lambda p: p.nn.BatchNorm2D(6, data_format="NHWC")), [LAST]),
    Case("batch_one_axis", trained(lambda p: p.nn.BatchNorm1D(6)), [X[:, :, 0]]),
    Case("batch_vectors", trained(lambda p: p.nn.BatchNorm1D(6)), [X[:, :, 0, 0]]),
    Case("batch_three_axes", trained(lambda p: p.nn.BatchNorm3D(6)), [array(2, 6, 2, 3, 4)]),
    Case("batch_bare", trained(lambda p: p.nn.BatchNorm2D(6, weight_attr=False, bias_attr=False)), [X]),
    Case("layer", trained(lambda p: p.nn.LayerNorm(4)), [X]),
    Case("layer_axes", trained(lambda p: p.nn.LayerNorm([5, 4], epsilon=1e-3)), [X], shapes=[(None, None, 5, 4)]),
    Case("layer_bare", lambda p: p.nn.LayerNorm([5, 4], weight_attr=False, bias_attr=False), [X]),
    Case("layer_without_bias", trained(lambda p: p.nn.LayerNorm(4, bias_attr=False)), [X]),
    Case("instance", trained(lambda p: p.nn.InstanceNorm2D(6)), [X]),
    Case("instance_bare", lambda p: p.nn.InstanceNorm2D(6, weight_attr=False, bias_attr=False), [X], shapes=OPEN),
    Case("group", trained(lambda p: p.nn.GroupNorm(3, 6)), [X]),
    Case("group_open", trained(lambda p: p.nn.GroupNorm(2, 6)), [X], shapes=OPEN),
    Case("group_bare", lambda p: p.nn.GroupNorm(3, 6, weight_attr=False, bias_attr=False), [X]),
    Case("group_last", trained(lambda p: p.nn.GroupNorm(3, 6, data_format="NHWC")), [LAST]),
    Case("response", lambda p: p.nn.LocalResponseNorm(5, alpha=0.1, beta=0.6, k=1.5), [X]),
    Case("l2", lambda p: lambda x: p.nn.functional.normalize(x, axis=1), [X]),
    Case("label_smooth", lambda p: lambda x: p.nn.functional.label_smooth(x, epsilon=0.2), [np.abs(X)]),
    Case("spectral_free", lambda p: lambda x: x / p.linalg.norm(x, axis=1, keepdim=True), [X]),
]


@parametrize_cases(CASES)
def test_matches_paddle(case: Case, kind: str, paddle_models: Callable[[str], Path]) -> None:
    check(case, paddle_models(kind), kind)


def test_batch_norm_with_a_fused_activation() -> None:
    scale, bias, mean = array(6), array(6), array(6)
    variance = RNG.uniform(0.5, 2, 6).astype(np.float32)
    inputs = {"X": X, "Scale": scale, "Bias": bias, "Mean": mean, "Variance": variance}
    (y,) = run("fused_batch_norm_act", inputs, {"act_type": "relu"}, outputs=["Y"])
    s, b, m, v = (a[:, None, None] for a in (scale, bias, mean, variance))
    np.testing.assert_allclose(y, np.maximum((X - m) / np.sqrt(v + 1e-5) * s + b, 0), rtol=1e-4, atol=1e-5)


def test_norm_also_returns_the_denominator() -> None:
    out, norm = run("norm", {"X": X}, {"axis": 1}, outputs=["Out", "Norm"])
    expected = np.sqrt((X * X).sum(1, keepdims=True) + 1e-10)
    np.testing.assert_allclose(norm, expected, rtol=1e-5)
    np.testing.assert_allclose(out, X / expected, rtol=1e-5)


def test_response_norm_does_not_divide_alpha() -> None:
    (y,) = run("lrn", {"X": X}, {"n": 3, "k": 1.0, "alpha": 0.5, "beta": 0.75})
    padded = np.pad(X * X, ((0, 0), (1, 1), (0, 0), (0, 0)))
    window = padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]
    np.testing.assert_allclose(y, X / (1 + 0.5 * window) ** 0.75, rtol=1e-5)


def test_affine_channel_in_both_layouts() -> None:
    scale, bias = array(6), array(6)
    expected = X * scale[:, None, None] + bias[:, None, None]
    (y,) = run("affine_channel", {"X": X, "Scale": scale, "Bias": bias})
    np.testing.assert_allclose(y, expected, rtol=1e-6)
    (y,) = run("affine_channel", {"X": LAST, "Scale": scale, "Bias": bias}, {"data_layout": "NHWC"})
    np.testing.assert_allclose(y, expected.transpose(0, 2, 3, 1), rtol=1e-6)


def test_data_norm_by_counters() -> None:
    x, size, total, square = array(3, 4), np.full(4, 10, np.float32), array(4), np.abs(array(4)) + 1
    inputs = {"X": x, "BatchSize": size, "BatchSum": total, "BatchSquareSum": square}
    (y,) = run("data_norm", inputs, outputs=["Y"])
    np.testing.assert_allclose(y, (x - total / size) * np.sqrt(size / square), rtol=1e-5)
    with pytest.raises(UnsupportedOperatorError, match="slot_dim"):
        run("data_norm", inputs, {"slot_dim": 2}, outputs=["Y"])


def test_rms_norm_of_paddle_2() -> None:
    x, residual, weight, bias = array(2, 3, 8), array(2, 3, 8), array(8), array(8)
    out, total = run(
        "rms_norm",
        {"x": x, "residual": residual, "norm_weight": weight, "norm_bias": bias},
        {"epsilon": 1e-5, "begin_norm_axis": 2, "quant_scale": -1.0},
        outputs=["out", "residual_out"],
    )
    s = x + residual
    np.testing.assert_allclose(total, s)
    expected = s / np.sqrt((s * s).mean(-1, keepdims=True) + 1e-5) * weight + bias
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)


def test_rms_norm_of_paddle_3() -> None:
    x, scale = array(2, 3, 8), array(8)
    (y,) = run("rms_norm", {"x": x, "scale": scale}, {"normalized_shape": [8]}, outputs=["y"], version=3_003_000)
    np.testing.assert_allclose(y, x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * scale, rtol=1e-5)


def test_layer_norm_is_one_node() -> None:
    inputs = {"X": array(2, 3, 8), "Scale": array(8), "Bias": array(8)}
    graph = graph_of("layer_norm", inputs, {"begin_norm_axis": 2}, outputs=["Y"], shapes={"X": (-1, -1, 8)})
    assert [n.op for n in graph.nodes] == ["LayerNormalization"]


def test_an_output_that_inference_does_not_compute_is_named() -> None:
    inputs = {"X": array(2, 8), "Scale": array(8), "Bias": array(8)}
    with pytest.raises(UnsupportedOperatorError, match="Mean_0"):
        run("layer_norm", inputs, outputs=["Y", "Mean"])
