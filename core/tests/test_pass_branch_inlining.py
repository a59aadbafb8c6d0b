"""branch_inlining: an If with a known condition becomes its branch, also if sizes decide the condition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lite_core.builder import GraphBuilder
from lite_core.errors import LiteError
from lite_core.ir import Graph, Value
from lite_core.passes.branch_inlining import BranchInlining, inline_decided_branches
from lite_core.passes.identity_elimination import IdentityElimination
from lite_core.session import load
from lite_tools.checking import run_passes_checked

Array = np.ndarray[Any, Any]
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def choose(b: GraphBuilder, condition: Value, x: Value) -> Value:
    """Add an If that returns ``x * 2`` or ``x``."""
    then, other = GraphBuilder("then", outer=b), GraphBuilder("else", outer=b)
    then.output(then.add("Mul", [x, then.constant(np.float32(2))]))
    other.output(other.add("Identity", [x]))
    return b.add("If", [condition], {"then_branch": then.build(), "else_branch": other.build()})


def chosen(truth: bool) -> Graph:
    b = GraphBuilder()
    x = b.input("x", "float32", ["n", 3])
    b.output(b.add("Add", [choose(b, b.constant(np.array(truth)), x), x]), "y")
    return b.build()


def squeezed(size_of_one: int = 1) -> Graph:
    """Return ``x.squeeze(0)`` as exporters write it for an unknown size: an If in an If, followed by a sum."""
    b = GraphBuilder()
    x = b.input("x", "float32", ["n", 3])
    size = b.add("Gather", [b.add("Shape", [x]), b.ints(0)], {"axis": 0})
    condition = b.add("Equal", [size, b.ints(size_of_one)])
    then, other = GraphBuilder("then", outer=b), GraphBuilder("else", outer=b)
    row = then.add("Squeeze", [x, then.ints(0)])
    then.output(choose(then, then.add("Equal", [size, then.ints(size_of_one)]), row))
    other.output(other.add("Identity", [x]))
    y = b.add("If", [condition], {"then_branch": then.build(), "else_branch": other.build()})
    b.output(b.add("Add", [y, b.constant(np.ones(3, np.float32))]), "y")
    return b.build()


@pytest.mark.parametrize("truth", [True, False])
def test_if_with_a_known_condition_becomes_its_branch(truth: bool) -> None:
    graph, _ = run_passes_checked(chosen(truth), [BranchInlining(), IdentityElimination()])
    assert graph.op_counts() == ({"Mul": 1, "Add": 1} if truth else {"Add": 1})


def test_if_with_an_unknown_condition_stays() -> None:
    b = GraphBuilder()
    x, condition = b.input("x", "float32", [3]), b.input("condition", "bool", [])
    b.output(choose(b, condition, x), "y")
    assert not BranchInlining()(b.build()).changed
    assert inline_decided_branches(b.build()) is None


@pytest.mark.parametrize(("rows", "shape"), [(1, (3,)), (2, (2, 3))])
def test_sizes_decide_branches_within_branches(rows: int, shape: tuple[int, ...]) -> None:
    graph = squeezed()
    graph.inputs[0].type = graph.inputs[0].type.with_shape((rows, 3))
    decided = inline_decided_branches(graph)
    assert decided is not None
    assert "If" in graph.op_counts(), "the graph itself is not changed"
    assert set(decided.op_counts()) <= {"Squeeze", "Mul", "Add"}
    assert decided.outputs[0].type.shape == shape


@pytest.mark.parametrize("rows", [1, 2])
def test_session_runs_the_branches_that_sizes_decide(rows: int) -> None:
    session = load(squeezed(), backend="host")
    for taken in (rows, 3 - rows, rows):
        (y,) = session.run({"x": X[:taken]}).values()
        np.testing.assert_array_equal(y, X[0] * 2 + 1 if taken == 1 else X + 1)
    assert "If" not in {a.op for a in session.assignment()}


def rates() -> Graph:
    """Return a graph with a branch for inputs of 3 elements and one for 5; another input selects the branch."""
    b = GraphBuilder()
    x, is_long = b.input("x", "float32", ["n"]), b.input("is_long", "bool", [])
    branches = {}
    for name, size in (("then_branch", 5), ("else_branch", 3)):
        inner = GraphBuilder(name, outer=b)
        row = inner.add("Reshape", [x, inner.ints(1, size)])
        inner.output(inner.add("MatMul", [row, inner.constant(np.ones((size, 2), np.float32))]))
        branches[name] = inner.build()
    b.output(b.add("If", [is_long], branches), "y")
    return b.build()


@pytest.mark.parametrize("size", [3, 5])
def test_a_branch_for_other_sizes_need_not_fit(size: int) -> None:
    session = load(rates(), backend="host")
    x, is_long = np.arange(size, dtype=np.float32), np.array(size == 5)
    (y,) = session.run({"x": x, "is_long": is_long}).values()
    np.testing.assert_array_equal(y, np.full((1, 2), x.sum()))
    with pytest.raises(LiteError, match="Reshape"):
        session.run({"x": x, "is_long": ~is_long})


def test_inputs_that_fit_no_branch_are_refused() -> None:
    with pytest.raises(LiteError, match=r"x=\[4\]"):
        load(rates(), backend="host").run({"x": np.zeros(4, np.float32), "is_long": np.array(True)})
