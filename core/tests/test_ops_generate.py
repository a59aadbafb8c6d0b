"""Range, ConstantOfShape, EyeLike, OneHot."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from lite_core import ops
from lite_core.builder import GraphBuilder
from lite_core.errors import GraphError
from lite_core.ir import DType, SymbolicDim
from lite_core.ops.evaluate import evaluate_op


def run(name, *inputs, **attributes):
    definition = ops.find(name)
    filled = {k: attributes.get(k, spec.default) for k, spec in definition.attributes.items()}
    return evaluate_op(definition, [np.asarray(i) for i in inputs], filled)[0]


def dims(value):
    return [str(d) for d in value.type.shape]


# **** symbolic shapes and shape arithmetic ****


def test_range_up_to_a_symbolic_size():
    b = GraphBuilder()
    shape = b.add("Shape", [b.input("x", "float32", ["h"])])
    height, zero = b.add("Squeeze", [shape]), b.constant(0)
    assert dims(b.add("Range", [zero, height, b.constant(1)])) == ["h"]
    assert dims(b.add("Range", [zero, height, b.constant(2)])) == ["(h + 1)//2"]
    assert dims(b.add("Range", [b.constant(1), height, b.constant(1)])) == ["max(h - 1, 0)"]
    assert dims(b.add("Range", [height, zero, b.constant(-1)])) == ["h"]


def test_the_elements_of_a_known_range_are_known():
    b = GraphBuilder()
    values = b.known(b.add("Range", [b.constant(7), b.constant(0), b.constant(-3)]))
    assert values.dtype == np.int64
    assert values.tolist() == [7, 4, 1]
    unknown = b.add("Range", [b.constant(0), b.input("limit", "int64", []), b.constant(1)])
    assert isinstance(unknown.type.shape[0], SymbolicDim)
    assert b.known(unknown) is None


def test_constant_of_shape_with_symbols_and_known_elements():
    b = GraphBuilder()
    shape = b.add("Shape", [b.input("x", "float32", ["n", 3])])
    filled = b.add("ConstantOfShape", [shape], {"value": np.array([2], dtype=np.int64)})
    assert str(filled.type) == "int64[n, 3]"
    assert b.known(b.add("ConstantOfShape", [b.ints(2)])).tolist() == [0.0, 0.0]
    unknown = b.add("ConstantOfShape", [b.input("sizes", "int64", [3])])
    assert len(unknown.type.shape) == 3
    assert b.add("ConstantOfShape", [b.input("any", "int64", ["rank"])]).type.shape is None


def test_one_hot_puts_the_depth_at_the_axis():
    b = GraphBuilder()
    x, values = b.input("x", "int32", ["n", "k"]), b.constant(np.array([0, 1], dtype=np.float32))
    assert dims(b.add("OneHot", [x, b.constant(10.0), values])) == ["n", "k", "10"]
    depth = b.add("Shape", [b.input("y", "float32", ["classes"])])
    assert dims(b.add("OneHot", [x, depth, values], {"axis": -2})) == ["n", "classes", "k"]


# **** values ****


def test_range_is_computed_in_its_element_type():
    zero, limit, delta = (np.float32(v) for v in (0, 0.3, 0.1))
    np.testing.assert_array_equal(run("Range", zero, limit, delta), np.float32([0, 0.1, 0.2]))


@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.int64, np.float32, np.float64])
def test_range_of_every_type_and_empty_ranges(dtype):
    result = run("Range", dtype(10), dtype(3), dtype(-2))
    assert result.dtype == dtype
    assert result.tolist() == [10, 8, 6, 4]
    assert run("Range", dtype(3), dtype(3), dtype(1)).shape == (0,)
    assert run("Range", dtype(3), dtype(10), dtype(-1)).shape == (0,)


def test_zero_size_tensors():
    assert run("ConstantOfShape", np.array([2, 0])).shape == (2, 0)
    assert run("ConstantOfShape", np.zeros(0, dtype=np.int64)).shape == ()
    assert run("EyeLike", np.zeros((0, 3))).shape == (0, 3)
    assert run("OneHot", np.zeros((2, 0), dtype=np.int64), 3, [0, 1]).shape == (2, 0, 3)
    assert run("OneHot", [1, 2], 0, [0, 1]).shape == (2, 0)


@pytest.mark.parametrize("dtype", [DType.FLOAT16, DType.BFLOAT16])
def test_half_types(dtype):
    eye = run("EyeLike", np.zeros((2, 3), dtype=np.int32), dtype=dtype, k=1)
    assert eye.dtype == dtype.numpy
    assert eye.astype(int).tolist() == [[0, 1, 0], [0, 0, 1]]
    fill = run("ConstantOfShape", np.array([2]), value=np.array([1.5], dtype=dtype.numpy))
    assert fill.dtype == dtype.numpy
    assert fill.astype(float).tolist() == [1.5, 1.5]
    hot = run("OneHot", [1], 2, np.array([0.5, 2], dtype=ml_dtypes.bfloat16))
    assert hot.dtype == ml_dtypes.bfloat16
    assert hot.astype(float).tolist() == [[0.5, 2]]


def test_one_hot_indices_from_the_end_and_outside():
    assert run("OneHot", [-1, 0, 3, -4], 3, [5, 7]).tolist() == [[5, 5, 7], [7, 5, 5], [5, 5, 5], [5, 5, 5]]


# **** errors ****


@pytest.mark.parametrize(
    ("name", "inputs", "attributes", "message"),
    [
        ("Range", [0, 3, 0], {}, "delta .*0"),
        ("Range", [np.float32(0), np.float32(np.inf), np.float32(1)], {}, "finite number"),
        ("Range", [[0, 1], 3, 1], {}, r"start .*scalar.*\[2\]"),
        ("ConstantOfShape", [[2, -1]], {}, r"\[2, -1\] .*negative"),
        ("ConstantOfShape", [[2]], {"value": np.zeros(2)}, r"value .*one element.*\[2\]"),
        ("EyeLike", [np.zeros(3)], {}, "rank 2"),
        ("OneHot", [[1], 3, [0, 1, 2]], {}, r"values .*\[off_value, on_value\].* 3 "),
        ("OneHot", [[1], -1, [0, 1]], {}, "depth .*-1"),
        ("OneHot", [[1], 3, [0, 1]], {"axis": 2}, "axis 2 "),
    ],
)
def test_errors_name_values_and_shapes(name, inputs, attributes, message):
    with pytest.raises(GraphError, match=message):
        run(name, *inputs, **attributes)
