"""Batch, layer, instance and group normalization, LRN, LpNormalization, MeanVarianceNormalization."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from op_runner import infer_op, run_op

from lite_core.errors import GraphError
from lite_core.ir import DType, SymbolicDim, TensorType

RANDOM = np.random.default_rng(3)


def normal(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def typed(*dims, dtype="float32"):
    return TensorType(DType.of(dtype), tuple(SymbolicDim.named(d) if isinstance(d, str) else d for d in dims))


def standardized(x, axes, epsilon=1e-5):
    x = x.astype(np.float64)
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + epsilon)


# **** BatchNormalization ****


def test_batch_normalization_of_a_vector_is_one_channel():
    one = [np.array([v], np.float32) for v in (2, 1, 3, 4)]
    x = np.array([3, 5, 7], np.float32)
    np.testing.assert_allclose(run_op("BatchNormalization", [x, *one], epsilon=0.0)[0], [1, 3, 5])


def test_batch_normalization_of_halves_with_float32_statistics():
    x = normal(2, 3, 4).astype(np.float16)
    parameters = [np.abs(normal(3)) for _ in range(4)]
    result = run_op("BatchNormalization", [x, *parameters])[0]
    assert result.dtype == np.float16
    expected = run_op("BatchNormalization", [x.astype(np.float32), *parameters])[0]
    np.testing.assert_allclose(result, expected, rtol=2e-3, atol=2e-3)


def test_batch_normalization_errors():
    x, c = typed("n", 3, 4, 4), typed(3)
    assert infer_op("BatchNormalization", [x, c, c, c, c]) == ["float32[n, 3, 4, 4]"]
    with pytest.raises(GraphError, match=r"training_mode=1 .*training_mode=0"):
        infer_op("BatchNormalization", [x, c, c, c, c], training_mode=1)
    with pytest.raises(GraphError, match="3 outputs.*training_mode=0"):
        infer_op("BatchNormalization", [x, c, c, c, c], outputs=3)
    with pytest.raises(GraphError, match=r"input_mean .*per channel, \[3\].*\[4\]"):
        infer_op("BatchNormalization", [x, c, c, typed(4), c])


# **** LayerNormalization ****


def test_layer_normalization_element_types():
    x = normal(2, 8)
    half, ones = x.astype(np.float16), np.ones(8, np.float16)
    y, mean, _ = run_op("LayerNormalization", [half, ones], outputs=3)
    assert (y.dtype, mean.dtype) == (np.float16, np.float32)
    np.testing.assert_allclose(y.astype(np.float32), standardized(half, (1,)), rtol=1e-2, atol=2e-3)
    stashed = run_op("LayerNormalization", [half, ones], outputs=2, stash_type=16)[1]
    assert stashed.dtype == ml_dtypes.bfloat16
    double = run_op("LayerNormalization", [x.astype(np.float64), np.ones(8)])[0]
    np.testing.assert_allclose(double, standardized(x, (1,)), rtol=1e-12)


def test_layer_normalization_is_stable_far_from_zero():
    x = (normal(1, 1000) + 1e4).astype(np.float32)
    result = run_op("LayerNormalization", [x, np.ones(1000, np.float32)])[0]
    np.testing.assert_allclose(result, standardized(x, (1,)), atol=1e-2)


def test_layer_normalization_symbolic_shapes_and_errors():
    x = typed("n", "s", 8)
    assert infer_op("LayerNormalization", [x, typed(8)], outputs=3, axis=1) == [
        "float32[n, s, 8]",
        "float32[n, 1, 1]",
        "float32[n, 1, 1]",
    ]
    assert infer_op("LayerNormalization", [TensorType(DType.FLOAT32), typed(8)]) == ["float32[?]"]
    with pytest.raises(GraphError, match=r"Scale \[2, 1, 1, 8\] .*\[n, s, 8\]"):
        infer_op("LayerNormalization", [x, typed(2, 1, 1, 8)])
    with pytest.raises(GraphError, match="axis 3 .*rank 3"):
        infer_op("LayerNormalization", [x, typed(8)], axis=3)
    with pytest.raises(GraphError, match=r"stash_type .*float32.*bfloat16.*11"):
        infer_op("LayerNormalization", [x, typed(8)], stash_type=11)


# **** InstanceNormalization, GroupNormalization ****


def test_channel_normalization_errors():
    x = typed("n", 6, "l")
    with pytest.raises(GraphError, match="num_groups 4 .*6 channels"):
        infer_op("GroupNormalization", [x, typed(6), typed(6)], num_groups=4)
    with pytest.raises(GraphError, match="num_groups .*at least 1"):
        infer_op("GroupNormalization", [x, typed(6), typed(6)], num_groups=0)
    with pytest.raises(GraphError, match=r"scale .*per channel, \[6\].*\[2\]"):
        infer_op("GroupNormalization", [x, typed(2), typed(2)], num_groups=2)
    with pytest.raises(GraphError, match="rank 2"):
        infer_op("InstanceNormalization", [typed(6), typed(6), typed(6)])


# **** other normalizations ****


def test_mean_variance_normalization():
    x = normal(2, 3, 4, 5)
    last = run_op("MeanVarianceNormalization", [x], axes=(-1, 3))[0]
    np.testing.assert_allclose(last, standardized(x, (3,), 0), rtol=1e-3, atol=1e-4)
    constant = run_op("MeanVarianceNormalization", [np.full((1, 2, 3, 3), 5, np.float32)])[0]
    assert not constant.any()
    with pytest.raises(GraphError, match="axes entry 2 "):
        infer_op("MeanVarianceNormalization", [typed(2, 3)])


@pytest.mark.parametrize("size", [2, 3, 9])
def test_lrn_equals_its_definition(size):
    x = normal(1, 4, 3)
    result = run_op("LRN", [x], size=size, alpha=0.5, beta=0.6, bias=2.0)[0]
    for c in range(4):
        first, last = max(0, c - (size - 1) // 2), min(3, c + (size - 1) - (size - 1) // 2)
        squares = (x[:, first : last + 1].astype(np.float64) ** 2).sum(1)
        np.testing.assert_allclose(result[:, c], x[:, c] / (2 + 0.5 / size * squares) ** 0.6, rtol=1e-5)


def test_lrn_errors():
    with pytest.raises(GraphError, match="size .*at least 1"):
        infer_op("LRN", [typed(1, 4, 3)], size=0)


@pytest.mark.parametrize("p", [1, 2])
def test_lp_normalization(p):
    x = np.array([[3, -4], [0, 0]], np.float32)
    expected = [[3 / 7, -4 / 7], [0, 0]] if p == 1 else [[0.6, -0.8], [0, 0]]
    np.testing.assert_allclose(run_op("LpNormalization", [x], p=p)[0], expected, rtol=1e-6)
    np.testing.assert_allclose(run_op("LpNormalization", [x], p=p, axis=0)[0], [[1, -1], [0, 0]])
    with pytest.raises(GraphError, match="p .*1 or 2.* 3"):
        infer_op("LpNormalization", [typed(2, 2)], p=3)


@pytest.mark.parametrize(
    ("op", "parameters", "attributes"),
    [
        ("InstanceNormalization", 2, {}),
        ("GroupNormalization", 2, {"num_groups": 2}),
        ("LayerNormalization", 2, {}),
        ("LRN", 0, {"size": 3}),
        ("LpNormalization", 0, {}),
        ("MeanVarianceNormalization", 0, {}),
    ],
)
def test_normalization_of_an_empty_batch(op, parameters, attributes):
    inputs = [normal(0, 4, 3, 4), *(normal(4) for _ in range(parameters))]
    assert run_op(op, inputs, **attributes)[0].shape == (0, 4, 3, 4)
