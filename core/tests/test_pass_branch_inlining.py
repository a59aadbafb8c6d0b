"""branch_inlining: what a condition that is known leaves of an If; and the Ifs that only sizes decide."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lite_core.builder import GraphBuilder
from lite_core.errors import LiteError
from lite_core.ir import Graph, Value
from lite_core.passes import BranchInlining, IdentityElimination
from lite_core.passes.branch_inlining import with_branches_decided
from lite_core.session import load
from lite_tools.checking import run_passes_checked

Array = np.ndarray[Any, Any]
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def choose(b: GraphBuilder, condition: Value, x: Value) -> Value:
    """``x * 2`` or ``x`` itself."""
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
    """As exporters write ``x.squeeze(0)`` where the size may be 1 or not; an If in an If, and a sum behind it."""
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
def test_the_branch_that_is_taken_takes_the_place_of_the_if(truth: bool) -> None:
    graph, _ = run_passes_checked(chosen(truth), [BranchInlining(), IdentityElimination()])
    assert graph.op_counts() == ({"Mul": 1, "Add": 1} if truth else {"Add": 1})


def test_an_if_whose_condition_is_data_stays() -> None:
    b = GraphBuilder()
    x, condition = b.input("x", "float32", [3]), b.input("condition", "bool", [])
    b.output(choose(b, condition, x), "y")
    assert not BranchInlining()(b.build()).changed
    assert with_branches_decided(b.build()) is None


@pytest.mark.parametrize(("rows", "shape"), [(1, (3,)), (2, (2, 3))])
def test_sizes_decide_branches_within_branches(rows: int, shape: tuple[int, ...]) -> None:
    graph = squeezed()
    graph.inputs[0].type = graph.inputs[0].type.with_shape((rows, 3))
    decided = with_branches_decided(graph)
    assert decided is not None
    assert "If" in graph.op_counts(), "the graph itself is not changed"
    assert set(decided.op_counts()) <= {"Squeeze", "Mul", "Add"}
    assert decided.outputs[0].type.shape == shape


@pytest.mark.parametrize("rows", [1, 2])
def test_a_session_runs_what_is_left(rows: int) -> None:
    session = load(squeezed(), backend="host")
    for taken in (rows, 3 - rows, rows):
        (y,) = session.run({"x": X[:taken]}).values()
        np.testing.assert_array_equal(y, X[0] * 2 + 1 if taken == 1 else X + 1)
    assert "If" not in {a.op for a in session.assignment()}


def rates() -> Graph:
    """A branch for inputs of 3 elements and one for inputs of 5; which one is taken is data."""
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
    with pytest.raises(LiteError, match=r"does not accept the input shapes x=\[4\]"):
        load(rates(), backend="host").run({"x": np.zeros(4, np.float32), "is_long": np.array(True)})
