"""Copy elision for Concat and for outputs that are views, and copies that are shared by readers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from opencl_agreement import KINDS, labels_of, normal, run_for
from tiers import in_part

from lite_core.builder import GraphBuilder
from lite_core.ir import Graph, Value
from lite_core.ops.evaluate import evaluate_graph

Array = np.ndarray[Any, Any]


def conv(builder: GraphBuilder, x: Value, outputs: int, taps: int = 1) -> Value:
    """Add a convolution that keeps the size of images."""
    weights = builder.constant(normal(outputs, int(x.shape[1]), taps, taps, seed=outputs) / 4)
    return builder.add("Conv", [x, weights], {"pads": (taps // 2,) * 4})


def concat(builder: GraphBuilder, *values: Value, axis: int = 1) -> Value:
    return builder.add("Concat", values, {"axis": axis})


def check(graph: Graph, kind: str = "CPU") -> int:
    """Assert that results are right, and return the number of copies."""
    inputs = [normal(*v.shape, seed=i) for i, v in enumerate(graph.inputs)]
    for actual, expected in zip(run_for(kind, graph, inputs), evaluate_graph(graph, inputs)):
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-5 * max(1, np.abs(expected).max(initial=0)))
    return sum(label == "copy" for label in labels_of(kind, graph))


@pytest.mark.parametrize("kind", in_part("opencl", ["CPU", "GPU"], ["CPU"]))
def test_convolutions_write_directly_to_concat_result(kind: str) -> None:
    builder = GraphBuilder("fire")
    x = builder.add("Relu", [conv(builder, builder.input("x", "float32", (1, 3, 9, 8)), 4)])
    parts = [builder.add("Relu", [conv(builder, x, n, taps)]) for n, taps in ((5, 1), (6, 3), (7, 1))]
    builder.output(builder.add("Neg", [concat(builder, *parts)]), "y")
    assert check(builder.build(), kind) == 0


@pytest.mark.full("opencl")
def test_concat_writes_directly_to_partition_output() -> None:
    builder = GraphBuilder("output")
    x = builder.input("x", "float32", (1, 3, 9, 8))
    builder.output(concat(builder, conv(builder, x, 4), builder.add("Exp", [x])), "y")
    assert check(builder.build()) == 0


@pytest.mark.full("opencl")
def test_nested_concats_need_no_copies() -> None:
    builder = GraphBuilder("dense net")
    joined = conv(builder, builder.input("x", "float32", (1, 3, 9, 8)), 4)
    for growth in (3, 5, 2):
        joined = concat(builder, joined, builder.add("Relu", [conv(builder, joined, growth)]))
    builder.output(joined, "y")
    assert check(builder.build()) == 0


@pytest.mark.full("opencl")
@pytest.mark.parametrize(("axis", "copies"), [(0, 0), (1, 1), (2, 1), (-1, 2)])
def test_only_kernels_with_strides_write_to_strided_parts(axis: int, copies: int) -> None:
    builder = GraphBuilder("strided")
    x = builder.input("x", "float32", (2, 3, 4, 4))
    unary, pooled = builder.add("Tanh", [x]), builder.add("MaxPool", [x], {"kernel_shape": (1, 1)})
    normal_rows = builder.add("Mul", [builder.add("Softmax", [x], {"axis": 1}), x])
    builder.output(concat(builder, unary, pooled, normal_rows, axis=axis), "y")
    assert check(builder.build()) == copies


@pytest.mark.full("opencl")
def test_concat_inputs_with_other_readers_are_elided_only_if_dense() -> None:
    for batch, copies in ((1, 0), (2, 2)):
        builder = GraphBuilder("readers")
        x = builder.add("Tanh", [builder.input("x", "float32", (batch, 3, 9, 8))])
        y = conv(builder, x, 4, taps=3)
        builder.output(builder.add("Neg", [concat(builder, x, y)]), "y0")
        builder.output(builder.add("Mul", [y, y]), "y1")
        assert check(builder.build()) == copies


@pytest.mark.full("opencl")
def test_concat_inputs_that_have_a_destination_are_copied() -> None:
    builder = GraphBuilder("several destinations")
    x = builder.input("x", "float32", (1, 3, 9, 8))
    y, z = builder.add("Tanh", [x]), builder.add("Exp", [x])
    builder.output(z, "z")
    builder.output(builder.add("Neg", [concat(builder, y, x, y, z)]), "joined")
    builder.output(builder.add("Abs", [concat(builder, y, builder.add("Cos", [x]), axis=2)]), "again")
    # Copied are the input, the output, the repeated part, and the part that belongs to the other Concat.
    assert check(builder.build()) == 4


@pytest.mark.full("opencl")
@KINDS
def test_destinations_are_reserved_through_views(kind: str) -> None:
    builder = GraphBuilder("heads")
    x = builder.input("x", "float32", (1, 3, 4, 4))
    parts = []
    for outputs in (6, 2):
        y = builder.add("Transpose", [builder.add("Sigmoid", [conv(builder, x, outputs)])], {"perm": (0, 2, 3, 1)})
        parts.append(builder.add("Reshape", [y, builder.constant(np.array([1, -1, 2]))]))
    builder.output(concat(builder, *parts), "y")
    y = builder.add("Tanh", [builder.input("z", "float32", (4, 6))])
    builder.output(builder.add("Unsqueeze", [builder.add("Transpose", [y]), builder.constant(np.array([0]))]), "z0")
    # Convolutions only write dense planes; the element-wise kernel writes to the transposed view.
    assert check(builder.build(), kind) == 2


@pytest.mark.full("opencl")
@pytest.mark.parametrize(("batch", "copies"), [(1, 1), (2, 2)])
def test_concat_writes_in_shuffled_channel_order(batch: int, copies: int) -> None:
    builder = GraphBuilder("shuffle net")
    x = builder.add("Relu", [builder.input("x", "float32", (batch, 6, 4, 5))])
    for _ in range(2):
        left, right = builder.add_node("Split", [x], {"axis": 1}, outputs=2)
        joined = concat(builder, left, builder.add("Relu", [conv(builder, right, 3)]))
        split = builder.add("Reshape", [joined, builder.constant(np.array([batch, 2, 3, 4, 5]))])
        turned = builder.add("Transpose", [split], {"perm": (0, 2, 1, 3, 4)})
        x = builder.add("Reshape", [turned, builder.constant(np.array([batch, 6, 4, 5]))])
    builder.output(x, "y")
    # Each unit copies the half that bypasses the convolution and, for several images, the convolution's result.
    assert check(builder.build()) == 2 * copies


def test_concat_of_known_values_needs_no_destination() -> None:
    builder = GraphBuilder("shapes")
    x = builder.input("x", "float32", (2, 3, 4))
    shape = builder.add("Shape", [x], {"start": 0, "end": 1})
    sizes = builder.add("Concat", [shape, builder.constant(np.array([-1]))], {"axis": 0})
    builder.output(builder.add("Relu", [builder.add("Reshape", [x, sizes])]), "y")
    graph = builder.build()
    assert labels_of("CPU", graph) == ["elementwise"]
    assert check(graph) == 0


@pytest.mark.full("opencl")
def test_dense_copy_is_shared_by_all_readers() -> None:
    builder = GraphBuilder("readers")
    x = builder.add("Transpose", [builder.input("x", "float32", (1, 9, 8, 3))], {"perm": (0, 3, 1, 2)})
    for number, op in enumerate(("MaxPool", "AveragePool", "LpPool")):
        builder.output(builder.add(op, [x], {"kernel_shape": (3, 3)}), f"y{number}")
    assert check(builder.build()) == 1


@pytest.mark.full("opencl")
@pytest.mark.parametrize("seed", range(12))
def test_random_graphs_with_concats(seed: int) -> None:
    """Values are read any number of times: as a part of a Concat, in a view, by a kernel, or as an output."""
    random = np.random.default_rng(seed)
    builder, batch = GraphBuilder("random"), int(random.integers(1, 3))
    values = [builder.input(f"x{i}", "float32", (batch, 4, 4, 4)) for i in range(2)]

    def drawn() -> Value:
        return values[int(random.integers(max(0, len(values) - 5), len(values)))]

    for _ in range(14):
        x = drawn()
        kind = int(random.integers(7))
        if kind <= 2:
            axis = int(random.integers(1, 4))
            fitting = [
                v for v in values[-6:] if all(m == n for i, (m, n) in enumerate(zip(v.shape, x.shape)) if i != axis)
            ]
            parts = [fitting[int(random.integers(len(fitting)))] for _ in range(int(random.integers(1, 3)))]
            values.append(concat(builder, x, *parts, axis=axis))
        elif kind == 3:
            values.append(builder.add("Tanh", [x]))
        elif kind == 4:
            values.append(conv(builder, x, int(random.integers(2, 5)), taps=3))
        elif kind == 5:
            values.append(builder.add("Transpose", [x], {"perm": tuple(map(int, (0, *random.permutation([1, 2, 3]))))}))
        else:
            half = builder.constant(np.array([batch, 2, -1, int(x.shape[3])]))
            values.append(builder.add("Reshape", [x, half]) if int(x.shape[1]) % 2 == 0 else builder.add("Relu", [x]))
    for number, value in enumerate(dict.fromkeys([values[-1], drawn(), drawn()])):
        if value not in values[:2]:
            builder.output(value, f"y{number}")
    check(builder.build())
