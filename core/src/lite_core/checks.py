"""Checks of arguments that callers pass to Lite: their kinds, and paths."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from lite_core.errors import InputError, ModelFormatError

__all__ = ["is_there", "path_of", "require"]

#: Reading from these could wait for ever, or never end.
_ENDLESS = {stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}


def require(fits: bool, name: str, wanted: str, given: object) -> None:
    """Raise an InputError unless an argument fits.

    Args:
        fits: the result of the check.
        name: the argument's name.
        wanted: what the argument must be.
        given: what the caller gave.
    """
    if not fits:
        raise InputError(f"{name} must be {wanted}, is {type(given).__name__} {' '.join(repr(given).split()):.100}")


def path_of(name: str, given: object) -> Path:
    """Return an argument as a path.

    Raises:
        InputError: it is no path, is empty, or contains a null character.
    """
    text = getattr(given, "__fspath__", lambda: given)()
    is_path = isinstance(text, str) and bool(text) and "\0" not in text
    require(is_path, name, "the path of a file or folder ('.' is the working folder)", given)
    return Path(str(text))


def is_there(path: Path) -> bool:
    """Return True for a regular file or a folder that this process may read; nothing is opened.

    Raises:
        ModelFormatError: it is a pipe, a socket or a device.
    """
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):  # ValueError: the text cannot be a file name
        return False
    if what := _ENDLESS.get(stat.S_IFMT(mode)):
        raise ModelFormatError(f"{str(path)!r} is {what}; name a regular file, or a folder")
    return os.access(path, os.R_OK)
