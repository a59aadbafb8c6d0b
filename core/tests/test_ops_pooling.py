"""MaxPool, AveragePool, LpPool, their global forms, MaxUnpool."""

from __future__ import annotations

import numpy as np
import pytest
from op_runner import infer_op, run_op

from lite_core.errors import GraphError
from lite_core.ir import DType, SymbolicDim, TensorType

RANDOM = np.random.default_rng(2)


def normal(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def typed(*dims, dtype="float32"):
    return TensorType(DType.of(dtype), tuple(SymbolicDim.named(d) if isinstance(d, str) else d for d in dims))


def counts(*sizes, kernel, stride, pads=(0, 0), ceil_mode=0, **more):
    """Return the number of windows along one axis for each size."""
    attributes = {"kernel_shape": (kernel,), "strides": (stride,), "ceil_mode": ceil_mode, **more}
    if "auto_pad" not in more:
        attributes["pads"] = pads
    return [run_op("MaxPool", [normal(1, 1, size)], **attributes)[0].shape[2] for size in sizes]


# **** number of windows ****


def test_ceil_mode_counts_a_partial_window():
    assert counts(5, 6, 7, 8, kernel=3, stride=2) == [2, 2, 3, 3]
    assert counts(5, 6, 7, 8, kernel=3, stride=2, ceil_mode=1) == [2, 3, 3, 4]


def test_ceil_mode_drops_a_window_that_starts_in_the_padding_on_the_right():
    # size 4, pads 1 and 1, kernel 2, stride 2: ceil((4 + 2 - 2) / 2) + 1 = 3 windows, at 0, 2, 4 of 6
    assert counts(4, kernel=2, stride=2, pads=(1, 1), ceil_mode=1) == [3]
    # size 2, kernel 1, stride 2: windows at 0 and 2, of which the second would have no elements
    assert counts(2, kernel=1, stride=2, ceil_mode=1) == [1]
    assert counts(3, kernel=2, stride=3, pads=(0, 1), ceil_mode=1) == [1]


def test_ceil_mode_accepts_an_input_smaller_than_the_kernel():
    x = np.array([[[3, 7]]], np.float32)
    assert run_op("MaxPool", [x], kernel_shape=(3,), strides=(2,), ceil_mode=1)[0].tolist() == [[[7]]]
    with pytest.raises(GraphError, match=r"kernel of 3 .*spatial axis 0.* 2 "):
        run_op("MaxPool", [x], kernel_shape=(3,), strides=(2,))


def test_auto_pad_valid():
    assert counts(5, 6, kernel=3, stride=2, auto_pad="VALID") == [2, 2]
    assert counts(5, 6, kernel=3, stride=2, auto_pad="VALID", ceil_mode=1) == [2, 3]


def test_symbolic_shapes():
    x = typed("n", "c", "h", "w")
    window = {"kernel_shape": (3, 2), "strides": (2, 2), "pads": (1, 0, 1, 0)}
    assert infer_op("MaxPool", [x], **window) == ["float32[n, c, (h + 1)//2, w//2]"]
    assert infer_op("AveragePool", [x], ceil_mode=1, **window) == ["float32[n, c, h//2 + 1, (w + 1)//2]"]
    assert infer_op("LpPool", [x], kernel_shape=(3, 3), strides=(2, 2), auto_pad="SAME_LOWER") == [
        "float32[n, c, (h + 1)//2, (w + 1)//2]"
    ]
    assert infer_op("MaxPool", [x], outputs=2, kernel_shape=(2, 2)) == [
        "float32[n, c, h - 1, w - 1]",
        "int64[n, c, h - 1, w - 1]",
    ]
    assert infer_op("GlobalAveragePool", [x]) == ["float32[n, c, 1, 1]"]
    assert infer_op("MaxPool", [TensorType(DType.FLOAT32)], kernel_shape=(2, 2))[0].count(",") == 3


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "LpPool"])
@pytest.mark.parametrize("ceil_mode", [0, 1])
def test_symbolic_count_is_right_for_every_size(op, ceil_mode):
    # run_op compares the symbolic shape, evaluated, with the real one
    for size in range(4, 14):
        for stride, pads, dilation in (
            (1, (0, 0), 1),
            (2, (1, 0), 1),
            (3, (1, 2), 1),
            (2, (0, 1), 2),
            (4, (0, 0), 1),
        ):
            window = {"kernel_shape": (2,), "strides": (stride,), "pads": pads, "dilations": (dilation,)}
            run_op(op, [normal(1, 1, size)], ceil_mode=ceil_mode, **window)


