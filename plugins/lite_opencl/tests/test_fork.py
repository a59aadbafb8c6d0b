"""Forked children of a process that has used OpenCL: errors instead of calls that never return."""

from __future__ import annotations

import multiprocessing

import numpy as np
import pytest
from forked import PATIENCE, in_child, needs_fork, network, rows, run_script
from opencl_device import first_device

import lite_core as lite

pytestmark = needs_fork


def load() -> lite.Session:
    """Return a session that has run once."""
    session = lite.load(network(), first_device()[1].label, fallback="never")
    session.run(x=rows(3))
    return session


def error_of_run(session: lite.Session, count: int, *, profile: bool = False) -> str:
    with pytest.raises(lite.ExecutionError) as error:
        session.run({"x": rows(count)}, profile=profile)
    return str(error.value)


@pytest.mark.parametrize("count", [3, 5], ids=["known-plan", "new-plan"])
@pytest.mark.parametrize("profile", [False, True], ids=["run", "profile"])
def test_session_of_the_parent_is_an_error(count: int, profile: bool) -> None:
    session = load()
    message = in_child(lambda: error_of_run(session, count, profile=profile))
    assert "opencl" in message
    assert "forked" in message
    assert "spawn" in message


def test_pool_of_forked_processes_passes_the_error_on() -> None:
    with multiprocessing.get_context("fork").Pool(1, _remember, [load()]) as pool:
        result = pool.map_async(_run_remembered, [3])
        with pytest.raises(lite.ExecutionError, match="opencl.*spawn"):
            result.get(PATIENCE)


def _remember(session: lite.Session) -> None:
    global _session
    _session = session


def _run_remembered(count: int) -> None:
    _session.run(x=rows(count))


def test_loading_in_the_child_is_an_error() -> None:
    load()

    def error_of_load() -> str:
        with pytest.raises(lite.BackendUnavailableError) as error:
            lite.load(network(), "opencl")
        return str(error.value)

    message = in_child(error_of_load)
    assert "opencl" in message
    assert "forked" in message
    assert "spawn" in message


def test_auto_leaves_opencl_out_in_the_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITE_BACKENDS", "opencl")
    session = load()
    expected = session.run(x=rows(3))["y"]

    def load_auto() -> tuple[tuple[str, ...], list[str]]:
        session = lite.load(network())
        np.testing.assert_allclose(session.run(x=rows(3))["y"], expected, atol=1e-5)
        return session.devices, [line for line in session.selection_log if line.startswith("opencl:")]

    devices, (line,) = in_child(load_auto)
    assert devices == ("host",)
    assert "forked" in line


def test_new_plan_of_an_automatic_session_leaves_opencl_out_in_the_child(monkeypatch: pytest.MonkeyPatch) -> None:
    first_device()
    monkeypatch.setenv("LITE_BACKENDS", "opencl")
    session = lite.load(network())
    expected = session.run(x=rows(3))["y"]

    def run() -> tuple[str, ...]:
        result = session.run(x=rows(4))["y"]
        np.testing.assert_allclose(result[:0], expected[:0])
        assert result.shape == (4, *expected.shape[1:])
        return session.devices

    assert in_child(run) == ("host",)


@pytest.mark.full("reliability")
def test_child_of_a_process_that_has_not_used_opencl_uses_it() -> None:
    first_device()
    run_script("""
        import lite_core as lite
        from forked import in_child, network, rows

        def load_and_run():
            session = lite.load(network(), "opencl", fallback="never")
            session.run(x=rows(3))
            return session.devices

        graph = network()
        lite.load(graph, "host").run(x=rows(3))
        assert in_child(load_and_run) == ("opencl",)
        assert load_and_run() == ("opencl",)
    """)


@pytest.mark.full("reliability")
def test_children_end_while_threads_of_their_parent_use_opencl() -> None:
    """They drop the parent's session and end by ``os._exit`` or, with all destructors, by ``sys.exit``."""
    first_device()
    run_script("""
        import gc, os, signal, sys
        import lite_core as lite
        from forked import kept_busy, network, rows

        sessions = [lite.load(network(), "opencl", fallback="never")]

        def run():
            for session in sessions:
                session.run(x=rows(3))

        with kept_busy(run, run):
            for number in range(6):
                child = os.fork()
                if not child:
                    signal.alarm(30)
                    if number > 1:
                        sessions.clear()
                        gc.collect()
                    if number % 2:
                        os._exit(7)
                    sys.exit(7)
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    """)


@pytest.mark.full("reliability")
def test_pool_of_spawned_processes_uses_opencl() -> None:
    expected = load().run(x=rows(3))["y"]
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        for result in pool.map_async(_load_and_run, [3, 3, 3]).get(PATIENCE):
            np.testing.assert_allclose(result, expected, atol=1e-5)


def _load_and_run(count: int) -> np.ndarray:
    return load().run(x=rows(count))["y"]
