"""``lite-conformance verify``: whether a submission is consistent, complete and untouched."""

from __future__ import annotations

import hashlib
from pathlib import Path

import click

from lite_conformance.cli import shared_options as shared
from lite_conformance.cli.progress import shown_progress
from lite_conformance.reports.record import Record
from lite_conformance.reports.summary import fact_lines, printable
from lite_conformance.submission.archive import ArchiveError, read_archive
from lite_conformance.submission.reruns import problems_when_repeated, repeated, run_on_host
from lite_conformance.submission.verification import Verification, verify
from lite_tools.commands import EXIT_FAILURE, EXIT_FILE, EXIT_OK, check_writable, json_option, print_json, print_text

__all__ = ["command"]

_MOST_SHOWN = 20


@click.command("verify")
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--repeat",
    default=0,
    metavar="COUNT",
    type=click.IntRange(0),
    help="Run COUNT of the must-pass cases again with the backend that is installed here.",
)
@click.option("--quick", is_flag=True, help="Do not compute the cases on host, which tells their tolerances.")
@click.option("--html", type=click.Path(dir_okay=False), help="If it is verified, write its reports as one web page.")
@shared.jobs
@click.option("--quiet", "-q", is_flag=True, help="No progress, only the result.")
@json_option
def command(file: str, repeat: int, quick: bool, html: str | None, jobs: int, quiet: bool, as_json: bool) -> int:
    """Verify a submission that `lite-conformance submit` wrote.

    \b
    files       sizes and SHA-256 are those of the manifest
    versions    lite-core, the suite, its references, tolerances and cases are
                those installed here
    lists       the must-pass lists are the suite's own
    reports     counts follow from records, headers agree with the manifest
    waivers     no exception is for a must-pass case
    must-pass   every case is present, and none twice
    records     every case passed, by its own numbers
    tolerances  they are the suite's own: the cases are computed on host
    summary     README.md follows from the reports

    Exit codes: 0 verified, 1 something is wrong, 6 the file is damaged or no bundle, 3 --repeat without the backend.
    """  # noqa: D301 - \b tells click to keep the line breaks
    if html:
        check_writable(html, "--html")
    try:
        contents = read_archive(file)
    except ArchiveError as error:
        if as_json:
            nothing = Verification()
            nothing.add("archive", iter([str(error)]))
            print_json(_plain(file, nothing))
        else:
            print_text(f"error: {printable(file)} is not a submission: {printable(str(error))}", err=True)
        return EXIT_FILE

    def truth(names: frozenset[str], seed: int) -> list[Record]:
        with shown_progress("host", quiet) as progress:
            return run_on_host(names, seed, jobs, progress)

    found = verify(contents, None if quick else truth)
    if repeat and found.manifest is not None and not found.findings:
        names = frozenset(case for profile in found.profiles for case in profile.required.cases)
        with shown_progress(found.manifest.backend, quiet) as progress:
            again = repeated(found.manifest.backend, names, found.manifest.seed, repeat, jobs, progress)
        found.add("repeat", problems_when_repeated(again))
    if html and not found.findings:
        from lite_conformance.reports.html import write_html

        write_html([*found.reports.values()], html, [Path(name).stem for name in found.reports])
    if as_json:
        print_json(_plain(file, found))
    else:
        _print(file, found, repeat)
    return EXIT_FAILURE if found.findings else EXIT_OK


def _plain(file: str, found: Verification) -> dict[str, object]:
    manifest = found.manifest
    return {
        "file": file,
        "sha256": _sha256(file),
        "verified": not found.findings,
        "backend": manifest.backend if manifest else "",
        "environment": dict(manifest.environment) if manifest else {},
        "profiles": [
            {"name": p.required.profile, "version": p.required.version, "passed": p.passed, "conforms": p.conforms}
            for p in found.profiles
        ],
        "findings": [{"check": finding.check, "message": finding.message} for finding in found.findings],
    }


def _print(file: str, found: Verification, repeat: int) -> None:
    if manifest := found.manifest:
        shown = {
            key: manifest.environment.get(key) for key in ("device_name", "plugin", "stack", "platform", "versions")
        }
        print_text(printable(f"{manifest.backend}, made {manifest.created}, SHA-256 of the file {_sha256(file)}"))
        for label, text in fact_lines(shown):
            print_text(f"  {label}: {text}")
    for profile in found.profiles:
        print_text(f"{profile.passed:,} of {len(profile.required.cases):,} must-pass cases: {profile.verdict}")
    for finding in found.findings[:_MOST_SHOWN]:
        print_text(printable(f"{finding.check}: {finding.message}"))
    if len(found.findings) > _MOST_SHOWN:
        print_text(f"... and {len(found.findings) - _MOST_SHOWN:,} more findings; --json has them all")
    if found.findings:
        print_text(f"not verified: {len(found.findings):,} finding(s)")
    else:
        print_text("verified" + (f"; {repeat:,} case(s) repeated here" if repeat else ""))


def _sha256(file: str) -> str:
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()
