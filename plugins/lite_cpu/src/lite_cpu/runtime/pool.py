"""Pools of native threads that run programs: one pool per number of threads, shared by the whole process."""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import signal
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from lite_core.forking import new_lock
from lite_cpu.runtime.layout import LINE, SLOT_FIELDS, PoolField, SlotField
from lite_cpu.runtime.native import IS_WINDOWS, Native, native

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["ThreadPool", "shared_pool", "usable_threads"]

logger = logging.getLogger("lite.cpu.runtime")

#: Time that idle threads spin: longer than Python takes between two consecutive runs, too short for a noticeable load.
_SPIN_NANOSECONDS = 100_000

#: Signals raised by a fault in a thread's own code. If they were blocked, the process would end without faulthandler's
#: report.
_SYNCHRONOUS_SIGNALS = ("SIGBUS", "SIGFPE", "SIGILL", "SIGSEGV")


class ThreadPool:
    """Native threads, unknown to Python, that sleep until a run needs them.

    The calling thread takes part in a run, therefore ``threads - 1`` workers are created. They end when the pool is
    closed or garbage-collected, and when the interpreter exits; a run in progress then continues without them.

    Args:
        threads: number of threads including the caller.
        code: the runtime that the workers run.

    Attributes:
        threads: number of threads including the caller; fewer than requested if the system refused more.
        address: address of the struct :class:`PoolField`.
    """

    def __init__(self, threads: int, code: Native | None = None) -> None:
        self._native = code or native()
        self._memory = _aligned_int64_array(PoolField.SLOTS + threads * SLOT_FIELDS)
        self.address: int = self._memory.ctypes.data
        self._memory[PoolField.SYSTEM] = self._native.system.ctypes.data
        self._memory[PoolField.SPIN_NANOSECONDS] = _SPIN_NANOSECONDS
        self._memory[PoolField.LEADER_PROCESSOR] = -1
        self._allow_processors()
        handles: list[int] = []
        self._stop = weakref.finalize(self, _stop_threads, self._native, self._memory, handles, os.getpid())
        self.threads = 1 + self._start_workers(threads - 1, handles)

    def close(self) -> None:
        """Stop the workers, each after its current chunk, and wait until they have ended."""
        self._stop()

    def _allow_processors(self) -> None:
        if hasattr(os, "sched_getaffinity"):
            allowed = self._memory[PoolField.PROCESSORS : PoolField.PROCESSORS + LINE].view(np.uint64)
            for processor in os.sched_getaffinity(0):
                if processor < 64 * LINE:
                    allowed[processor // 64] |= np.uint64(1 << processor % 64)

    def _start_workers(self, count: int, handles: list[int]) -> int:
        library = ctypes.CDLL(None)
        library.pthread_mutex_init(self._address_of(PoolField.MUTEX), None)
        library.pthread_cond_init(self._address_of(PoolField.CONDITION), None)
        with _signals_blocked():
            for index in range(1, count + 1):
                slot = PoolField.SLOTS + index * SLOT_FIELDS
                self._memory[slot + SlotField.POOL] = self.address
                self._memory[slot + SlotField.INDEX] = index
                handle = ctypes.c_ulong()
                worker = ctypes.c_void_p(self._native.worker)
                error = library.pthread_create(ctypes.byref(handle), None, worker, self._address_of(slot))
                if error:
                    logger.warning(
                        "the system refused thread %d of %d (%s): going on with %d",
                        index + 1,
                        count + 1,
                        os.strerror(error),
                        index,
                    )
                    break
                handles.append(handle.value)
        self._memory[PoolField.THREADS] = 1 + len(handles)
        return len(handles)

    def _address_of(self, field: int) -> ctypes.c_void_p:
        return ctypes.c_void_p(self.address + 8 * field)


def usable_threads(threads: int) -> int:
    """Return ``threads``, limited to the processors that this process may run on; 1 on Windows."""
    if IS_WINDOWS:
        return 1
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(threads, processors))


def shared_pool(threads: int, code: Native) -> ThreadPool | None:
    """Return the process's pool of :func:`usable_threads` threads for a runtime; None for a single thread."""
    try:
        return _pools[threads, id(code.code)]
    except KeyError:
        return _make_shared_pool(threads, code)


#: By the number of threads and the identity of the runtime's code, which a pool keeps alive.
_pools: dict[tuple[int, int], ThreadPool | None] = {}
_pools_lock = new_lock()


def _make_shared_pool(threads: int, code: Native) -> ThreadPool | None:
    usable, own = usable_threads(threads), id(code.code)
    with _pools_lock:
        if (threads, own) not in _pools:
            if usable < threads:
                logger.warning("%d threads requested, %d used: %s", threads, usable, _why_fewer())
            if (usable, own) not in _pools:
                pool = ThreadPool(usable, code) if usable > 1 else None
                _pools[usable, own] = pool if pool is not None and pool.threads > 1 else None
            _pools[threads, own] = _pools[usable, own]
        return _pools[threads, own]


def _why_fewer() -> str:
    if IS_WINDOWS:
        return "the CPU runtime has no threads on Windows yet"
    return "the process may run on no more processors"


def _forget_pools() -> None:
    """Drop the pools in a forked child: their threads exist only in the parent."""
    _pools.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pools)


def _aligned_int64_array(count: int) -> npt.NDArray[np.int64]:
    """Return zeros; every ``LINE``-th element, beginning with the first, starts a cache line."""
    memory = np.zeros(count + LINE, np.int64)
    start = -memory.ctypes.data // 8 % LINE
    return memory[start : start + count]


@contextlib.contextmanager
def _signals_blocked() -> Iterator[None]:
    """Block asynchronous signals in the body, also in threads created there: only Python's threads get signals."""
    synchronous = {getattr(signal, name) for name in _SYNCHRONOUS_SIGNALS}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals() - synchronous)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _stop_threads(code: Native, memory: npt.NDArray[np.int64], handles: list[int], process: int) -> None:
    if os.getpid() != process:
        return  # a forked child: these are the parent's threads
    code.stop(memory.ctypes.data)
    library = ctypes.CDLL(None)
    for handle in handles:
        library.pthread_join(ctypes.c_ulong(handle), None)
