"""Locks, and work, that leave the child of a fork usable.

A fork copies the memory of a process, but of its threads only the one that forks. In the child, a lock that another
thread held would stay locked for ever, and the work of that thread would stay half done. Therefore

- locks are made by :func:`new_lock`: the child finds them open. What such a lock protects must be valid between any two
  statements;
- loading, planning, compiling, and calls of libraries with locks of their own are :func:`undivided`: a fork waits until
  they end, for half a minute at most.

Objects that a child cannot use, such as the threads of a pool, are renewed by hooks of their own modules
(``os.register_at_fork``).
"""

from __future__ import annotations

# NOTE: hooks run before a fork in the opposite order of their registration. This import registers one that keeps thread
# pools from taking work: if it ran first, undivided work that needs such a pool could not end.
import concurrent.futures.thread  # noqa: F401
import os
import threading
import time
from typing import Any
from weakref import WeakValueDictionary

__all__ = ["new_lock", "undivided"]

_PATIENCE_SECONDS = 30.0

_locks: WeakValueDictionary[int, Any] = WeakValueDictionary()
#: The lock of each thread, which the thread holds during undivided work. A thread inherits that of an ended one's id.
_locks_of_threads: dict[int, threading.RLock] = {}


def new_lock() -> threading.RLock:
    """Return a reentrant lock that the child of a fork finds open, unless the thread that forked holds it."""
    lock = threading.RLock()
    _locks[id(lock)] = lock
    return lock


def undivided() -> threading.RLock:
    """Return a context manager for work that no fork interrupts: a fork in another thread waits for its end.

    It may be nested. Entering it may have to wait for a fork: enter it before taking a lock that other undivided work
    waits for, and never in a thread that undivided work of another thread waits for.
    """
    lock: Any = _own_lock()
    if not lock._is_owned():
        with _gate:  # closed during a fork
            pass
    return lock  # type: ignore[no-any-return]


def _own_lock() -> threading.RLock:
    thread = threading.get_ident()
    return _locks_of_threads.get(thread) or _locks_of_threads.setdefault(thread, new_lock())


def _other_locks() -> list[Any]:
    return [lock for lock in list(_locks_of_threads.values()) if lock is not _own_lock()]


def _wait_for_others() -> None:
    """Keep other threads from beginning undivided work, and wait until none is in the middle of it."""
    own: Any = _own_lock()
    if own._is_owned():
        return  # other threads may be waiting for the work that this thread is in the middle of
    end = time.monotonic() + _PATIENCE_SECONDS
    _gate.acquire(timeout=_PATIENCE_SECONDS)
    for lock in _other_locks():
        lock.acquire(timeout=max(0.0, end - time.monotonic()))


def _release_others() -> None:
    for lock in [_gate, *_other_locks()]:
        if lock._is_owned():
            lock.release()


def _open_locks() -> None:
    """Open every lock in the child, except those that its only thread holds."""
    _release_others()
    for lock in list(_locks.values()):
        if not lock._is_owned():
            lock._at_fork_reinit()


_gate: Any = new_lock()

if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(before=_wait_for_others, after_in_parent=_release_others, after_in_child=_open_locks)
