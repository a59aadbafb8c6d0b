"""The program ``lite``, which runs a command, reports errors, and ends with one of the exit codes."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import traceback
from contextlib import nullcontext

import click

from lite_core.errors import LiteError, ModelFormatError
from lite_tools.cli.contained_exits import contained_exits
from lite_tools.cli.group import commands_of_plugins, is_own_command, lite, owner_of
from lite_tools.cli.next_steps import next_step, parameters_of
from lite_tools.cli.plugin_steps import step_for_plugin_at_fault, step_for_reader
from lite_tools.commands.corrections import corrected
from lite_tools.commands.errors import exit_code_of, is_disk_full, print_error
from lite_tools.commands.exit_codes import EXIT_CRASH, EXIT_FAILURE, EXIT_OK, EXIT_UNAVAILABLE, EXIT_USAGE
from lite_tools.commands.next_commands import next_command_of
from lite_tools.commands.progress import shown_progress
from lite_tools.commands.result_stream import only_results, prints_kept_out

__all__ = ["main"]


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
        with contained_exits(), shown_progress() as say:
            say(f"lite {arguments[0]}")  # until the command says more
            with _kept_clean(arguments):
                result = lite.main(arguments, prog_name="lite", standalone_mode=False)
        return _exit_code(result, arguments[0])
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
        is_read_error = isinstance(error, ModelFormatError) and not step_for_plugin_at_fault(error)
        if is_read_error and (step := step_for_reader(given.get("model"), arguments)):
            return print_error(str(error), EXIT_UNAVAILABLE, step, as_json=as_json)
        return print_error(str(error), exit_code_of(error), next_step(error, arguments, given), as_json=as_json)
    except SystemExit as error:
        if error.code is None or isinstance(error.code, int):  # so click ends a command, as after a closed pipe
            raise
        owner = owner_of(arguments[0])
        whose = f" (the command {arguments[0]!r} of plugin {owner.label})" if owner else ""
        next_command = shlex.join(["lite", arguments[0], "--help"])
        return print_error(f"{error.code}{whose}", EXIT_FAILURE, next_command, as_json=as_json)
    except MemoryError as error:
        return print_error(f"there is not enough memory. {error}".rstrip(), EXIT_FAILURE, as_json=as_json)
    except Exception as error:
        if is_disk_full(error):
            raise
        print(traceback.format_exc(), file=sys.stderr)
        owner = owner_of(arguments[0])
        if owner is not None:
            text = f"the command {arguments[0]!r} of plugin {owner.label} failed with {type(error).__name__}: {error}"
            return print_error(text, EXIT_CRASH, f"lite plugins {owner.distribution}", as_json=as_json)
        return print_error(
            f"Lite itself failed with {type(error).__name__}: {error}", EXIT_CRASH, "lite doctor", as_json=as_json
        )


def _kept_clean(arguments: list[str]) -> contextlib.AbstractContextManager[None]:
    """Keep what plugins print out of the JSON document of a command; the command of a plugin prints as it likes."""
    if is_own_command(arguments[0]):
        return only_results() if "--json" in arguments and not {"-h", "--help"} & {*arguments} else nullcontext()
    if not arguments[0].startswith("-"):
        with prints_kept_out():
            commands_of_plugins()  # which the group asks for next: it loads the plugins
    return nullcontext()


def _exit_code(result: object, name: str) -> int:
    """Return the exit code for what a command has returned."""
    if result is None:
        return EXIT_OK
    if type(result) is int and 0 <= result <= 255:  # not True, which is an int, too
        return result
    owner = owner_of(name)
    if owner is None:
        return EXIT_OK
    # Not as JSON: the command may have printed its document.
    return print_error(
        f"the command {name!r} of plugin {owner.label} returned {result!r:.100}, expected None or an exit code, an "
        "integer from 0 to 255",
        EXIT_CRASH,
        f"lite plugins {owner.distribution}",
    )


def _flush() -> None:
    if sys.stdout is not None:  # None: the parent process has closed it
        sys.stdout.flush()


def _discard_output() -> None:
    """Redirect buffered output to the null device: Python would try to write it again at exit, and print an error."""
    with open(os.devnull, "w") as nowhere, contextlib.suppress(OSError, ValueError):  # the stream has no descriptor
        os.dup2(nowhere.fileno(), sys.stdout.fileno())
