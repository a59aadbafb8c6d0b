"""The operators If, Loop and Scan: evaluation, inference to a fixed point, captured values, half precision."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from lite_core.builder import GraphBuilder
from lite_core.errors import GraphError
from lite_core.ir import DType, Graph, TensorType, Value
from lite_core.ops.evaluate import evaluate_graph
from lite_core.ops.infer import infer_graph, specialize

Array = np.ndarray[Any, Any]
Body = Callable[..., Sequence[Value]]


def f32(*elements: float) -> Array:
    return np.array(elements, dtype=np.float32)


def branch(outer: GraphBuilder, body: Callable[[GraphBuilder], Sequence[Value]]) -> Graph:
    inner = GraphBuilder("branch", outer=outer)
    for value in body(inner):
        inner.output(value)
    return inner.build()


def loop_body(outer: GraphBuilder, carried: Sequence[tuple[str, Any]], body: Body) -> Graph:
    """Return a Loop body; ``body(builder, iteration, condition, *carried)`` returns its outputs."""
    inner = GraphBuilder("body", outer=outer)
    inputs = [inner.input("iteration", "int64", []), inner.input("condition", "bool", [])]
    inputs += [inner.input(f"carried_{n}", dtype, shape) for n, (dtype, shape) in enumerate(carried)]
    for value in body(inner, *inputs):
        inner.output(value)
    return inner.build()


def loop(
    carried: Sequence[tuple[str, Any]],
    body: Body,
    *,
    outputs: int,
    trips: int | None,
    condition: bool | None,
    x: Any,
) -> Graph:
    """Return a graph with inputs ``x`` (the carried values) and one Loop; None leaves out M or cond."""
    b = GraphBuilder()
    inputs = [b.input(f"x{n}", dtype, shape) for n, (dtype, shape) in enumerate(x)]
    m = None if trips is None else b.constant(np.array(trips, np.int64))
    cond = None if condition is None else b.constant(np.array(condition))
    graph = loop_body(b, carried, body)
    for value in b.add_node("Loop", [m, cond, *inputs], {"body": graph}, outputs=outputs):
        b.output(value)
    return b.build()


def types(graph: Graph) -> list[str]:
    return [str(v.type) for v in graph.outputs]


# **** If ****


def choose(cond: Array | None = None, rows: int = 3) -> Graph:
    """Return a graph with ``x`` or ``x`` reshaped to one row, depending on a condition; both branches capture ``x``."""
    b = GraphBuilder()
    condition = b.input("cond", "bool", []) if cond is None else b.constant(cond)
    x = b.input("x", "float32", ["n", rows])
    then = branch(b, lambda g: [g.add("Identity", [x])])
    other = branch(b, lambda g: [g.add("Reshape", [x, g.ints(1, -1)])])
    b.output(b.add("If", [condition], {"then_branch": then, "else_branch": other}))
    return b.build()


def test_if_runs_one_branch() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    graph = choose()
    np.testing.assert_array_equal(evaluate_graph(graph, [np.array(True), x])[0], x)
    np.testing.assert_array_equal(evaluate_graph(graph, [np.array(False), x])[0], x.reshape(1, 6))


def test_if_merges_branches() -> None:
    assert str(choose().outputs[0].type).startswith("float32[unknown?")
    b = GraphBuilder()
    cond, x = b.input("cond", "bool", [1]), b.input("x", "float32", ["n", 3])
    graphs = {
        "then_branch": branch(b, lambda g: [x, x, x]),
        "else_branch": branch(b, lambda g: [g.add("Identity", [x]), g.add("Concat", [x, x], {"axis": 0}),
                                            g.add("Reshape", [x, g.ints(-1)])]),
    }  # fmt: skip
    same, rows, rank = (v.type for v in b.add_node("If", [cond], graphs, outputs=3))
    assert str(same) == "float32[n, 3]"
    assert rows.shape is not None
    assert rows.shape[1] == 3
    assert str(rows.shape[0]).startswith("unknown?")
    assert str(rank) == "float32[?]"


def test_if_with_a_known_condition_has_the_type_of_that_branch() -> None:
    assert types(choose(np.array(True))) == ["float32[n, 3]"]
    assert types(choose(np.array([False]))) == ["float32[1, 3*n]"]


def test_if_does_not_infer_a_branch_that_known_shapes_rule_out() -> None:
    b = GraphBuilder()
    x = b.input("x", "float32", ["n", 3])
    then = branch(b, lambda g: [g.add("Squeeze", [x, g.ints(0)])])
    other = branch(b, lambda g: [g.add("Identity", [x])])
    cond = b.input("cond", "bool", [])
    b.output(b.add("If", [cond], {"then_branch": then, "else_branch": other}))
    graph = b.build()
    special = specialize(graph, {"x": (2, 3), "cond": ()}, {"cond": np.array(False)})
    assert str(special.type_of(graph.outputs[0])) == "float32[2, 3]"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_if_in_half_precision_keeps_the_element_type(dtype: str) -> None:
    b = GraphBuilder()
    cond, x = b.input("cond", "bool", []), b.input("x", dtype, [2])
    then, other = branch(b, lambda g: [x]), branch(b, lambda g: [g.add("Concat", [x, x], {"axis": 0})])
    b.output(b.add("If", [cond], {"then_branch": then, "else_branch": other}))
    (result,) = evaluate_graph(b.build(), [np.array(False), f32(1, 2).astype(DType.of(dtype).numpy)])
    assert result.dtype.name == dtype
    assert result.tolist() == [1, 2, 1, 2]


def test_if_errors() -> None:
    b = GraphBuilder()
    cond, x = b.input("cond", "bool", []), b.input("x", "float32", [2])
    one = branch(b, lambda g: [x])
    with pytest.raises(GraphError, match="else_branch has 2 outputs"):
        b.add("If", [cond], {"then_branch": one, "else_branch": branch(b, lambda g: [x, x])})
    with pytest.raises(GraphError, match="output 0 .*float32.*then_branch.*bool.*else_branch"):
        b.add("If", [cond], {"then_branch": one, "else_branch": branch(b, lambda g: [cond])})
    two = b.input("two", "bool", [2])
    with pytest.raises(GraphError, match=r"cond .*\[2\]"):
        b.add("If", [two], {"then_branch": one, "else_branch": branch(b, lambda g: [x])})


# **** Loop ****


def doubling(b: GraphBuilder, iteration: Value, condition: Value, x: Value) -> Sequence[Value]:
    """Carry ``x`` concatenated with itself; scan the iteration number."""
    return [condition, b.add("Concat", [x, x], {"axis": 0}), iteration]


def test_loop_runs_the_given_number_of_iterations() -> None:
    graph = loop([("float32", [None])], doubling, outputs=2, trips=3, condition=None, x=[("float32", [2])])
    carried, scanned = evaluate_graph(graph, [f32(1, 2)])
    assert carried.tolist() == [1, 2] * 8
    assert scanned.tolist() == [0, 1, 2]
    assert scanned.dtype == np.int64
    carried_type, scanned_type = types(graph)
    assert carried_type.startswith("float32[unknown?")
    assert scanned_type == "int64[3]"


def test_symbols_that_vary_between_iterations_stay_inside() -> None:
    graph = loop([("float32", [None])], doubling, outputs=2, trips=3, condition=None, x=[("float32", [2])])
    body = graph.nodes[0].attributes["body"]
    assert isinstance(body, Graph)
    assert graph.outputs[0].type.symbols.isdisjoint(body.inputs[2].type.symbols)


@pytest.mark.parametrize(
    ("trips", "condition", "known"),
    [(3, None, "3"), (3, True, "3"), (3, False, "0"), (0, None, "0"), (-2, None, "0"), (None, False, "0")],
)
def test_loop_with_a_known_number_of_iterations(trips: int | None, condition: bool | None, known: str) -> None:
    x = [("float32", [2])]
    graph = loop(x, lambda b, i, c, x: [c, x, x], outputs=2, trips=trips, condition=condition, x=x)
    assert types(graph) == ["float32[2]", f"float32[{known}, 2]"]
    carried, scanned = evaluate_graph(graph, [f32(1, 2)])
    assert carried.tolist() == [1, 2]
    assert scanned.shape == (int(known), 2)


def test_no_iteration_keeps_the_initial_type() -> None:
    graph = loop([("float32", [None])], doubling, outputs=2, trips=0, condition=None, x=[("float32", ["n"])])
    assert types(graph) == ["float32[n]", "int64[0]"]


def while_small(b: GraphBuilder, iteration: Value, condition: Value, x: Value) -> Sequence[Value]:
    """Carry ``x + x`` while it is below 10."""
    doubled = b.add("Add", [x, x])
    return [b.add("Less", [doubled, b.constant(np.float32(10))]), doubled, x]


@pytest.mark.parametrize(
    ("trips", "condition", "scanned"),
    [(None, True, [1, 2, 4, 8]), (2, True, [1, 2]), (9, True, [1, 2, 4, 8]), (6, None, [1, 2, 4, 8, 16, 32]),
     (9, False, [])],
)  # fmt: skip
def test_loop_conditions(trips: int | None, condition: bool | None, scanned: list[float]) -> None:
    """The body's condition ends the loop after its iteration; without an initial condition it is ignored."""
    graph = loop([("float32", [])], while_small, outputs=2, trips=trips, condition=condition, x=[("float32", [])])
    final, states = evaluate_graph(graph, [np.array(1, np.float32)])
    assert states.tolist() == scanned
    assert final == 2.0 ** len(scanned)
    if condition is True:
        assert types(graph)[1].startswith("float32[trips?")


