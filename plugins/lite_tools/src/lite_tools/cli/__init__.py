"""The command line: ``lite COMMAND``. One file per command; plugins add their own.

Exit codes of every command: 0 ok, 1 mismatch or failure, 2 wrong usage (also inputs that do not fit the
model), 3 a backend, a package or a model is not available, 4 nothing was executed, 5 crash.
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import shlex
import sys
import traceback
from importlib import import_module
from typing import Any

import click

from lite_core import __version__
from lite_core.errors import (
    BackendUnavailableError,
    ConversionError,
    InputError,
    LiteError,
    ModelFormatError,
    UnsupportedOperatorError,
)
from lite_core.plugins import default_host

__all__ = ["main"]

_COMMANDS = {
    "backends": "Show the installed backends, their devices, and why one is missing",
    "bench": "Measure how long a model takes, on several backends in turns",
    "check": "Tell whether a model can be read and run, and what is in the way",
    "convert": "Convert a model into one .lite file for one or several targets",
    "doctor": "Show the environment, every plugin, and what is wrong with them",
    "inspect": "Print a model's graph, operators and inputs",
    "new-backend": "Write the package of a new backend, with kernels and tests",
    "ops": "List the operators of the opset, or describe one",
    "run": "Run a model on arrays, images or random inputs",
}

EXIT_FAILURE, EXIT_USAGE, EXIT_UNAVAILABLE, EXIT_CRASH = 1, 2, 3, 5
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class _Commands(click.Group):
    """Built-in commands by file, plugins' commands by hook; imports only what is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*_COMMANDS, *plugin_commands()})

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name in _COMMANDS:
            command: click.Command = import_module(f"lite_tools.cli.{name.replace('-', '_')}").command
            return command
        return plugin_commands().get(name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = list(_COMMANDS.items())
        rows += [(name, c.get_short_help_str(100)) for name, c in plugin_commands().items()]
        with formatter.section("Commands"):
            formatter.write_dl(sorted(rows))


def plugin_commands() -> dict[str, click.Command]:
    """The commands that plugins add, by name; one that cannot be used is recorded and left out."""
    host = default_host()
    commands: dict[str, click.Command] = {}
    owners = dict.fromkeys(_COMMANDS, "lite-core itself")
    for record, command in host.ask("lite_commands"):
        if not isinstance(command, click.Command):
            problem = f"{command!r} is not a click.Command"
        elif not command.name:
            problem = f"{command!r} has no name"
        elif command.name in owners:
            problem = f"the command name {command.name!r} is taken by {owners[command.name]}"
        else:
            commands[command.name] = command
            owners[command.name] = record.label
            continue
        host.reject(record, "lite_commands", problem, command)
    return commands


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="lite")
def lite() -> None:
    """Run trained neural networks on whatever hardware this machine has."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with one of the exit codes above."""
    arguments = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a name the terminal cannot show must not end the program
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _run(arguments)
        _flush()
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        code = EXIT_FAILURE
        _discard_output()
    except OSError as error:
        code = EXIT_FAILURE
        _discard_output()
        _fail(f"the output could not be written: {error}", code, as_json=False)
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    """Run a command and report its failure, if any; only errors in writing the output get through."""
    as_json = "--json" in arguments
    try:
        result = lite.main(arguments, prog_name="lite", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except click.exceptions.Abort:
        return _fail("interrupted", EXIT_FAILURE, as_json)
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "lite"
        return _fail(error.format_message(), EXIT_USAGE, as_json, f"{path} --help")
    except click.ClickException as error:
        return _fail(error.format_message(), error.exit_code, as_json, f"lite {arguments[0]} --help")
    except LiteError as error:
        return _fail(str(error), _exit_code(error), as_json, _next(error, arguments))
    except MemoryError as error:
        return _fail(f"there is not enough memory. {error}".rstrip(), EXIT_FAILURE, as_json)
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _DISK_FULL:
            raise
        print(traceback.format_exc(), file=sys.stderr)
        return _fail(f"Lite itself failed with {type(error).__name__}: {error}", EXIT_CRASH, as_json, "lite doctor")


def _exit_code(error: LiteError) -> int:
    if isinstance(error, InputError):
        return EXIT_USAGE
    return EXIT_UNAVAILABLE if isinstance(error, (BackendUnavailableError, ModelFormatError)) else EXIT_FAILURE


def _next(error: LiteError, arguments: list[str]) -> str:
    """The command that tells more about an error."""
    if isinstance(error, BackendUnavailableError):
        return "lite backends"
    if isinstance(error, UnsupportedOperatorError):
        return f"lite check {_model_in(arguments)}"
    if isinstance(error, InputError):
        return f"lite inspect {_model_in(arguments)}"
    if isinstance(error, ConversionError):
        return f"lite check {_model_in(arguments)} --targets NAME"
    return "lite doctor"


def _model_in(arguments: list[str]) -> str:
    """The argument MODEL of a command that was given, as a shell takes it."""
    with click.Context(lite) as context:
        command = lite.get_command(context, arguments[0])
    if command is None:
        return "MODEL"
    # resilient_parsing: no prompts and no errors, they were reported before
    given = command.make_context(arguments[0], arguments[1:], resilient_parsing=True).params.get("model")
    return shlex.quote(given) if given else "MODEL"


def _flush() -> None:
    if sys.stdout is not None:  # None: closed by whoever started the program
        sys.stdout.flush()


def _discard_output() -> None:
    """Send what is still to be written to nowhere, or Python tries once more on its way out and complains."""
    with open(os.devnull, "w") as nowhere, contextlib.suppress(OSError, ValueError):  # a stream without a descriptor
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def _fail(message: str, code: int, as_json: bool, next_command: str = "") -> int:
    if as_json:
        print(json.dumps({"schema_version": 1, "error": message, "exit_code": code, "next": next_command}))
        return code
    with contextlib.suppress(OSError):  # standard error is full or gone as well: the exit code has to tell
        print(f"error: {message}", file=sys.stderr)
        if next_command:
            print(f"next: {next_command}", file=sys.stderr)
    return code


def print_json(data: dict[str, Any]) -> None:
    """Print a command's result for programs, as strict JSON: inf and nan, which JSON has not, become strings."""
    print(json.dumps(_json_ready({"schema_version": 1, **data}), indent=2, default=str, allow_nan=False))


def _json_ready(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(float(value))
    if isinstance(value, dict):
        return {key: _json_ready(item) for key, item in value.items()}
    return [_json_ready(item) for item in value] if isinstance(value, (list, tuple)) else value
