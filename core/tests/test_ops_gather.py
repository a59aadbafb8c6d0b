"""Gather, GatherElements, GatherND, ScatterElements, ScatterND."""

from __future__ import annotations

import numpy as np
import pytest

from lite_core import ops
from lite_core.builder import GraphBuilder
from lite_core.errors import GraphError
from lite_core.ops.evaluate import evaluate_op


def run(name, *inputs, **attributes):
    definition = ops.find(name)
    filled = {k: attributes.get(k, spec.default) for k, spec in definition.attributes.items()}
    return evaluate_op(definition, [np.asarray(i) for i in inputs], filled)[0]


def dims(value):
    return [str(d) for d in value.type.shape]


# **** symbolic shapes ****


def test_gather_replaces_the_axis_by_the_shape_of_the_indices():
    b = GraphBuilder()
    x, indices = b.input("x", "float32", ["n", "h", 3]), b.input("indices", "int64", ["k", 2])
    assert dims(b.add("Gather", [x, indices], {"axis": -2})) == ["n", "k", "2", "3"]
    assert dims(b.add("Gather", [x, b.constant(0)], {"axis": 0})) == ["h", "3"]


def test_gather_of_a_shape_is_known():
    b = GraphBuilder()
    shape = b.add("Shape", [b.input("x", "float32", ["n", 3, "h"])])
    scalar = b.known(b.add("Gather", [shape, b.constant(-1)]))
    assert scalar.shape == ()
    assert str(scalar.item()) == "h"
    assert [str(e) for e in b.known(b.add("Gather", [shape, b.ints(1, 0)]))] == ["3", "n"]
    assert b.known(b.add("Gather", [shape, b.ints(1)])).dtype == np.int64


def test_gather_nd_and_elements():
    b = GraphBuilder()
    x, pairs = b.input("x", "float32", ["n", "h", 3]), b.input("pairs", "int64", ["k", 2])
    assert dims(b.add("GatherND", [x, pairs])) == ["k", "3"]
    assert dims(b.add("GatherND", [x, b.input("one", "int64", ["n", "k", 1])], {"batch_dims": 1})) == [
        "n",
        "k",
        "3",
    ]
    unknown_depth = b.input("deep", "int64", ["k", "depth"])
    assert b.add("GatherND", [x, unknown_depth]).type.shape is None
    elements = b.input("elements", "int64", ["n", "k", 3])
    assert dims(b.add("GatherElements", [x, elements], {"axis": 1})) == ["n", "k", "3"]
    assert dims(b.add("ScatterND", [x, pairs, b.input("updates", "float32", None)])) == ["n", "h", "3"]


# **** values ****


def test_zero_size_tensors():
    empty = np.zeros((0, 3), dtype=np.float32)
    assert run("Gather", empty, np.zeros((2, 0), dtype=np.int64)).shape == (2, 0, 3)
    assert run("GatherElements", empty, np.zeros((0, 1), dtype=np.int64), axis=1).shape == (0, 1)
    assert run("GatherND", empty, np.zeros((0, 1), dtype=np.int64)).shape == (0, 3)
    same = run("ScatterND", np.ones(3), np.zeros((0, 1), dtype=np.int64), np.zeros(0), reduction="add")
    assert same.tolist() == [1, 1, 1]


def test_gather_elements_may_be_smaller_than_the_data():
    data = np.arange(12).reshape(3, 4)
    assert run("GatherElements", data, [[2, 0], [-1, 1]], axis=0).tolist() == [[8, 1], [8, 5]]
    written = run("ScatterElements", np.zeros((3, 4)), [[3], [-4]], [[1.0], [2.0]], axis=1)
    assert written.tolist() == [[0, 0, 0, 1], [2, 0, 0, 0], [0, 0, 0, 0]]


def test_gather_nd_with_two_batch_axes():
    data = np.arange(24).reshape(2, 3, 4)
    indices = np.array([[[0], [1], [2]], [[3], [-1], [0]]])
    assert run("GatherND", data, indices, batch_dims=2).tolist() == [[0, 5, 10], [15, 19, 20]]


@pytest.mark.parametrize(("reduction", "expected"), [("add", 9), ("mul", 24), ("max", 4), ("min", 2)])
def test_reductions_of_integers_over_repeated_indices(reduction, expected):
    data, updates = np.array([2, 7], np.int8), np.array([3, 4], np.int8)
    result = run("ScatterElements", data, [0, 0], updates, reduction=reduction)
    assert result.dtype == np.int8
    assert result.tolist() == [expected, 7]
    np.testing.assert_array_equal(run("ScatterND", data, [[0], [-2]], updates, reduction=reduction), result)


def test_scatter_does_not_change_its_input():
    data = np.zeros(3, dtype=np.float32)
    run("ScatterND", data, [[1]], np.ones(1, dtype=np.float32))
    assert data.tolist() == [0, 0, 0]


# **** errors ****


@pytest.mark.parametrize(
    ("name", "inputs", "attributes", "message"),
    [
        ("Gather", [np.ones((2, 3)), [3]], {"axis": 1}, "index 3 .*axis 1 of size 3"),
        ("Gather", [np.ones((2, 3)), [0]], {"axis": 2}, "axis 2 .*rank 2"),
        ("GatherElements", [np.ones((2, 3)), [0]], {}, r"indices \[1\] .*rank.*\[2, 3\]"),
        ("GatherElements", [np.ones((2, 1)), [[0, 0]]], {}, "exceeds data .* in axis 1"),
        ("GatherElements", [np.ones(2), [-3]], {}, "index -3 .*axis 0 of size 2"),
        ("GatherND", [np.ones((2, 3)), [[0, 0, 0]]], {}, "tuples of 3 .*2 axes"),
        ("GatherND", [np.ones((2, 3)), [[5]]], {}, "index 5 .*axis 0 of size 2"),
        ("GatherND", [np.ones((2, 3)), [[0]]], {"batch_dims": 2}, "batch_dims 2 "),
        ("ScatterElements", [np.ones(3), [0, 1], np.ones(3)], {}, r"updates .*\[2\].*\[3\]"),
        ("ScatterND", [np.ones((2, 3)), [[0]], np.ones((1, 2))], {}, r"updates .*\[1, 3\]"),
        ("ScatterND", [[True], [[0]], [True]], {"reduction": "add"}, "reduction add .*bool"),
    ],
)  # fmt: skip
def test_errors_name_values_and_shapes(name, inputs, attributes, message):
    with pytest.raises(GraphError, match=message):
        run(name, *inputs, **attributes)
