"""``lite-conformance mutate``: how many faults, planted into the references, the suite's cases find."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

import click

from lite_conformance.mutate.campaign import Campaign
from lite_conformance.mutate.plan import Plan
from lite_conformance.mutate.reasons import Reason, obsolete_patterns, read_reasons, reason_for
from lite_conformance.mutate.report import GROUPINGS, Summary, markdown, summarize
from lite_conformance.mutate.result import Result, read_results
from lite_core.errors import InputError
from lite_tools.commands import EXIT_FAILURE, EXIT_OK

__all__ = ["LEAST_SHARE", "command", "parse_shard"]

#: The share of the mutants that are not equivalent, below which a campaign fails.
LEAST_SHARE = 0.99
_SECONDS_BETWEEN_LINES = 15.0


@click.command("mutate")
@click.option("--op", "ops", multiple=True, help="Only these operators; * and ? are wildcards. Repeatable.")
@click.option(
    "--kind", "kinds", multiple=True, help="Only this family (source, behaviour, state) or kind of faults. Repeatable."
)
@click.option("--shard", default="1/1", show_default=True, help="Only part i of n, as i/n; by a hash of each mutant.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Seed of the suite's numbers.")
@click.option(
    "--examples", default=20, show_default=True, type=click.IntRange(1), help="Random examples per operator and type."
)
@click.option("--jobs", "-j", default=1, show_default=True, type=click.IntRange(1), help="Worker processes.")
@click.option(
    "--output",
    "-o",
    default="out/mutation.jsonl",
    show_default=True,
    type=click.Path(dir_okay=False),
    help="File for the results; a campaign that was interrupted goes on there.",
)
@click.option(
    "--report",
    "reports",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False),
    help="Run nothing: print the report of such a file as Markdown. Repeatable, for the parts of a campaign.",
)
@click.option(
    "--by", multiple=True, type=click.Choice(list(GROUPINGS)), help="The tables of the report.  [default: all]"
)
@click.option(
    "--reasons",
    type=click.Path(exists=True, dir_okay=False),
    help="File with the reasons of survivors to use instead of the suite's own.",
)
@click.option("--list", "list_mutants", is_flag=True, help="List the mutants and run nothing.")
def command(
    ops: tuple[str, ...],
    kinds: tuple[str, ...],
    shard: str,
    seed: int,
    examples: int,
    jobs: int,
    output: str,
    reports: tuple[str, ...],
    by: tuple[str, ...],
    reasons: str | None,
    list_mutants: bool,
) -> int:
    """Plant faults into the references and count those that the suite's cases find.

    The exit code is 1 if a mutant survives without a reason, or if the cases find less than 99 % of the mutants that
    are not equivalent to the reference.
    """
    known = read_reasons(Path(reasons)) if reasons else read_reasons()
    if reports:
        results = list(read_results(map(Path, reports)).values())
        click.echo(markdown(results, known, by), nl=False)
        _note_obsolete(known, results)
        return _exit_code(summarize(results, known))
    plan = Plan(ops, kinds, parse_shard(shard), seed, examples)
    if list_mutants:
        for table in plan.tables():
            for mutant in plan.mutants(table):
                click.echo(mutant.id)
        return EXIT_OK
    file = Path(output)
    file.parent.mkdir(parents=True, exist_ok=True)
    progress = _Progress()
    campaign = Campaign(plan, file, jobs, progress)
    progress.begin(campaign)
    try:
        campaign.run()
    except KeyboardInterrupt:
        click.echo(f"interrupted; the same command goes on with what {file} holds", err=True)
        _print_summary(campaign, known, file)
        raise
    return _exit_code(_print_summary(campaign, known, file))


def parse_shard(text: str) -> tuple[int, int]:
    """Return the number and the count of a part such as ``2/8``.

    Raises:
        InputError: the text has another form, or there is no such part.
    """
    number, slash, count = text.partition("/")
    if slash and number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count):
        return int(number), int(count)
    raise InputError(f"--shard must be i/n with i from 1 to n, such as 2/8, is {text!r}")


class _Progress:
    """Lines on standard error about a campaign, at most one in a few seconds."""

    def __init__(self) -> None:
        self._campaign: Campaign | None = None
        self._last = 0.0

    def begin(self, campaign: Campaign) -> None:
        """Report where the campaign begins or goes on."""
        self._campaign = campaign
        self._last = time.monotonic()
        click.echo(f"{campaign.total} mutants, {len(campaign.finished())} of them tried before", err=True)

    def __call__(self, result: Result) -> None:
        if self._campaign is None or time.monotonic() - self._last < _SECONDS_BETWEEN_LINES:
            return
        self._last = time.monotonic()
        results = self._campaign.results
        killed = sum(r.killed for r in results.values())
        line = f"{result.op}: {len(results)} of {self._campaign.total} mutants tried, {killed} found"
        print(line, file=sys.stderr, flush=True)


def _print_summary(campaign: Campaign, known: Sequence[Reason], file: Path) -> Summary:
    summary = summarize(campaign.results.values(), known)
    for result in sorted(campaign.results.values(), key=lambda r: r.id):
        if not result.killed and reason_for(result.id, known) is None:
            click.echo(f"survives: {result.id}")
    click.echo(
        f"{summary.killed} of {summary.total - summary.equivalent} mutants found ({summary.share:.2%}); "
        f"{summary.untested} are untested, {summary.survivors} survive without a reason; "
        f"{summary.equivalent} more are equivalent; "
        f"{campaign.total - summary.total} not tried; results in {file}"
    )
    return summary


def _note_obsolete(known: Sequence[Reason], results: Sequence[Result]) -> None:
    """Report reasons that no survivor needs any more; of a part of a campaign, that is no wonder."""
    unused = obsolete_patterns(known, [r.id for r in results if not r.killed])
    if unused:
        listed = "".join(f"\n  {pattern}" for pattern in unused)
        click.echo(f"note: {len(unused)} patterns of reasons match no survivor of these results:{listed}", err=True)


def _exit_code(summary: Summary) -> int:
    return EXIT_FAILURE if summary.survivors or summary.share < LEAST_SHARE else EXIT_OK
