"""A lock that processes share through a file."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lite_core.private_files import open_private

if sys.platform != "win32":
    import fcntl

__all__ = ["file_lock"]

_POLL_SECONDS = 0.005


@contextmanager
def file_lock(path: Path, patience_seconds: float) -> Iterator[bool]:
    """Hold the lock at ``path`` for the body, or continue without it after ``patience_seconds``.

    It is meant for work that is wasteful, but harmless, to do twice. The operating system releases the lock of a
    process that dies. If the system has no such locks (Windows), or the file cannot be opened safely (see
    :func:`lite_core.private_files.open_private`), the body runs at once.

    Args:
        path: the lock file; it is created if missing, with its folder, and removed by the holder.
        patience_seconds: maximum time to wait for a holder, which may be a stopped process.

    Yields:
        True if another holder was waited for, so that the work may be done already.
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
                # NOTE: a process that waits for the removed file gets its lock next, and a later one creates a new
                # file. Both find the work done, because it is finished before the file is removed.
                with suppress(OSError):
                    path.unlink(missing_ok=True)
                _unlock(descriptor)
    finally:
        os.close(descriptor)


def _open(path: Path) -> int | None:
    if sys.platform != "win32":
        # If the folder cannot be used, the caller will notice and report it when it writes the result.
        with suppress(OSError):
            return open_private(path, os.O_RDWR | os.O_CREAT)
    return None


def _unlock(descriptor: int) -> None:
    # Closing the file is not enough: a process that was forked meanwhile has it open, too.
    if sys.platform != "win32":
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)


def _try_lock(descriptor: int) -> bool:
    if sys.platform != "win32":
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # the file system has no locks: continue without one
            return True
    return True
