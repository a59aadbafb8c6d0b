"""A lock that processes share through a file."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

if sys.platform != "win32":
    import fcntl

__all__ = ["file_lock"]

_POLL_SECONDS = 0.005


@contextmanager
def file_lock(path: Path, patience_seconds: float) -> Iterator[bool]:
    """Hold the lock at ``path`` for the body, or go on without it once patience has run out.

    For work that is harmless, only wasteful, to do twice. The system frees the lock of a process that dies. Where
    the system has no such locks (Windows), or the folder cannot be written, the body runs at once.

    Args:
        path: the lock file; made when missing, with its folder, and removed by whoever held it.
        patience_seconds: how long to wait for a holder that may be stopped.

    Yields:
        Whether another holder was waited for, so that the work may be done already.
    """
    descriptor = _open(path)
    if descriptor is None:
        yield False
        return
    try:
        locked = _try_lock(descriptor)
        waited = not locked
        deadline = time.monotonic() + patience_seconds
        while not locked and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
            locked = _try_lock(descriptor)
        try:
            yield waited
        finally:
            if locked:
                # NOTE: who waits for the removed file gets its lock next, and whoever comes later makes a new file.
                # Both find the work done: it is finished before the file goes.
                with suppress(OSError):
                    path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def _open(path: Path) -> int | None:
    if sys.platform != "win32":
        # A folder that cannot be written: its user finds out, and says so, when writing the result.
        with suppress(OSError):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            return os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    return None


def _try_lock(descriptor: int) -> bool:
    if sys.platform != "win32":
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a file system without locks: go on as if alone
            return True
    return True
