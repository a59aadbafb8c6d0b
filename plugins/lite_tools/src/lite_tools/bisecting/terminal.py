"""The findings of a bisection in the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lite_tools.bisecting.findings import FOUND, NOTHING, Culprit, Findings
from lite_tools.commands.printing import console, table

__all__ = ["print_findings"]

_NODES = "node(s) that a and b run differently"
#: What is searched, in words.
_UNITS = {
    "node": _NODES,
    "backend": "device(s) of b",
    "precision": _NODES,
    "threads": _NODES,
    "pass": "change(s) by passes",
}


def print_findings(findings: Findings, sides: Mapping[str, Any], by: str, repeat: int = 1) -> None:
    """Print what was bisected, and what was found.

    Args:
        findings: the findings.
        sides: for each side its label, devices and options.
        by: what was bisected by.
        repeat: runs of each configuration.
    """
    for name, side in sides.items():
        options = ", ".join(f"{option} {value}" for option, value in side["options"].items())
        _show(f"{name}: {side['label']} on {', '.join(side['devices'])} ({options})")
    _show(f"criterion: {findings.criterion}")
    known = f", {findings.reused} known from before" if findings.reused else ""
    _show(f"{findings.runs} runs{known}; searched among {findings.units} {_UNITS[by]}\n")
    for note in findings.notes:
        _show(note)
    if findings.verdict == NOTHING:
        _show(f"nothing found: side b is good in {2 * repeat} runs ({findings.whole.reason})")
        _show("results that change from run to run may need more runs to be wrong: --repeat sets their number")
    elif findings.verdict == FOUND:
        _print_found(findings, by)
    else:
        _show("not deterministic: equal runs are judged differently, so no culprit is named")


def _print_found(findings: Findings, by: str) -> None:
    culprits = findings.culprits
    if by in ("backend", "pass"):
        for culprit in culprits:
            _show(f"found: {culprit.name}: {', '.join(culprit.details)}")
    else:
        columns = ("found", "operator", "on a", "on b", "kernel", "origin")
        kept = [number for number in range(len(columns)) if any(_row(culprit)[number] for culprit in culprits)]
        table([columns[number] for number in kept], [[_row(c)[number] for number in kept] for c in culprits])
    _show("")
    for line in _lines(findings, by):
        _show(line)


def _row(culprit: Culprit) -> tuple[str, ...]:
    return culprit.name, culprit.op, culprit.device_a, culprit.device_b, culprit.kernel, culprit.origin


def _lines(findings: Findings, by: str) -> list[str]:
    """Return what the runs with and without the culprits have shown."""
    alone, others, several = findings.alone, findings.others, len(findings.culprits) > 1
    assert alone is not None
    if by == "precision":
        kept = "these nodes are" if several else "this node is"
        lines = [f"if {kept} kept in float32, the outputs are good ({alone.reason})"]
        lines += ["if any of them is not, the outputs are wrong"] if several else []
        verified = findings.verified
        lines += [f"a session with this precision is {verified.verdict} ({verified.reason})"] if verified else []
        return lines
    if by == "pass":
        lines = [f"before this change the outputs are good, after it they are {alone.verdict} ({alone.reason})"]
        return lines + ([f"with all passes but this one they are {others.verdict} ({others.reason})"] if others else [])
    which = "only these on b, and not with fewer," if several else "only this on b"
    lines = [f"with {which} the outputs are {alone.verdict} ({alone.reason})"]
    if others is not None and others.verdict == "good":
        lines.append("with all others on b they are good: nothing else is at fault")
    elif others is not None:
        lines.append(f"with all others on b they are {others.verdict}, too ({others.reason}): there is another fault")
    return lines


def _show(text: str) -> None:
    console.print(text, markup=False)
