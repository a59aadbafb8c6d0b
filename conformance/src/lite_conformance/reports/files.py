"""Writing the files of reports."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["replace_bytes", "replace_text"]


def replace_text(file: str | os.PathLike[str], text: str) -> None:
    """Write a text file in UTF-8, as :func:`replace_bytes` does.

    Raises:
        OSError: the file cannot be written.
    """
    # NOTE: as Path.write_text does, which ends lines as the platform does.
    replace_bytes(file, text.replace("\n", os.linesep).encode("utf-8"))


def replace_bytes(file: str | os.PathLike[str], content: bytes) -> None:
    """Write a file. One that exists is replaced at once, so that an interrupt cannot damage it.

    What is not a regular file, such as ``/dev/stdout`` or a named pipe, is written to.

    Raises:
        OSError: the file cannot be written.
    """
    path = Path(file).resolve()
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