def test_loop_captures_outer_values_and_nests() -> None:
    b = GraphBuilder()
    x, step = b.input("x", "float32", [2]), b.input("step", "float32", [2])
    outer_body = GraphBuilder("outer", outer=b)
    _, condition = outer_body.input("i", "int64", []), outer_body.input("c", "bool", [])
    total = outer_body.input("total", "float32", [2])
    inner = GraphBuilder("inner", outer=outer_body)
    _, inner_condition = inner.input("j", "int64", []), inner.input("d", "bool", [])
    part = inner.input("part", "float32", [2])
    inner.output(inner_condition)
    inner.output(inner.add("Add", [part, step]))
    two = outer_body.constant(np.array(2, np.int64))
    outer_body.output(condition)
    outer_body.output(outer_body.add("Loop", [two, None, total], {"body": inner.build()}))
    b.output(b.add("Loop", [b.constant(np.array(3, np.int64)), None, x], {"body": outer_body.build()}))
    graph = b.build()
    assert types(graph) == ["float32[2]"]
    assert evaluate_graph(graph, [f32(1, 2), f32(10, 100)])[0].tolist() == [61, 602]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_loop_in_half_precision(dtype: str) -> None:
    """The body computes in half precision, with rounding in each iteration."""

    def body(b: GraphBuilder, iteration: Value, condition: Value, x: Value) -> Sequence[Value]:
        total = b.add("Add", [x, b.constant(np.array([1]), dtype=dtype)])
        return [condition, total, total]

    graph = loop([(dtype, [1])], body, outputs=2, trips=3, condition=True, x=[(dtype, [1])])
    assert types(graph) == [f"{dtype}[1]", f"{dtype}[3, 1]"]
    halves = DType.of(dtype).numpy
    final, scanned = evaluate_graph(graph, [np.array([4096], halves)])
    assert final.dtype == scanned.dtype == halves
    assert final.astype(np.float32).tolist() == [4096], "4096 + 1 rounds to 4096 each time"


