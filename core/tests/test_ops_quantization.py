"""QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from op_runner import infer_op, run_op

from lite_core.errors import GraphError
from lite_core.ir import DType, SymbolicDim, TensorType

RANDOM = np.random.default_rng(5)
NARROW = [np.int8, np.uint8, np.int16, np.uint16]


def typed(*dims, dtype="float32"):
    return TensorType(DType.of(dtype), tuple(SymbolicDim.named(d) if isinstance(d, str) else d for d in dims))


def scalar(value, dtype=np.float32):
    return np.asarray(value, dtype=dtype)


# **** QuantizeLinear ****


@pytest.mark.parametrize("dtype", NARROW)
def test_quantize_saturates_and_rounds_halves_to_even(dtype):
    limits = np.iinfo(dtype)
    x = np.array([-np.inf, -1e30, -1.5, -0.5, 0.5, 1.5, 2.5, 1e30, np.inf, np.nan], np.float32)
    zero = limits.min + 10
    result = run_op("QuantizeLinear", [x, scalar(1), scalar(zero, dtype)])[0]
    assert result.dtype == dtype
    low, high = limits.min, limits.max
    expected = [low, low, zero - 2, zero, zero, zero + 2, zero + 2, high, high, zero]
    assert result.tolist() == expected


def test_quantize_output_dtype():
    x = np.array([-1, 300], np.float32)
    assert run_op("QuantizeLinear", [x, scalar(1)])[0].dtype == np.uint8
    result = run_op("QuantizeLinear", [x, scalar(1)], output_dtype=DType.INT16)[0]
    assert result.dtype == np.int16
    assert result.tolist() == [-1, 300]
    assert infer_op("QuantizeLinear", [typed("n"), typed()], output_dtype=DType.UINT16) == ["uint16[n]"]
    with pytest.raises(GraphError, match="output_dtype is int8.*y_zero_point is uint8"):
        infer_op("QuantizeLinear", [typed("n"), typed(), typed(dtype="uint8")], output_dtype=DType.INT8)
    with pytest.raises(GraphError, match="output_dtype .*int8, uint8, int16, uint16, .*float32"):
        infer_op("QuantizeLinear", [typed("n"), typed()], output_dtype=DType.FLOAT32)


@pytest.mark.parametrize("axis", [0, -1])
def test_quantize_per_axis(axis):
    x = (RANDOM.standard_normal((3, 4, 5)) * 40).astype(np.float32)
    size = x.shape[axis]
    scale = RANDOM.uniform(0.1, 2, size).astype(np.float32)
    zero = RANDOM.integers(-20, 20, size).astype(np.int8)
    result = run_op("QuantizeLinear", [x, scale, zero], axis=axis)[0]
    back = run_op("DequantizeLinear", [result, scale, zero], axis=axis)[0]
    for i in range(size):
        part, quantized = x.take(i, axis), result.take(i, axis)
        np.testing.assert_array_equal(quantized, np.clip(np.rint(part / scale[i]) + zero[i], -128, 127))
        expected = (quantized.astype(np.float32) - zero[i]) * scale[i]
        np.testing.assert_allclose(back.take(i, axis), expected, rtol=1e-6)


@pytest.mark.parametrize(("axis", "block"), [(0, 2), (1, 3), (-1, 2), (2, 9)])
def test_quantize_by_blocks_with_a_partial_last_block(axis, block):
    x = (RANDOM.standard_normal((3, 7, 5)) * 40).astype(np.float32)
    shape = list(x.shape)
    shape[axis] = -(-shape[axis] // block)
    scale = RANDOM.uniform(0.1, 2, shape).astype(np.float32)
    zero = RANDOM.integers(0, 200, shape).astype(np.uint8)
    result = run_op("QuantizeLinear", [x, scale, zero], axis=axis, block_size=block)[0]
    back = run_op("DequantizeLinear", [result, scale, zero], axis=axis, block_size=block)[0]
    for position in np.ndindex(*x.shape):
        at = list(position)
        at[axis] //= block
        s, z = scale[tuple(at)], int(zero[tuple(at)])
        assert result[position] == np.clip(np.rint(x[position] / s) + z, 0, 255)
        assert back[position] == pytest.approx((int(result[position]) - z) * s, rel=1e-6, abs=1e-6)


def test_quantize_a_vector_needs_no_axis():
    x = np.array([1, 2, 3], np.float32)
    assert run_op("QuantizeLinear", [x, x, np.zeros(3, np.uint8)])[0].tolist() == [1, 1, 1]
    assert run_op("QuantizeLinear", [x, np.array([0.5], np.float32), np.zeros(1, np.uint8)])[0].tolist() == [
        2,
        4,
        6,
    ]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_types(dtype):
    x, scale = np.array([1, 2.5, -3]).astype(dtype), scalar(0.5).astype(dtype)
    quantized = run_op("QuantizeLinear", [x, scale, scalar(0, np.int8)])[0]
    assert quantized.tolist() == [2, 5, -6]
    back = run_op("DequantizeLinear", [quantized, scale])[0]
    assert back.dtype == dtype
    assert back.astype(np.float32).tolist() == [1, 2.5, -3]


def test_empty_tensors():
    x = np.zeros((0, 3), np.float32)
    quantized = run_op("QuantizeLinear", [x, np.ones(3, np.float32), np.zeros(3, np.uint8)], axis=1)[0]
    assert quantized.shape == (0, 3)
    assert run_op("DequantizeLinear", [quantized, np.ones(3, np.float32)])[0].shape == (0, 3)


def test_shapes_and_errors():
    x = typed("n", 6, 4)
    assert infer_op("QuantizeLinear", [x, typed(6), typed(6, dtype="int8")]) == ["int8[n, 6, 4]"]
    assert infer_op("QuantizeLinear", [TensorType(DType.FLOAT32), typed(6)]) == ["uint8[?]"]
    with pytest.raises(GraphError, match=r"y_scale .*\[6\].*\[n, 6, 4\], axis 1"):
        infer_op("QuantizeLinear", [x, typed(4)])
    with pytest.raises(GraphError, match=r"y_scale .*\[n, 3, 4\] .*block_size 2.*\[1, 2, 4\]"):
        infer_op("QuantizeLinear", [x, typed(1, 2, 4)], block_size=2)
    with pytest.raises(GraphError, match=r"y_zero_point \[4\] .*y_scale \[6\]"):
        infer_op("QuantizeLinear", [x, typed(6), typed(4, dtype="int8")])
    with pytest.raises(GraphError, match="axis 3 .*rank 3"):
        infer_op("DequantizeLinear", [typed(1, 6, 4, dtype="int8"), typed(6)], axis=3)
    with pytest.raises(GraphError, match="block_size .*-1"):
        infer_op("QuantizeLinear", [x, typed(6)], block_size=-1)


# **** DequantizeLinear ****


def test_dequantize_is_exact_for_extreme_differences():
    x = np.array([-(2**31), 2**31 - 1], np.int32)
    assert run_op("DequantizeLinear", [x, scalar(2)])[0].tolist() == [-(2.0**32), 2.0**32]
    low = np.array([-32768], np.int16)
    assert run_op("DequantizeLinear", [low, scalar(1), scalar(32767, np.int16)])[0].tolist() == [-65535]
    assert run_op("DequantizeLinear", [np.array([0], np.uint8), scalar(1), scalar(255, np.uint8)])[0].tolist() == [-255]


def test_dequantize_has_the_type_of_the_scale():
    assert infer_op("DequantizeLinear", [typed("n", dtype="uint8"), typed(dtype="float16")]) == ["float16[n]"]


# **** DynamicQuantizeLinear ****


@pytest.mark.parametrize("x", [np.zeros((2, 2), np.float32), np.zeros((0,), np.float32)])
def test_dynamic_quantize_of_zeros_and_empty_tensors(x):
    y, scale, zero = run_op("DynamicQuantizeLinear", [x], outputs=3)
    assert not y.any()
    assert (float(scale), int(zero)) == (1, 0)
    assert infer_op("DynamicQuantizeLinear", [typed("n", 4)], outputs=3) == [
        "uint8[n, 4]",
        "float32[]",
        "uint8[]",
    ]
