"""Forked children run sessions of the backend, and compile, while threads of their parent do the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from forked import check_pool, fork_while_busy, in_child, needs_fork, network, rows

import lite_core as lite

pytestmark = [*needs_fork, pytest.mark.usefixtures("own_cache")]


@pytest.fixture
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let children compile what another test may have stored."""
    monkeypatch.setenv("LITE_CACHE_DIR", str(tmp_path))


def test_child_runs_a_session_that_threads_of_the_parent_use() -> None:
    fork_while_busy(lite.load(network(), "x86", threads=2), 2, "x86")


@pytest.mark.full("reliability")
@pytest.mark.parametrize("threads", [1, 2])
def test_eighty_children_run_a_session_that_threads_of_the_parent_use(threads: int) -> None:
    fork_while_busy(lite.load(network(), "x86", threads=threads), 80, "x86")


def test_pool_of_forked_processes_runs_a_session() -> None:
    check_pool(lite.load(network(), "x86", threads=2))


def test_grandchild_runs_a_session() -> None:
    session = lite.load(network(), "x86", threads=2)
    session.run(x=rows(3))

    def run() -> bool:
        return bool(np.isfinite(session.run(x=rows(3))["y"]).all())

    assert in_child(lambda: run() and in_child(run))
