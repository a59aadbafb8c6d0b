"""Forked children that tests run work in, and threads and sessions that keep their parent busy meanwhile."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import pickle
import select
import signal
import subprocess
import sys
import textwrap
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import lite_core as lite
from lite_core import forking
from lite_core.ir import Graph

__all__ = [
    "PATIENCE",
    "check_pool",
    "fork_while_busy",
    "in_child",
    "is_forking",
    "kept_busy",
    "needs_fork",
    "network",
    "rows",
    "run_script",
    "wait_until",
]

Array = np.ndarray[Any, Any]

#: Seconds after which something hangs.
PATIENCE = 60.0

#: Marks tests that fork. From version 3.12 on, Python warns of forks in processes with threads.
needs_fork = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork"),
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]


def in_child(work: Callable[[], object]) -> Any:
    """Return the result of ``work`` in a forked child, which ends by ``os._exit``; its exception is a failure."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            answer = True, work()
        except BaseException:
            answer = False, traceback.format_exc()
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump(answer, pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        if not select.select([pipe], [], [], PATIENCE)[0]:
            os.kill(child, signal.SIGKILL)
        content = pipe.read()
    status = os.waitpid(child, 0)[1]
    assert not status, f"the child hung or crashed, its status is {status}"
    succeeded, result = pickle.loads(content)
    assert succeeded, result
    return result


def run_script(script: str) -> None:
    """Run a script in a new process, in which it may import this module; fail if it fails or hangs."""
    path = {"PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(script)]
    subprocess.run(command, env={**os.environ, **path}, check=True, timeout=2 * PATIENCE)


@contextmanager
def kept_busy(*works: Callable[[], object]) -> Iterator[None]:
    """Call each function again and again, in a thread of its own, during the body; each has been called once before."""
    stop, started = threading.Event(), threading.Barrier(1 + len(works), timeout=PATIENCE)

    def repeat(work: Callable[[], object]) -> None:
        work()
        started.wait()
        while not stop.is_set():
            work()

    threads = [threading.Thread(target=repeat, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    try:
        started.wait()
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(PATIENCE)


def wait_until(is_so: Callable[[], bool]) -> None:
    """Return when a condition is met; fail if that takes too long."""
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def is_forking(thread: threading.Thread) -> bool:
    """Return True if a thread is about to fork and waits for the undivided work of other threads."""
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None and frame.f_code is not forking._wait_for_others.__code__:
        frame = frame.f_back
    return frame is not None


# **** sessions ****

_SIZE = 64


def network(seed: int = 0) -> Graph:
    """Return a network of matrix products, for any number of rows."""
    b = lite.GraphBuilder("network")
    x = b.input("x", "float32", ("n", _SIZE))
    random = np.random.default_rng(seed)
    for _ in range(3):
        weights = random.standard_normal((_SIZE, _SIZE), np.float32)
        x = b.add("Tanh", [b.add("MatMul", [x, b.constant(weights)])])
    b.output(x, "y")
    return b.build()


def rows(count: int) -> Array:
    """Return an input of the network."""
    return np.linspace(-1, 1, count * _SIZE, dtype=np.float32).reshape(count, _SIZE)


def fork_while_busy(session: lite.Session, count: int, backend: str = "host") -> None:
    """Fork while threads run and plan a session of the network.

    Children check a known plan, a plan for a new shape, and a new session. Products of several hundred rows are large
    enough for NumPy to use threads.

    Args:
        session: the session.
        count: the number of forks.
        backend: the backend of the new session.
    """
    few, many = (session.run(x=rows(count))["y"] for count in (3, 400))
    sizes = itertools.cycle(range(200, 400))

    def run() -> None:
        session.run(x=rows(3))

    def plan() -> None:
        session.run(x=rows(next(sizes)))

    def check() -> None:
        for run_again in (session.run, lite.load(network(), backend, threads=2).run):
            np.testing.assert_allclose(run_again(x=rows(3))["y"], few, atol=1e-5)
            np.testing.assert_allclose(run_again(x=rows(400))["y"], many, atol=1e-5)

    with kept_busy(run, run, plan, plan):
        for _ in range(count):
            in_child(check)


def check_pool(session: lite.Session) -> None:
    """Run a session of the network in a pool of forked processes."""
    expected = [session.run(x=rows(count))["y"] for count in range(1, 5)]
    with multiprocessing.get_context("fork").Pool(2, _remember, [session]) as pool:
        results = pool.map_async(_run_remembered, range(1, 9)).get(PATIENCE)
    for result, right in zip(results, expected):
        np.testing.assert_allclose(result, right, atol=1e-5)
    assert [len(result) for result in results] == [*range(1, 9)]


def _remember(session: lite.Session) -> None:
    global _session
    _session = session


def _run_remembered(count: int) -> Array:
    return _session.run(x=rows(count))["y"]
