"""The command ``lite-conformance``.

Exit codes: 0 everything that ran passed, 1 something failed, 2 wrong usage, 3 the backend is not available,
4 nothing was executed, 5 a case crashed or hung.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from lite_conformance import __version__
from lite_conformance.cases.case import Settings
from lite_conformance.cases.catalogue import all_cases
from lite_conformance.reports.record import Record, Report, Status, read_report
from lite_conformance.run.runner import run_suite
from lite_conformance.run.selection import parse_level, select
from lite_core.errors import BackendUnavailableError, InputError, LiteError
from lite_tools.commands import (
    EXIT_CRASH,
    EXIT_FAILURE,
    EXIT_NOTHING,
    EXIT_OK,
    EXIT_UNAVAILABLE,
    EXIT_USAGE,
    check_writable,
)

__all__ = ["exit_code", "main"]

_THREAD_GRACE_SECONDS = 3.0


class _Main(click.Group):
    """A command group whose default subcommand is ``run``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args:
            args = ["--help"]
        if args[0] not in self.commands and args[0] not in ("-h", "--help", "--version"):
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_Main, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="lite-conformance")
def conformance() -> None:
    """Tell whether a backend of Lite does what it claims.

    \b
    lite-conformance --backend NAME                  everything
    lite-conformance --backend NAME --level L2       levels 0 to 2
    lite-conformance run --help                      all options
    lite-conformance report a.json b.json -o p.html  compare backends or versions
    """  # noqa: D301 - \b tells click to keep the line breaks


@conformance.command("run")
@click.option("--backend", "-b", help="An installed backend (opencl, opencl:1), module:attribute or file.py:attribute.")
@click.option("--level", "-l", default="L5", show_default=True, help="L2: levels 0 to 2. L2-L3: these only.")
@click.option("--case", "cases", multiple=True, help="Only cases with this name; * and ? are wildcards. Repeatable.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Seed of all random numbers.")
@click.option(
    "--examples", default=20, show_default=True, type=click.IntRange(1), help="Random examples per operator and type."
)
@click.option("--jobs", "-j", type=click.IntRange(1), help="Worker processes.  [default: the processors, at most 8]")
@click.option(
    "--timeout",
    default=60.0,
    show_default=True,
    type=click.FloatRange(0, min_open=True),
    help="Time limit of a case in seconds.",
)
@click.option(
    "--model", "models", multiple=True, type=click.Path(exists=True), help="A model to run in L4. Repeatable."
)
@click.option(
    "--node-data",
    type=click.Path(exists=True),
    help="The ONNX project's node data: a folder, or the wheel of onnx 1.17.",
)
@click.option(
    "--expectations",
    type=click.Path(exists=True, dir_okay=False),
    help="File to use instead of the backend's own conformance.toml.",
)
@click.option(
    "--isolate",
    type=click.Choice(["auto", "never"]),
    default="auto",
    show_default=True,
    help="never: run in this process, for debugging.",
)
@click.option("--json", "json_file", type=click.Path(dir_okay=False), help="Write the report as JSON.")
@click.option("--junit", type=click.Path(dir_okay=False), help="Write the report as JUnit XML.")
@click.option("--html", type=click.Path(dir_okay=False), help="Write the report as one web page.")
@click.option(
    "--repro",
    type=click.Path(file_okay=False),
    help="Folder for scripts that repeat failures with only NumPy and lite_core.",
)
@click.option("--list", "list_cases", is_flag=True, help="List the cases and run nothing.")
@click.option("--quiet", "-q", is_flag=True, help="No progress, only the summary.")
def run(
    backend: str | None,
    level: str,
    cases: tuple[str, ...],
    seed: int,
    examples: int,
    jobs: int | None,
    timeout: float,
    models: tuple[str, ...],
    node_data: str | None,
    expectations: str | None,
    isolate: str,
    json_file: str | None,
    junit: str | None,
    html: str | None,
    repro: str | None,
    list_cases: bool,
    quiet: bool,
) -> int:
    """Run the suite on a backend."""
    settings = Settings(backend or "", seed, examples, models, node_data, expectations)
    levels = parse_level(level)
    if list_cases:
        for case in select(list(all_cases(settings)), levels, cases):
            click.echo(f"L{case.level} {case.name}")
        return EXIT_OK
    if backend is None:
        raise click.UsageError("say which backend: --backend NAME; `lite backends` shows those that are installed")
    for file, option in ((json_file, "--json"), (junit, "--junit"), (html, "--html")):
        if file:
            check_writable(file, option)
    if repro:
        _make_folder(repro, "--repro")
    report = _run(settings, levels, cases, jobs or min(os.cpu_count() or 1, 8), timeout, repro, isolate, quiet)
    _write([report], None, json_file, junit, html)
    from lite_conformance.reports.terminal import print_summary

    print_summary(report, Console())
    return exit_code(report)


