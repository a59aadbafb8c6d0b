"""Helpers for authors of backends: windows, numbers, known values, strides and references; and their page."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lite_core as lite
from lite_core import ops
from lite_core.errors import GraphError
from lite_core.ir import Graph, Node
from lite_core.ops.evaluate import evaluate_graph, evaluate_node
from lite_core.ops.helpers import (
    attributes_of,
    broadcast_strides,
    data_dependent_nodes,
    dense_strides,
    elements_in_windows,
    find_known_values,
    fold_constants,
    graph_digest,
    merge_loops,
    number_inputs,
    reference,
    unknown_numbers,
    windows_of,
)

PAGE = Path(__file__).parents[2] / "docs/author-helpers.md"


def test_the_examples_of_the_page() -> None:
    examples = "\n".join(re.findall(r"```pycon\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL))
    test = doctest.DocTestParser().get_doctest(examples, {}, PAGE.name, str(PAGE), 0)
    found: list[str] = []
    result = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=found.append)
    assert result.attempted > 20
    assert not result.failed, "".join(found)


# **** windows ****


def node_of(op: str, *shapes: tuple[int | str, ...], dtype: str = "float32", **attributes: Any) -> Node:
    b = lite.GraphBuilder(op)
    inputs = [b.input(f"x{i}", dtype, shape) for i, shape in enumerate(shapes)]
    b.output(b.add(op, inputs, attributes), "y")
    return b.build().nodes[0]


WINDOWED = [
    ("Conv", (2, 3, 11, 14), (4, 3, 3, 2), {"strides": (2, 3), "dilations": (2, 1), "pads": (1, 0, 2, 3)}),
    ("Conv", (2, 3, 11, 14), (4, 3, 3, 2), {"strides": (2, 3), "auto_pad": "SAME_UPPER"}),
    ("Conv", (2, 3, 11, 14), (4, 3, 4, 4), {"strides": (2, 3), "auto_pad": "SAME_LOWER"}),
    ("Conv", (2, 3, 11, 14), (4, 3, 4, 4), {"auto_pad": "VALID"}),
    ("ConvTranspose", (1, 3, 5), (3, 2, 4), {"strides": (3,), "pads": (1, 2), "output_padding": (1,)}),
    ("ConvTranspose", (1, 3, 5), (3, 2, 4), {"strides": (3,), "output_shape": (13,)}),
    ("ConvTranspose", (1, 3, 5), (3, 2, 4), {"strides": (3,), "auto_pad": "SAME_LOWER"}),
    ("MaxPool", (1, 3, 10, 9), None, {"kernel_shape": (3, 2), "strides": (2, 2), "ceil_mode": 1}),
    ("MaxPool", (1, 3, 10), None, {"kernel_shape": (3,), "strides": (4,), "dilations": (2,), "pads": (1, 1)}),
    ("LpPool", (1, 3, 10), None, {"kernel_shape": (3,), "strides": (4,), "auto_pad": "SAME_UPPER"}),
    ("AveragePool", (1, 3, 10), None, {"kernel_shape": (3,), "strides": (2,), "ceil_mode": 1, "pads": (1, 1)}),
    ("GlobalMaxPool", (1, 3, 10, 7), None, {}),
]


@pytest.mark.parametrize(("op", "x", "w", "attributes"), WINDOWED)
def test_windows_cover_the_output(
    op: str, x: tuple[int, ...], w: tuple[int, ...] | None, attributes: dict[str, Any]
) -> None:
    """Shape inference agrees on the output's sizes, and explicit pads give the same results as those of the node."""
    shapes = (x,) if w is None else (x, w)
    node = node_of(op, *shapes, **attributes)
    axes = windows_of(node)
    assert node.outputs[0] is not None
    sizes = tuple(a.size if op == "ConvTranspose" else a.count for a in axes)
    assert node.outputs[0].shape[2:] == sizes
    if op != "ConvTranspose":
        floors = [(a.size + a.begin + a.fitting_end - a.extent) // a.stride + 1 for a in axes]
        assert floors == [a.count for a in axes]
    if op in ("Conv", "MaxPool", "LpPool", "AveragePool") and not attributes.get("ceil_mode"):
        pads = (*(a.begin for a in axes), *(a.end for a in axes))
        explicit = node_of(op, *shapes, **{**attributes, "auto_pad": "NOTSET", "pads": pads})
        arrays = [np.random.default_rng(0).standard_normal(shape).astype(np.float32) for shape in shapes]
        np.testing.assert_array_equal(evaluate_node(node, arrays)[0], evaluate_node(explicit, arrays)[0])


def test_windows_of_integer_and_deformable_convolutions() -> None:
    b = lite.GraphBuilder("quantized")
    x, w = b.input("x", "uint8", [1, 2, 9]), b.input("w", "uint8", [3, 2, 4])
    scale, zero = b.constant(np.float32(1)), b.constant(np.uint8(0))
    b.output(b.add("QLinearConv", [x, scale, zero, w, scale, zero, scale, zero], {"strides": (2,)}), "y")
    b.output(b.add("ConvInteger", [x, w]), "z")
    quantized, integer = b.build().nodes
    assert [(a.kernel, a.count) for a in windows_of(quantized)] == [(4, 3)]
    assert [(a.kernel, a.count) for a in windows_of(integer)] == [(4, 6)]
    shapes = ((1, 2, 5, 5), (3, 2, 2, 2), (1, 8, 5, 5))
    deformable = node_of("DeformConv", *shapes, kernel_shape=(2, 2), pads=(0, 0, 1, 1))
    assert [(a.kernel, a.end, a.count) for a in windows_of(deformable)] == [(2, 1, 5), (2, 1, 5)]


@pytest.mark.parametrize("include", [False, True])
@pytest.mark.parametrize("attributes", [attributes for op, _, _, attributes in WINDOWED if op == "AveragePool"])
def test_divisors_of_averages(attributes: dict[str, Any], include: bool) -> None:
    """The average of ones is the share of the window that is inside the input."""
    node = node_of("AveragePool", (1, 1, 10), **attributes, count_include_pad=int(include))
    (average,) = evaluate_node(node, [np.ones((1, 1, 10), np.float32)])
    inside, divisors = elements_in_windows(windows_of(node), False), elements_in_windows(windows_of(node), include)
    np.testing.assert_allclose(average[0, 0], inside / divisors, rtol=1e-6)


def test_nodes_without_windows() -> None:
    with pytest.raises(GraphError, match="Relu.*the operator has no windows; those with windows are AveragePool"):
        windows_of(node_of("Relu", (2, 3)))
    with pytest.raises(GraphError, match="input 0 must have a static shape to have windows"):
        windows_of(node_of("MaxPool", ("n", 3, "w"), kernel_shape=(2,)))


# **** numbers and known values ****


def test_numbers_that_are_left_out_are_not_listed() -> None:
    b = lite.GraphBuilder("slices")
    x, ends, steps = b.input("x", "float32", [4]), b.input("ends", "int64", [1]), b.ints(2)
    b.output(b.add("Slice", [x, b.ints(0), ends, None, steps]), "y")
    graph = b.build()
    (node,) = graph.nodes
    assert number_inputs(node) == (1, 2, 4)
    assert unknown_numbers(node, graph.constants) == [ends]
    assert data_dependent_nodes(graph) == [node]


def test_an_operator_of_a_plugin_declares_its_numbers() -> None:
    definition = ops.define(
        lambda x, times: np.tile(x, int(times)),
        "Repeat",
        "x: float32, times: int64 -> y: float32",
        infer=lambda inference: [None],
        domain="test_helpers",
        numbers=["times"],
    )
    ops.add(definition)
    b = lite.GraphBuilder("repeats")
    x, times = b.input("x", "float32", [4]), b.input("times", "int64", [])
    b.output(b.add("Repeat", [x, times], domain="test_helpers"), "y")
    assert number_inputs(b.build().nodes[0]) == (1,)


def folding_graph() -> Graph:
    b = lite.GraphBuilder("folding")
    x = b.input("x", "float32", [2, 3])
    rows = b.add("Gather", [b.add("Shape", [x]), b.constant(np.array([0]))])
    b.output(rows, "rows")
    wide = b.add("Expand", [b.constant(np.float32([1])), b.add("Concat", [rows, b.ints(3)], {"axis": 0})])
    noise = b.add("RandomUniform", [], {"shape": (2, 3)})
    b.output(b.add("Sum", [x, wide, noise]), "y")
    return b.build()


def test_folding() -> None:
    graph = folding_graph()
    before = str(graph)
    folded = fold_constants(graph)
    assert [node.op for node in folded.nodes] == ["RandomUniform", "Sum"]
    assert str(graph) == before
    assert folded.inputs == graph.inputs
    assert folded.outputs == graph.outputs
    assert folded.constants[graph.outputs[0]].tolist() == [2]
    assert set(folded.constants) <= find_known_values(graph)
    ops.verify(folded)
    rows, _ = evaluate_graph(folded, [np.ones((2, 3), np.float32)])
    assert rows.tolist() == [2]


def test_large_results_are_not_folded() -> None:
    folded = fold_constants(folding_graph(), most_bytes=16)
    assert [node.op for node in folded.nodes] == ["Expand", "RandomUniform", "Sum"]


def test_a_node_whose_reference_fails_is_not_folded() -> None:
    b = lite.GraphBuilder("failing")
    half, training = b.constant(np.float32(0.5)), b.constant(np.True_)
    dropped = b.add("Dropout", [b.constant(np.ones(3, np.float32)), half, training])
    b.output(b.add("Add", [b.input("x", "float32", [3]), dropped]), "y")
    assert [node.op for node in fold_constants(b.build()).nodes] == ["Dropout", "Add"]


# **** strides ****


@pytest.mark.parametrize("shapes", [[(2, 3, 4)], [(2, 3, 4), (3, 1)], [(1,), (5, 1, 4), (5, 6, 1)], [(), ()], [(0, 3)]])
def test_strides_read_what_numpy_broadcasts(shapes: list[tuple[int, ...]]) -> None:
    result = np.broadcast_shapes(*shapes)
    arrays = [np.arange(int(np.prod(shape))).reshape(shape) for shape in shapes]
    strides = [broadcast_strides(shape, result) for shape in shapes]
    sizes, merged = merge_loops(result, strides)
    for array, own, loops in zip(arrays, strides, merged):
        flat = array.reshape(-1)
        for walked, steps in ((result, own), (sizes, loops)):
            if array.size:
                positions = sum(
                    (np.arange(n) * s).reshape(-1, *[1] * (len(walked) - i - 1))
                    for i, (n, s) in enumerate(zip(walked, steps))
                )
                np.testing.assert_array_equal(
                    flat[np.broadcast_to(positions, walked)].reshape(-1), np.broadcast_to(array, result).reshape(-1)
                )


def test_strides_in_another_order() -> None:
    assert dense_strides((2, 3, 4, 5), (0, 2, 3, 1)) == (60, 1, 15, 3)
    assert broadcast_strides((3, 1), (2, 3, 4), (10, 7)) == (0, 10, 0)
    assert merge_loops((2, 3, 4), [dense_strides((2, 3, 4))] * 2) == ([24], [[1], [1]])
    assert merge_loops((1, 1), [(1, 1), (0, 0)]) == ([1], [[1], [0]])


# **** attributes and references ****


def test_attributes() -> None:
    node = node_of("Conv", (1, 3, 8), (4, 3, 3), strides=(2,))
    assert attributes_of(node)["strides"] == (2,)
    assert attributes_of(node)["group"] == 1
    assert attributes_of(node)["pads"] is None
    with pytest.raises(GraphError, match="Nonsense"):
        attributes_of(Node("Nonsense", (), ()))


def test_references() -> None:
    assert reference("Relu")(-1.5) == 0
    assert reference("Mod")(7, -3) == -2
    assert reference("And")(True, False) is False
    assert reference("Clip")(3.0, None, 2.0) == 2.0
    assert reference("Swish", domain="lite")(np.zeros(2, np.float32)).dtype == np.float32
    assert reference("Cast", to="int8")(200.7) == -56
    assert reference("Transpose", perm=[1, 0])(np.zeros((2, 3))).shape == (3, 2)
    with pytest.raises(GraphError, match="the opset has no operator"):
        reference("Nonsense")
    with pytest.raises(GraphError, match="Gelu has no attribute 'kind'"):
        reference("Gelu", kind="tanh")(1.0)
    with pytest.raises(GraphError, match="Relu takes 1 inputs, has 2"):
        reference("Relu")(1.0, 2.0)


# **** digests ****


def written(*, op: str = "Sub", exchanged: bool = False, name: str = "x", axes: tuple[int, ...] = (1,)) -> Graph:
    b = lite.GraphBuilder("written")
    operands = [b.input(name, "float32", ("n", 8)), b.input("other", "float32", ("n", 8))]
    difference = b.add(op, operands[::-1] if exchanged else operands)
    b.output(b.add("ReduceSum", [difference, b.constant(np.array(axes))]), "y")
    return b.build()


def branching(op: str) -> Graph:
    b = lite.GraphBuilder("branching")
    x = b.input("x", "float32", (4,))
    branches = {}
    for name, chosen in (("then_branch", "Neg"), ("else_branch", op)):
        inner = lite.GraphBuilder(name, outer=b)
        inner.output(inner.add(chosen, [x]))
        branches[name] = inner.graph
    b.output(b.add("If", [b.input("c", "bool", ())], branches), "y")
    return b.build()


def test_equal_programs_have_one_digest() -> None:
    assert graph_digest(written()) == graph_digest(written(name="another"))
    with_symbols, without = written(), written()
    (between,) = without.nodes[0].outputs
    assert between is not None
    between.type = between.type.with_shape((2, 8))
    assert graph_digest(with_symbols) == graph_digest(without)
    assert graph_digest(branching("Abs")) == graph_digest(branching("Abs"))


def test_other_programs_have_other_digests() -> None:
    graphs = [written(), written(op="Mul"), written(exchanged=True), written(axes=(0,))]
    graphs += [branching("Abs"), branching("Relu")]
    assert len({graph_digest(graph) for graph in graphs}) == len(graphs)
