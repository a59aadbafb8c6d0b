"""``lite-conformance compare``: what changed from one report to another."""

from __future__ import annotations

from collections.abc import Sequence

import click

from lite_conformance.reports.changes import Changes, compare
from lite_conformance.reports.record import Record, Report, read_report
from lite_conformance.reports.summary import printable
from lite_tools.commands import EXIT_FAILURE, EXIT_OK, json_option, print_json, print_text

__all__ = ["command"]

_MOST_SHOWN = 20


@click.command("compare")
@click.argument("old", type=click.Path(exists=True, dir_okay=False))
@click.argument("new", type=click.Path(exists=True, dir_okay=False))
@json_option
def command(old: str, new: str, as_json: bool) -> int:
    """Say what changed from the JSON report OLD to NEW: cases, versions, the suite, the device.

    The exit code is 1 if a case that passed is bad now, or is gone. `lite-conformance report OLD NEW -o page.html`
    shows the changes with all numbers.
    """
    before, after = read_report(old), read_report(new)
    changes = compare(before, after)
    if as_json:
        print_json(_plain(before, after, changes))
    else:
        _print(before, after, changes)
    return EXIT_FAILURE if changes.regressed or changes.gone else EXIT_OK


def _plain(before: Report, after: Report, changes: Changes) -> dict[str, object]:
    def pairs(indices: Sequence[tuple[int, int]]) -> list[dict[str, str]]:
        return [
            {
                "case": after.records[j].case,
                "before": str(before.records[i].status),
                "after": str(after.records[j].status),
            }
            for i, j in indices
        ]

    return {
        "settings": changes.settings,
        "regressed": pairs(changes.regressed),
        "fixed": pairs(changes.fixed),
        "moved": pairs(changes.moved),
        "grown": [after.records[j].case for _, j in changes.grown],
        "added": [after.records[j].case for j in changes.added],
        "gone": [before.records[i].case for i in changes.gone],
    }


def _print(before: Report, after: Report, changes: Changes) -> None:
    for line in changes.settings:
        print_text(printable(line))
    a, b = before.records, after.records
    _group("passed before, bad now", [(a[i], b[j]) for i, j in changes.regressed])
    _group("gone", [(a[i], None) for i in changes.gone])
    _group("bad before, passed now", [(a[i], b[j]) for i, j in changes.fixed])
    _group("another status", [(a[i], b[j]) for i, j in changes.moved])
    _group("needs more than twice the tolerance", [(a[i], b[j]) for i, j in changes.grown])
    _group("new", [(None, b[j]) for j in changes.added])
    if changes.is_empty():
        print_text("no case changed")


def _group(title: str, pairs: Sequence[tuple[Record | None, Record | None]]) -> None:
    if not pairs:
        return
    print_text(f"{title}: {len(pairs):,}")
    for one, other in pairs[:_MOST_SHOWN]:
        record = other or one
        assert record is not None
        was, now = (str(r.status) if r else "-" for r in (one, other))
        reason = f": {record.reason}" if other is not None and record.reason else ""
        print_text(printable(f"  {record.case} ({was} → {now}){reason}".replace("\n", " ")))
        if other is not None and other.status.is_bad and other.repro:
            click.echo(printable(f"    {other.repro}"))
    if len(pairs) > _MOST_SHOWN:
        print_text(f"  and {len(pairs) - _MOST_SHOWN:,} more")
