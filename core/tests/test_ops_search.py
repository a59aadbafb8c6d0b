"""ArgMax, ArgMin, TopK, NonZero, Unique, CumSum, Det, and the window functions."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from op_runner import infer_op, run_op

from lite_core.builder import GraphBuilder
from lite_core.errors import GraphError
from lite_core.ir import DType, SymbolicDim, TensorType
from lite_core.ops.dtypes import NUMERIC

NAN, INF = np.nan, np.inf
N, H = SymbolicDim.named("n"), SymbolicDim.named("h")
K_TYPE = TensorType(DType.INT64, (1,))


def one(op, *inputs, **attributes):
    return run_op(op, list(inputs), **attributes)[0]


# **** ArgMax, ArgMin ****


def test_arg_max_over_zero_sizes():
    assert one("ArgMax", np.zeros((0, 3), np.float32), axis=1).shape == (0, 1)
    assert one("ArgMin", np.zeros((2, 0, 0), np.float32), axis=1, keepdims=0).shape == (2, 0)
    with pytest.raises(GraphError, match=r"axis 1 .*\[3, 0\]"):
        one("ArgMax", np.zeros((3, 0), np.float32), axis=1)


def test_arg_max_shapes():
    x = TensorType(DType.FLOAT32, (N, 3, H))
    assert infer_op("ArgMax", [x], axis=-1) == ["int64[n, 3, 1]"]
    assert infer_op("ArgMin", [x], axis=1, keepdims=0) == ["int64[n, h]"]
    assert infer_op("ArgMax", [TensorType(DType.FLOAT32, None)]) == ["int64[?]"]
    with pytest.raises(GraphError, match=r"axis -4 .*rank 3"):
        infer_op("ArgMax", [x], axis=-4)


# **** TopK ****


@pytest.mark.parametrize("dtype", [d.numpy for d in NUMERIC])
@pytest.mark.parametrize(("largest", "expected"), [(1, [1, 3, 0, 2]), (0, [2, 0, 1, 3])])
def test_top_k_prefers_the_lower_index_for_every_type(dtype, largest, expected):
    x = np.array([5, 9, 0, 9]).astype(dtype)
    values, indices = run_op("TopK", [x, np.array([4])], outputs=2, largest=largest)
    np.testing.assert_array_equal(indices, expected)
    np.testing.assert_array_equal(values, x[expected])
    assert values.dtype == dtype


def test_top_k_at_the_limits_of_integers():
    x = np.array([-128, 127, -128, 0], np.int8)
    np.testing.assert_array_equal(run_op("TopK", [x, np.array([3])], 2)[1], [1, 3, 0])
    large = np.array([2**64 - 1, 2**64 - 2, 1], np.uint64)
    np.testing.assert_array_equal(run_op("TopK", [large, np.array([2])], 2)[1], [0, 1])


def test_top_k_matches_a_full_sort_along_any_axis():
    x = np.random.default_rng(0).integers(0, 5, (3, 6, 4)).astype(np.float32)
    for axis in range(3):
        k = x.shape[axis] - 1
        values, indices = run_op("TopK", [x, np.array([k])], 2, axis=axis)
        order = np.argsort(-x, axis=axis, kind="stable").take(range(k), axis)
        np.testing.assert_array_equal(indices, order)
        np.testing.assert_array_equal(values, np.take_along_axis(x, order, axis))


def test_top_k_puts_nan_above_every_number():
    x = np.float32([1, NAN, INF])
    np.testing.assert_array_equal(run_op("TopK", [x, np.array([2])], 2)[1], [1, 2])
    np.testing.assert_array_equal(run_op("TopK", [x, np.array([3])], 2, largest=0)[1], [0, 2, 1])


def test_top_k_shapes():
    b = GraphBuilder()
    x = b.input("x", "float32", ["n", "h", 4])
    known, smaller = b.add_node("TopK", [x, b.ints(2)], {"axis": 1}, outputs=2)
    assert (str(known.type), str(smaller.type)) == ("float32[n, 2, 4]", "int64[n, 2, 4]")
    half = b.add("Div", [b.add("Shape", [x], {"start": 1, "end": 2}), b.ints(2)])
    assert str(b.add_node("TopK", [x, half], {"axis": 1}, outputs=2)[0].type) == "float32[n, h//2, 4]"
    assert infer_op("TopK", [x.type, K_TYPE], outputs=2)[1].startswith("int64[n, h, k?")
    assert one("TopK", np.zeros((0, 4), np.float32), np.array([2])).shape == (0, 2)
    assert one("TopK", np.zeros((2, 4), np.float32), np.array([0])).shape == (2, 0)


def test_top_k_errors():
    x = np.zeros((2, 4), np.float32)
    with pytest.raises(GraphError, match=r"K is 5.*axis 1 .*\[2, 4\].* 4 "):
        run_op("TopK", [x, np.array([5])], 2)
    with pytest.raises(GraphError, match=r"K .*-1"):
        run_op("TopK", [x, np.array([-1])], 2)
    with pytest.raises(GraphError, match=r"K .*one number.* 2"):
        run_op("TopK", [x, np.array([1, 2])], 2)


# **** NonZero, Unique ****


def test_non_zero():
    np.testing.assert_array_equal(one("NonZero", np.float32([0, NAN, -0.0])), [[1]])
    assert one("NonZero", np.zeros((0, 2, 3), bool)).shape == (3, 0)
    assert one("NonZero", np.array(5)).shape == (0, 1)
    assert infer_op("NonZero", [TensorType(DType.BOOL, (N, 3))])[0].startswith("int64[2, nonzero?")


def test_non_zero_of_known_elements_is_known():
    b = GraphBuilder()
    found = b.add("NonZero", [b.constant(np.array([True, False, True]))])
    assert str(found.type) == "int64[1, 2]"
    np.testing.assert_array_equal(b.known(found), [[0, 2]])


@pytest.mark.parametrize("axis", [0, -1])
def test_unique_parts_along_an_axis_keep_their_order(axis):
    x = np.array([[2, 1, 1], [5, 5, 5], [2, 1, 1]], np.int32)
    values, first, inverse, counts = run_op("Unique", [x], outputs=4, sorted=0, axis=axis)
    np.testing.assert_array_equal(np.take(values, inverse, axis), x)
    np.testing.assert_array_equal(np.take(x, first, axis), values)
    np.testing.assert_array_equal(counts, np.bincount(inverse))
    assert first.tolist() == sorted(first.tolist())


def test_unique_without_elements_and_with_nan():
    values, first, inverse, counts = run_op("Unique", [np.zeros(0, np.float32)], outputs=4)
    assert [a.shape for a in (values, first, inverse, counts)] == [(0,)] * 4
    assert len(one("Unique", np.float32([NAN, 1, NAN]))) == 2
    np.testing.assert_array_equal(one("Unique", np.array([3, 1, 3], np.float16), sorted=0), [3, 1])


def test_unique_shapes():
    b = GraphBuilder()
    x = b.input("x", "float32", ["n", 3])
    values, first, inverse, counts = b.add_node("Unique", [x], {"axis": 0}, outputs=4)
    assert inverse.type.shape == (N,)
    assert values.type.shape == (counts.type.shape[0], 3)
    assert first.type == counts.type
    assert str(b.add_node("Unique", [x], outputs=3)[2].type) == "int64[3*n]"
    with pytest.raises(GraphError, match="axis 2 "):
        b.add("Unique", [x], {"axis": 2})


# **** CumSum ****


def test_cum_sum_reversed_and_exclusive_along_the_last_axis():
    x = np.array([[1, 2, 3]] * 2, np.uint32)
    axis = np.array([-1], np.int32)
    np.testing.assert_array_equal(one("CumSum", x, axis, reverse=1, exclusive=1), [[5, 3, 0]] * 2)
    np.testing.assert_array_equal(x, [[1, 2, 3]] * 2)  # the input is unchanged


def test_cum_sum_keeps_digits_and_infinities():
    assert one("CumSum", np.full(1 << 17, 0.1, np.float32), np.array(0))[-1] == pytest.approx(13107.2, rel=1e-6)
    np.testing.assert_array_equal(one("CumSum", np.float32([1, INF]), np.array(0), exclusive=1), [0, 1])
    assert one("CumSum", np.zeros((2, 0), np.float32), np.array(1), exclusive=1).shape == (2, 0)
    assert one("CumSum", np.array([2**31 - 1, 1], np.int32), np.array(0))[-1] == -(2**31)


def test_cum_sum_of_dimensions_and_errors():
    b = GraphBuilder()
    x = b.input("x", "float32", ["n", 3, "h"])
    sums = b.add("CumSum", [b.add("Shape", [x]), b.constant(0)], {"exclusive": 1})
    assert [str(d) for d in b.known(sums)] == ["0", "n", "n + 3"]
    with pytest.raises(GraphError, match=r"axis 3 .*rank 3"):
        b.add("CumSum", [x, b.constant(3)])
    with pytest.raises(GraphError, match=r"axis .*scalar.*\[2\]"):
        b.add("CumSum", [x, b.ints(0, 1)])


# **** Det, windows ****


def test_determinants():
    assert one("Det", np.zeros((0, 0), np.float32)) == 1
    assert one("Det", np.zeros((0, 2, 2), np.float32)).shape == (0,)
    assert infer_op("Det", [TensorType(DType.FLOAT32, (N, H, 3))]) == ["float32[n]"]
    with pytest.raises(GraphError, match=r"X .*square.*\[n, 2, 3\]"):
        infer_op("Det", [TensorType(DType.FLOAT32, (N, 2, 3))])


@pytest.mark.parametrize(
    ("op", "numpy"), [("HannWindow", np.hanning), ("HammingWindow", None), ("BlackmanWindow", np.blackman)]
)
def test_windows(op, numpy):
    for size in (1, 2, 8):
        symmetric = one(op, np.array(size), periodic=0, output_datatype=DType.FLOAT64)
        periodic = one(op, np.array(size, np.int32), output_datatype=DType.FLOAT64)
        np.testing.assert_allclose(periodic, one(op, np.array(size + 1), periodic=0)[:-1], atol=1e-6)
        if numpy is not None:
            np.testing.assert_allclose(symmetric, numpy(size), atol=1e-12)
    assert one(op, np.array(0)).shape == (0,)
    assert one(op, np.array(4), output_datatype=DType.BFLOAT16).dtype == ml_dtypes.bfloat16


def test_window_shapes_and_errors():
    b = GraphBuilder()
    length = b.add("Size", [b.input("x", "float32", ["n", 3])])
    assert str(b.add("HannWindow", [length], {"output_datatype": DType.FLOAT16}).type) == "float16[3*n]"
    assert infer_op("HannWindow", [TensorType(DType.INT64, ())])[0].startswith("float32[window?")
    with pytest.raises(GraphError, match=r"size .*-1"):
        one("HannWindow", np.array(-1))
    with pytest.raises(GraphError, match=r"size .*scalar.*\[2\]"):
        one("BlackmanWindow", np.array([1, 2]))
