"""Files and folders that only the user of this process and root can change.

What Lite stores and reads back decides what runs: machine code, programs of devices, choices of kernels, settings. So
it is read only from such files in such folders. A folder is judged once per process, with its parents and the symbolic
links on the way to it; a file each time it is opened. Systems without user ids, such as Windows, are not checked:
there, access lists protect the user's folders.

A umask can only take more access away from what is created here.
"""

from __future__ import annotations

import functools
import os
import stat
from pathlib import Path

__all__ = ["make_private_folder", "open_private", "read_private", "unsafe_reason", "write_private"]

#: Size limit of a file; the largest binaries of devices are far smaller.
_MOST_BYTES = 256 * 2**20

#: Links are not followed, FIFOs and devices not waited for. Windows has only O_BINARY, which other systems lack.
_OPEN_FLAGS = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))

_HAS_USERS = hasattr(os, "geteuid")


def unsafe_reason(folder: Path) -> str:
    """Return the reason why other users can change what a folder contains; "" if only this user and root can.

    The folder, its parents, and symbolic links on the way must belong to this user or root. Others must not be able to
    write to them, except to a parent with the sticky bit, such as ``/tmp``, where they cannot replace what is not
    theirs. A folder that does not exist is judged by its nearest parent that does. Judgements of existing folders are
    kept for the life of the process.
    """
    try:
        return _judge(folder.absolute()) if _HAS_USERS else ""
    except (OSError, ValueError, RecursionError) as error:
        is_missing = isinstance(error, FileNotFoundError)  # its existing parents were judged before
        return "" if is_missing else f"{folder} cannot be examined: {error}"


@functools.cache  # which keeps no exceptions: a missing folder is judged again, because anyone may create it in /tmp
def _judge(path: Path, is_parent: bool = False) -> str:
    if path != path.parent and (reason := _judge(path.parent, True)):
        return reason
    status = os.lstat(path)
    is_link, is_sticky = stat.S_ISLNK(status.st_mode), bool(status.st_mode & stat.S_ISVTX)
    is_folder = is_link or stat.S_ISDIR(status.st_mode)
    reason = _fault(path, status, "a folder", is_folder, may_be_writable=is_link or (is_parent and is_sticky))
    return _judge(path.parent / os.readlink(path), is_parent) if is_link and not reason else reason


def _fault(path: Path, status: os.stat_result, kind: str, is_kind: bool, may_be_writable: bool = False) -> str:
    if not is_kind:
        return f"{path} must be {kind}, is {stat.filemode(status.st_mode)}"
    if _HAS_USERS and status.st_uid not in (0, os.geteuid()):
        return f"{path} belongs to user {status.st_uid}, expected {os.geteuid()} (this user) or 0 (root)"
    if _HAS_USERS and not may_be_writable and status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"other users can write to {path} (mode {stat.S_IMODE(status.st_mode):04o}): run `chmod go-w {path}`"
    return ""


def _require_private(folder: Path) -> None:
    if reason := unsafe_reason(folder):
        raise OSError(reason)


def make_private_folder(folder: Path) -> None:
    """Create a folder and its missing parents, if they do not exist, with access for this user only.

    Raises:
        OSError: it cannot be created, or other users can change it.
    """
    _require_private(folder)
    for missing in [path for path in (folder, *folder.parents) if not path.exists()][::-1]:
        missing.mkdir(0o700, exist_ok=True)
    _require_private(folder)  # another user may have been faster, in a parent such as /tmp


def open_private(path: Path, flags: int = os.O_RDONLY, most: int = _MOST_BYTES) -> int:
    """Open a regular file that only this user or root can change, and return its descriptor.

    Args:
        path: the file.
        flags: flags of ``os.open``. With ``os.O_CREAT``, the file and its folder are created if they are missing, with
            access for this user only.
        most: the largest size in bytes.

    Raises:
        FileNotFoundError: there is no such file.
        OSError: it is a link, a FIFO, a folder or a device, is too large, or cannot be opened; or other users can
            change it, or its folder.
    """
    (make_private_folder if flags & os.O_CREAT else _require_private)(path.parent)
    descriptor = -1
    try:
        descriptor = os.open(path, flags | _OPEN_FLAGS, 0o600)
        _require_safe(path, os.fstat(descriptor), most)
        _require_private(path.parent)  # it may have been missing before, and another user's now
    except OSError:
        if descriptor >= 0:
            os.close(descriptor)
        elif os.path.lexists(path):
            _require_safe(path, os.lstat(path), most)  # a link or a socket cannot even be opened: say what it is
        raise
    return descriptor


def _require_safe(path: Path, status: os.stat_result, most: int) -> None:
    reason = _fault(path, status, "a regular file", stat.S_ISREG(status.st_mode))
    if status.st_size > most:
        reason = f"{path} has {status.st_size} bytes, expected at most {most}"
    if reason:
        raise OSError(reason)


def read_private(path: Path, most: int = _MOST_BYTES) -> bytes:
    """Return the content of a file that only this user or root can change; see :func:`open_private`.

    Raises:
        FileNotFoundError: there is no such file.
        OSError: it cannot be read, or it, or its folder, is not safe.
    """
    with open(open_private(path, most=most), "rb", buffering=0) as file:
        return file.read()


def write_private(path: Path, content: bytes, *, replace: bool = True) -> None:
    """Write a file that only this user can read: a concurrent reader finds all of it or nothing.

    The file's folder is created if it is missing, with access for this user only.

    Args:
        path: the file.
        content: its new content.
        replace: replace a file that exists.

    Raises:
        FileExistsError: the file exists, and ``replace`` is False.
        OSError: it cannot be written, or other users can change its folder.
    """
    temporary = path.with_name(f"{path.name}.{os.urandom(8).hex()}.tmp")
    try:
        with open(open_private(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
            file.write(content)
        (os.replace if replace else os.link)(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