def test_pool_errors():
    with pytest.raises(GraphError, match=r"rank 4 .* \[1, 3, 8\]"):
        infer_op("MaxPool", [typed(1, 3, 8)], kernel_shape=(2, 2))
    with pytest.raises(GraphError, match=r"kernel_shape .* at least 1"):
        infer_op("AveragePool", [typed(1, 3, 8)], kernel_shape=(0,))
    with pytest.raises(GraphError, match="p .*at least 1"):
        infer_op("LpPool", [typed(1, 3, 8)], kernel_shape=(2,), p=0)
    with pytest.raises(GraphError, match="rank 2"):
        infer_op("GlobalMaxPool", [typed(3)])


# **** MaxPool ****


def test_max_pool_ignores_padding():
    x = -np.ones((1, 1, 3, 3), np.float32)
    result = run_op("MaxPool", [x], kernel_shape=(2, 2), pads=(1, 1, 1, 1))[0]
    np.testing.assert_array_equal(result, -np.ones((1, 1, 4, 4)))
    small = np.full((1, 1, 3), -128, np.int8)
    assert run_op("MaxPool", [small], kernel_shape=(2,), pads=(1, 1))[0].tolist() == [[[-128] * 4]]


def test_max_pool_with_indices_equals_its_definition():
    x = normal(2, 3, 7, 6)
    values, indices = run_op(
        "MaxPool", [x], outputs=2, kernel_shape=(3, 2), strides=(2, 2), pads=(1, 0, 0, 1), dilations=(2, 1)
    )
    for n, c, i, j in np.ndindex(*values.shape):
        rows = [r for r in (2 * i - 1, 2 * i + 1, 2 * i + 3) if 0 <= r < 7]
        columns = [v for v in (2 * j, 2 * j + 1) if v < 6]
        assert values[n, c, i, j] == x[n, c][np.ix_(rows, columns)].max()
    np.testing.assert_array_equal(x.reshape(-1)[indices], values)
    alone = run_op("MaxPool", [x], kernel_shape=(3, 2), strides=(2, 2), pads=(1, 0, 0, 1), dilations=(2, 1))
    np.testing.assert_array_equal(alone[0], values)


def test_max_pool_indices_of_equal_and_infinite_elements():
    x = np.array([[[2, 2, -np.inf, -np.inf]]], np.float32)
    values, indices = run_op("MaxPool", [x], outputs=2, kernel_shape=(2,), strides=(2,))
    assert values.tolist() == [[[2, -np.inf]]]
    assert indices.tolist() == [[[0, 2]]]


def test_max_pool_storage_order_is_per_channel():
    x = np.arange(12, dtype=np.float32).reshape(1, 2, 2, 3)
    indices = run_op("MaxPool", [x], outputs=2, kernel_shape=(1, 1), storage_order=1)[1]
    assert indices.reshape(2, 2, 3).tolist() == [[[0, 2, 4], [1, 3, 5]], [[6, 8, 10], [7, 9, 11]]]


@pytest.mark.parametrize("outputs", [1, 2])
def test_max_pool_keeps_nan(outputs):
    x = np.array([[[1, np.nan, 3, 4]]], np.float32)
    values = run_op("MaxPool", [x], outputs=outputs, kernel_shape=(2,), strides=(2,))[0]
    np.testing.assert_array_equal(values, [[[np.nan, 4]]])


def test_max_pool_gives_the_index_of_the_first_nan():
    x = np.array([[[1, np.nan, 3, np.nan]]], np.float32)
    indices = run_op("MaxPool", [x], outputs=2, kernel_shape=(4,))[1]
    np.testing.assert_array_equal(indices, [[[1]]])


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "LpPool"])
def test_pools_without_samples_or_channels(op):
    assert run_op(op, [normal(0, 3, 4, 4)], kernel_shape=(2, 2))[0].shape == (0, 3, 3, 3)
    assert run_op(op, [normal(2, 0, 4)], kernel_shape=(2,))[0].shape == (2, 0, 3)


# **** AveragePool, LpPool ****


def average(x, **attributes):
    return run_op("AveragePool", [np.array([[x]], np.float32)], **attributes)[0][0, 0].tolist()


