"""The table of what Lite's own backends pass, from ``docs/results/conformance/backends.json``."""

from __future__ import annotations

from collections import Counter

from conformance_results import Results, read
from markdown_tables import table

__all__ = ["BLOCKS"]

_LEVELS = ("probe", "contract", "operators", "graphs", "models", "stress")
_GOOD = ("passed", "unsupported", "skipped")


def backends() -> str:
    """Return a table with a row for each backend: passed cases by level, and all others by status."""
    found = read()
    rows = [_row(results) for results in found]
    titles = ["backend", "device", *(f"L{number} {name}" for number, name in enumerate(_LEVELS)), *_GOOD[1:], "bad"]
    return f"\n{table(titles, rows, right=range(2, len(titles)))}\n{_notes(found)}\n"


def _row(results: Results) -> list[str]:
    total: Counter[str] = Counter()
    for statuses in results.levels.values():
        total.update(statuses)
    passed = [results.levels.get(str(number), {}).get("passed", 0) for number in range(len(_LEVELS))]
    bad = sum(count for status, count in total.items() if status not in _GOOD)
    counts = [*passed, total["unsupported"], total["skipped"]]
    return [f"`{results.backend}`", results.device, *(f"{count:,}" for count in counts), f"**{bad}**"]


def _notes(found: list[Results]) -> str:
    notes = [f"`{r.backend}` was run on {r.day}{f' with {r.selection}' if r.selection else ''}." for r in found]
    return "\n".join(notes)


BLOCKS = {"results of Lite's backends": backends}
