"""The program ``lite``, which runs a command, reports errors, and ends with one of the exit codes."""

from __future__ import annotations

import contextlib
import errno
import os
import shlex
import sys
import traceback

import click

from lite_core.errors import LiteError, ModelFormatError
from lite_tools.cli.group import lite, owner_of
from lite_tools.cli.next_steps import next_step, parameters_of
from lite_tools.cli.plugin_steps import step_for_reader
from lite_tools.commands.corrections import corrected
from lite_tools.commands.errors import exit_code_of, print_error
from lite_tools.commands.exit_codes import EXIT_CRASH, EXIT_FAILURE, EXIT_OK, EXIT_UNAVAILABLE, EXIT_USAGE
from lite_tools.commands.next_commands import next_command_of
from lite_tools.commands.progress import shown_progress

__all__ = ["main"]

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with one of the exit codes."""
    arguments = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # characters that the terminal cannot show must not raise
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _run(arguments)
        _flush()
    except BrokenPipeError:  # the reader of the pipe, such as `head`, has closed it
        code = EXIT_FAILURE
        _discard_output()
    except OSError as error:
        code = EXIT_FAILURE
        _discard_output()
        print_error(f"the output could not be written: {error}", code, as_json=False)
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    """Run a command and report its errors; only errors of writing the output propagate."""
    as_json = "--json" in arguments
    try:
        with shown_progress() as say:
            say(f"lite {arguments[0]}")  # until the command says more
            result = lite.main(arguments, prog_name="lite", standalone_mode=False)
        return result if isinstance(result, int) else EXIT_OK
    except click.exceptions.Abort:
        return print_error("interrupted", EXIT_FAILURE, as_json=as_json)
    except click.UsageError as error:
        message, next_command = corrected(error, shlex.join(["lite", arguments[0]]))
        return print_error(message, EXIT_USAGE, next_command, as_json=as_json)
    except click.ClickException as error:
        next_command = next_command_of(error) or shlex.join(["lite", arguments[0], "--help"])
        return print_error(error.format_message(), error.exit_code, next_command, as_json=as_json)
    except LiteError as error:
        given = parameters_of(arguments)
        step = step_for_reader(given.get("model"), arguments) if isinstance(error, ModelFormatError) else ""
        if step:
            return print_error(str(error), EXIT_UNAVAILABLE, step, as_json=as_json)
        return print_error(str(error), exit_code_of(error), next_step(error, arguments, given), as_json=as_json)
    except SystemExit as error:
        if error.code is None or isinstance(error.code, int):  # so click ends a command, as after a closed pipe
            raise
        return print_error(str(error.code), EXIT_FAILURE, shlex.join(["lite", arguments[0], "--help"]), as_json=as_json)
    except MemoryError as error:
        return print_error(f"there is not enough memory. {error}".rstrip(), EXIT_FAILURE, as_json=as_json)
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _DISK_FULL:
            raise
        print(traceback.format_exc(), file=sys.stderr)
        owner = owner_of(arguments[0])
        if owner is not None:
            text = f"the command {arguments[0]!r} of plugin {owner.label} failed with {type(error).__name__}: {error}"
            return print_error(
                text, EXIT_CRASH, f"pip install --upgrade {owner.distribution} lite-core", as_json=as_json
            )
        return print_error(
            f"Lite itself failed with {type(error).__name__}: {error}", EXIT_CRASH, "lite doctor", as_json=as_json
        )


def _flush() -> None:
    if sys.stdout is not None:  # None: the parent process has closed it
        sys.stdout.flush()


def _discard_output() -> None:
    """Redirect buffered output to the null device: Python would try to write it again at exit, and print an error."""
    with open(os.devnull, "w") as nowhere, contextlib.suppress(OSError, ValueError):  # the stream has no descriptor
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
