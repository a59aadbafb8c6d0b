"""Lowering beyond single operators: values known before the run, and operands of which only the type is used."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from agreement import MACHINES, Array, normal
from levels import run_on

from lite_core import GraphBuilder
from lite_core.ir import DType, Graph
from lite_core.ops.evaluate import evaluate_graph
from lite_cpu.machine import Machine


def assert_agrees(machine: Machine, graph: Graph, inputs: Mapping[str, Array]) -> None:
    """Run a graph without passes, and compare it with its reference."""
    found = run_on(machine, graph, dict(inputs), optimize=False)
    for value, expected in zip(graph.outputs, evaluate_graph(graph, list(inputs.values()))):
        assert found[value.name].dtype == expected.dtype
        np.testing.assert_allclose(found[value.name], expected, rtol=1e-6, atol=1e-6)


@MACHINES
@pytest.mark.parametrize("is_output", [False, True])
def test_concat_of_values_known_before_the_run(machine: Machine, is_output: bool) -> None:
    """The sizes follow from the type of ``x``, but a destination in the Concat is reserved before they are computed."""
    b = GraphBuilder("sizes")
    x = b.input("x", "float32", [2, 3])
    sizes = b.add("Cast", [b.add("Shape", [x])], {"to": DType.FLOAT32})
    joined = b.add("Concat", [sizes, b.add("Neg", [sizes])], {"axis": 0})
    b.output(joined if is_output else b.add("Add", [joined, b.add("ReduceMax", [x])]))
    assert_agrees(machine, b.build(), {"x": normal(2, 3)})


@MACHINES
def test_castlike_ignores_the_shape_of_its_second_operand(machine: Machine) -> None:
    b = GraphBuilder("like")
    x, like = b.input("x", "float32", [3, 2]), b.input("like", "int32", [3, 2, 2])
    whole = b.add("CastLike", [b.add("Neg", [x]), b.add("Abs", [like])])
    b.output(b.add("Relu", [whole]))
    assert_agrees(machine, b.build(), {"x": normal(3, 2), "like": np.ones((3, 2, 2), np.int32)})
