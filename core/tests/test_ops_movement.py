"""Concat, Split, Tile, DepthToSpace, SpaceToDepth, ReverseSequence, Compress, Trilu."""

from __future__ import annotations

import numpy as np
import pytest

from lite_core import ops
from lite_core.builder import GraphBuilder
from lite_core.errors import GraphError
from lite_core.ir import SymbolicDim
from lite_core.ops.evaluate import evaluate_op


def run(name, *inputs, n_outputs=1, **attributes):
    definition = ops.find(name)
    filled = {k: attributes.get(k, spec.default) for k, spec in definition.attributes.items()}
    results = evaluate_op(definition, inputs, filled, n_outputs)
    return results[0] if n_outputs == 1 else results


def dims(value):
    return [str(d) for d in value.type.shape]


# **** symbolic shapes ****


def test_concat_adds_symbols_and_takes_known_sizes():
    b = GraphBuilder()
    x, y = b.input("x", "float32", ["n", 3, "h"]), b.input("y", "float32", [2, "c", "k"])
    assert dims(b.add("Concat", [x, y, x], {"axis": -1})) == ["2", "3", "2*h + k"]


def test_concat_with_an_input_of_unknown_rank_keeps_the_rank():
    b = GraphBuilder()
    x, y = b.input("x", "float32", ["n", 3]), b.input("y", "float32", None)
    shape = b.add("Concat", [x, y], {"axis": 0}).type.shape
    assert len(shape) == 2
    assert shape[1] == 3
    assert shape[0] != SymbolicDim.named("n")


def test_split_of_a_symbolic_size_has_a_smaller_last_part():
    b = GraphBuilder()
    x = b.input("x", "float32", ["h", 4])
    parts = b.add_node("Split", [x], {"num_outputs": 2}, outputs=2)
    assert [dims(p)[0] for p in parts] == ["(h + 1)//2", "h - ((h + 1)//2)"]


def test_split_of_an_even_size_is_exact():
    b = GraphBuilder()
    x = b.input("x", "float32", [2, "h"])
    doubled = b.add("Concat", [x, x], {"axis": 1})
    parts = b.add_node("Split", [doubled], {"axis": 1, "num_outputs": 2}, outputs=2)
    assert [dims(p) for p in parts] == [["2", "h"], ["2", "h"]]


def test_depth_to_space_and_back_keep_symbols():
    b = GraphBuilder()
    x = b.input("x", "float32", ["n", 12, "h", "w"])
    up = b.add("DepthToSpace", [x], {"blocksize": 2})
    assert dims(up) == ["n", "3", "2*h", "2*w"]
    assert dims(b.add("SpaceToDepth", [up], {"blocksize": 2})) == ["n", "12", "h", "w"]


def test_tile_by_a_symbolic_count():
    b = GraphBuilder()
    x, y = b.input("x", "float32", [1, 3]), b.input("y", "float32", ["n", 2])
    repeats = b.add("Shape", [y])
    assert dims(b.add("Tile", [x, repeats])) == ["n", "6"]


def test_compress_has_a_size_known_only_with_the_condition():
    b = GraphBuilder()
    x, mask = b.input("x", "float32", ["n", 3]), b.input("mask", "bool", [3])
    assert dims(b.add("Compress", [x, b.constant([True, False, True])], {"axis": 1})) == ["n", "2"]
    unknown = b.add("Compress", [x, mask], {"axis": 1}).type.shape
    assert str(unknown[0]) == "n"
    assert isinstance(unknown[1], SymbolicDim)


# **** shape arithmetic ****


def test_concat_split_and_tile_take_part_in_shape_arithmetic():
    b = GraphBuilder()
    x = b.input("x", "float32", ["n", "h"])
    shape = b.add("Shape", [x])
    joined = b.add("Concat", [shape, b.ints(7)], {"axis": 0})
    assert [str(e) for e in b.known(joined)] == ["n", "h", "7"]
    first, _ = b.add_node("Split", [joined, b.ints(2, 1)], outputs=2)
    assert [str(e) for e in b.known(first)] == ["n", "h"]
    assert [str(e) for e in b.known(b.add("Tile", [first, b.ints(2)]))] == ["n", "h", "n", "h"]


# **** values ****


