"""Reductions: empty inputs, accuracy, integers, unknown axes, shape arithmetic, errors."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from op_runner import infer_op, run_op

from lite_core.builder import GraphBuilder
from lite_core.errors import GraphError
from lite_core.ir import DType, SymbolicDim, TensorType

NAN, INF = np.nan, np.inf
N, H = SymbolicDim.named("n"), SymbolicDim.named("h")
X = TensorType(DType.FLOAT32, (N, 3, H))


def reduced(op, data, axes=None, **attributes):
    return run_op(op, [data, None if axes is None else np.array(axes, np.int64)], **attributes)[0]


@pytest.mark.parametrize(("op", "identity"), [("ReduceMax", -INF), ("ReduceMean", NAN)])
def test_reduction_over_no_elements_gives_the_identity(op, identity):
    empty = np.zeros((2, 0, 3), np.float32)
    np.testing.assert_array_equal(reduced(op, empty, [1]), np.full((2, 1, 3), identity, np.float32))
    np.testing.assert_array_equal(reduced(op, empty, [1], keepdims=0), np.full((2, 3), identity, np.float32))
    assert reduced(op, empty, [0]).shape == (1, 0, 3)


def test_extremes_of_empty_integers_and_booleans():
    assert reduced("ReduceMax", np.zeros(0, np.int8), [0], keepdims=0) == -128
    assert reduced("ReduceMin", np.zeros(0, np.uint8), [0], keepdims=0) == 255
    assert reduced("ReduceMax", np.zeros(0, bool), keepdims=0).tolist() is False
    assert reduced("ReduceMin", np.zeros(0, bool), keepdims=0).tolist() is True


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin", "ReduceSum", "ReduceLogSumExp"])
def test_nan_propagates(op):
    assert np.isnan(reduced(op, np.float32([1, NAN, INF])))


@pytest.mark.parametrize("op", ["ReduceSum", "ReduceL2"])
def test_empty_axes_reduce_all_axes_or_none(op):
    x = np.float32([[2, 3], [4, 5]])
    assert reduced(op, x).shape == (1, 1)
    assert reduced(op, x, []).shape == (1, 1)
    assert reduced(op, x, keepdims=0).shape == ()
    np.testing.assert_array_equal(reduced(op, x, noop_with_empty_axes=1), x)
    np.testing.assert_array_equal(reduced(op, x, [], noop_with_empty_axes=1, keepdims=0), x)
    assert reduced(op, np.float32(2)).shape == ()


def test_sums_of_many_float32_do_not_lose_digits():
    # Added one after another in float32 along the first axis, a tenth drifts by more than a percent.
    x = np.full((1 << 18, 2), 0.1, np.float32)
    exact = math.fsum([float(np.float32(0.1))] * (1 << 18))
    np.testing.assert_allclose(reduced("ReduceSum", x, [0])[0], exact, rtol=1e-7)
    np.testing.assert_allclose(reduced("ReduceMean", x, [0])[0], np.float32(0.1), rtol=1e-7)
    np.testing.assert_allclose(reduced("ReduceL2", np.float32([3e30, 4e30])), 5e30, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_half_types_are_summed_in_float32(dtype):
    x = np.full(4096, 1, dtype)  # in half precision the sum would stop at 2048 or 256
    assert reduced("ReduceSum", x).astype(np.float32) == 4096
    assert reduced("ReduceMean", x).dtype == np.dtype(dtype)


def test_log_sum_exp_is_stable():
    np.testing.assert_allclose(reduced("ReduceLogSumExp", np.float32([1000, 1000])), 1000 + math.log(2))
    np.testing.assert_allclose(reduced("ReduceLogSumExp", np.float32([-1000, -1000])), -1000 + math.log(2))
    np.testing.assert_array_equal(reduced("ReduceLogSumExp", np.float32([INF, 1])), [INF])
    np.testing.assert_array_equal(reduced("ReduceLogSumExp", np.float32([-INF, -INF])), [-INF])


def test_integers():
    x = np.array([-3, -4, 2**31 - 1], np.int32)
    assert reduced("ReduceSum", x[:2]) == -7
    assert reduced("ReduceMean", x[:2]) == -3  # towards zero
    assert reduced("ReduceSum", np.array([2**31 - 1, 1], np.int32)) == -(2**31)  # wraps around
    assert reduced("ReduceL2", x[:2]) == 5
    assert reduced("ReduceL1", x[:2]) == 7
    assert reduced("ReduceSum", np.array([2**63, 2**62], np.uint64)) == 2**63 + 2**62
    assert reduced("ReduceMean", np.array([2**62 + 1, 2**62 + 1, 2**62 + 1])[:1]) == 2**62 + 1


# **** shapes ****


def test_shapes_with_known_axes():
    b = GraphBuilder()
    x = b.input("x", "float32", ["n", 3, "h"])
    assert str(b.add("ReduceSum", [x, b.ints(-1)]).type) == "float32[n, 3, 1]"
    assert str(b.add("ReduceMax", [x, b.ints(0, 1)], {"keepdims": 0}).type) == "float32[h]"
    assert str(b.add("ReduceMean", [x]).type) == "float32[1, 1, 1]"
    assert str(b.add("ReduceMean", [x], {"keepdims": 0}).type) == "float32[]"
    assert str(b.add("ReduceMean", [x], {"noop_with_empty_axes": 1}).type) == "float32[n, 3, h]"
    unknown = b.input("unknown", "float32", None)
    assert str(b.add("ReduceL1", [unknown], {"keepdims": 0}).type) == "float32[]"
    assert str(b.add("ReduceL1", [unknown, b.ints(1)]).type) == "float32[?]"


def test_shapes_with_unknown_axes():
    one_axis, some_axes = TensorType(DType.INT64, (1,)), TensorType(DType.INT64, (N,))
    assert infer_op("ReduceSum", [X, one_axis])[0].startswith("float32[reduced?")
    b = GraphBuilder()
    x, axes = b.input("x", "float32", ["n", 1, "h"]), b.input("axes", "int64", [1])
    kept = b.add("ReduceSum", [x, axes]).type.shape
    assert kept is not None
    assert kept[1] == 1
    assert kept[0] != SymbolicDim.named("n")
    assert b.add("ReduceSum", [x, axes], {"keepdims": 0}).type.rank == 2
    assert infer_op("ReduceSum", [X, some_axes], keepdims=0) == ["float32[?]"]


def test_errors_name_the_axes():
    b = GraphBuilder()
    x = b.input("x", "float32", ["n", 3])
    with pytest.raises(GraphError, match=r"ReduceSum.*axis 2 .*rank 2"):
        b.add("ReduceSum", [x, b.ints(2)])
    with pytest.raises(GraphError, match=r"axes \[1, -1\] .*twice"):
        b.add("ReduceMax", [x, b.ints(1, -1)])
    with pytest.raises(GraphError, match=r"3 axes .*rank 2"):
        b.add("ReduceMax", [x, b.input("axes", "int64", [3])], {"keepdims": 0})
    with pytest.raises(GraphError, match=r"input data .*bool"):
        b.add("ReduceSum", [b.input("mask", "bool", [2])])


# **** shape arithmetic ****


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("ReduceProd", "3*h*n"),
        ("ReduceSum", "h + n + 3"),
        ("ReduceMax", "max(max(n, 3), h)"),
        ("ReduceMean", None),
    ],
)
def test_reductions_of_dimensions(op, expected):
    b = GraphBuilder()
    dims = b.add("Shape", [b.input("x", "float32", ["n", 3, "h"])])
    for keepdims, shape in ((1, (1,)), (0, ())):
        known = b.known(b.add(op, [dims, b.ints(0)], {"keepdims": keepdims}))
        if expected is None:
            assert known is None
        else:
            assert known.shape == shape
            assert str(known.reshape(-1)[0]) == expected


def test_reductions_of_a_matrix_of_dimensions_and_of_no_dimensions():
    b = GraphBuilder()
    x = b.input("x", "float32", ["n", 3, "h", 5])
    matrix = b.add("Reshape", [b.add("Shape", [x]), b.ints(2, 2)])
    products = b.known(b.add("ReduceProd", [matrix, b.ints(0)], {"keepdims": 0}))
    assert [str(d) for d in products] == ["h*n", "15"]
    everything = b.known(b.add("ReduceProd", [matrix]))
    assert everything.shape == (1, 1)
    assert str(everything.item()) == "15*h*n"
    smallest = b.known(b.add("ReduceMin", [matrix], {"keepdims": 0})).item()
    assert smallest.evaluate({"n": 9, "h": 8}) == 3
    assert smallest.evaluate({"n": 9, "h": 2}) == 2
    nothing = b.add("Shape", [x], {"start": 2, "end": 2})
    assert b.known(b.add("ReduceProd", [nothing], {"keepdims": 0})).item() == 1
    assert b.known(b.add("ReduceSum", [b.constant(np.array([2, 3]))])).dtype == np.int64