def test_average_pool_divisors():
    window = {"kernel_shape": (2,), "strides": (2,), "pads": (1, 0)}
    assert average([2, 4, 6, 8], **window) == [2, 5]
    assert average([2, 4, 6, 8], count_include_pad=1, **window) == [1, 5]
    # the last window of ceil_mode has one element; elements beyond the padding never count
    assert average([2, 4, 6, 8], ceil_mode=1, **window) == [2, 5, 8]
    assert average([2, 4, 6, 8], ceil_mode=1, count_include_pad=1, **window) == [1, 5, 8]
    padded = {"kernel_shape": (3,), "strides": (2,), "pads": (0, 1)}
    assert average([3, 6, 9, 12], ceil_mode=1, count_include_pad=1, **padded) == [6, 7]
    assert average([3, 6, 9, 12], ceil_mode=1, **padded) == [6, 10.5]


def test_average_pool_counts_automatic_padding():
    assert average([2, 4, 6], count_include_pad=1, kernel_shape=(2,), auto_pad="SAME_UPPER") == [3, 5, 3]


def test_average_pool_over_the_whole_image_equals_the_global_pool():
    x = normal(2, 3, 40, 50)
    whole = run_op("AveragePool", [x], kernel_shape=(40, 50))[0]
    np.testing.assert_allclose(whole, x.astype(np.float64).mean((2, 3), keepdims=True), rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(run_op("GlobalAveragePool", [x])[0], whole, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("p", [1, 2, 3])
def test_lp_pool(p):
    x = normal(1, 1, 6)
    result = run_op("LpPool", [x], kernel_shape=(2,), strides=(2,), p=p)[0]
    expected = np.linalg.norm(x.reshape(3, 2).astype(np.float64), ord=p, axis=1)
    np.testing.assert_allclose(result[0, 0], expected, rtol=1e-5)
    total = run_op("GlobalLpPool", [x], p=p)[0]
    np.testing.assert_allclose(total.item(), np.linalg.norm(x.reshape(-1).astype(np.float64), ord=p), rtol=1e-5)


def test_global_pools_of_empty_images():
    assert run_op("GlobalMaxPool", [normal(1, 2, 0)])[0].tolist() == [[[-np.inf], [-np.inf]]]
    assert np.isnan(run_op("GlobalAveragePool", [normal(1, 2, 0)])[0]).all()


# **** MaxUnpool ****


def test_max_unpool_inverts_max_pool():
    x = normal(2, 3, 4, 6)
    values, indices = run_op("MaxPool", [x], outputs=2, kernel_shape=(2, 2), strides=(2, 2))
    result = run_op("MaxUnpool", [values, indices], kernel_shape=(2, 2), strides=(2, 2))[0]
    expected = np.zeros(x.size, np.float32)
    expected[indices.reshape(-1)] = values.reshape(-1)
    np.testing.assert_array_equal(result, expected.reshape(x.shape))


def test_max_unpool_shapes():
    x, indices = typed("n", "c", "h", "w"), typed("n", "c", "h", "w", dtype="int64")
    window = {"kernel_shape": (3, 2), "strides": (2, 2), "pads": (1, 0, 1, 0)}
    assert infer_op("MaxUnpool", [x, indices], **window) == ["float32[n, c, 2*h - 1, 2*w]"]
    unknown = infer_op("MaxUnpool", [x, indices, typed(4, dtype="int64")], **window)[0]
    assert unknown.startswith("float32[n, c, size?")


def test_max_unpool_errors():
    x, indices = normal(1, 1, 2, 2), np.array([[[[0, 3], [9, 99]]]])
    with pytest.raises(GraphError, match="indices from 0 to 99 .*16 elements"):
        run_op("MaxUnpool", [x, indices], kernel_shape=(2, 2), strides=(2, 2))
    with pytest.raises(GraphError, match=r"output_shape \[1, 1, 3, 3\] .*\[1, 1, 4, 4\]"):
        run_op("MaxUnpool", [x, indices, np.array([1, 1, 3, 3])], kernel_shape=(2, 2), strides=(2, 2))
    with pytest.raises(GraphError, match="indices .*shape"):
        infer_op("MaxUnpool", [typed(1, 1, 2), typed(1, 1, 3, dtype="int64")], kernel_shape=(2,))
