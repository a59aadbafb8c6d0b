"""The program ``lite``, which runs a command, reports errors, and ends with one of the exit codes."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shlex
import sys
import traceback

import click

from lite_core.errors import (
    BackendUnavailableError,
    ConversionError,
    InputError,
    LiteError,
    ModelFormatError,
    UnsupportedOperatorError,
    UntrustedCodeError,
)
from lite_core.plugins import default_plugins
from lite_core.plugins.known import format_distribution
from lite_tools.cli.group import lite, owner_of
from lite_tools.commands.errors import UnavailableError, exit_code_of
from lite_tools.commands.exit_codes import EXIT_CRASH, EXIT_FAILURE, EXIT_OK, EXIT_UNAVAILABLE, EXIT_USAGE

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
        _fail(f"the output could not be written: {error}", code, as_json=False)
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    """Run a command and report its errors; only errors of writing the output propagate."""
    as_json = "--json" in arguments
    try:
        result = lite.main(arguments, prog_name="lite", standalone_mode=False)
        return result if isinstance(result, int) else EXIT_OK
    except click.exceptions.Abort:
        return _fail("interrupted", EXIT_FAILURE, as_json)
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "lite"
        return _fail(error.format_message(), EXIT_USAGE, as_json, f"{path} --help")
    except click.ClickException as error:
        next_command = error.next_command if isinstance(error, UnavailableError) else ""
        return _fail(error.format_message(), error.exit_code, as_json, next_command or f"lite {arguments[0]} --help")
    except LiteError as error:
        model = _model_in(arguments)
        package = _missing_reader(model) if isinstance(error, ModelFormatError) else None
        if package:
            return _fail(str(error), EXIT_UNAVAILABLE, as_json, f"pip install {package}")
        return _fail(str(error), exit_code_of(error), as_json, _next_command(error, arguments, model))
    except MemoryError as error:
        return _fail(f"there is not enough memory. {error}".rstrip(), EXIT_FAILURE, as_json)
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _DISK_FULL:
            raise
        print(traceback.format_exc(), file=sys.stderr)
        owner = owner_of(arguments[0])
        if owner is not None:
            text = f"the command {arguments[0]!r} of plugin {owner.label} failed with {type(error).__name__}: {error}"
            return _fail(text, EXIT_CRASH, as_json, f"pip install --upgrade {owner.distribution} lite-core")
        return _fail(f"Lite itself failed with {type(error).__name__}: {error}", EXIT_CRASH, as_json, "lite doctor")


def _missing_reader(model: str | None) -> str | None:
    """Return the package that reads the format of a model, if it is not installed."""
    package = None if model is None else format_distribution(model)
    is_installed = any(record.distribution == package and not record.failed for record in default_plugins().records())
    return None if is_installed else package


def _next_command(error: LiteError, arguments: list[str], model: str | None) -> str:
    """Return the command that shows more about an error."""
    name = "MODEL" if model is None else shlex.quote(model)
    if isinstance(error, BackendUnavailableError):
        return "lite backends"
    if isinstance(error, UnsupportedOperatorError):
        return f"lite check {name}"
    if isinstance(error, ConversionError):
        return f"lite check {name} --targets NAME"
    if isinstance(error, UntrustedCodeError):
        return f"lite trust {name}"
    if isinstance(error, ModelFormatError) and name.endswith(".lite") and "--sections" not in arguments:
        return f"lite inspect {name} --sections"
    if isinstance(error, InputError) and model is not None and os.path.exists(model):
        return f"lite inspect {name}"
    is_about_arguments = isinstance(error, (InputError, ModelFormatError))
    return f"lite {arguments[0]} --help" if is_about_arguments else "lite doctor"


def _model_in(arguments: list[str]) -> str | None:
    """Return the argument MODEL of a command line; None if the command has none."""
    with click.Context(lite) as context:
        command = lite.get_command(context, arguments[0])
    if command is None:
        return None
    # resilient_parsing: no prompts, and no errors, which were already reported
    model: str | None = command.make_context(arguments[0], arguments[1:], resilient_parsing=True).params.get("model")
    return model


def _flush() -> None:
    if sys.stdout is not None:  # None: the parent process has closed it
        sys.stdout.flush()


def _discard_output() -> None:
    """Redirect buffered output to the null device: Python would try to write it again at exit, and print an error."""
    with open(os.devnull, "w") as nowhere, contextlib.suppress(OSError, ValueError):  # the stream has no descriptor
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def _fail(message: str, code: int, as_json: bool, next_command: str = "") -> int:
    if as_json:
        print(json.dumps({"schema_version": 1, "error": message, "exit_code": code, "next": next_command}))
        return code
    with contextlib.suppress(OSError):  # standard error cannot be written, either: only the exit code remains
        print(f"error: {message}", file=sys.stderr)
        if next_command:
            print(f"next: {next_command}", file=sys.stderr)
    return code
