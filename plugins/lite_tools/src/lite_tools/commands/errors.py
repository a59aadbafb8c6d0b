"""How a command says that it cannot do what was asked for."""

from __future__ import annotations

import os
from pathlib import Path

import click

from lite_tools.commands.exit_codes import EXIT_UNAVAILABLE

__all__ = ["UnavailableError", "check_writable"]


class UnavailableError(click.ClickException):
    """What a command needs is not installed or not there; the message says how to get it. Exit code 3.

    Args:
        message: what is missing.
        next_command: what to type next; the command's help when omitted.
    """

    exit_code = EXIT_UNAVAILABLE

    def __init__(self, message: str, next_command: str = "") -> None:
        super().__init__(message)
        self.next_command = next_command


def check_writable(file: str, option: str) -> None:
    """Say before long work, not after it, that a file cannot be written.

    Args:
        file: what is to be written.
        option: the option that names it, for the message.

    Raises:
        click.BadParameter: its folder does not exist, or the file or its folder is protected.
    """
    path = Path(file)
    folder = path.parent
    if path.is_dir():
        raise click.BadParameter(f"{file!r} is a folder; name a file", param_hint=option)
    if not folder.is_dir():
        raise click.BadParameter(f"{file!r} cannot be written: there is no folder {str(folder)!r}", param_hint=option)
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise click.BadParameter(f"{file!r} cannot be written: permission denied", param_hint=option)
