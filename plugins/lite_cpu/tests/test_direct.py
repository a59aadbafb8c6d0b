"""The short way through a run: the same results bit by bit, and the runs that go the long way."""

from __future__ import annotations

import gc
import logging
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from agreement import MACHINES, normal
from levels import backend_for
from saving import convolutions

from lite_core import Session, load
from lite_core.builder import GraphBuilder
from lite_core.errors import ExecutionError, RunTimeoutError
from lite_core.ir import Graph
from lite_core.plugins.backends import plugins_with
from lite_cpu.direct import DirectProgram
from lite_cpu.executable import CpuExecutable
from lite_cpu.machine import Machine

Array = np.ndarray[Any, Any]


def session_of(machine: Machine, graph: Graph, **options: Any) -> Session:
    return load(graph, backend="level", plugins=plugins_with(backend_for(machine)), fallback="never", **options)


def direct_of(session: Session) -> DirectProgram | None:
    """Return the short way through the plan of a session whose inputs have static shapes."""
    plan = session.plan()
    executable = plan.compiled[0].executable
    assert isinstance(executable, CpuExecutable)
    return executable.direct_run(plan.graph, plan.steps[0], plan.arenas, plan.pool)


def two_products() -> Graph:
    """Inputs are used in the opposite order, one not at all, and the first result is computed last."""
    b = GraphBuilder("two")
    x, y, _ = b.input("x", "float32", (3, 4)), b.input("y", "float32", (4, 4)), b.input("unused", "float32", (1,))
    first = b.add("MatMul", [y, b.constant(normal(4, 5))])
    second = b.add("MatMul", [x, first])
    b.output(b.add("Relu", [second]), "late")
    b.output(first, "early")
    return b.build()


def inputs_of(session: Session) -> dict[str, Array]:
    return {name: normal(*type.shape) for name, type in session.inputs.items()}  # type: ignore[misc]


@MACHINES
@pytest.mark.parametrize("make", [two_products, lambda: convolutions().graph])
def test_results_are_those_of_the_long_way(machine: Machine, make: Callable[[], Graph]) -> None:
    session = session_of(machine, make(), threads=2)
    inputs = inputs_of(session)
    long = session.run(inputs, profile=True)  # needs the times of kernels
    direct = direct_of(session)
    assert direct is not None
    found = direct([*inputs.values()])
    assert found is not None
    for results in (dict(zip(session.outputs, found)), session.run(inputs)):
        assert [*results] == [*long]
        assert [a.tobytes() for a in results.values()] == [a.tobytes() for a in long.values()]
    out = {name: np.full_like(array, 9) for name, array in reversed(long.items())}
    assert direct([*inputs.values()], out) is not None
    bound = session.bind(inputs, {name: np.empty_like(array) for name, array in long.items()})
    for results in (out, session.run(inputs, out=out), bound.run(), bound.run()):
        assert all(results[name].tobytes() == array.tobytes() for name, array in long.items())


@MACHINES
def test_arrays_that_must_be_copied_and_logged_runs_go_the_long_way(machine: Machine) -> None:
    session = session_of(machine, two_products())
    inputs = inputs_of(session)
    expected = session.run(inputs)
    direct = direct_of(session)
    assert direct is not None
    turned = inputs | {"x": np.asfortranarray(inputs["x"])}
    assert direct([*turned.values()]) is None
    narrow = {name: np.empty((a.shape[0], 9), np.float32)[:, : a.shape[1]] for name, a in expected.items()}
    for out in (narrow, {"late": np.empty((3, 5), np.float32)}, {n: np.empty((7, 5), np.float32) for n in expected}):
        assert direct([*inputs.values()], out) is None
    results = session.run(turned)
    assert all(results[name].tobytes() == array.tobytes() for name, array in expected.items())
    log = logging.getLogger("lite.run")
    log.setLevel(logging.DEBUG)
    try:
        assert direct([*inputs.values()]) is None
    finally:
        log.setLevel(logging.NOTSET)


@MACHINES
@pytest.mark.parametrize("added", ["x", "y"])
def test_a_plan_that_returns_an_input_or_a_result_twice_has_no_short_way(machine: Machine, added: str) -> None:
    b = GraphBuilder("more")
    x = b.input("x", "float32", (2, 3))
    b.output(b.add("Relu", [x]), "y")
    graph = b.build()
    graph.outputs.append({"x": x, "y": graph.outputs[0]}[added])
    session = session_of(machine, graph)
    assert direct_of(session) is None
    inputs = inputs_of(session)
    results = session.run(inputs)
    assert [*results] == (["y", "x"] if added == "x" else ["y"])
    assert not any(np.may_share_memory(array, inputs["x"]) for array in results.values())


@MACHINES
def test_a_plan_whose_result_finds_its_shape_has_no_short_way(machine: Machine) -> None:
    b = GraphBuilder("found")
    boxes, scores = b.input("boxes", "float32", (1, 2, 4)), b.input("scores", "float32", (1, 1, 2))
    most = b.constant(np.array(2))
    b.output(b.add("NonMaxSuppression", [boxes, scores, most]), "y")
    session = session_of(machine, b.build())
    assert direct_of(session) is None
    given = {"boxes": np.array([[[0, 0, 1, 1], [2, 2, 3, 3]]], "f4"), "scores": np.array([[[0.5, 0.9]]], "f4")}
    assert session.run(given)["y"].tolist() == [[0, 0, 1], [0, 0, 0]]


@MACHINES
def test_a_fault_and_the_end_of_the_time_are_errors_and_the_next_run_is_right(machine: Machine) -> None:
    b = GraphBuilder("faulty")
    rows = b.add("Relu", [b.input("x", "float32", (5, 3))])
    b.output(b.add("Gather", [rows, b.input("i", "int64", (2,))], name="look"), "y")
    session = session_of(machine, b.build())
    inputs = {"x": normal(5, 3), "i": np.array([1, 4])}
    assert direct_of(session) is not None
    bound = session.bind(inputs)
    expected = bound.run()["y"].copy()
    for run in (bound.run, lambda: session.run(inputs)):
        inputs["i"][1] = 7
        with pytest.raises(ExecutionError, match="7"):
            run()
        inputs["i"][1] = 4
        with pytest.raises(RunTimeoutError):
            session.run(inputs, timeout=1e-9)
        assert np.array_equal(run()["y"], expected)


@MACHINES
def test_threads_run_at_once_and_each_owns_its_results(machine: Machine) -> None:
    session = session_of(machine, convolutions().graph, threads=2)
    assert direct_of(session) is not None
    given = [{name: array + number for name, array in inputs_of(session).items()} for number in range(4)]
    expected = [session.run(inputs, profile=True) for inputs in given]
    with ThreadPoolExecutor(4) as pool:
        found = [*pool.map(session.run, given * 50)]
    for number, results in enumerate(found):
        assert all(results[n].tobytes() == a.tobytes() for n, a in expected[number % 4].items())


@MACHINES
def test_a_session_is_freed_without_the_garbage_collector(machine: Machine) -> None:
    session = session_of(machine, two_products())
    session.run(inputs_of(session))
    plan = weakref.ref(session.plan())
    gc.disable()
    try:
        del session
        assert plan() is None
    finally:
        gc.enable()
