"""LSTM, GRU and RNN whose hidden units are divided among threads: every bit is that of one thread."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import test_bfloat16
import test_quantized_recurrent
from agreement import MACHINES
from graph_agreement import SeededGraph
from levels import backend_for, machine_params, run_on, runnable_machines
from test_recurrent import GATES, layer

from lite_core import load
from lite_core.backend import Options
from lite_core.builder import GraphBuilder
from lite_core.ir import Graph
from lite_core.plugins.backends import plugins_with
from lite_core.session import Session
from lite_cpu.kernels.divided_recurrent import UnitsOfTurn
from lite_cpu.lowering.compile import lower_graph
from lite_cpu.lowering.weights import WeightCache
from lite_cpu.machine import X86_64_V3, Machine
from lite_cpu.machine_code.library import KernelLibrary
from lite_cpu.tuning import Tuning

Array = np.ndarray[Any, Any]

avx2 = pytest.mark.skipif(X86_64_V3 not in runnable_machines(), reason="the processor lacks AVX2")


def dividing(machine: Machine) -> Machine:
    """Return a processor on which meetings of threads cost nothing, so that small layers are divided, too."""
    return machine.with_tuning(Tuning(barrier_seconds=0.0))


def is_divided(machine: Machine, graph: Graph, threads: int, **options: Any) -> bool:
    steps = lower_graph(graph, Options(threads=threads, **options), KernelLibrary(machine), WeightCache()).steps
    return any(isinstance(step.kernel, UnitsOfTurn) for step in steps)


def assert_equal_bits(machine: Machine, graph: Graph, inputs: dict[str, Array], **options: Any) -> None:
    """Assert that 2 to 4 threads, as far as they divide the units, have the results of one thread."""
    machine = dividing(machine)
    numbers = [threads for threads in (2, 3, 4) if is_divided(machine, graph, threads, **options)]
    assert numbers
    expected = run_on(machine, graph, inputs, **options)
    for threads in numbers:
        found = run_on(machine, graph, inputs, threads=threads, **options)
        for name, array in expected.items():
            np.testing.assert_array_equal(found[name], array)


ONE = {"batch": 1, "hidden": 37}
TILES = {"batch": 5, "hidden": 18, "direction": "bidirectional", "layout": 1}
LENGTHS = {"batch": 5, "hidden": 18, "direction": "reverse", "lengths": (4, 0, 2, 1, 3)}
FAST = ("GRU", ONE), ("LSTM", TILES), ("LSTM", LENGTHS)


@MACHINES
@pytest.mark.parametrize(("op", "options"), FAST, ids=["one sequence", "tiles of sequences", "lengths"])
def test_layers(machine: Machine, op: str, options: dict[str, Any]) -> None:
    g = SeededGraph("float32")
    assert_equal_bits(machine, g.built(*layer(g, op, **options)), g.inputs)


@MACHINES
@pytest.mark.full("cpu")
@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("options", [ONE, TILES, LENGTHS], ids=["one sequence", "tiles of sequences", "lengths"])
def test_every_operator(machine: Machine, op: str, options: dict[str, Any]) -> None:
    test_layers(machine, op, options)


@MACHINES
@pytest.mark.parametrize(
    ("op", "options"),
    [("GRU", {"linear_before_reset": 1}), ("LSTM", {"peepholes": True, "constant": False, "initial": False})],
)
def test_options(machine: Machine, op: str, options: dict[str, Any]) -> None:
    g = SeededGraph("float32")
    graph = g.built(*layer(g, op, batch=1, hidden=37, **options))
    assert_equal_bits(machine, graph, g.inputs)


@pytest.mark.parametrize("machine", machine_params([machine for machine in runnable_machines() if machine.half]))
def test_float16_and_different_activations_of_directions(machine: Machine) -> None:
    g = SeededGraph("float16")
    functions = ["Sigmoid", "Tanh", "HardSigmoid", "Relu"]
    graph = g.built(*layer(g, "GRU", batch=1, hidden=37, direction="bidirectional", activations=functions))
    assert_equal_bits(machine, graph, g.inputs)


@MACHINES
def test_quantized_weights(machine: Machine) -> None:
    assert_equal_bits(machine, *test_quantized_recurrent.layer(batch=5, hidden=37))


@test_bfloat16.here
def test_pairs_of_bfloat16() -> None:
    g = SeededGraph("float32")
    graph = g.built(*layer(g, "GRU", batch=1, hidden=38, bias=False))
    assert_equal_bits(test_bfloat16.MACHINE, graph, g.inputs, precision="bfloat16")


def test_layers_are_divided_where_it_saves_more_than_the_meetings_cost() -> None:
    def divided(threads: int, **options: Any) -> bool:
        g = SeededGraph("float32")
        return is_divided(X86_64_V3, g.built(*layer(g, "GRU", **options)), threads)

    assert divided(2, batch=1, hidden=400)
    assert not divided(1, batch=1, hidden=400)
    assert not divided(2, batch=1, hidden=64)
    assert not divided(2, batch=1, hidden=400, steps=0)
    # Each thread has a direction of its own.
    assert not divided(2, batch=1, hidden=400, direction="bidirectional")
    assert divided(4, batch=1, hidden=400, direction="bidirectional")


@MACHINES
def test_lengths_of_a_session(machine: Machine) -> None:
    """One program serves all numbers of time steps."""
    b = GraphBuilder("lengths")
    random = np.random.default_rng(0)
    w, r = (b.constant(random.standard_normal((1, 4 * 20, n)).astype(np.float32)) for n in (3, 20))
    inputs = [b.input("x", "float32", ("t", 1, 3)), w, r]
    for i, value in enumerate(b.add_node("LSTM", inputs, {"hidden_size": 20}, outputs=3)):
        b.output(value, f"y{i}")
    graph, plugins = b.build(), plugins_with(backend_for(dividing(machine)))
    one, two = (load(graph, backend="level", plugins=plugins, threads=n, fallback="never") for n in (1, 2))
    for steps in (4, 9, 1, 0, 12):
        x = random.standard_normal((steps, 1, 3)).astype(np.float32)
        for expected, found in zip(one.run({"x": x}).values(), two.run({"x": x}).values()):
            np.testing.assert_array_equal(found, expected)


@avx2
def test_runs_that_return_to_python_go_on() -> None:
    """A run that takes longer than 20 milliseconds lets Python test for signals, then goes on with the next turn."""
    g = SeededGraph("float32")
    graph = g.built(*layer(g, "GRU", steps=40_000, batch=1, size=1, hidden=9))
    assert_equal_bits(X86_64_V3, graph, g.inputs)


@avx2
def test_layer_in_the_body_of_a_loop() -> None:
    """The jumps of the layer are within those of the loop, which carries its state."""
    g = SeededGraph("float32")
    body = GraphBuilder("body", outer=g.b)
    state, x = body.input("state", "float32", (1, 1, 20)), body.input("x", "float32", (1, 5))
    sequence = body.add("Expand", [x, body.ints(3, 1, 5)])
    weights = [g.constant(1, 60, n) for n in (5, 20)]
    y, final = body.add_node("GRU", [sequence, *weights, None, None, state], {"hidden_size": 20}, outputs=2)
    body.output(final, "final")
    body.output(y, "y")
    attributes = {"body": body.build(), "num_scan_inputs": 1}
    graph = g.built(*g.b.add_node("Scan", [g.input(1, 1, 20), g.input(6, 1, 5)], attributes, outputs=2))
    assert_equal_bits(X86_64_V3, graph, g.inputs)


@avx2
@pytest.mark.full("cpu")
def test_sessions_that_run_at_the_same_time() -> None:
    """Two threads of Python with a session each, whose runs compete for the threads and for the processors."""
    count = 3000

    def repeat(session: Session, inputs: dict[str, Array], expected: dict[str, Array]) -> int:
        runs = [session.run(inputs) for _ in range(count)]
        return sum(all(np.array_equal(run[name], expected[name]) for name in expected) for run in runs)

    machine = dividing(X86_64_V3)
    plugins = plugins_with(backend_for(machine))
    for threads in (2, 3):
        work = []
        for op in ("GRU", "LSTM"):
            g = SeededGraph("float32")
            graph = g.built(*layer(g, op, batch=1, hidden=70, steps=50))
            session = load(graph, backend="level", plugins=plugins, threads=threads, fallback="never")
            work.append((session, g.inputs, run_on(machine, graph, g.inputs)))
        with ThreadPoolExecutor(2) as pool:
            assert list(pool.map(repeat, *zip(*work))) == [count, count]
