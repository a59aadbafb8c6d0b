"""Files that exist completely or not at all, also after the machine has lost its power."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

__all__ = ["TEMPORARY", "completed_file", "replace_file", "synced_folder"]

#: The beginning of the names of files that are being written; readers of datasets skip names that begin with a dot.
TEMPORARY = ".writing-"


@contextmanager
def completed_file(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file beside a path, and rename it to the path at the end of the context.

    The content is on the disk before the name, and the name before the context ends. If the context raises, the
    temporary file is removed, and the path is as it was.
    """
    temporary = path.with_name(f"{TEMPORARY}{path.name}-{secrets.token_hex(6)}")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    synced_folder(path.parent)


def replace_file(path: Path, content: bytes) -> None:
    """Write a file as a whole."""
    with completed_file(path) as file:
        file.write(content)


def synced_folder(folder: Path) -> None:
    """Return when the names in a folder are on the disk; at once where folders cannot be opened (Windows)."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        with suppress(OSError):  # some network file systems cannot, and need not
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
