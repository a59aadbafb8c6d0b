"""Forked children open sessions of ONNX Runtime again, because those of their parent have lost their threads."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from forked import check_pool, fork_while_busy, in_child, needs_fork, network, rows, run_script

import lite_core as lite

pytestmark = needs_fork


def load() -> lite.Session:
    return lite.load(network(), "onnxruntime", threads=2, fallback="never")


def test_child_runs_a_session_that_threads_of_the_parent_use() -> None:
    fork_while_busy(load(), 2, "onnxruntime")


@pytest.mark.full("reliability")
def test_eighty_children_run_a_session_that_threads_of_the_parent_use() -> None:
    fork_while_busy(load(), 80, "onnxruntime")


def test_pool_of_forked_processes_runs_a_session() -> None:
    check_pool(load())


def test_child_and_grandchild_may_drop_a_session() -> None:
    sessions = [load()]
    expected = sessions[0].run(x=rows(3))["y"]

    def run_and_drop() -> None:
        np.testing.assert_allclose(sessions.pop().run(x=rows(3))["y"], expected, atol=1e-6)
        gc.collect()

    def fork_and_drop() -> None:
        in_child(run_and_drop)
        run_and_drop()

    in_child(fork_and_drop)


def test_child_may_exit_like_a_program() -> None:
    """A child that ends by ``sys.exit`` runs the destructors of the parent's sessions."""
    run_script("""
        import os, sys
        import lite_core as lite
        from forked import network, rows

        session = lite.load(network(), "onnxruntime", threads=2)
        session.run(x=rows(3))
        child = os.fork()
        if not child:
            sys.exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    """)
