"""``timeout=`` of runs: endless loops end, the error says where, and the session can run again.

The loops here end by themselves after seconds, so that a test fails rather than hangs.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from lite_core.builder import GraphBuilder
from lite_core.errors import ExecutionError, LiteError, RunTimeoutError
from lite_core.ir import Graph, Value
from lite_core.kernel_backend import KernelBackend
from lite_core.plugins import plugins_with
from lite_core.session import Session, load

TRIPS, X = 300_000, np.ones(2, np.float32)


toy = KernelBackend("toy")


@toy.kernel("Exp", dtypes=["float32"])
def exp(x: Any, *, out: Any) -> None:
    np.exp(x, out=out)


@toy.kernel("Relu", dtypes=["float32"])
def relu(x: Any, *, out: Any) -> None:
    np.maximum(x, 0, out=out)


def session_of(graph: Graph, backend: str = "toy") -> Session:
    return load(graph, backend=[backend, "host"], plugins=plugins_with(toy))


def looping(ops: tuple[str, ...] = ("Exp", "Relu"), levels: int = 1) -> Graph:
    """Build nested loops that run while the input ``goes_on`` is true; the inner one is called ``loop_1``."""
    b = GraphBuilder("looping")
    x, goes_on = b.input("x", "float32", (2,)), b.input("goes_on", "bool", ())
    trips = b.constant(np.array(TRIPS))

    def loop(outer: GraphBuilder, level: int, start: Value) -> Value:
        body = GraphBuilder(f"body_{level}", outer=outer)
        body.input(f"i{level}", "int64", ())
        condition, value = body.input(f"c{level}", "bool", ()), body.input(f"v{level}", "float32", (2,))
        inner = loop(body, level + 1, value) if level < levels else value
        for op in ops:
            inner = body.add(op, [inner])
        body.output(condition)
        body.output(inner)
        return outer.add("Loop", [trips, goes_on, start], {"body": body.build()}, name=f"loop_{level}")

    b.output(loop(b, 1, x), "y")
    return b.build()


def scanning(rows: int) -> Graph:
    b = GraphBuilder("scanning")
    body = GraphBuilder("body", outer=b)
    state, row = body.input("state", "float32", (2,)), body.input("row", "float32", (2,))
    body.output(body.add("Tanh", [body.add("Add", [state, row])]))
    x = b.input("x", "float32", (rows, 2))
    start = b.constant(np.zeros(2, np.float32))
    b.output(b.add("Scan", [start, x], {"body": body.build(), "num_scan_inputs": 1}, name="scan"), "y")
    return b.build()


@pytest.mark.parametrize("ops", [("Exp", "Relu"), ()], ids=["body", "empty-body"])
@pytest.mark.parametrize("backend", ["host", "toy"])
def test_an_endless_loop_ends(backend: str, ops: tuple[str, ...]) -> None:
    """On ``host`` the references run the body; on a device it has a plan of its own."""
    session = session_of(looping(ops), backend)
    with pytest.raises(RunTimeoutError, match=r"'loop_1'.*iteration \d+") as caught:
        session.run(x=X, goes_on=np.array(True), timeout=0.05)
    assert "after the 0.05 seconds" in str(caught.value)
    assert isinstance(caught.value, ExecutionError)
    assert isinstance(caught.value, TimeoutError)
    assert session.run(x=X, goes_on=np.array(False), timeout=1e3)["y"].tolist() == [1, 1]


def test_nested_loops_are_both_named() -> None:
    session = load(looping(("Relu",), levels=2), backend="host")
    with pytest.raises(RunTimeoutError, match=r"'loop_1'.*'loop_2'.*iteration \d+"):
        session.run(x=X, goes_on=np.array(True), timeout=0.05)


def test_long_scans_end() -> None:
    session = load(scanning(10**6), backend="host")
    x = np.zeros((10**6, 2), np.float32)
    with pytest.raises(RunTimeoutError, match=r"'scan'.*iteration \d+"):
        session.run(x=x, timeout=0.05)


def test_steps_of_a_plan_and_nodes_on_host_test_the_time() -> None:
    b = GraphBuilder("two")
    b.output(b.add("Neg", [b.add("Exp", [b.input("x", "float32", (2,))])], name="last"), "y")
    session = session_of(b.build())
    with pytest.raises(RunTimeoutError, match="at run .*toy"):
        session.run(x=X, timeout=1e-9)
    np.testing.assert_allclose(session.run(x=X, timeout=100)["y"], -np.exp(X))


def test_bound_sessions() -> None:
    session = load(looping(), backend="host")
    goes_on = np.array(False)
    binding = session.bind({"x": X, "goes_on": goes_on})
    goes_on[...] = True
    with pytest.raises(RunTimeoutError):
        binding.run(timeout=0.05)
    goes_on[...] = False
    assert binding.run(timeout=100)["y"].tolist() == [1, 1]


def test_each_thread_has_its_own_limit() -> None:
    session, found = load(looping(), backend="host"), {}
    inside, done = threading.Event(), threading.Event()

    def run(name: str, timeout: float) -> None:
        try:
            session.run(x=X, goes_on=np.array(True), timeout=timeout)
        except LiteError as error:
            found[name] = type(error)

    def wait(name: str) -> None:
        inside.set()
        assert done.wait(60)
        found[name] = session.run(x=X, goes_on=np.array(False))["y"].tolist()

    threads = [threading.Thread(target=run, args=("limited", 0.05)), threading.Thread(target=wait, args=("free",))]
    for thread in threads:
        thread.start()
    assert inside.wait(60)
    threads[0].join(60)
    done.set()
    threads[1].join(60)
    assert found == {"limited": RunTimeoutError, "free": [1, 1]}


def test_an_input_may_be_called_timeout() -> None:
    b = GraphBuilder("clash")
    b.output(b.add("Relu", [b.input("timeout", "float32", (2,))]), "y")
    assert load(b.build(), backend="host").run({"timeout": X}, timeout=60)["y"].tolist() == [1, 1]


def test_profiles_work_with_a_limit() -> None:
    session: Any = load(looping(), backend="host")
    session.run(x=X, goes_on=np.array(False), timeout=60, profile=True)
    assert session.last_profile.partitions
