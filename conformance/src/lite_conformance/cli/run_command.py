"""``lite-conformance run``: the suite on one backend."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from lite_conformance.cli.progress import shown_progress
from lite_conformance.cli.run_options import RunOptions, run_options
from lite_conformance.reports.record import Report, Status
from lite_conformance.run.journal import Journal
from lite_conformance.run.last_failed import note_failures
from lite_conformance.run.runner import run_suite
from lite_conformance.run.selection import Selection
from lite_tools.commands import EXIT_CRASH, EXIT_FAILURE, EXIT_NOTHING, EXIT_OK, check_writable, console, print_text

__all__ = ["command", "exit_code", "run"]


@click.command("run")
@run_options
def command(**given: Any) -> int:
    """Run the suite on a backend.

    The options that select cases restrict each other: a case runs if all of them allow it.
    """
    return run(RunOptions(**given))


def run(options: RunOptions) -> int:
    """Run the cases that options select, write the reports, and return the exit code."""
    if options.list_cases:
        return _list(options)
    if options.backend is None:
        raise click.UsageError("say which backend: --backend NAME; `lite backends` shows those that are installed")
    for file, option in ((options.json_file, "--json"), (options.junit, "--junit"), (options.html, "--html")):
        if file:
            check_writable(file, option)
    if options.repro:
        _make_folder(options.repro, "--repro")
    selection = options.selection
    if selection.only is not None and not selection.only:
        print_text(f"no case of {options.backend} failed when it ran last", err=True)
        return EXIT_NOTHING
    journal = _journal(options, selection)
    try:
        report = _run(options, selection, journal)
    except BaseException:
        if journal is not None:
            journal.close(is_complete=False)
        raise
    if report.is_interrupted:  # a second signal must not damage what is being written
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
    return _finish(report, options, journal)


def exit_code(report: Report) -> int:
    """Return the exit code for a report."""
    statuses = {record.status for record in report.records}
    if report.is_interrupted:
        return EXIT_FAILURE
    if statuses & {Status.CRASHED, Status.HUNG}:
        return EXIT_CRASH
    if any(status.is_bad for status in statuses):
        return EXIT_FAILURE
    return EXIT_OK if report.something_ran() else EXIT_NOTHING


def _list(options: RunOptions) -> int:
    for case in options.selection.choose(options.settings):
        click.echo(f"L{case.level} {case.name}")
    return EXIT_OK


def _journal(options: RunOptions, selection: Selection) -> Journal | None:
    """Return the journal: beside the JSON report, or else in the cache folder."""
    if options.json_file:
        return Journal.beside(options.json_file, options.resume)
    selected = repr((asdict(options.settings), selection.describe()))
    journal = Journal.in_cache(options.settings.backend, selected, options.resume)
    if journal is None and options.resume:
        raise click.UsageError(
            "--resume needs the journal of the run, and the cache folder cannot be used: name a --json file"
        )
    return journal


def _run(options: RunOptions, selection: Selection, journal: Journal | None) -> Report:
    if options.resume and journal is not None and not journal.file.exists():
        print_text(
            "nothing to resume: no interrupted run of these cases is known; starting from the beginning", err=True
        )
    with shown_progress(options.settings.title, options.quiet) as progress:
        return run_suite(
            options.settings,
            selection,
            jobs=options.worker_count,
            timeout=options.timeout,
            maxfail=options.maxfail,
            repro=options.repro,
            isolate=options.isolate == "auto",
            journal=journal,
            progress=progress,
        )


def _finish(report: Report, options: RunOptions, journal: Journal | None) -> int:
    """Write the reports, end the journal and print the summary; return the exit code."""
    from lite_conformance.reports.terminal import print_summary

    _write(report, options)
    note_failures(options.settings.title, report)
    if journal is not None:
        journal.close(is_complete=not report.incomplete)
    print_summary(report, console)
    if report.incomplete:
        print_text(f"error: {report.incomplete}", err=True)
    if report.incomplete and journal is not None:
        arguments = [a for a in sys.argv[1:] if a != "--resume"]
        click.echo(f"next: {shlex.join(['lite-conformance', *arguments, '--resume'])}", err=True)
    return exit_code(report)


def _write(report: Report, options: RunOptions) -> None:
    if options.json_file:
        report.write(options.json_file)
    if options.junit:
        from lite_conformance.reports.junit import write_junit

        write_junit(report, options.junit)
    if options.html:
        from lite_conformance.reports.html import write_html

        write_html([report], options.html)


def _make_folder(folder: str, option: str) -> None:
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise click.BadParameter(f"{folder!r} cannot be created: {error.strerror}", param_hint=option) from error
    if not os.access(folder, os.W_OK):
        raise click.BadParameter(f"{folder!r} cannot be written: permission denied", param_hint=option)
