"""Operators that move elements, as views and as copies, compared bit by bit with the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from levels import backend_for, machine_params, run_on, runnable_machines

from lite_core.backend import Options
from lite_core.builder import GraphBuilder
from lite_core.errors import ExecutionError
from lite_core.ir import Graph
from lite_core.ops.evaluate import evaluate_graph
from lite_cpu.kernels.elementwise import Elementwise
from lite_cpu.kernels.transpose import Transpose
from lite_cpu.lowering.compile import lower_graph
from lite_cpu.lowering.context import Lowering
from lite_cpu.machine import Machine

Array = np.ndarray[Any, Any]

machines = pytest.mark.parametrize("machine", machine_params())


def drawn(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Array:
    """Return random bits of an element type, which include NaN."""
    numbers = np.random.default_rng(seed).integers(0, 256, (*shape, np.dtype(dtype).itemsize), np.uint8)
    array: Array = numbers.view(dtype)[..., 0]
    return array


def one_node(op: str, arrays: list[Array], attributes: dict[str, Any] | None = None, constants: int = 0) -> Graph:
    """Return a graph of one node whose last ``constants`` inputs are constants."""
    b = GraphBuilder(op)
    first_constant = len(arrays) - constants
    values = [b.input(f"x{i}", str(a.dtype), a.shape) for i, a in enumerate(arrays[:first_constant])]
    values += [b.constant(a) for a in arrays[first_constant:]]
    b.output(b.add(op, values, attributes or {}), "y")
    return b.build()


def check(machine: Machine, graph: Graph, arrays: list[Array]) -> None:
    """Assert that the results are bitwise equal to those of the reference."""
    inputs = {v.name: a for v, a in zip(graph.inputs, arrays)}
    expected = evaluate_graph(graph, list(inputs.values()))
    actual = run_on(machine, graph, inputs, threads=2)
    for value, array in zip(graph.outputs, expected):
        assert actual[value.name].tobytes() == array.tobytes(), f"{value.name} of {graph.nodes[-1].op}"


def lowered(graph: Graph, machine: Machine) -> Lowering:
    """Lower a graph."""
    shared = backend_for(machine)._share()
    return lower_graph(graph, Options(threads=1), shared.library, shared.weights)


@machines
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "int64"])
@pytest.mark.parametrize(
    ("shape", "order"),
    [
        ((1, 33, 17, 19), (0, 2, 3, 1)),
        ((2, 40, 32, 64), (0, 3, 1, 2)),
        ((5, 16, 16, 3), (3, 0, 2, 1)),
        ((64, 64), (1, 0)),
        ((3, 1000), (1, 0)),
        ((1000, 3), (1, 0)),
        ((5, 2, 58), (0, 2, 1)),
    ],
)
def test_transposed_copies_have_the_same_bits(
    machine: Machine, dtype: str, shape: tuple[int, ...], order: tuple[int, ...]
) -> None:
    x = drawn(shape, dtype)
    check(machine, one_node("Transpose", [x], {"perm": order}), [x])


def test_change_of_layout_is_a_transpose_in_registers() -> None:
    x = np.zeros((1, 32, 20, 20), np.float32)
    (step,) = lowered(one_node("Transpose", [x], {"perm": (0, 2, 3, 1)}), runnable_machines()[-1]).steps
    assert step.kernel == Transpose(4, 0)


def test_a_channel_shuffle_stays_channels_last() -> None:
    b = GraphBuilder("shuffle")
    x = b.input("x", "float32", (1, 6, 5, 20))
    image = b.add("Transpose", [x], {"perm": (0, 3, 1, 2)})
    groups = b.add("Reshape", [image, b.constant(np.array([1, 2, 10, 6, 5]))])
    swapped = b.add("Transpose", [groups], {"perm": (0, 2, 1, 3, 4)})
    shuffled = b.add("Reshape", [swapped, b.constant(np.array([1, 20, 6, 5]))])
    b.output(b.add("Transpose", [b.add("Relu", [shuffled])], {"perm": (0, 2, 3, 1)}), "y")
    shuffle, relu = lowered(b.build(), runnable_machines()[-1]).steps
    assert shuffle.kernel == Transpose(4, 1, thin=True, interleave=2)
    assert isinstance(relu.kernel, Elementwise)


def test_a_contiguous_permutation_copies_rows() -> None:
    x = np.zeros((1, 12, 20, 32), np.float32)
    (step,) = lowered(one_node("Transpose", [x], {"perm": (0, 2, 1, 3)}), runnable_machines()[-1]).steps
    assert isinstance(step.kernel, Elementwise)
    assert not step.kernel.strided


@machines
@pytest.mark.parametrize("mode", ["reflect", "wrap"])
@pytest.mark.parametrize(
    ("shape", "pads"), [((4,), (9, 11)), ((3, 4), (-1, 7, -1, 5)), ((1, 1), (3, 3, 3, 3))], ids=str
)
def test_padding_longer_than_the_axis(
    machine: Machine, mode: str, shape: tuple[int, ...], pads: tuple[int, ...]
) -> None:
    x = drawn(shape, "float32")
    check(machine, one_node("Pad", [x, np.array(pads)], {"mode": mode}, constants=1), [x])


@machines
@pytest.mark.parametrize("constants", [0, 1], ids=["run-time", "constant"])
def test_gathers_at_every_level(machine: Machine, constants: int) -> None:
    x = drawn((5, 6, 7), "float32")
    draw = np.random.default_rng(1)
    cases: list[tuple[str, Array, dict[str, Any]]] = [
        ("Gather", draw.integers(-6, 6, (3, 2)), {"axis": 1}),
        ("GatherElements", draw.integers(-6, 6, (5, 9, 7)), {"axis": 1}),
        ("GatherND", draw.integers(-6, 6, (5, 3, 1)), {"batch_dims": 1}),
    ]
    for op, indices, attributes in cases:
        check(machine, one_node(op, [x, indices], attributes, constants), [x, indices][: 2 - constants])


@machines
@pytest.mark.parametrize("reduction", ["none", "add"])
def test_scatters_update_in_order(machine: Machine, reduction: str) -> None:
    draw = np.random.default_rng(2)
    x = draw.integers(0, 99, (6, 7, 300)).astype(np.int32)
    rows = np.array([[0, 3], [5, -1], [0, 3]])
    updates = draw.integers(0, 99, (3, 300)).astype(np.int32)
    check(machine, one_node("ScatterND", [x, rows, updates], {"reduction": reduction}), [x, rows, updates])
    lines = draw.integers(-7, 7, (6, 9, 300))
    many = draw.integers(0, 99, lines.shape).astype(np.int32)
    attributes = {"reduction": reduction, "axis": 1}
    check(machine, one_node("ScatterElements", [x, lines, many], attributes), [x, lines, many])


def test_gather_of_evenly_spaced_constants_is_a_view() -> None:
    b = GraphBuilder("views")
    x = b.input("x", "float32", (2, 8, 3))
    even = b.add("Gather", [x, b.constant(np.array([6, 4, 2]))], {"axis": 1})
    b.output(b.add("Relu", [even]), "y")
    assert len(lowered(b.build(), runnable_machines()[-1]).steps) == 1


@pytest.mark.parametrize("op", ["Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND"])
@pytest.mark.parametrize("index", [5, -6])
def test_index_out_of_range_makes_the_run_fail(op: str, index: int) -> None:
    b = GraphBuilder("indices")
    x, i = b.input("x", "float32", (5, 5)), b.input("i", "int64", (1, 1))
    scatters = (
        [b.constant(np.ones((1, 1) if op == "ScatterElements" else (1, 5), np.float32))] if "Scatter" in op else []
    )
    b.output(b.add(op, [x, i, *scatters], name="look"), "y")
    graph = b.build()
    inputs = {"x": np.zeros((5, 5), np.float32), "i": np.array([[index]])}
    for machine in runnable_machines():
        run_on(machine, graph, {**inputs, "i": np.array([[-5]])})
        with pytest.raises(ExecutionError, match=rf"'look' .*index {index} is out of range for a dimension of 5"):
            run_on(machine, graph, inputs)
