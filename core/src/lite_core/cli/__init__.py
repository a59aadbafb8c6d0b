"""The command line: ``lite COMMAND``. One file per command; plugins add their own.

Exit codes of every command: 0 ok, 1 mismatch or failure, 2 wrong usage, 3 a backend or file is not
available, 4 nothing was executed, 5 crash.
"""

from __future__ import annotations

import json
import sys
import traceback
from importlib import import_module
from typing import Any

import click

from lite_core import __version__
from lite_core.errors import (
    BackendUnavailableError,
    InputError,
    LiteError,
    ModelFormatError,
    UnsupportedOperatorError,
)
from lite_core.plugins import default_host

__all__ = ["main"]

_COMMANDS = {
    "backends": "Show the installed backends, their devices, and why one is missing",
    "check": "Tell whether a model can be read and run, and what is in the way",
    "doctor": "Show the environment, every plugin, and what is wrong with them",
    "inspect": "Print a model's graph, operators and inputs",
    "ops": "List the operators of the opset, or describe one",
    "run": "Run a model on arrays, images or random inputs",
}

EXIT_FAILURE, EXIT_USAGE, EXIT_UNAVAILABLE, EXIT_CRASH = 1, 2, 3, 5


class _Commands(click.Group):
    """Built-in commands by file, plugins' commands by hook; imports only what is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*_COMMANDS, *self._plugin_commands()})

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name in _COMMANDS:
            command: click.Command = import_module(f"lite_core.cli.{name}").command
            return command
        return self._plugin_commands().get(name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = list(_COMMANDS.items())
        rows += [(name, c.get_short_help_str(80)) for name, c in self._plugin_commands().items()]
        with formatter.section("Commands"):
            formatter.write_dl(sorted(rows))

    @staticmethod
    def _plugin_commands() -> dict[str, click.Command]:
        items = [item for _, item in default_host().ask("lite_commands")]
        return {c.name: c for c in items if isinstance(c, click.Command) and c.name and c.name not in _COMMANDS}


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="lite")
def lite() -> None:
    """Run trained neural networks on whatever hardware this machine has."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with one of the exit codes above."""
    arguments = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    as_json = "--json" in arguments
    try:
        result = lite.main(arguments, prog_name="lite", standalone_mode=False)
        code = result if isinstance(result, int) else 0
    except click.exceptions.Abort:
        code = _fail("interrupted", EXIT_FAILURE, as_json)
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        path = context.command_path if context else "lite"
        code = _fail(error.format_message(), EXIT_USAGE, as_json, f"{path} --help")
    except LiteError as error:
        unavailable = isinstance(error, (BackendUnavailableError, ModelFormatError))
        code = EXIT_UNAVAILABLE if unavailable else EXIT_FAILURE
        code = _fail(str(error), code, as_json, _next(error, arguments))
    except Exception as error:
        print(traceback.format_exc(), file=sys.stderr)
        code = _fail(f"Lite itself failed with {type(error).__name__}: {error}", EXIT_CRASH, as_json, "lite doctor")
    sys.exit(code)


def _next(error: LiteError, arguments: list[str]) -> str:
    """The command that tells more about an error."""
    model = next((a for a in arguments[1:] if not a.startswith("-")), "MODEL")
    if isinstance(error, BackendUnavailableError):
        return "lite backends"
    if isinstance(error, UnsupportedOperatorError):
        return f"lite check {model}"
    return f"lite inspect {model}" if isinstance(error, InputError) else "lite doctor"


def _fail(message: str, code: int, as_json: bool, next_command: str = "") -> int:
    if as_json:
        print(json.dumps({"schema_version": 1, "error": message, "exit_code": code, "next": next_command}))
    else:
        print(f"error: {message}", file=sys.stderr)
        if next_command:
            print(f"next: {next_command}", file=sys.stderr)
    return code


def print_json(data: dict[str, Any]) -> None:
    """Print a command's result for programs."""
    print(json.dumps({"schema_version": 1, **data}, indent=2, default=str))
