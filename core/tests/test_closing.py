"""Closing sessions: memory is freed at once, runs in flight are awaited, later calls are refused."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from lite_core.builder import GraphBuilder
from lite_core.errors import SessionClosedError
from lite_core.ir import Graph
from lite_core.kernel_backend import KernelBackend
from lite_core.plugins import plugins_with
from lite_core.session import Session, load

X = np.ones((2, 3), np.float32)
PATIENCE = 30.0

started, go_on = threading.Event(), threading.Event()
slow = KernelBackend("slow")


@slow.kernel("Exp")
def exp(x: Any, *, out: Any) -> None:
    started.set()
    assert go_on.wait(PATIENCE)
    np.exp(x, out=out)


@pytest.fixture(autouse=True)
def events() -> Iterator[None]:
    started.clear()
    go_on.clear()
    yield
    go_on.set()


def graph_of(op: str) -> Graph:
    b = GraphBuilder("net")
    weights = b.constant(np.ones((3, 3), np.float32), "weights")
    b.output(b.add(op, [b.add("MatMul", [b.input("x", "float32", ["n", 3]), weights])]), "y")
    return b.build()


def session_of(op: str = "Neg") -> Session:
    return load(graph_of(op), backend=["slow", "host"], plugins=plugins_with(slow))


def test_closing_frees_plans_at_once_and_keeps_what_was_returned() -> None:
    gc.disable()  # what only the collector frees is not freed at once
    try:
        with session_of() as session:
            found = session.run({"x": X})["y"]
            binding = session.bind({"x": X})
            binding.run()
            binding.run()
            held = [weakref.ref(one) for one in (session.plan({"x": X.shape}), session.graph, session.planner)]
        assert [one() for one in held] == [None, None, None]
    finally:
        gc.enable()
    assert found.tolist() == [[-3.0] * 3] * 2
    assert binding.outputs["y"].tolist() == found.tolist()


def test_a_closed_session_says_so() -> None:
    session = session_of()
    binding = session.bind({"x": X})
    session.close()
    session.close()
    calls: list[Any] = [
        lambda: session.run({"x": X}),
        lambda: session.run({"x": X}, timeout=1),
        lambda: session.bind({"x": X}),
        lambda: session.plan({"x": X.shape}),
        lambda: session.prepare({"x": X.shape}),
        lambda: session.graph,
        lambda: session.describe(),
        binding.run,
    ]
    for call in calls:
        with pytest.raises(SessionClosedError, match="the session of model 'net' is closed; load the model again"):
            call()
    assert session.closed
    assert repr(session) == "<Session of model net, closed>"
    assert (session.name, list(session.inputs), list(session.outputs)) == ("net", ["x"], ["y"])
    assert not hasattr(session, "misspelt")


@pytest.mark.parametrize("is_bound", [False, True])
def test_closing_waits_for_a_run_in_flight_and_refuses_new_ones(is_bound: bool) -> None:
    session = session_of("Exp")
    run: Any = lambda: session.run({"x": X})["y"]  # noqa: E731
    if is_bound:
        go_on.set()
        binding = session.bind({"x": X})
        binding.run()
        run = lambda: binding.run()["y"].copy()  # noqa: E731
        started.clear()
        go_on.clear()
    with ThreadPoolExecutor(3) as pool:
        running = pool.submit(run)
        assert started.wait(PATIENCE)
        closing = [pool.submit(session.close) for _ in range(2)]
        while not session.closed:
            pass
        with pytest.raises(SessionClosedError):
            run()
        assert not any(one.done() for one in closing)
        go_on.set()
        assert np.allclose(running.result(PATIENCE), np.exp(3))
        assert [one.result(PATIENCE) for one in closing] == [None, None]


def test_a_session_cannot_be_closed_inside_its_own_run() -> None:
    backend = KernelBackend("closing")

    @backend.kernel("Exp")
    def close(x: Any) -> Any:
        with pytest.raises(SessionClosedError, match="inside its own run"):
            session.close()
        return x

    session = load(graph_of("Exp"), backend=["closing", "host"], plugins=plugins_with(backend))
    assert session.run({"x": X})["y"].tolist() == [[3.0] * 3] * 2
    session.close()


def test_closing_while_threads_run_without_pause() -> None:
    session = session_of()
    binding = session.bind({"x": X})
    refused = []

    def work(run: Any) -> None:
        while True:
            try:
                run()
            except SessionClosedError as error:
                return refused.append(error)

    # A binding belongs to one thread.
    with ThreadPoolExecutor(3) as pool:
        for run in (binding.run, lambda: session.run({"x": X}), lambda: session.run({"x": X[:1]})):
            pool.submit(work, run)
        session.run({"x": X})
        session.close()
    assert len(refused) == 3
