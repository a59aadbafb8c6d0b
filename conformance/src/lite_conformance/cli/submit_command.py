"""``lite-conformance submit``: a bundle with which a vendor shows that a backend conforms."""

from __future__ import annotations

import hashlib
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from lite_conformance.cases.case import Settings
from lite_conformance.cli import shared_options as shared
from lite_conformance.cli.missing import print_missing
from lite_conformance.cli.progress import shown_progress
from lite_conformance.reports.record import Report, read_report
from lite_conformance.reports.summary import printable
from lite_conformance.run.must_pass import MustPassList, listed_profiles, must_pass_list
from lite_conformance.run.profiles import PROFILES, joined, must_pass_part
from lite_conformance.run.runner import run_suite
from lite_conformance.submission.archive import write_archive
from lite_conformance.submission.bundle import bundle_contents, judge
from lite_conformance.submission.verification import verify
from lite_tools.commands import EXIT_FAILURE, EXIT_OK, check_writable, json_option, print_error, print_json, print_text

__all__ = ["command"]

_MOST_SHOWN = 20


@click.command("submit")
@click.option("--backend", "-b", help="The backend to run; not needed with --report.")
@click.option(
    "--profile",
    "-p",
    "profiles",
    multiple=True,
    required=True,
    type=click.Choice(list(listed_profiles())),
    metavar="PROFILE",
    help=f"The profile to conform to: {', '.join(listed_profiles())}. Repeatable.",
)
@click.option("--output", "-o", required=True, type=click.Path(dir_okay=False), help="The zip file to write.")
@click.option(
    "--report",
    "files",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False),
    help="Use the JSON report of an earlier run, such as a shard, instead of running the cases. Repeatable.",
)
@shared.seed
@shared.jobs
@shared.quiet
@json_option
def command(
    backend: str | None,
    profiles: tuple[str, ...],
    output: str,
    files: tuple[str, ...],
    seed: int,
    jobs: int,
    quiet: bool,
    as_json: bool,
) -> int:
    """Write a submission: a zip file with reports, environment, exceptions and must-pass lists.

    The must-pass cases of the profiles are run, or taken from reports of earlier runs. Nothing is written unless the
    backend conforms. `lite-conformance verify` checks the file, on any machine.
    """
    if bool(backend) == bool(files):
        raise click.UsageError(
            "say what to submit: either --backend NAME, or the reports of its runs with --report FILE"
        )
    check_writable(output, "--output")
    lists = [_list(name) for name in dict.fromkeys(profiles)]
    if backend:
        names = [required.profile for required in lists]
        reports = _run(names, Settings(backend, seed), jobs, quiet)
    else:
        names = [Path(file).stem for file in files]
        reports = [read_report(file) for file in files]
    results = judge(lists, reports)
    if not all(found.conforms for found in results):
        if not as_json:
            for found in results:
                print_missing(found)
        missing = sum(len(found.missing) for found in results)
        name = reports[0].header.get("backend")
        problem = f"{name} does not conform, {missing:,} must-pass cases are missing: nothing was written"
        return print_error(problem, EXIT_FAILURE, as_json=as_json)
    contents = bundle_contents(lists, reports, names, shlex.join(["lite-conformance", *_own_arguments()]))
    checked = verify(contents)
    for finding in checked.findings[:_MOST_SHOWN]:
        print_text(printable(f"{finding.check}: {finding.message}"), err=True)
    if checked.findings:
        return print_error("nobody could verify this submission: nothing was written", EXIT_FAILURE, as_json=as_json)
    write_archive(output, contents)
    digest = hashlib.sha256(Path(output).read_bytes()).hexdigest()
    if as_json:
        conforming = [{"name": r.profile, "version": r.version, "cases": len(r.cases)} for r in lists]
        print_json({"file": os.fspath(output), "sha256": digest, "profiles": conforming})
        return EXIT_OK
    for found in results:
        print_text(f"{found.passed:,} of {len(found.required.cases):,} must-pass cases passed: {found.verdict}")
    print_text(f"wrote {output}, SHA-256 {digest}")
    click.echo(f"next: lite-conformance verify {shlex.quote(output)}")
    return EXIT_OK


def _list(name: str) -> MustPassList:
    required = must_pass_list(name)
    assert required is not None, "the choices of --profile have lists"
    return required


def _run(names: Sequence[str], settings: Settings, jobs: int, quiet: bool) -> list[Report]:
    """Run each case once, also if several profiles require it: a profile leaves out what those before it have."""
    reports = []
    done: frozenset[str] = frozenset()
    for name in names:
        selection = must_pass_part(name).selection
        own = (selection.only or frozenset()) - done
        done |= own
        if own:
            with shown_progress(f"{settings.backend}, {name}", quiet) as progress:
                report = run_suite(settings, type(selection)(only=own), jobs=jobs, progress=progress)
            reports.append(joined(PROFILES[name], [report]))
        if reports and reports[-1].is_interrupted:
            raise KeyboardInterrupt
    return reports


def _own_arguments() -> list[str]:
    return sys.argv[1:]
