"""The tables of what Lite's own backends pass, from the files in ``docs/results/conformance``."""

from __future__ import annotations

from collections import Counter

from conformance_results import ProfileResults, Results, read, read_profiles
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
    notes = [f"`{r.backend}` was run on {r.day}{_selected(r)}." for r in found]
    return "\n".join(notes)


def _selected(results: Results | ProfileResults) -> str:
    """Return the selection of cases, if there was one, in a form that Markdown leaves alone."""
    return f" with {results.selection}".replace("*", r"\*") if results.selection else ""


def profiles() -> str:
    """Return a table with a row for each backend and profile: green or red, and the counts."""
    found = read_profiles()
    if not found:
        return "\nNo profiles are recorded yet: `lite-conformance profiles --backend NAME --json FOLDER` runs them.\n\n"
    titles = ["backend", "device", "profile", "verdict", "passed", "rounded", *_GOOD[1:], "bad"]
    rows = [_profile_row(results) for results in found]
    runs: dict[str, list[str]] = {}
    for r in found:
        run = f"`{r.backend}` was run on {r.day}{_selected(r)}"
        runs.setdefault(run, []).append(r.profile)
    notes = [f"{run}: {', '.join(names)}." for run, names in runs.items()]
    return f"\n{table(titles, rows, right=range(4, len(titles)))}\n{chr(10).join(notes)}\n"


def _profile_row(results: ProfileResults) -> list[str]:
    statuses = results.statuses
    bad = sum(count for status, count in statuses.items() if status not in _GOOD)
    verdict = "**red**" if bad else "green" if statuses.get("passed") else "nothing supported"
    verdict += f", {results.must_pass}" if results.must_pass else ""
    counts = [statuses.get("passed", 0), results.rounded, *(statuses.get(status, 0) for status in _GOOD[1:]), bad]
    first = [f"`{results.backend}`", results.device, results.profile, verdict]
    return [*first, *(f"{count:,}" for count in counts)]


BLOCKS = {"results of Lite's backends": backends, "profiles of Lite's backends": profiles}
