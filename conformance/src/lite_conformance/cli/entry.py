"""The entry point of ``lite-conformance``: its subcommands, errors as messages, and exit codes.

Exit codes: 0 everything that ran passed, 1 something failed, 2 wrong usage, 3 the backend is not available,
4 nothing was executed, 5 a case crashed or hung.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Sequence
from functools import partial
from importlib import metadata

import click

from lite_core.errors import BackendUnavailableError, InputError, LiteError
from lite_tools.commands import (
    EXIT_FAILURE,
    EXIT_OK,
    EXIT_UNAVAILABLE,
    EXIT_USAGE,
    LazyCommand,
    corrected,
    did_you_mean,
    next_command_of,
    note_typed_words,
    print_error,
    print_text,
    similar_names,
    version_option,
    with_correction,
)

__all__ = ["main", "run_command_line"]

_THREAD_GRACE_SECONDS = 3.0

#: The subcommands that print a result as JSON; --json of the others names a file.
_PRINT_JSON = ("compare", "submit", "verify")

#: The subcommands: name, line in the list of commands, module that defines the command as ``command``.
_COMMANDS = (
    ("run", "Run the suite on a backend (the default).", "lite_conformance.cli.run_command"),
    ("profiles", "Run profiles: classes of models, precisions.", "lite_conformance.cli.profiles_command"),
    ("plugin", "Check the operators, passes and formats of a package.", "lite_conformance.cli.plugin_command"),
    ("report", "Write one HTML page from JSON reports.", "lite_conformance.cli.report_command"),
    ("compare", "Say what changed from one report to another.", "lite_conformance.cli.compare_command"),
    ("badge", "Draw the result of a report as a badge.", "lite_conformance.cli.badge_command"),
    ("submit", "Write a submission: a bundle that others can verify.", "lite_conformance.cli.submit_command"),
    ("verify", "Verify a submission.", "lite_conformance.cli.verify_command"),
    ("export", "Write cases as folders in the form of ONNX's test data.", "lite_conformance.cli.export_command"),
    ("judge", "Judge what a runtime computed from exported cases.", "lite_conformance.cli.judge_command"),
    ("mutate", "Count the planted faults that the suite finds.", "lite_conformance.mutate.command"),
)


class _Main(click.Group):
    """A command group whose default subcommand is ``run``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        note_typed_words(ctx, args)
        if not args:
            args = ["--help"]
        if args[0] not in self.commands and not args[0].startswith("-"):
            near = similar_names(args[0], self.commands)
            error = click.UsageError(f"there is no command {args[0]!r}; {did_you_mean(args[0], self.commands)}", ctx)
            raise with_correction(error, args[0], near) if near else click.UsageError(error.message.rstrip("; "), ctx)
        if args[0] not in self.commands and args[0] not in ("-h", "--help", "--version"):
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_Main, context_settings={"help_option_names": ["-h", "--help"]})
@version_option(metadata.version("lite-conformance"), "lite-conformance")
@click.option("--json", "as_json", is_flag=True, is_eager=True, help="With --version: print it as JSON.")
def conformance(as_json: bool) -> None:
    """Tell whether a backend of Lite does what it claims.

    \b
    lite-conformance --backend NAME                  everything
    lite-conformance --backend NAME --level L2       levels 0 to 2
    lite-conformance run --help                      all options
    lite-conformance profiles --backend NAME         vision, int8, ...: conforms?
    lite-conformance plugin NAME                     a package's operators, ...
    lite-conformance report a.json b.json -o p.html  backends side by side
    lite-conformance compare old.json new.json       what changed; 1 if worse
    lite-conformance submit -b NAME -p vision-f32 -o s.zip   a submission
    lite-conformance verify s.zip                    is the submission sound?
    """  # noqa: D301 - \b tells click to keep the line breaks


for _name, _help, _module in _COMMANDS:
    conformance.add_command(LazyCommand(_name, _help, _module))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with one of the exit codes."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that worker processes are ended as well
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # characters that the terminal cannot encode must not raise
            stream.reconfigure(errors="backslashreplace")
    try:
        code = run_command_line(list(sys.argv[1:] if arguments is None else arguments))
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as `head`, has closed the pipe
        # Redirected, because Python flushes stdout again at exit and would report the error.
        with open(os.devnull, "w") as devnull, contextlib.suppress(OSError, ValueError):
            os.dup2(devnull.fileno(), sys.stdout.fileno())
        code = EXIT_FAILURE
    _exit_despite_threads(code)
    sys.exit(code)


def run_command_line(arguments: list[str]) -> int:
    """Run the command line and return its exit code; errors are printed as one message without a traceback."""
    as_json = bool(arguments) and arguments[0] in _PRINT_JSON and "--json" in arguments
    fail = partial(print_error, as_json=as_json)
    try:
        result = conformance.main(arguments, prog_name="lite-conformance", standalone_mode=False)
        return result if isinstance(result, int) else EXIT_OK
    except (click.exceptions.Abort, KeyboardInterrupt):
        return fail("interrupted", EXIT_FAILURE)
    except click.UsageError as error:
        message, next_command = corrected(error, "lite-conformance")
        return fail(message, EXIT_USAGE, next_command)
    except click.ClickException as error:
        next_command = next_command_of(error) or shlex.join(["lite-conformance", arguments[0], "--help"])
        return fail(error.format_message(), error.exit_code, next_command)
    except BackendUnavailableError as error:
        return fail(str(error), EXIT_UNAVAILABLE, next_command_of(error) or "lite backends")
    except InputError as error:
        command = arguments[0] if arguments[0] in conformance.commands else "run"
        return fail(str(error), EXIT_USAGE, next_command_of(error) or f"lite-conformance {command} --help")
    except LiteError as error:
        return fail(str(error), EXIT_FAILURE, "lite doctor")
    except BrokenPipeError:
        raise
    except OSError as error:
        return fail(f"a file could not be read or written: {error}", EXIT_FAILURE)


def _exit_despite_threads(code: int) -> None:
    """Exit even if threads of the backend, run with ``--isolate never``, do not end; Python would wait for them."""
    others = [t for t in threading.enumerate() if t is not threading.main_thread() and not t.daemon]

    def leave() -> None:
        time.sleep(_THREAD_GRACE_SECONDS)
        names = ", ".join(t.name for t in others if t.is_alive())
        print_text(f"note: threads that the backend started do not end ({names}); exiting anyway", err=True)
        sys.stderr.flush()
        os._exit(code)

    if others:
        threading.Thread(target=leave, daemon=True).start()
