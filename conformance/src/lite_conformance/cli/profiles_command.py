"""``lite-conformance profiles``: a backend for each class of models and each way of computing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from lite_conformance.cases.case import Settings
from lite_conformance.cli import shared_options as shared
from lite_conformance.cli.missing import print_missing
from lite_conformance.cli.progress import shown_progress
from lite_conformance.cli.run_command import exit_code
from lite_conformance.reports.record import Report, Status
from lite_conformance.run.must_pass import conformity
from lite_conformance.run.profiles import PROFILES, Profile, is_rounded, joined
from lite_conformance.run.runner import run_suite
from lite_conformance.run.selection import Selection, parse_shard
from lite_tools.commands import EXIT_CRASH, EXIT_FAILURE, EXIT_NOTHING, EXIT_OK, print_text, table

__all__ = ["command", "verdict"]

_MOST_SHOWN = 20
_LONG_SUMS, _SINGLE_TERMS = "precision[MatMul,k512,*", "precision[MatMul,k1,*"


@click.command("profiles")
@click.argument("names", nargs=-1, type=click.Choice(list(PROFILES)), metavar="[PROFILE]...")
@click.option("--backend", "-b", required=True, help="A backend, as for `run`.")
@click.option("--shard", default="1/1", help="i/n: the i-th of n parts of equal size of each profile.")
@click.option("--sample", default=0, metavar="COUNT", type=click.IntRange(0), help="Only COUNT cases of each part.")
@shared.seed
@shared.jobs
@shared.timeout
@click.option(
    "--json",
    "folder",
    type=click.Path(file_okay=False),
    help="Write a report for each profile into this folder, as PROFILE.json.",
)
@shared.quiet
def command(
    names: tuple[str, ...],
    backend: str,
    shard: str,
    sample: int,
    seed: int,
    jobs: int,
    timeout: float,
    folder: str | None,
    quiet: bool,
) -> int:
    """Run profiles on a backend, all of them or those that are named, and say for each whether it is green.

    \b
    vision-f32, vision-f16            models of vision, in float32 or float16
    detection-f32                     models that find objects
    transformer-f32, transformer-f16  transformers
    float32                           all cases in float32
    bfloat16, float16                 the same, computed in fewer bits
    int8                              quantized models
    weights8, weights4                products with weights of 8 or 4 bits

    A profile is green if no case fails. The first five and int8 also have a must-pass list: the backend conforms if it
    passes, and does not refuse, every case of the list. What is missing is printed first.

    The column "rounded" counts the results that are right because the precision allows rounding; it is 0 for a backend
    that computes in float32 although it may use fewer bits. A backend whose sums are float16 is judged by the precision
    level float16-sums, and its row says so.
    """  # noqa: D301 - \b tells click to keep the line breaks
    settings = Settings(backend, seed)
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
    codes, rows = [], []
    for name in names or PROFILES:
        profile = PROFILES[name]
        reports = []
        for part in profile.parts:
            own = part.settings(settings)
            if part.optional and not _offers(own):
                continue
            if part.otherwise and _adds_in_the_type(own):
                own = replace(own, precision=part.otherwise)
            selection = replace(part.selection, shard=parse_shard(shard), sample=sample)
            with shown_progress(f"{backend}, {name}", quiet) as progress:
                reports.append(run_suite(own, selection, jobs=jobs, timeout=timeout, progress=progress))
        report = joined(profile, reports)
        if folder:
            report.write(Path(folder) / f"{name}.json")
        _print_bad(report)
        codes.append(exit_code(report))
        judged = "not judged: not all cases were to run" if sample or shard != "1/1" else ""
        if profile.must_pass and not judged:
            found = conformity(profile.must_pass, report.records)
            print_missing(found)
            judged = found.verdict
            codes.append(EXIT_OK if found.conforms else EXIT_FAILURE)
        rows.append((*_row(profile, report), judged if profile.must_pass else ""))
        if report.is_interrupted:
            break
    titles = ("profile", "tests", "passed", "rounded", "unsupported", "bad", "verdict")
    has_list = any(row[-1] for row in rows)
    table((*titles, "must pass") if has_list else titles, rows if has_list else [row[:-1] for row in rows])
    return next((code for code in (EXIT_CRASH, EXIT_FAILURE) if code in codes), _least(codes))


def verdict(report: Report) -> str:
    """Return ``green`` or ``red``, or the reason why the report says neither."""
    if any(record.status.is_bad for record in report.records):
        return "red"
    if report.incomplete:
        return "not finished"
    return "green" if report.something_ran() else "every case unsupported"


def _offers(settings: Settings) -> bool:
    """Return True if the backend can be asked for the settings' precision level: one product tells."""
    report = run_suite(settings, Selection(cases=("precision[MatMul,k2,mixed]",)))
    return any(record.status.is_executed for record in report.records)


def _adds_in_the_type(settings: Settings) -> bool:
    """Return True if sums have the type of the settings' precision level: long sums fail, sums of one term do not.

    Truncated operands make both fail.
    """
    long, single = (run_suite(settings, Selection(cases=(case,))).records for case in (_LONG_SUMS, _SINGLE_TERMS))
    failed = [any(record.status is Status.FAILED for record in records) for records in (long, single)]
    return failed == [True, False]


def _row(profile: Profile, report: Report) -> tuple[str, ...]:
    counts, records = report.counts(), report.records
    rounded = sum(is_rounded(record) for record in records)
    bad = sum(record.status.is_bad for record in records)
    numbers = (counts[Status.PASSED], rounded, counts[Status.UNSUPPORTED], bad)
    level = next((part.otherwise for part in profile.parts if part.otherwise in {r.precision for r in records}), "")
    title = f"{profile.title} (level {level})" if level else profile.title
    return (profile.name, title, *(f"{number:,}" for number in numbers), verdict(report))


def _print_bad(report: Report) -> None:
    bad = [record for record in report.records if record.status.is_bad]
    for record in bad[:_MOST_SHOWN]:
        print_text(f"{str(record.status).upper()} {record.case}: {record.reason}")
        click.echo(f"  {record.repro}")
    if len(bad) > _MOST_SHOWN:
        print_text(f"... and {len(bad) - _MOST_SHOWN:,} more; the reports of --json have them all")


def _least(codes: list[int]) -> int:
    return EXIT_OK if EXIT_OK in codes else EXIT_NOTHING
