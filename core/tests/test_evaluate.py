"""Errors of references and inference functions, and references that write their inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lite_core import ops
from lite_core.builder import GraphBuilder
from lite_core.errors import ExecutionError, GraphError, LiteError, UnsupportedOperatorError
from lite_core.ir import Graph
from lite_core.ops.evaluate import evaluate_graph
from lite_core.ops.inference import same_as_first

F32 = np.float32


def _raise(error: Exception) -> Any:
    raise error


def _in_place(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    x += 1
    return x


REFERENCES = {
    "KeyError": lambda x: _raise(KeyError("lost")),
    "Unsupported": lambda x: _raise(UnsupportedOperatorError("the plugin", [])),
    "InPlace": _in_place,
    "Uninferred": lambda x: x,
}

for _name, _reference in REFERENCES.items():
    _infer = (lambda inference: _raise(ValueError("no idea"))) if _name == "Uninferred" else same_as_first
    ops.add(
        ops.define(_reference, _name, "X: T -> Y: T", types={"T": ["float32"]}, infer=_infer, domain="test_evaluate")
    )


def graph_of(op: str) -> Graph:
    b = GraphBuilder()
    b.output(b.add(op, [b.constant(np.ones(2, F32), "weights")], domain="test_evaluate"), "y")
    return b.build()


@pytest.mark.parametrize(
    ("op", "message"),
    [
        ("KeyError", "test_evaluate.KeyError.* KeyError: .lost"),
        ("Unsupported", "test_evaluate.Unsupported.*: the plugin"),
        ("InPlace", "test_evaluate.InPlace.* read-only"),
    ],
)
def test_error_of_a_reference_names_the_node(op: str, message: str) -> None:
    graph = graph_of(op)
    with pytest.raises(ExecutionError, match=message) as caught:
        evaluate_graph(graph, [])
    assert isinstance(caught.value.__cause__, (LiteError, KeyError, ValueError))
    assert [a.tolist() for a in graph.constants.values()] == [[1, 1]]


def test_error_of_inference_names_the_node() -> None:
    with pytest.raises(GraphError, match=r"'uninferred'.*inference.*test_evaluate.Uninferred.*ValueError"):
        graph_of("Uninferred")


def test_references_cannot_write_their_inputs() -> None:
    b = GraphBuilder()
    b.output(b.add("InPlace", [b.input("x", "float32", [2])], domain="test_evaluate"), "y")
    given = np.zeros(2, F32)
    with pytest.raises(ExecutionError, match="read-only"):
        evaluate_graph(b.build(), [given])
    assert given.flags.writeable
    assert given.tolist() == [0, 0]


@pytest.mark.parametrize("trips", [0, 1])
def test_empty_scan_outputs_have_the_shape_of_an_iteration(trips: int) -> None:
    b = GraphBuilder()
    x, count = b.input("x", "float32", ["n", 4]), b.input("count", "int64", [])
    body = GraphBuilder("body", outer=b)
    body.input("i", "int64", [])
    condition, state = body.input("condition", "bool", []), body.input("state", "float32", ["q", 4])
    for value in (condition, body.add("Add", [state, x]), body.add("Relu", [state])):
        body.output(value)
    for value in b.add_node("Loop", [count, None, x], {"body": body.build()}, outputs=2):
        b.output(value)
    found = evaluate_graph(b.build(), [np.ones((2, 4), F32), np.array(trips)])
    assert [a.shape for a in found] == [(2, 4), (trips, 2, 4)]