def test_loop_carries_a_changing_rank() -> None:
    def body(b: GraphBuilder, iteration: Value, condition: Value, x: Value) -> Sequence[Value]:
        return [condition, b.add("Unsqueeze", [x, b.ints(0)])]

    graph = loop([("float32", None)], body, outputs=1, trips=2, condition=None, x=[("float32", ["n"])])
    assert types(graph) == ["float32[?]"]
    assert evaluate_graph(graph, [f32(1, 2, 3)])[0].shape == (1, 1, 3)


def test_loop_is_inferred_again_for_other_inputs() -> None:
    graph = loop([("float32", [None])], lambda b, i, c, x: [c, x, x], outputs=2, trips=4, condition=None,
                 x=[("float32", ["n"])])  # fmt: skip
    assert types(graph) == ["float32[n]", "float32[4, n]"]
    special = specialize(graph, {"x0": (7,)})
    assert [str(special.type_of(v)) for v in graph.outputs] == ["float32[7]", "float32[4, 7]"]
    infer_graph(graph, {"x0": TensorType(DType.FLOAT32, (5,))})
    assert types(graph) == ["float32[5]", "float32[4, 5]"]


def test_elements_that_a_loop_passes_on_are_known() -> None:
    """A shape that the body passes on unchanged is known inside the body."""
    b = GraphBuilder()
    x = b.input("x", "float32", ["n", 2])
    body = loop_body(b, [("float32", [None, 2]), ("int64", [1])],
                     lambda g, i, c, v, s: [c, v, s, g.add("Reshape", [v, s])])  # fmt: skip
    results = b.add_node("Loop", [b.constant(np.array(3, np.int64)), None, x, b.ints(-1)], {"body": body}, outputs=3)
    assert str(results[2].type) == "float32[3, 2*n]"


