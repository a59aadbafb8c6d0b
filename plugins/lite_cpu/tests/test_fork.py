"""Forks while other threads compile kernels, and while a lock file is held."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest
from forked import PATIENCE, in_child, is_forking, kept_busy, needs_fork, wait_until

from lite_cpu.emitter import Emitter
from lite_cpu.kernels.peak import Peak
from lite_cpu.machine import X86_64_V3
from lite_cpu.machine_code.cache import KernelCache
from lite_cpu.machine_code.file_lock import file_lock
from lite_cpu.machine_code.library import KernelLibrary

pytestmark = needs_fork


def compile_kernel() -> None:
    KernelLibrary(X86_64_V3, KernelCache(None)).addresses([Peak()])


def test_child_finds_the_kernel_that_another_thread_was_compiling() -> None:
    forker, begun = threading.current_thread(), threading.Event()

    class Slow(Peak):
        """A kernel that is compiled until the other thread forks, and a bit longer."""

        def emit(self, k: Emitter) -> None:
            begun.set()
            wait_until(lambda: is_forking(forker))
            super().emit(k)

    library, kernel = KernelLibrary(X86_64_V3, KernelCache(None)), Slow()
    compiler = threading.Thread(target=library.addresses, args=([kernel],))
    compiler.start()
    assert begun.wait(PATIENCE)
    assert in_child(lambda: library.addresses([kernel])[kernel])
    compiler.join(PATIENCE)


@pytest.mark.full("reliability")
def test_eighty_children_compile_while_threads_of_their_parent_do() -> None:
    with kept_busy(compile_kernel, compile_kernel):
        for _ in range(80):
            in_child(compile_kernel)


def test_lock_file_is_free_when_its_holder_is_done_although_a_child_has_it_open(tmp_path: Path) -> None:
    import fcntl

    path = tmp_path / "kernel.lock"
    with file_lock(path, PATIENCE), path.open() as waiting:
        child = os.fork()
        if not child:
            signal.pause()
        with pytest.raises(BlockingIOError):
            fcntl.flock(waiting, fcntl.LOCK_EX | fcntl.LOCK_NB)
        file = os.dup(waiting.fileno())
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(file)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
