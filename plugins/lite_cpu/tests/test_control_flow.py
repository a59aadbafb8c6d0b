"""Control flow in native programs: If, Loop and Scan without a node on the host, compared with the references."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from levels import LevelBackend, backend_for, machine_params, run_on, runnable_machines
from loops import add_if, add_loop, constant, graph_of
from saving import DEVICE, restored, saved
from saving import run as run_executable

from lite_core import load
from lite_core.backend import Buffer, No, Options, Partition
from lite_core.builder import GraphBuilder
from lite_core.errors import ExecutionError, RunTimeoutError
from lite_core.ir import Graph, Value
from lite_core.memory import HostMemory
from lite_core.ops.evaluate import evaluate_graph
from lite_core.ops.infer import infer_graph
from lite_core.plugins.backends import plugins_with
from lite_cpu.executable import CpuExecutable
from lite_cpu.machine import Machine
from lite_cpu.open_loop import OpenLoopExecutable
from lite_cpu.runtime.layout import StepField

Array = np.ndarray[Any, Any]

EVERY_LEVEL = pytest.mark.parametrize("machine", machine_params())
BEST = runnable_machines()[-1:]
pytestmark = pytest.mark.skipif(not BEST, reason="the kernels are for x86-64")


def check(machine: Machine, graph: Graph, *inputs: Array, threads: int = 1) -> dict[str, Array]:
    """Run a graph natively, and compare with the references."""
    feeds = {value.name: array for value, array in zip(graph.inputs, inputs)}
    found = run_on(machine, graph, feeds, threads=threads)
    for value, expected in zip(graph.outputs, evaluate_graph(graph, list(inputs))):
        assert found[value.name].dtype == expected.dtype
        np.testing.assert_allclose(
            found[value.name].astype(np.float64), expected.astype(np.float64), rtol=1e-5, atol=1e-5
        )
    return found


def normal(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


# **** loops ****


def accumulating(dtype: str = "float32", most: int | None = 9) -> Graph:
    """Return a loop with a limit and a condition; it collects a word, its state and the iteration."""

    def make(b: GraphBuilder) -> Sequence[Value]:
        x, trips, start = b.input("x", dtype, [2, 3]), b.input("trips", "int64", []), b.input("start", "bool", [])
        last = b.input("last", "int64", [])

        def body(i: GraphBuilder, number: Value, _: Value, state: Value) -> Sequence[Value]:
            after = i.add("Add", [state, x])
            return [
                i.add("Less", [number, last]),
                after,
                i.add("Mul", [after, x]),
                number,
                i.add("Greater", [after, x]),
            ]

        return add_loop(b, trips if most else None, start, [x], body, 4)

    return graph_of(make)


@EVERY_LEVEL
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "int8", "uint16"])
def test_outputs_of_an_open_number_of_iterations(machine: Machine, dtype: str) -> None:
    if dtype == "float16" and not machine.half:
        pytest.skip("this level has no instruction that converts float16")
    x = (normal(2, 3) * 3).astype(dtype)
    for trips, start, last in ((4, True, 100), (4, False, 100), (0, True, 100), (100, True, 2), (-3, True, 5)):
        check(machine, accumulating(dtype), x, np.array(trips), np.array(start), np.array(last))


@EVERY_LEVEL
@pytest.mark.parametrize("most", [None, 5000])
def test_outputs_outgrow_their_memory(machine: Machine, most: int | None) -> None:
    """The stacked outputs get more memory several times, and the loop goes on in its state."""
    graph = accumulating("int64", most)
    inputs = [np.arange(6).reshape(2, 3), np.array(5000), np.array(True), np.array(4321)]
    found = check(machine, graph, *inputs)
    assert found["y2"].shape == (4322,)


def swapping(b: GraphBuilder) -> Sequence[Value]:
    x, y = b.input("x", "float32", [4]), b.input("y", "float32", [4])

    def body(i: GraphBuilder, number: Value, going: Value, one: Value, two: Value, three: Value) -> Sequence[Value]:
        total = i.add("Add", [one, two])
        return [i.add("Identity", [going]), i.add("Identity", [two]), total, total, i.add("Identity", [three])]

    return add_loop(b, constant(b, 5), constant(b, True), [x, y, x], body, 4)


def passing(b: GraphBuilder) -> Sequence[Value]:
    """Carried values are passed on, to the same place and to another one, and replaced by a captured value."""
    x, y = b.input("x", "float32", [4]), b.input("y", "float32", [4])

    def body(i: GraphBuilder, number: Value, going: Value, same: Value, one: Value, two: Value) -> Sequence[Value]:
        return [going, same, two, x, i.add("Mul", [one, same])]

    return add_loop(b, constant(b, 3), None, [y, x, y], body, 4)


def scattering(b: GraphBuilder) -> Sequence[Value]:
    """A row of a table is replaced in each iteration."""
    table, row = b.input("table", "float32", [8, 3]), b.input("row", "float32", [3])

    def body(i: GraphBuilder, number: Value, going: Value, rows: Value, state: Value) -> Sequence[Value]:
        at = i.add("Reshape", [number, i.ints(1, 1)])
        after = i.add("Add", [state, row])
        updated = i.add("ScatterND", [rows, at, i.add("Unsqueeze", [after, i.ints(0)])])
        return [going, updated, after, i.add("Gather", [updated, number])]

    return add_loop(b, constant(b, 6), None, [table, row], body, 3)


def nested(b: GraphBuilder) -> Sequence[Value]:
    """A loop and branches in a loop; the inner number of iterations depends on the outer one."""
    x = b.input("x", "float32", [3])

    def body(i: GraphBuilder, number: Value, going: Value, state: Value) -> Sequence[Value]:
        def inside(j: GraphBuilder, count: Value, on: Value, inner: Value) -> Sequence[Value]:
            return [on, j.add("Add", [j.add("Mul", [inner, constant(j, 0.5, np.float32)]), state])]

        (after,) = add_loop(i, number, constant(i, True), [i.add("Neg", [state])], inside, 1)
        is_even = i.add("Equal", [i.add("Mod", [number, constant(i, 2)]), constant(i, 0)])
        (chosen,) = add_if(i, is_even, lambda j: [j.add("Tanh", [after])], lambda j: [j.add("Add", [after, x])])
        return [going, chosen, chosen]

    return add_loop(b, constant(b, 7), constant(b, True), [x], body, 2)


def invariant(b: GraphBuilder) -> Sequence[Value]:
    """A product does not change from one iteration to the next, and neither does an output."""
    x, y, trips = b.input("x", "float32", [4, 4]), b.input("y", "float32", [4, 4]), b.input("trips", "int64", [])

    def body(i: GraphBuilder, number: Value, going: Value, state: Value) -> Sequence[Value]:
        product = i.add("Tanh", [i.add("MatMul", [x, y])])
        return [going, i.add("Add", [state, product]), product]

    return add_loop(b, trips, None, [x], body, 2)


@EVERY_LEVEL
@pytest.mark.parametrize("make", [swapping, passing, scattering, nested], ids=lambda make: make.__name__)
def test_loops_with_known_shapes(machine: Machine, make: Callable[[GraphBuilder], Sequence[Value]]) -> None:
    graph = graph_of(make)
    inputs = [normal(*value.shape) for value in graph.inputs]
    check(machine, graph, *inputs)
    check(machine, graph, *inputs, threads=2)


@EVERY_LEVEL
@pytest.mark.parametrize("trips", [0, 1, 4])
def test_what_never_changes_is_computed_before_the_loop(machine: Machine, trips: int) -> None:
    check(machine, graph_of(invariant), normal(4, 4), normal(4, 4) * 2, np.array(trips))


def test_steps_of_several_threads_in_a_loop() -> None:
    """Products that threads divide, in many iterations: each begins when the one before is complete."""

    def make(b: GraphBuilder) -> Sequence[Value]:
        x = b.input("x", "float32", [96, 96])
        weights = b.constant(normal(96, 96) / 10)

        def body(i: GraphBuilder, number: Value, going: Value, state: Value) -> Sequence[Value]:
            return [going, i.add("Tanh", [i.add("MatMul", [state, weights])])]

        return add_loop(b, constant(b, 200), None, [x], body, 1)

    check(BEST[0], graph_of(make), normal(96, 96), threads=2)


def test_values_that_are_replaced() -> None:
    """The body does not read a carried value, whose shape before the loop is another."""

    def make(b: GraphBuilder) -> Sequence[Value]:
        x, trips = b.input("x", "float32", [3]), b.input("trips", "int64", [])

        def body(i: GraphBuilder, number: Value, going: Value, state: Value, unread: Value) -> Sequence[Value]:
            after = i.add("Add", [state, x])
            return [going, after, i.add("Unsqueeze", [after, i.ints(0)])]

        return add_loop(b, trips, None, [x, constant(b, 0, np.float32)], body, 2)

    for trips in (0, 1, 3):
        check(BEST[0], graph_of(make), normal(3), np.array(trips))


def with_cache(b: GraphBuilder) -> Sequence[Value]:
    """Add a loop that writes a position of a cache in each iteration, and reads the cache."""
    cache, x, trips = b.input("cache", "float32", [1, 2, 9, 4]), b.input("x", "float32", [1, 2, 1, 4]), constant(b, 5)

    def body(i: GraphBuilder, number: Value, going: Value, state: Value, cache: Value) -> Sequence[Value]:
        index = i.add("Reshape", [number, b.ints(1)])
        following = i.add("TensorScatter", [cache, i.add("Sin", [state]), index], {"axis": 2})
        read = i.add("Attention", [state, following, following])
        return [going, i.add("Add", [read, x]), following]

    return add_loop(b, trips, None, [x, cache], body, 2)


def test_cache_in_a_loop() -> None:
    check(BEST[0], graph_of(with_cache), normal(1, 2, 9, 4), normal(1, 2, 1, 4))


@pytest.mark.parametrize("make", [scattering, with_cache], ids=lambda make: make.__name__)
def test_state_is_computed_in_place(make: Callable[[GraphBuilder], Sequence[Value]]) -> None:
    """A value is computed over the old one, and a table or a cache is updated without a copy of it."""
    executable = backend_for(BEST[0]).compile(Partition("part", graph_of(make)), DEVICE, Options())
    assert isinstance(executable, CpuExecutable)
    tables = executable._program.tables
    first, last = tables.steps[:, StepField.JUMP].argmin(), len(tables.labels)
    last = int(first)
    first = last + int(tables.steps[last, StepField.JUMP])
    working = [n for n in range(first, last) if tables.steps[n, StepField.TASKS]]
    assert "copy" not in [tables.labels[n] for n in working]


def test_index_out_of_range_in_a_loop() -> None:
    def make(b: GraphBuilder) -> Sequence[Value]:
        x, trips = b.input("x", "float32", [3]), b.input("trips", "int64", [])

        def body(i: GraphBuilder, number: Value, going: Value, state: Value) -> Sequence[Value]:
            return [going, i.add("Gather", [x, number])]

        return add_loop(b, trips, None, [constant(b, 0, np.float32)], body, 1)

    graph = graph_of(make)
    check(BEST[0], graph, normal(3), np.array(3))
    with pytest.raises(ExecutionError, match="index 5 is out of range"):
        run_on(BEST[0], graph, {"x": normal(3), "trips": np.array(6)})


def test_shapes_that_change_are_refused() -> None:
    def make(b: GraphBuilder) -> Sequence[Value]:
        x = b.input("x", "float32", ["n"])

        def body(i: GraphBuilder, number: Value, going: Value, state: Value) -> Sequence[Value]:
            return [going, i.add("Concat", [state, state], {"axis": 0})]

        return add_loop(b, constant(b, 3), None, [x], body, 1)

    graph = graph_of(make)
    infer_graph(graph)
    answer = backend_for(BEST[0]).supports(graph.nodes[-1], DEVICE)
    assert isinstance(answer, No)
    assert "may change from one iteration to the next" in answer.reason


@pytest.mark.parametrize("threads", [1, 2])
def test_endless_loop_ends_with_the_time_limit(threads: int) -> None:
    """The native loop returns to Python now and then; afterwards the session runs again."""

    def make(b: GraphBuilder) -> Sequence[Value]:
        x, going_on = b.input("x", "float32", [64, 64]), b.input("going_on", "bool", [])

        def body(i: GraphBuilder, number: Value, going: Value, state: Value) -> Sequence[Value]:
            return [going, i.add("MatMul", [state, x])]

        return add_loop(b, None, going_on, [x], body, 1)

    plugins = plugins_with(backend_for(BEST[0]))
    session = load(graph_of(make), backend="level", plugins=plugins, threads=threads, fallback="never")
    x = np.eye(64, dtype=np.float32)
    with pytest.raises(RunTimeoutError, match="timeout"):
        session.run({"x": x, "going_on": np.array(True)}, timeout=0.1)
    np.testing.assert_array_equal(session.run({"x": x, "going_on": np.array(False)})["y0"], x)


# **** Scan ****


@EVERY_LEVEL
@pytest.mark.parametrize("directions", [(0, 1, 0), (1, 0, 1)])
def test_scan(machine: Machine, directions: tuple[int, int, int]) -> None:
    """Slices along other axes than the first, from both ends; states that stay, change and change places."""

    def make(b: GraphBuilder) -> Sequence[Value]:
        states = [b.input(f"state_{i}", "float32", [2, 3]) for i in range(3)]
        sequences = [b.input("x", "float32", [2, 5, 3]), b.input("y", "float32", [2, 3, 5])]
        inner = GraphBuilder("body", outer=b)
        one, two, same = (inner.input(f"s{i}", "float32", [2, 3]) for i in range(3))
        left, right = inner.input("left", "float32", [2, 3]), inner.input("right", "float32", [2, 3])
        after = inner.add("Add", [inner.add("Mul", [one, left]), right])
        for value in (inner.add("Identity", [two]), after, same, inner.add("Sub", [after, same])):
            inner.output(value)
        attributes = {
            "body": inner.build(),
            "num_scan_inputs": 2,
            "scan_input_axes": (1, -1),
            "scan_input_directions": directions[:2],
            "scan_output_axes": (-2,),
            "scan_output_directions": directions[2:],
        }
        return b.add_node("Scan", [*states, *sequences], attributes, outputs=4)

    graph = graph_of(make)
    check(machine, graph, *(normal(*value.shape) for value in graph.inputs))


# **** If ****


def two_branches(b: GraphBuilder) -> Sequence[Value]:
    x, condition = b.input("x", "float32", [2, 3]), b.input("condition", "bool", [1])
    before = b.add("Exp", [x])
    weights = b.constant(normal(3, 4))

    def then(i: GraphBuilder) -> Sequence[Value]:
        return [i.add("MatMul", [before, weights]), i.add("Identity", [x])]

    def other(i: GraphBuilder) -> Sequence[Value]:
        product = i.add("MatMul", [i.add("Sub", [before, x]), weights])
        return [i.add("Relu", [product]), x]

    results = add_if(b, condition, then, other, 2)
    return [b.add("Concat", [results[0], results[0]], {"axis": 0}), results[1], b.add("Tanh", [results[0]])]


@EVERY_LEVEL
@pytest.mark.parametrize("taken", [True, False])
def test_branches(machine: Machine, taken: bool) -> None:
    check(machine, graph_of(two_branches), normal(2, 3), np.array([taken]))


def test_branches_of_different_sizes() -> None:
    """The results have sizes that depend on data: the branches are programs of their own."""

    def make(b: GraphBuilder) -> Sequence[Value]:
        x, condition = b.input("x", "float32", [2, 3]), b.input("condition", "bool", [])
        (y,) = add_if(b, condition, lambda i: [i.add("Concat", [x, x], {"axis": 0})], lambda i: [i.add("Neg", [x])])
        return [b.add("Tanh", [y])]

    for taken in (True, False, True):
        check(BEST[0], graph_of(make), normal(2, 3), np.array(taken))


def test_branch_that_does_not_fit() -> None:
    """The sizes of the inputs fit one branch only; taking the other one is an error."""

    def make(b: GraphBuilder) -> Sequence[Value]:
        x, condition = b.input("x", "float32", ["n"]), b.input("condition", "bool", [])
        return add_if(
            b,
            condition,
            lambda i: [i.add("Reshape", [x, i.ints(2, 3)])],
            lambda i: [i.add("Reshape", [x, i.ints(2, 4)])],
        )

    plugins = plugins_with(backend_for(BEST[0]))
    session = load(graph_of(make), backend="level", plugins=plugins, fallback="never")
    x = normal(6)
    np.testing.assert_array_equal(session.run({"x": x, "condition": np.array(True)})["y0"], x.reshape(2, 3))
    with pytest.raises(ExecutionError, match="else_branch does not fit the shapes of this run"):
        session.run({"x": x, "condition": np.array(False)})


def test_decided_branches_in_a_body() -> None:
    """Sizes decide an inner If, as exporters write it, whose other branch does not fit."""

    def make(b: GraphBuilder) -> Sequence[Value]:
        x, condition = b.input("x", "float32", ["n", 3]), b.input("condition", "bool", [])

        def then(i: GraphBuilder) -> Sequence[Value]:
            is_one = i.add("Equal", [i.add("Gather", [i.add("Shape", [x]), constant(i, 0)]), constant(i, 1)])
            (y,) = add_if(
                i,
                is_one,
                lambda j: [j.add("Squeeze", [x, j.ints(0)])],
                lambda j: [j.add("ReduceSum", [x, j.ints(0)], {"keepdims": 0})],
            )
            return [i.add("Exp", [y])]

        return add_if(b, condition, then, lambda i: [i.add("ReduceMax", [x, i.ints(0)], {"keepdims": 0})])

    for rows in (1, 4):
        for taken in (True, False):
            check(BEST[0], graph_of(make), normal(rows, 3), np.array(taken))


# **** saved programs ****


@pytest.mark.parametrize("make", [nested, scattering, two_branches], ids=lambda make: make.__name__)
def test_saved_programs(make: Callable[[GraphBuilder], Sequence[Value]]) -> None:
    graph = graph_of(make)
    inputs = {v.name: normal(*v.shape) if v.dtype.is_floating else np.array([True]) for v in graph.inputs}
    executable = backend_for(BEST[0]).compile(Partition("part", graph), DEVICE, Options())
    assert isinstance(executable, CpuExecutable)
    again = restored(BEST[0], saved(executable), graph)
    for one, two in zip(run_executable(executable, graph, inputs), run_executable(again, graph, inputs)):
        np.testing.assert_array_equal(one, two)


def test_saved_program_of_an_open_loop() -> None:
    graph = accumulating("int64")
    executable = backend_for(BEST[0]).compile(Partition("part", graph), DEVICE, Options())
    assert isinstance(executable, OpenLoopExecutable)
    part = Partition("part", graph)
    again = LevelBackend(BEST[0]).restore(saved(executable), part, DEVICE, Options())
    assert isinstance(again, OpenLoopExecutable)
    inputs = [np.arange(6).reshape(2, 3), np.array(50), np.array(True), np.array(40)]
    for expected, found in zip(evaluate_graph(graph, inputs), _run_open(again, graph, inputs)):
        np.testing.assert_array_equal(expected, found)


def _run_open(executable: CpuExecutable, graph: Graph, inputs: Sequence[Array]) -> list[Array]:
    memory = HostMemory()
    arguments = [Buffer(v.type, memory, array) for v, array in zip(graph.inputs, inputs)]
    results = [Buffer(v.type, memory, memory.allocate(v.type) if v.type.is_static else None) for v in graph.outputs]
    block = memory.aligned_bytes(executable.scratch_bytes)
    executable.run(arguments, results, Buffer(graph.inputs[0].type, memory, block))
    return [result.data for result in results]
