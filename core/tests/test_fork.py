"""Forked children of a process with threads: locks are open, work is complete, and sessions run."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from forked import (
    PATIENCE,
    check_pool,
    fork_while_busy,
    in_child,
    is_forking,
    kept_busy,
    needs_fork,
    network,
    run_script,
    wait_until,
)

import lite_core as lite
from lite_core import forking
from lite_core.collector import collector_paused
from lite_core.forking import new_lock, undivided
from lite_core.plugins import plugins_with

pytestmark = needs_fork

# **** locks ****


@contextmanager
def held_by_another_thread(lock_of_thread: Callable[[], Any]) -> Iterator[None]:
    """Let another thread hold a lock, which it gets from a function, during the body."""
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with lock_of_thread():
            held.set()
            release.wait(PATIENCE)

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(PATIENCE)
    try:
        yield
    finally:
        release.set()
        thread.join(PATIENCE)


def test_lock_of_another_thread_is_open_in_the_child() -> None:
    lock = new_lock()
    with held_by_another_thread(lambda: lock):
        assert in_child(lambda: lock.acquire(timeout=PATIENCE / 2))
        assert not lock.acquire(blocking=False)


def test_lock_of_the_thread_that_forks_stays_its_own() -> None:
    lock: Any = new_lock()

    def release() -> bool:
        lock.release()
        return not lock._is_owned()

    with lock:
        assert in_child(release)
        assert lock._is_owned()


def test_locks_that_nothing_uses_are_forgotten() -> None:
    locks = [new_lock() for _ in range(100)]
    known = len(forking._locks)
    del locks
    assert len(forking._locks) <= known - 100


# **** undivided work ****


@contextmanager
def another_thread_in(work: Callable[[], Any]) -> Iterator[list[bool]]:
    """Let another thread be in a context until this thread forks, and a bit longer. The list tells that it was left."""
    forker, begun = threading.current_thread(), threading.Event()
    done: list[bool] = []

    def enter() -> None:
        with work():
            begun.set()
            wait_until(lambda: is_forking(forker))
            done.append(True)

    worker = threading.Thread(target=enter)
    worker.start()
    assert begun.wait(PATIENCE)
    yield done
    worker.join(PATIENCE)


def test_fork_waits_for_the_work_of_another_thread() -> None:
    with another_thread_in(undivided) as done:
        assert in_child(lambda: done == [True])


def test_collector_is_not_paused_in_the_child() -> None:
    with another_thread_in(collector_paused):
        assert in_child(gc.isenabled)


def test_fork_gets_its_turn_between_works_that_follow_each_other() -> None:
    begin = time.monotonic()
    with kept_busy(_work, _work):
        assert in_child(lambda: True)
    assert time.monotonic() - begin < forking._PATIENCE_SECONDS


def _work() -> None:
    with undivided():
        time.sleep(0.0001)  # lets other threads take the interpreter


def test_fork_during_undivided_work_waits_for_no_other() -> None:
    begin = time.monotonic()
    with undivided(), held_by_another_thread(undivided):
        assert in_child(lambda: True)
    assert time.monotonic() - begin < forking._PATIENCE_SECONDS


def test_fork_goes_on_if_the_work_of_another_thread_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forking, "_PATIENCE_SECONDS", 0.01)
    lock = new_lock()
    with held_by_another_thread(undivided), held_by_another_thread(lambda: lock):
        assert in_child(lambda: lock.acquire(timeout=PATIENCE / 2))


def test_thread_pool_takes_work_while_a_fork_waits() -> None:
    """Undivided work that needs a pool ends, although a hook of Python keeps pools from taking work during a fork."""
    run_script("""
        import os, threading
        import lite_core.forking
        from concurrent.futures import ThreadPoolExecutor
        from forked import is_forking, wait_until

        forker, begun, done = threading.current_thread(), threading.Event(), []

        def work():
            with lite_core.forking.undivided(), ThreadPoolExecutor(1) as pool:
                begun.set()
                wait_until(lambda: is_forking(forker))
                done.append(pool.submit(lambda: True).result())

        threading.Thread(target=work).start()
        begun.wait()
        child = os.fork()
        if not child:
            os._exit(0 if done else 9)
        assert os.waitpid(child, 0)[1] == 0
    """)


# **** sessions ****


def host_session() -> lite.Session:
    return lite.load(network(), backend="host")


def toy_session() -> lite.Session:
    """Return a session on a backend of NumPy kernels."""
    toy = lite.KernelBackend("toy")
    toy.kernel("MatMul")(lambda a, b, *, out: np.matmul(a, b, out=out))
    toy.kernel("Tanh")(lambda x, *, out: np.tanh(x, out=out))
    return lite.load(network(), backend="toy", plugins=plugins_with(toy))


def test_child_runs_a_session_that_threads_of_the_parent_use() -> None:
    fork_while_busy(host_session(), 2)


@pytest.mark.full("reliability")
@pytest.mark.parametrize("make", [host_session, toy_session])
def test_eighty_children_run_a_session_that_threads_of_the_parent_use(make: Callable[[], lite.Session]) -> None:
    fork_while_busy(make(), 80)


def test_pool_of_forked_processes_runs_a_session() -> None:
    check_pool(host_session())


def test_children_of_a_process_whose_thread_loads_its_first_model() -> None:
    """Modules that another thread was importing are complete in the child."""
    run_script("""
        import threading
        import lite_core as lite
        from forked import in_child, network, rows

        def load_and_run():
            lite.load(network(), backend="host").run(x=rows(3))

        loader = threading.Thread(target=load_and_run)
        loader.start()
        while loader.is_alive():
            in_child(load_and_run)
        in_child(load_and_run)
    """)