@conformance.command("report")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False))
@click.option("--output", "-o", required=True, type=click.Path(dir_okay=False), help="The HTML file to write.")
def report_command(files: tuple[str, ...], output: str) -> int:
    """Write one HTML page from JSON reports: of several backends, or of versions of one."""
    check_writable(output, "--output")
    reports = [read_report(file) for file in files]
    _write(reports, [Path(file).stem for file in files], None, None, output)
    click.echo(f"wrote {output}")
    return EXIT_OK


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with one of the exit codes."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that worker processes are ended as well
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # characters that the terminal cannot encode must not raise
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _main(list(sys.argv[1:] if arguments is None else arguments))
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as `head`, has closed the pipe
        # Redirected, because Python flushes stdout again at exit and would report the error.
        with open(os.devnull, "w") as devnull, contextlib.suppress(OSError, ValueError):
            os.dup2(devnull.fileno(), sys.stdout.fileno())
        code = EXIT_FAILURE
    _exit_despite_threads(code)
    sys.exit(code)


def _exit_despite_threads(code: int) -> None:
    """Exit even if threads of the backend, run with ``--isolate never``, do not end; Python would wait for them."""
    others = [t for t in threading.enumerate() if t is not threading.main_thread() and not t.daemon]

    def leave() -> None:
        time.sleep(_THREAD_GRACE_SECONDS)
        names = ", ".join(t.name for t in others if t.is_alive())
        click.echo(f"note: threads that the backend started do not end ({names}); exiting anyway", err=True)
        sys.stderr.flush()
        os._exit(code)

    if others:
        threading.Thread(target=leave, daemon=True).start()


def _main(arguments: list[str]) -> int:
    try:
        result = conformance.main(arguments, prog_name="lite-conformance", standalone_mode=False)
        return result if isinstance(result, int) else EXIT_OK
    except (click.exceptions.Abort, KeyboardInterrupt):
        return _fail("interrupted", EXIT_FAILURE)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except BackendUnavailableError as error:
        return _fail(str(error), EXIT_UNAVAILABLE, "lite backends")
    except InputError as error:
        return _fail(str(error), EXIT_USAGE, "lite-conformance run --help")
    except LiteError as error:
        return _fail(str(error), EXIT_FAILURE, "lite doctor")
    except BrokenPipeError:
        raise
    except OSError as error:
        return _fail(f"a file could not be read or written: {error}", EXIT_FAILURE)


def exit_code(report: Report) -> int:
    """Return the exit code for a report."""
    statuses = {record.status for record in report.records}
    if statuses & {Status.CRASHED, Status.HUNG}:
        return EXIT_CRASH
    if any(status.is_bad for status in statuses):
        return EXIT_FAILURE
    return EXIT_OK if report.something_ran() else EXIT_NOTHING


def _run(
    settings: Settings,
    levels: range,
    cases: Sequence[str],
    jobs: int,
    timeout: float,
    repro: str | None,
    isolate: str,
    quiet: bool,
) -> Report:
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[bad]}"),
    )
    hidden = quiet or not console.is_terminal
    bar = Progress(*columns, console=console, transient=True, disable=hidden)
    # In rich 13, a disabled bar that was started ends with an empty line.
    with contextlib.nullcontext() if hidden else bar:
        task = bar.add_task(settings.backend, total=None, bad="")
        bad = 0

        def progress(record: Record, total: int) -> None:
            nonlocal bad
            if record.status.is_bad:
                bad += 1
            if record.status.is_bad and not quiet:
                line = f"{record.status}: {record.case}: {record.reason}"
                bar.console.print(line, markup=False, highlight=False, soft_wrap=True)
            bar.update(task, total=total, advance=1, description=f"L{record.level}", bad=f"{bad} bad" if bad else "")

        return run_suite(
            settings,
            levels,
            cases,
            jobs=jobs,
            timeout=timeout,
            repro=repro,
            isolate=isolate == "auto",
            progress=progress,
        )


def _write(
    reports: Sequence[Report], names: Sequence[str] | None, json_file: str | None, junit: str | None, html: str | None
) -> None:
    if json_file:
        reports[0].write(json_file)
    if junit:
        from lite_conformance.reports.junit import write_junit

        write_junit(reports[0], junit)
    if html:
        from lite_conformance.reports.html import write_html

        write_html(reports, html, names)


def _make_folder(folder: str, option: str) -> None:
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.BadParameter(f"{folder!r} cannot be created: {error.strerror}", param_hint=option) from error
    if not os.access(folder, os.W_OK):
        raise click.BadParameter(f"{folder!r} cannot be written: permission denied", param_hint=option)


def _fail(message: str, code: int, next_command: str = "") -> int:
    click.echo(f"error: {message}", err=True)
    if next_command:
        click.echo(f"next: {next_command}", err=True)
    return code
