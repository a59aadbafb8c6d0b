"""Several files as one input: a line with their names and sizes, then their contents."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

__all__ = ["pack", "unpack", "write_files"]

_MARK = b"files "


def pack(files: Mapping[str, bytes]) -> bytes:
    """Return files as one input. Names have no spaces."""
    line = " ".join(f"{name} {len(content)}" for name, content in files.items())
    return _MARK + line.encode() + b"\n" + b"".join(files.values())


def unpack(data: bytes) -> dict[str, bytes]:
    """Return the files of an input by name.

    Raises:
        ValueError: the input was not made by :func:`pack`.
    """
    line, newline, rest = data.partition(b"\n")
    words = line.removeprefix(_MARK).decode("ascii").split(" ")
    if not (line.startswith(_MARK) and newline) or len(words) % 2:
        raise ValueError("the input does not begin with the names and sizes of files")
    files = {}
    for name, size in zip(words[::2], map(int, words[1::2])):
        if not name or "/" in name or name.startswith(".") or size < 0:
            raise ValueError(f"{name!r} of {size} bytes is not a file of an input")
        files[name], rest = rest[:size], rest[size:]
    return files


def write_files(files: Mapping[str, bytes], folder: Path) -> None:
    """Write files into a folder; an older file of the same name is removed first, because it may still be mapped."""
    for name, content in files.items():
        path = folder / name
        path.unlink(missing_ok=True)
        path.write_bytes(content)
