"""A lock on an output folder: one driver at a time. The system releases it when the process ends, however it ends."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lite_core.errors import InputError

__all__ = ["NAME", "locked"]

#: The file that is locked; it stays in the folder.
NAME = "_lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder until the end of the context.

    Raises:
        InputError: another process holds it; names the process.
    """
    with (folder / NAME).open("a+b") as file:
        if not _acquired(file):
            raise InputError(
                f"{_holder(folder)} writes to {str(folder)!r}: wait until it has ended, or name another folder"
            )
        file.truncate(0)
        file.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode())
        file.flush()
        yield  # closing the file releases it


def _acquired(file: Any) -> bool:
    try:
        if os.name == "nt":
            import msvcrt

            file.seek(2**20)  # a byte that nobody reads: others may read who holds it
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        else:
            import fcntl

            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _holder(folder: Path) -> str:
    try:
        found = json.loads((folder / NAME).read_bytes())
        return f"another run (process {found['pid']} on {found['host']})"
    except (OSError, ValueError, KeyError, TypeError):
        return "another run"
