"""Errors of commands, the exit codes of Lite's errors, and a check that a file can be written."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

import click

from lite_core.errors import BackendUnavailableError, InputError, LiteError, ModelFormatError
from lite_core.plugins.known import known_distributions
from lite_tools.commands.exit_codes import EXIT_FAILURE, EXIT_FILE, EXIT_UNAVAILABLE, EXIT_USAGE

__all__ = ["UnavailableError", "check_writable", "exit_code_of", "is_disk_full", "package_of_others", "print_error"]

#: The exit code of each class of errors. The first class that an error belongs to decides.
_EXIT_CODES: tuple[tuple[type[LiteError], int], ...] = (
    (InputError, EXIT_USAGE),
    (BackendUnavailableError, EXIT_UNAVAILABLE),
    (ModelFormatError, EXIT_FILE),  # with UntrustedCodeError
    (LiteError, EXIT_FAILURE),
)


_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def is_disk_full(error: BaseException) -> bool:
    """Return True for an error of the file system that has no space left, or none for this user or file."""
    return isinstance(error, OSError) and error.errno in _DISK_FULL


def package_of_others(source: str) -> str:
    """Return the package in a text such as ``"lite-zenith 0.1.0"``; empty for none and for Lite's own packages."""
    package = source.partition(" ")[0]
    own = {name for kind in ("backends", "commands", "formats") for name in known_distributions(kind).values()}
    return "" if package in own or package == "lite-core" else package


def exit_code_of(error: LiteError) -> int:
    """Return the exit code of a command that an error ends."""
    return next(code for kind, code in _EXIT_CODES if isinstance(error, kind))


def print_error(message: str, code: int, next_command: str = "", *, as_json: bool = False) -> int:
    """Print an error to standard error, or as a JSON document to standard output, and return the exit code.

    Args:
        message: what is wrong.
        code: the exit code.
        next_command: the command to type next, if there is one.
        as_json: print JSON.
    """
    from lite_tools.commands.printing import json_text, print_text  # not at the top: most commands print no error

    if as_json:
        print(json_text({"error": message, "exit_code": code, "next": next_command}))
        return code
    with contextlib.suppress(OSError):  # standard error cannot be written, either: only the exit code remains
        print_text(f"error: {message}", err=True)
        if next_command:
            print_text(f"next: {next_command}", err=True)
    return code


class UnavailableError(click.ClickException):
    """A package or file that a command needs is missing; the message says how to get it. Exit code 3.

    Args:
        message: the message, which names the missing item.
        next_command: the command to suggest; by default the command's help.
    """

    exit_code = EXIT_UNAVAILABLE

    def __init__(self, message: str, next_command: str = "") -> None:
        super().__init__(message)
        self.next_command = next_command


def check_writable(file: str, option: str) -> None:
    """Check that a file can be written, before a command starts long work.

    Args:
        file: the file.
        option: the option that names it, for the message.

    Raises:
        click.BadParameter: it is a pipe or a device, its folder does not exist, or the file or its folder is
            write-protected.
    """
    folder = str(Path(file).parent)
    reason = ""
    if not file or "\0" in file:
        reason = "is not the name of a file"
    elif os.path.isdir(file):
        reason = "is a folder; name a file"
    elif os.path.exists(file) and not os.path.isfile(file):
        reason = "is a pipe or a device, which would be replaced or waited for; name a file"
    elif not os.path.isdir(folder):
        reason = f"cannot be written: there is no folder {folder!r}"
    elif not os.access(file if os.path.exists(file) else folder, os.W_OK):
        reason = "cannot be written: permission denied"
    if reason:
        raise click.BadParameter(f"{file!r} {reason}", param_hint=option)
