"""Backends with separate memory spaces: values that cross spaces are copied in both directions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from device_memory import Memory

from lite_core.backend import Buffer, Device, No, Options, Partition, Yes
from lite_core.builder import GraphBuilder
from lite_core.ir import Graph, Node
from lite_core.ops.evaluate import evaluate_graph
from lite_core.plugins import plugins_with
from lite_core.session import load

Array = np.ndarray[Any, Any]


class SecondDevice:
    """A backend with separate memory that runs some operators."""

    def __init__(self, name: str, ops: set[str], space: str = "") -> None:
        self.name = name
        self._ops = ops
        self.tensors = Memory(space or name)

    def probe(self) -> list[Device]:
        return [Device(self.name)]

    def supports(self, node: Node, device: Device) -> Yes | No:
        return Yes() if node.op in self._ops else No(f"{self.name} has no {node.op}")

    def compile(self, part: Partition, device: Device, options: Options) -> Run:
        return Run(part)

    def memory(self, device: Device) -> Memory:
        return self.tensors


class Run:
    scratch_bytes = 16

    def __init__(self, part: Partition) -> None:
        self._graph = part.graph

    def run(self, inputs: list[Buffer], outputs: list[Buffer], scratch: Buffer) -> None:
        assert scratch.data.content.nbytes == 16
        for buffer, result in zip(outputs, evaluate_graph(self._graph, [b.data.content for b in inputs])):
            (buffer.data or buffer.allocate(result.shape)).content[...] = result


def network() -> Graph:
    """Return a graph with a value used on three devices, outputs of each, a constant, and data-dependent sizes."""
    b = GraphBuilder("spread")
    x = b.input("x", "float32", ["n", 3])
    y = b.add("Neg", [x])
    z = b.add("Exp", [y])
    total = b.add("Add", [b.add("Mul", [y, z]), b.constant(np.ones(3, np.float32) / 3)])
    for name, value in (("y", y), ("z", z), ("total", total), ("same", x)):
        b.output(value, name)
    b.output(b.add("NonZero", [b.add("Relu", [y])]), "indices")
    return b.build()


X = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)


def test_a_printed_plan_shows_partitions_copies_and_arenas() -> None:
    b = GraphBuilder("chain")
    b.output(b.add("Exp", [b.add("Neg", [b.input("x", "float32", ["n", 3])])]), "y")
    session = load(b.build(), backend="a", plugins=plugins_with(SecondDevice("a", {"Neg", "Exp"})))
    plan = session.plan({"x": (2, 3)})
    assert str(plan).splitlines() == [
        "plan for %x: float32[2, 3]",
        "  0 IoCopy %x: float32[2, 3] from host to a",
        "  1 run    a/0: 2 node(s): Exp, Neg",
        "  2 IoCopy %y: float32[2, 3] from a to host",
        "  arena in a memory: 16 bytes",
    ]
    assert repr(plan) == str(plan)


@pytest.mark.parametrize("rows", [0, 1, 2])
@pytest.mark.parametrize("order", [["a", "b"], ["b", "a"], ["a"], ["b"]])
def test_values_cross_spaces_in_both_directions(order: list[str], rows: int) -> None:
    a, b = SecondDevice("a", {"Neg", "Mul", "Relu", "NonZero"}), SecondDevice("b", {"Exp", "Add", "Neg"})
    session = load(network(), backend=order, plugins=plugins_with(a, b))
    given = X[:rows].copy()
    expected = dict(zip(["y", "z", "total", "same", "indices"], evaluate_graph(network(), [given])))
    outputs = session.run({"x": given})
    assert set(order) <= set(session.devices)
    for name, array in outputs.items():
        np.testing.assert_array_equal(array, expected[name])
        assert not np.shares_memory(array, given)


def test_devices_that_share_a_space_do_not_copy() -> None:
    a, b = SecondDevice("a", {"Neg"}, space="shared"), SecondDevice("b", {"Exp"}, space="shared")
    graph = GraphBuilder("chain")
    x = graph.input("x", "float32", ["n", 3])
    graph.output(graph.add("Exp", [graph.add("Neg", [x])]), "y")
    session = load(graph.build(), backend=["a", "b"], fallback="never", plugins=plugins_with(a, b))
    np.testing.assert_allclose(session.run({"x": X})["y"], np.exp(-X), rtol=1e-6)
    assert (a.tensors.uploads, a.tensors.downloads) == (1, 0)
    assert (b.tensors.uploads, b.tensors.downloads) == (0, 1)
