"""Loops whose carried values grow in each iteration, compared with their bodies run by a plan for each size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from levels import backend_for, machine_params, runnable_machines
from loops import add_loop, constant, graph_of

from lite_core import load
from lite_core.builder import GraphBuilder
from lite_core.errors import ExecutionError, RunTimeoutError
from lite_core.ir import Graph, Value
from lite_core.ops.evaluate import evaluate_graph
from lite_core.plugins.backends import plugins_with
from lite_core.session import Session
from lite_cpu.growing_loop import GrowingLoopExecutable
from lite_cpu.machine import Machine

Array = np.ndarray[Any, Any]
Make = Callable[[GraphBuilder], Sequence[Value]]

EVERY_LEVEL = pytest.mark.parametrize("machine", machine_params())
BEST = runnable_machines()[-1:]
pytestmark = pytest.mark.skipif(not BEST, reason="the kernels are for x86-64")

HEADS, SIZE, WORDS = 2, 16, 20


def session_of(machine: Machine, graph: Graph, threads: int = 1, **options: Any) -> Session:
    backend = backend_for(machine)
    return load(graph, plugins=plugins_with(backend), backend=backend.name, threads=threads, **options)


def normal(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def growing_loop_of(session: Session, feeds: dict[str, Array]) -> GrowingLoopExecutable | None:
    """Return the executable of the loop in the plan for some inputs, if that plan has one."""
    plan = session.plan({name: array.shape for name, array in feeds.items()})
    stages = [stage for each in plan.compiled for _, stage in getattr(each.executable, "_latest", [])]
    return next((stage for stage in stages if isinstance(stage, GrowingLoopExecutable)), None)


def check(machine: Machine, graph: Graph, *inputs: Array, threads: int = 1) -> Session:
    """Run a graph natively; compare with the loop on host, bit for bit, and with the references."""
    feeds = {value.name: array for value, array in zip(graph.inputs, inputs)}
    session = session_of(machine, graph, threads)
    assert {each.device for each in session.assignment()} == {backend_for(machine).name}
    on_host = session_of(machine, graph, threads, placement={"loop": "host"})
    found, others = session.run(feeds), on_host.run(feeds)
    assert growing_loop_of(session, feeds) is not None
    for value, expected in zip(graph.outputs, evaluate_graph(graph, list(inputs))):
        np.testing.assert_array_equal(found[value.name], others[value.name], err_msg=value.name)
        assert found[value.name].dtype == expected.dtype
        np.testing.assert_allclose(found[value.name], expected, rtol=1e-4, atol=1e-5)
    return session


# **** loops ****


def decoder(b: GraphBuilder) -> Sequence[Value]:
    """Add a decoder that reads the keys and values of all words, until it meets a certain word."""
    trips, last = b.input("trips", "int64", []), b.input("last", "int64", [])
    past = [b.input(name, "float32", [1, HEADS, "length", SIZE]) for name in ("keys", "values")]
    width = HEADS * SIZE
    embeddings = b.constant(normal(WORDS, width))
    query, key, value, logits = (b.constant(normal(width, n) / 6) for n in (width, width, width, WORDS))

    def body(i: GraphBuilder, number: Value, _: Value, word: Value, *caches: Value) -> Sequence[Value]:
        x = i.add("Gather", [embeddings, word])

        def in_heads(weights: Value) -> Value:
            rows = i.add("Reshape", [i.add("MatMul", [x, weights]), b.ints(1, 1, HEADS, SIZE)])
            return i.add("Transpose", [rows], {"perm": (0, 2, 1, 3)})

        keys, values = (i.add("Concat", [c, in_heads(w)], {"axis": 2}) for c, w in zip(caches, (key, value)))
        scores = i.add("MatMul", [in_heads(query), i.add("Transpose", [keys], {"perm": (0, 1, 3, 2)})])
        context = i.add("MatMul", [i.add("Softmax", [scores], {"axis": 3}), values])
        rows = i.add("Reshape", [i.add("Transpose", [context], {"perm": (0, 2, 1, 3)}), b.ints(1, width)])
        found = i.add("MatMul", [i.add("Add", [x, rows]), logits])
        following = i.add("ArgMax", [found], {"axis": 1, "keepdims": 0})
        going = i.add("Not", [i.add("Squeeze", [i.add("Equal", [following, last])])])
        return [going, following, keys, values, found]

    return add_loop(b, trips, constant(b, True), [constant(b, [0]), *past], body, 4)


def attention(b: GraphBuilder) -> Sequence[Value]:
    """Add a loop of the operator Attention with a past."""
    trips = b.input("trips", "int64", [])
    past = [b.input(name, "float32", [2, HEADS, "length", SIZE]) for name in ("keys", "values")]
    x = b.input("x", "float32", [2, HEADS, 1, SIZE])

    def body(i: GraphBuilder, number: Value, going: Value, state: Value, *caches: Value) -> Sequence[Value]:
        results = i.add_node("Attention", [state, i.add("Tanh", [state]), x, None, *caches], {}, outputs=3)
        return [going, i.add("Add", [results[0], x]), *results[1:]]

    return add_loop(b, trips, None, [x, *past], body, 3)


def in_front(b: GraphBuilder) -> Sequence[Value]:
    """Add a loop that puts two rows before a value and one behind, and reads all of them."""
    trips, x = b.input("trips", "int64", []), b.input("x", "float32", ["n", 5])

    def body(i: GraphBuilder, number: Value, going: Value, state: Value, total: Value) -> Sequence[Value]:
        first = i.add("Add", [total, total])
        longer = i.add("Concat", [first, state, total, first], {"axis": 0})
        return [going, longer, i.add("ReduceMean", [longer, b.ints(0)]), i.add("ReduceMax", [state], {"keepdims": 0})]

    return add_loop(b, trips, None, [x, b.constant(normal(1, 5))], body, 3)


def in_two_dimensions(b: GraphBuilder) -> Sequence[Value]:
    """Add a loop with a square matrix that grows along both axes, and a row that grows along the inner one."""
    trips, x, row = (
        b.input("trips", "int64", []),
        b.input("x", "float32", ["n", "n"]),
        b.input("row", "float32", [3, "n"]),
    )

    def body(i: GraphBuilder, number: Value, going: Value, square: Value, rows: Value) -> Sequence[Value]:
        product = i.add("MatMul", [rows, square])
        longer = i.add("Concat", [rows, i.add("ReduceMean", [product, b.ints(1)])], {"axis": 1})
        wide = i.add("Pad", [square, b.ints(0, 0, 1, 1), constant(b, 0.5, np.float32)])
        return [going, wide, longer, i.add("ReduceSum", [product], {"keepdims": 0})]

    return add_loop(b, trips, None, [x, row], body, 3)


def shared(b: GraphBuilder) -> Sequence[Value]:
    """Add a loop in which two values have one new value, and one never changes."""
    trips, x = b.input("trips", "int64", []), b.input("x", "float32", ["n"])
    fixed = b.add("Sin", [x])

    def body(i: GraphBuilder, number: Value, going: Value, *values: Value) -> Sequence[Value]:
        state, one, other, same = values
        share = i.add("Mul", [i.add("Sum", [i.add("ReduceMean", [state]), one, other]), i.add("ReduceMax", [same])])
        longer = i.add("Concat", [state, i.add("Sin", [share])], {"axis": 0})
        return [going, longer, share, share, same, i.add("ReduceSum", [one], {"keepdims": 0})]

    return add_loop(b, trips, None, [x, b.constant(normal(1)), b.constant(-normal(1)), fixed], body, 5)


# **** tests ****


@EVERY_LEVEL
def test_decoder_with_caches(machine: Machine) -> None:
    for length in (0, 3):
        past = normal(1, HEADS, length, SIZE)
        check(machine, graph_of(decoder), np.array(9), np.array(-1), past, -past)


@pytest.mark.full("cpu")
@pytest.mark.parametrize("make", [attention, in_front, in_two_dimensions, shared], ids=lambda make: make.__name__)
def test_values_that_grow(make: Make) -> None:
    inputs = {
        attention: [normal(2, HEADS, 4, SIZE), normal(2, HEADS, 4, SIZE), normal(2, HEADS, 1, SIZE)],
        in_front: [normal(4, 5)],
        in_two_dimensions: [normal(3, 3) / 2, normal(3, 3)],
        shared: [normal(3)],
    }
    check(BEST[0], graph_of(make), np.array(7), *inputs[make])


@pytest.mark.full("cpu")
@pytest.mark.parametrize("trips", [0, 5])
def test_what_never_changes_is_computed_before_the_loop(trips: int) -> None:
    def make(b: GraphBuilder) -> Sequence[Value]:
        x, features, trips = (
            b.input("x", "float32", ["n", 4]),
            b.input("features", "float32", [6, 5]),
            b.input("trips", "int64", []),
        )
        weights = b.constant(normal(5, 4))

        def body(i: GraphBuilder, number: Value, going: Value, state: Value) -> Sequence[Value]:
            keys = i.add("Tanh", [i.add("MatMul", [features, weights])], name="keys")
            mean = i.add("ReduceMean", [state, b.ints(0)])
            shares = i.add("Softmax", [i.add("MatMul", [mean, i.add("Transpose", [keys])])])
            return [going, i.add("Concat", [state, i.add("MatMul", [shares, keys])], {"axis": 0}), shares]

        return add_loop(b, trips, None, [x], body, 2)

    session = check(BEST[0], graph_of(make), normal(3, 4), normal(6, 5), np.array(trips))
    feeds = {"x": normal(3, 4), "features": normal(6, 5), "trips": np.array(trips)}
    loop = growing_loop_of(session, feeds)
    assert loop is not None
    assert loop._iterations.before is not None
    assert [node.op for node in loop._iterations.before.nodes] == ["MatMul", "Tanh", "Transpose"]
    session.run(feeds, profile=True)


@pytest.mark.full("cpu")
@pytest.mark.parametrize("most", [70, None])
@pytest.mark.parametrize("threads", [1, 2])
def test_values_outgrow_their_memory(most: int | None, threads: int) -> None:
    """The memory at first is for 64 iterations; without a limit, the condition ends the loop."""

    def make(b: GraphBuilder) -> Sequence[Value]:
        x = b.input("x", "float32", [2, "n", 3])

        def body(i: GraphBuilder, number: Value, going: Value, state: Value) -> Sequence[Value]:
            mean = i.add("ReduceMean", [state, b.ints(1)])
            longer = i.add("Concat", [state, i.add("Cos", [mean]), mean], {"axis": 1})
            return [i.add("Less", [number, constant(b, 140)]), longer, mean]

        return add_loop(b, None if most is None else constant(b, most), constant(b, True), [x], body, 2)

    check(BEST[0], graph_of(make), normal(2, 4, 3), threads=threads)


def test_no_iteration_and_an_early_end() -> None:
    graph, past = graph_of(decoder), normal(1, HEADS, 3, SIZE)
    session = check(BEST[0], graph, np.array(0), np.array(-1), past, past)
    feeds = {"trips": np.array(9), "last": np.array(-1), "keys": past, "values": past}
    words = session.run(feeds)["y3"].argmax(axis=2)[:, 0]
    last = words[4]
    ended = session.run({**feeds, "last": np.array(last)})
    assert len(ended["y3"]) == words.tolist().index(last) + 1
    assert ended["y1"].shape[2] == 3 + len(ended["y3"])


def test_other_lengths_compile_nothing() -> None:
    graph = graph_of(decoder)
    session = session_of(BEST[0], graph)

    def run(length: int) -> dict[str, Array]:
        past = normal(1, HEADS, length, SIZE)
        feeds = {"trips": np.array(12), "last": np.array(-1), "keys": past, "values": -past}
        found = session.run(feeds)
        others = session_of(BEST[0], graph, placement={"loop": "host"}).run(feeds)
        for name, expected in others.items():
            np.testing.assert_array_equal(found[name], expected, err_msg=name)
        loop = growing_loop_of(session, feeds)
        assert loop is not None
        return {"programs": loop._programs}

    assert run(2)["programs"] is run(30)["programs"]


def test_index_out_of_range() -> None:
    def make(b: GraphBuilder) -> Sequence[Value]:
        x, table = b.input("x", "int64", ["n"]), constant(b, [1.0, 2.0])

        def body(i: GraphBuilder, number: Value, going: Value, state: Value) -> Sequence[Value]:
            found = i.add("Gather", [table, i.add("ReduceMax", [state])])
            return [going, i.add("Concat", [state, i.add("Add", [number, b.ints(1)])], {"axis": 0}), found]

        return add_loop(b, constant(b, 5), None, [x], body, 2)

    session = session_of(BEST[0], graph_of(make))
    with pytest.raises(ExecutionError, match="index 2 is out of range"):
        session.run({"x": np.array([0])})


def test_endless_loop_ends_with_the_time_limit() -> None:
    def make(b: GraphBuilder) -> Sequence[Value]:
        def body(i: GraphBuilder, number: Value, going: Value, state: Value) -> Sequence[Value]:
            half = i.add("Slice", [i.add("Concat", [state, state], {"axis": 0}), b.ints(0), i.add("Shape", [state])])
            return [going, i.add("Concat", [half, i.add("ReduceMax", [state])], {"axis": 0})]

        return add_loop(b, None, None, [b.input("x", "float32", ["n"])], body, 1)

    session = session_of(BEST[0], graph_of(make))
    with pytest.raises(RunTimeoutError, match="iteration"):
        session.run({"x": normal(1)}, timeout=0.2)


def test_profile_counts_all_iterations() -> None:
    past = normal(1, HEADS, 3, SIZE)
    session = session_of(BEST[0], graph_of(decoder))
    feeds = {"trips": np.array(9), "last": np.array(-1), "keys": past, "values": past}
    session.run(feeds, profile=True)
    profile = session.last_profile
    assert profile is not None
    nodes = {node for kernel in profile.kernels for node in kernel.nodes}
    assert {"argmax", "softmax"} <= nodes


def test_taps_inside_the_body() -> None:
    past = normal(1, HEADS, 3, SIZE)
    feeds = {"trips": np.array(4), "last": np.array(-1), "keys": past, "values": past}
    taps = session_of(BEST[0], graph_of(decoder), taps=["softmax"]).run(feeds)["softmax"]
    assert [array.shape[-1] for array in taps] == [4, 5, 6, 7]
