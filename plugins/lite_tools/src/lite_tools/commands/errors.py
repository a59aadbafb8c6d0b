"""Errors of commands, and a check that a file can be written."""

from __future__ import annotations

import os
from pathlib import Path

import click

from lite_tools.commands.exit_codes import EXIT_UNAVAILABLE

__all__ = ["UnavailableError", "check_writable"]


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
        click.BadParameter: its folder does not exist, or the file or its folder is write-protected.
    """
    path = Path(file)
    folder = path.parent
    if path.is_dir():
        raise click.BadParameter(f"{file!r} is a folder; name a file", param_hint=option)
    if not folder.is_dir():
        raise click.BadParameter(f"{file!r} cannot be written: there is no folder {str(folder)!r}", param_hint=option)
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise click.BadParameter(f"{file!r} cannot be written: permission denied", param_hint=option)
