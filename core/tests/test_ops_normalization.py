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


def test_batch_normalization():
    x, scale, b, mean, variance = normal(2, 3, 4, 5), normal(3), normal(3), normal(3), np.abs(normal(3))
    result = run_op("BatchNormalization", [x, scale, b, mean, variance], epsilon=1e-3)[0]
    for c in range(3):
        expected = (x[:, c] - mean[c]) / np.sqrt(variance[c] + 1e-3) * scale[c] + b[c]
        np.testing.assert_allclose(result[:, c], expected, rtol=1e-4, atol=1e-5)


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
    with pytest.raises(GraphError, match=r"training_mode=1 .* export the model for inference"):
        infer_op("BatchNormalization", [x, c, c, c, c], training_mode=1)
    with pytest.raises(GraphError, match="with training_mode=0 there is only Y"):
        infer_op("BatchNormalization", [x, c, c, c, c], outputs=3)
    with pytest.raises(GraphError, match=r"input_mean must be a vector of one element per channel, \[3\]; it is \[4\]"):
        infer_op("BatchNormalization", [x, c, c, typed(4), c])


# **** LayerNormalization ****


@pytest.mark.parametrize("axis", [-1, 1, -3])
def test_layer_normalization(axis):
    x = normal(3, 4, 5) + 10
    tail = x.shape[axis:]
    scale, b = normal(*tail), normal(*tail)
    y, mean, reciprocal = run_op("LayerNormalization", [x, scale, b], outputs=3, axis=axis, epsilon=1e-3)
    axes = tuple(range(axis % 3, 3))
    np.testing.assert_allclose(y, standardized(x, axes, 1e-3) * scale + b, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(mean, x.mean(axes, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(reciprocal, 1 / np.sqrt(x.var(axes, keepdims=True) + 1e-3), rtol=1e-4)


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
    with pytest.raises(GraphError, match=r"Scale \[2, 1, 1, 8\] must broadcast to the input's shape \[n, s, 8\]"):
        infer_op("LayerNormalization", [x, typed(2, 1, 1, 8)])
    with pytest.raises(GraphError, match="axis 3 is out of range for a tensor of rank 3"):
        infer_op("LayerNormalization", [x, typed(8)], axis=3)
    with pytest.raises(GraphError, match=r"stash_type must be 1 \(float32\) or 16 \(bfloat16\), is 11"):
        infer_op("LayerNormalization", [x, typed(8)], stash_type=11)


# **** InstanceNormalization, GroupNormalization ****


def test_instance_normalization_is_group_normalization_with_a_group_per_channel():
    x, scale, b = normal(2, 4, 3, 5), normal(4), normal(4)
    expected = standardized(x, (2, 3)) * scale[:, None, None] + b[:, None, None]
    np.testing.assert_allclose(run_op("InstanceNormalization", [x, scale, b])[0], expected, rtol=1e-4, atol=1e-4)
    grouped = run_op("GroupNormalization", [x, scale, b], num_groups=4)[0]
    np.testing.assert_allclose(grouped, expected, rtol=1e-4, atol=1e-4)


def test_group_normalization_scales_channels_not_groups():
    x, scale, b = normal(2, 6, 5), normal(6), normal(6)
    result = run_op("GroupNormalization", [x, scale, b], num_groups=2)[0]
    expected = standardized(x.reshape(2, 2, 15), (2,)).reshape(2, 6, 5) * scale[:, None] + b[:, None]
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)
    half = [a.astype(np.float16) for a in (x, scale, b)]
    assert run_op("GroupNormalization", half, num_groups=2)[0].dtype == np.float16


def test_channel_normalization_errors():
    x = typed("n", 6, "l")
    with pytest.raises(GraphError, match="num_groups 4 does not divide the 6 channels"):
        infer_op("GroupNormalization", [x, typed(6), typed(6)], num_groups=4)
    with pytest.raises(GraphError, match="num_groups must be at least 1, is 0"):
        infer_op("GroupNormalization", [x, typed(6), typed(6)], num_groups=0)
    with pytest.raises(GraphError, match=r"scale must be a vector of one element per channel, \[6\]; it is \[2\]"):
        infer_op("GroupNormalization", [x, typed(2), typed(2)], num_groups=2)
    with pytest.raises(GraphError, match="rank 2 or more"):
        infer_op("InstanceNormalization", [typed(6), typed(6), typed(6)])


# **** the others ****


def test_mean_variance_normalization():
    x = normal(2, 3, 4, 5)
    result = run_op("MeanVarianceNormalization", [x])[0]
    np.testing.assert_allclose(result, standardized(x, (0, 2, 3), 0), rtol=1e-4, atol=1e-5)
    last = run_op("MeanVarianceNormalization", [x], axes=(-1, 3))[0]
    np.testing.assert_allclose(last, standardized(x, (3,), 0), rtol=1e-3, atol=1e-4)
    constant = run_op("MeanVarianceNormalization", [np.full((1, 2, 3, 3), 5, np.float32)])[0]
    assert not constant.any()
    with pytest.raises(GraphError, match="axes entry 2 is out of range"):
        infer_op("MeanVarianceNormalization", [typed(2, 3)])


@pytest.mark.parametrize("size", [1, 2, 3, 4, 9])
def test_lrn_by_definition(size):
    x = normal(1, 4, 3)
    result = run_op("LRN", [x], size=size, alpha=0.5, beta=0.6, bias=2.0)[0]
    for c in range(4):
        first, last = max(0, c - (size - 1) // 2), min(3, c + (size - 1) - (size - 1) // 2)
        squares = (x[:, first : last + 1].astype(np.float64) ** 2).sum(1)
        np.testing.assert_allclose(result[:, c], x[:, c] / (2 + 0.5 / size * squares) ** 0.6, rtol=1e-5)


def test_lrn_errors():
    with pytest.raises(GraphError, match="size must be at least 1, is 0"):
        infer_op("LRN", [typed(1, 4, 3)], size=0)


@pytest.mark.parametrize("p", [1, 2])
def test_lp_normalization(p):
    x = np.array([[3, -4], [0, 0]], np.float32)
    expected = [[3 / 7, -4 / 7], [0, 0]] if p == 1 else [[0.6, -0.8], [0, 0]]
    np.testing.assert_allclose(run_op("LpNormalization", [x], p=p)[0], expected, rtol=1e-6)
    np.testing.assert_allclose(run_op("LpNormalization", [x], p=p, axis=0)[0], [[1, -1], [0, 0]])
    with pytest.raises(GraphError, match="p must be 1 or 2, is 3"):
        infer_op("LpNormalization", [typed(2, 2)], p=3)


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("InstanceNormalization", {}),
        ("GroupNormalization", {"num_groups": 2}),
        ("LayerNormalization", {}),
        ("LRN", {"size": 3}),
        ("LpNormalization", {}),
        ("MeanVarianceNormalization", {}),
    ],
)
def test_no_samples(op, attributes):
    parameters = [normal(4), normal(4)] if op.endswith(("eNormalization", "pNormalization", "rNormalization")) else []
    if op in ("LpNormalization", "MeanVarianceNormalization"):
        parameters = []
    assert run_op(op, [normal(0, 4, 3, 4), *parameters], **attributes)[0].shape == (0, 4, 3, 4)
