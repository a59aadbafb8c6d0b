"""Activation functions, softmax and dropout against Paddle, and the behaviour of older files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hand_made import run
from paddle_cases import Case, check, parametrize_cases

from lite_core.errors import UnsupportedOperatorError

RNG = np.random.default_rng(0)
X = (RNG.standard_normal((2, 6, 4, 5)) * 4).astype(np.float32)
WIDE = np.linspace(-50, 50, 101, dtype=np.float32)


def functional(name: str, *arguments: Any, **keywords: Any) -> Callable[[Any], Any]:
    return lambda p: lambda x: getattr(p.nn.functional, name)(x, *arguments, **keywords)


CASES = [
    *(
        Case(name, functional(name), [WIDE])
        for name in [
            "relu",
            "relu6",
            "hardswish",
            "hardsigmoid",
            "sigmoid",
            "swish",
            "silu",
            "mish",
            "leaky_relu",
            "elu",
            "selu",
            "celu",
            "gelu",
            "hardtanh",
            "hardshrink",
            "softshrink",
            "softplus",
            "softsign",
            "tanh",
            "tanhshrink",
            "thresholded_relu",
            "log_sigmoid",
        ]
    ),
    Case("gelu_tanh", functional("gelu", approximate=True), [WIDE]),
    Case("leaky_relu_slope", functional("leaky_relu", 0.3), [WIDE]),
    Case("hardsigmoid_slope", functional("hardsigmoid", slope=1 / 6, offset=0.4), [WIDE]),
    Case("elu_alpha", functional("elu", 1.7), [WIDE]),
    Case("celu_alpha", functional("celu", 1.7), [WIDE]),
    Case("selu_parameters", functional("selu", 1.5, 2.0), [WIDE]),
    Case("hardtanh_bounds", functional("hardtanh", -3.0, 2.0), [WIDE]),
    Case("hardshrink_bound", functional("hardshrink", 1.5), [WIDE]),
    Case("softshrink_bound", functional("softshrink", 1.5), [WIDE]),
    Case("softplus_beta", functional("softplus", 2.0, 5.0), [WIDE]),
    Case("thresholded_relu_threshold", functional("thresholded_relu", 3.0), [WIDE]),
    Case("stanh", lambda p: lambda x: p.stanh(x, 0.5, 1.2), [WIDE]),
    Case("rrelu", functional("rrelu", 0.1, 0.3, training=False), [WIDE]),
    Case("softmax", functional("softmax"), [X]),
    Case("softmax_axis", functional("softmax", axis=1), [X], shapes=[(None, 6, None, None)]),
    Case("log_softmax", functional("log_softmax", axis=-2), [X]),
    Case("maxout", functional("maxout", groups=3), [X]),
    Case("maxout_open", functional("maxout", groups=2, axis=1), [X], shapes=[(None, 6, None, 5)]),
    Case("glu", functional("glu", axis=1), [X]),
    Case("swiglu", functional("swiglu"), [X[..., :4]], kinds=("pir",)),
    Case("swiglu_pair", lambda p: lambda x, y: p.nn.functional.swiglu(x, y), [X, -X], kinds=("pir",)),
    Case("prelu_all", lambda p: p.nn.PReLU(init=0.3), [X]),
    Case("prelu_channel", lambda p: p.nn.PReLU(6, init=0.3), [X], shapes=[(None, 6, None, None)]),
    Case("prelu_channel_last", lambda p: p.nn.PReLU(5, init=0.3, data_format="NHWC"), [X]),
    Case("dropout", lambda p: p.nn.Dropout(0.4), [X]),
    Case("dropout_downgraded", lambda p: p.nn.Dropout(0.4, mode="downscale_in_infer"), [X]),
]


@parametrize_cases(CASES)
def test_matches_paddle(case: Case, kind: str, paddle_models: Callable[[str], Path]) -> None:
    check(case, paddle_models(kind), kind)


def test_old_files_use_parameters_that_newer_kernels_ignore() -> None:
    x = np.linspace(-8, 8, 33, dtype=np.float32)
    for version, threshold in ((1_008_005, 4.0), (2_006_002, 6.0)):
        (y,) = run("relu6", {"X": x}, {"threshold": 4.0}, version=version)
        np.testing.assert_array_equal(y, np.clip(x, 0, threshold))
    for version, beta in ((2_000_000, 2.0), (2_006_002, 1.0)):
        (y,) = run("swish", {"X": x}, {"beta": 2.0}, version=version)
        np.testing.assert_allclose(y, x / (1 + np.exp(-beta * x)), rtol=1e-5)
    (y,) = run("hard_swish", {"X": x}, {"threshold": 5.0, "scale": 4.0, "offset": 2.0}, version=1_008_000)
    np.testing.assert_allclose(y, x * np.clip(x + 2, 0, 5) / 4, rtol=1e-6)


def test_defaults_of_old_files() -> None:
    x = np.linspace(-2, 2, 9, dtype=np.float32)
    np.testing.assert_allclose(run("leaky_relu", {"X": x})[0], np.where(x > 0, x, 0.02 * x), rtol=1e-6)
    np.testing.assert_allclose(run("dropout", {"X": x}, {"dropout_prob": 0.25})[0], x * 0.75, rtol=1e-6)
    np.testing.assert_allclose(run("brelu", {"X": x * 20})[0], np.clip(x * 20, 0, 24), rtol=1e-6)
    np.testing.assert_allclose(
        run("soft_relu", {"X": x}, {"threshold": 1.0})[0], np.log1p(np.exp(np.clip(x, -1, 1))), rtol=1e-5
    )


def test_prelu_with_a_slope_per_element() -> None:
    slopes = RNG.uniform(0, 1, (1, *X.shape[1:])).astype(np.float32)
    (y,) = run("prelu", {"X": X, "Alpha": slopes}, {"mode": "element"}, parameters=["Alpha"])
    np.testing.assert_allclose(y, np.where(X > 0, X, slopes * X))


def test_thresholded_relu_with_another_value() -> None:
    (y,) = run("thresholded_relu", {"X": X}, {"threshold": 0.5, "value": -1.0})
    np.testing.assert_array_equal(y, np.where(X > 0.5, X, -1))


def test_unknown_mode_is_named() -> None:
    with pytest.raises(UnsupportedOperatorError, match="mode is 'pixel', expected all, channel or element"):
        run("prelu", {"X": X, "Alpha": X[:1]}, {"mode": "pixel"})