def test_zero_size_inputs():
    empty = np.zeros((0, 3), dtype=np.float32)
    assert run("Concat", empty, np.ones((2, 3), dtype=np.float32), axis=0).shape == (2, 3)
    assert [p.shape for p in run("Split", empty, n_outputs=3, axis=1, num_outputs=3)] == [(0, 1)] * 3
    assert run("Tile", empty, np.array([2, 2])).shape == (0, 6)
    assert run("Tile", np.ones((2, 3)), np.array([0, 1])).shape == (0, 3)
    assert run("DepthToSpace", np.zeros((0, 4, 2, 2)), blocksize=2).shape == (0, 1, 4, 4)
    assert run("ReverseSequence", np.zeros((0, 4)), np.zeros(4, dtype=np.int64)).shape == (0, 4)
    assert run("Reshape", np.zeros((0, 4, 6)), np.array([0, -1, 2])).shape == (0, 12, 2)  # -1 beside a copied 0
    assert run("Compress", empty, np.array([True, False, True]), axis=1).shape == (0, 2)
    assert run("Trilu", np.zeros((0, 3))).shape == (0, 3)


def test_split_with_a_last_part_of_zero():
    parts = run("Split", np.arange(4), n_outputs=3, num_outputs=3)
    assert [p.tolist() for p in parts] == [[0, 1], [2, 3], []]


def test_trilu_with_a_diagonal_beyond_any_size():
    x = np.ones((2, 3))
    np.testing.assert_array_equal(run("Trilu", x, np.array(2**63 - 1)), np.zeros((2, 3)))
    np.testing.assert_array_equal(run("Trilu", x, np.array(-(2**63))), x)


def test_impossible_split_is_an_error_only_at_run_time():
    b = GraphBuilder()
    parts = b.add_node("Split", [b.constant(np.arange(5))], {"num_outputs": 4}, outputs=4)
    assert [p.type.shape[0] for p in parts[:3]] == [2, 2, 2]
    assert isinstance(parts[3].type.shape[0], SymbolicDim)


# **** errors ****


@pytest.mark.parametrize(
    ("name", "inputs", "attributes", "n_outputs", "message"),
    [
        ("Concat", [np.ones((2, 3)), np.ones((3, 4))], {"axis": 1}, 1, "differ in axis 0"),
        ("Concat", [np.ones((2, 3)), np.ones(3)], {"axis": 1}, 1, r"rank 2.*\[3\]"),
        ("Concat", [np.ones(3)], {"axis": 1}, 1, "axis 1 "),
        ("Split", [np.ones(5), np.array([2, 2])], {}, 2, "split .*5.* 4"),
        ("Split", [np.ones(5), np.array([2, 3])], {}, 3, "2 sizes for 3 outputs"),
        ("Split", [np.ones(5)], {"num_outputs": 4}, 4, "size 5 .*4 parts of 2"),
        ("Tile", [np.ones((2, 2)), np.array([2])], {}, 1, r"repeats \[2\] .*\[2, 2\]"),
        ("DepthToSpace", [np.ones((1, 6, 2, 2))], {"blocksize": 2}, 1, "6 channels"),
        ("SpaceToDepth", [np.ones((1, 1, 3, 2))], {"blocksize": 2}, 1, "height 3"),
        ("SpaceToDepth", [np.ones((1, 3, 2))], {"blocksize": 2}, 1, "rank 4"),
        ("ReverseSequence", [np.ones((2, 3)), np.array([1, 3, 0])], {}, 1, "from 0 to 2, are"),
        ("ReverseSequence", [np.ones((2, 3)), np.array([1])], {}, 1, "1 entries for a batch of 3"),
        ("Trilu", [np.ones(3)], {}, 1, "rank 2 or more"),
    ],
)  # fmt: skip
def test_errors_name_values_and_shapes(name, inputs, attributes, n_outputs, message):
    with pytest.raises(GraphError, match=message):
        run(name, *inputs, n_outputs=n_outputs, **attributes)


def test_compress_of_elements_that_do_not_exist_is_an_error():
    x = np.arange(3, dtype=np.float32)
    assert run("Compress", x, np.array([True, False, False, False]), axis=0).tolist() == [0]
    with pytest.raises(GraphError, match="selects index 4 of 3"):
        run("Compress", x, np.array([True, False, False, False, True]), axis=0)
