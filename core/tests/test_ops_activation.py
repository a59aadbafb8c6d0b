"""Activations and the Softmax family: numerical stability, NaN, integers, shapes, errors."""

from __future__ import annotations

import math

import numpy as np
import pytest
from op_runner import infer_op, run_op

from lite_core.errors import GraphError
from lite_core.ir import DType, SymbolicDim, TensorType

NAN, INF = np.nan, np.inf

FINITE_AT_BOTH_ENDS = [
    "Relu",
    "LeakyRelu",
    "Elu",
    "Selu",
    "Celu",
    "Sigmoid",
    "HardSigmoid",
    "HardSwish",
    "Softplus",
]
FINITE_AT_BOTH_ENDS += ["Softsign", "ThresholdedRelu", "Shrink", "Mish", "Gelu"]


def f32(*elements):
    return np.array(elements, dtype=np.float32)


def one(op, *inputs, **attributes):
    return run_op(op, list(inputs), **attributes)[0]


@pytest.mark.parametrize("op", FINITE_AT_BOTH_ENDS)
def test_large_elements_stay_finite(op):
    result = one(op, f32(-1e4, -200, -90, 0, 90, 200, 1e4))
    assert result.dtype == np.float32
    assert np.isfinite(result).all(), result


@pytest.mark.parametrize("op", FINITE_AT_BOTH_ENDS)
def test_nan_stays_nan(op):
    assert np.isnan(one(op, f32(NAN))).all()


def test_sigmoid_softplus_and_mish_keep_their_tails():
    x = np.array([-700.0, -40.0, -1.0, 0.0, 1.0, 40.0, 700.0])
    np.testing.assert_allclose(one("Sigmoid", x), [1 / (1 + math.exp(-v)) for v in x], rtol=1e-15)
    expected = [math.log1p(math.exp(v)) if v < 0 else v + math.log1p(math.exp(-v)) for v in x]
    np.testing.assert_allclose(one("Softplus", x), expected, rtol=1e-15)
    np.testing.assert_allclose(one("Mish", x), x * np.tanh(expected), rtol=1e-15)
    np.testing.assert_array_equal(one("Softplus", f32(-INF, INF)), f32(0, INF))
    np.testing.assert_array_equal(one("Sigmoid", f32(-INF, INF)), f32(0, 1))


def test_gelu_keeps_its_negative_tail_in_float32():
    x = np.linspace(-5, 5, 101, dtype=np.float32)
    wide = x.tolist()
    exact = [0.5 * v * math.erfc(-v / math.sqrt(2)) for v in wide]
    np.testing.assert_allclose(one("Gelu", x), exact, rtol=1e-6)
    tanh = [0.5 * v * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3))) for v in wide]
    np.testing.assert_allclose(one("Gelu", x, approximate="tanh"), tanh, rtol=1e-6)


def test_swish_is_an_operator_of_lite():
    x = f32(-2, 0, 3)
    np.testing.assert_allclose(one("Swish", x, domain="lite"), x / (1 + np.exp(-x)), rtol=1e-6)
    np.testing.assert_allclose(one("Swish", x, domain="lite", beta=2.0), x / (1 + np.exp(-2 * x)), rtol=1e-6)


def test_integer_activations():
    np.testing.assert_array_equal(one("Relu", np.array([-128, 0, 127], np.int8)), [0, 0, 127])
    np.testing.assert_array_equal(one("PRelu", np.array([-3, 4]), np.array([2])), [-6, 4])
    np.testing.assert_array_equal(one("PRelu", np.array([3, 4], np.uint32), np.array([2], np.uint32)), [3, 4])
    shrunk = one("Shrink", np.array([-3, 1, 3], np.int32), lambd=1.5, bias=1.5)
    np.testing.assert_array_equal(shrunk, [-1, 0, 1])


def test_prelu_slope_broadcasts_one_way():
    n = SymbolicDim.named("n")
    x = TensorType(DType.FLOAT32, (n, 3, 8))
    assert infer_op("PRelu", [x, TensorType(DType.FLOAT32, (3, 1))]) == ["float32[n, 3, 8]"]
    assert infer_op("PRelu", [x, TensorType(DType.FLOAT32, (n, 1, 1))]) == ["float32[n, 3, 8]"]
    with pytest.raises(GraphError, match=r"slope.*\[4, 1\].* X .*\[n, 3, 8\]"):
        infer_op("PRelu", [x, TensorType(DType.FLOAT32, (4, 1))])
    with pytest.raises(GraphError, match="slope"):
        infer_op("PRelu", [TensorType(DType.FLOAT32, (3,)), TensorType(DType.FLOAT32, (1, 3))])


# **** Softmax, LogSoftmax, Hardmax ****


def test_log_softmax_is_finite_where_the_probability_is_rounded_to_zero():
    x = np.random.default_rng(0).normal(scale=3000, size=(4, 5)).astype(np.float32)
    probabilities, logarithms = one("Softmax", x), one("LogSoftmax", x)
    assert (probabilities == 0).any()
    assert np.isfinite(logarithms).all()
    np.testing.assert_allclose(np.exp(logarithms), probabilities, rtol=1e-4, atol=1e-30)


def test_softmax_of_masked_elements():
    np.testing.assert_array_equal(one("Softmax", f32(-INF, 0, 0)), f32(0, 0.5, 0.5))
    np.testing.assert_array_equal(one("LogSoftmax", f32(-INF, 0))[:1], f32(-INF))


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax", "Hardmax"])
def test_softmax_family_shapes_and_errors(op):
    assert one(op, np.zeros((0, 3), np.float32)).shape == (0, 3)
    assert one(op, np.zeros((3, 0), np.float32)).shape == (3, 0)
    n = SymbolicDim.named("n")
    assert infer_op(op, [TensorType(DType.FLOAT16, (n, 3))], axis=-2) == ["float16[n, 3]"]
    with pytest.raises(GraphError, match=f"{op}.*axis 2 .*rank 2"):
        infer_op(op, [TensorType(DType.FLOAT32, (n, 3))], axis=2)