def test_loop_errors() -> None:
    x = [("float32", [2])]
    with pytest.raises(GraphError, match=r"3 inputs .* 4"):
        loop([*x, *x], lambda b, i, c, v, w: [c, v], outputs=1, trips=1, condition=None, x=x)
    with pytest.raises(GraphError, match=r"3 outputs .* 2"):
        loop(x, lambda b, i, c, v: [c, v], outputs=2, trips=1, condition=None, x=x)
    with pytest.raises(GraphError, match="carried_0 .*float32.*int64"):
        loop(x, lambda b, i, c, v: [c, i], outputs=1, trips=1, condition=None, x=x)
    with pytest.raises(GraphError, match="condition.*bool.*int64"):
        loop(x, lambda b, i, c, v: [i, v], outputs=1, trips=1, condition=None, x=x)


# **** Scan ****


def scan(
    b: GraphBuilder,
    inputs: list[Value],
    states: int,
    body: Body,
    element: Any,
    outputs: int,
    **attributes: Any,
) -> list[Value]:
    inner = GraphBuilder("body", outer=b)
    arguments = [inner.input(f"state_{n}", "float32", [None]) for n in range(states)]
    arguments += [inner.input(f"element_{n}", "float32", element) for n in range(len(inputs) - states)]
    for value in body(inner, *arguments):
        inner.output(value)
    attributes = {"body": inner.build(), "num_scan_inputs": len(inputs) - states, **attributes}
    return b.add_node("Scan", inputs, attributes, outputs=outputs)


def cumulate(b: GraphBuilder, total: Value, element: Value) -> Sequence[Value]:
    result = b.add("Add", [total, element])
    return [result, result]


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("back", [0, 1])
@pytest.mark.parametrize("output_back", [0, 1])
def test_scan(axis: int, back: int, output_back: int) -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    b = GraphBuilder()
    start, data = b.input("start", "float32", [4 if axis == 0 else 3]), b.input("x", "float32", ["r", "c"])
    attributes = {"scan_input_axes": (axis,), "scan_output_axes": (axis,),
                  "scan_input_directions": (back,), "scan_output_directions": (output_back,)}  # fmt: skip
    results = scan(b, [start, data], 1, cumulate, [None], 2, **attributes)
    for value in results:
        b.output(value)
    final, sums = evaluate_graph(b.build(), [np.zeros(4 if axis == 0 else 3, np.float32), x])
    expected = np.cumsum(np.flip(x, axis) if back else x, axis)
    np.testing.assert_array_equal(final, x.sum(axis))
    np.testing.assert_array_equal(sums, np.flip(expected, axis) if output_back else expected)
    assert results[1].type.shape is not None
    assert str(results[1].type.shape[axis]) == ("r" if axis == 0 else "c")


def test_scan_without_iterations_and_errors() -> None:
    b = GraphBuilder()
    start, data = b.input("start", "float32", [4]), b.input("x", "float32", [0, 4])
    results = scan(b, [start, data], 1, cumulate, [4], 2)
    assert [str(v.type) for v in results] == ["float32[4]", "float32[0, 4]"]
    for value in results:
        b.output(value)
    final, sums = evaluate_graph(b.build(), [f32(1, 2, 3, 4), np.zeros((0, 4), np.float32)])
    assert final.tolist() == [1, 2, 3, 4]
    assert sums.shape == (0, 4)
    b = GraphBuilder()
    inputs = [b.input("x", "float32", [3, 4]), b.input("y", "float32", [2, 4])]
    with pytest.raises(GraphError, match="scan input 1 .*2 .*axis 0.* 3"):
        scan(b, inputs, 0, lambda g, x, y: [g.add("Add", [x, y])], [4], 1)


def nested_loops(levels: int) -> Graph:
    """Return a graph with nested loops, each of which doubles a vector."""
    b = GraphBuilder()
    trips = b.input("trips", "int64", [])

    def loop(outer: GraphBuilder, level: int, start: Value) -> Value:
        body = GraphBuilder(f"body_{level}", outer=outer)
        body.input(f"iteration_{level}", "int64", [])
        goes_on, x = body.input(f"goes_on_{level}", "bool", []), body.input(f"x_{level}", "float32", [f"n_{level}"])
        x = body.add("Concat", [x, x], {"axis": 0})
        body.output(goes_on)
        body.output(loop(body, level + 1, x) if level < levels else x)
        return outer.add("Loop", [trips, None, start], {"body": body.build()})

    b.output(loop(b, 1, b.input("x", "float32", [2])))
    return b.build()


def test_loops_nested_deeper_than_inference_can_follow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A body is inferred until its types no longer change, so each further loop multiplies the time."""
    monkeypatch.setattr("lite_core.ops.control._MOST_INFERRED", 5000)
    graph = nested_loops(3)
    assert evaluate_graph(graph, [np.array(1), f32(1, 2)])[0].size == 16
    with pytest.raises(GraphError, match=r"loops in its body are nested too deep: types of \d+ nodes .* \d+ times"):
        nested_loops(40)
