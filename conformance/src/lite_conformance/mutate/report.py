"""The report of a campaign in Markdown: the shares of mutants that the suite finds, and the survivors with reasons."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from lite_conformance.mutate.reasons import EQUIVALENT, UNTESTED, Reason, reason_for
from lite_conformance.mutate.result import Result
from lite_core import ops

__all__ = ["GROUPINGS", "Summary", "markdown", "summarize"]

#: Examples of survivors that the report names for each reason.
_NAMED = 3


@dataclass(frozen=True, slots=True)
class Summary:
    """Numbers of mutants.

    Attributes:
        total: all of them.
        equivalent: survivors that are no faults.
        untested: survivors whose difference no case looks for, with a reason.
        survivors: survivors without a reason.
        by_level: found ones by the level of the case that found them.
    """

    total: int
    equivalent: int
    untested: int
    survivors: int
    by_level: dict[int, int]

    @property
    def killed(self) -> int:
        """The number of mutants that a case found."""
        return sum(self.by_level.values())

    @property
    def share(self) -> float:
        """The share of the mutants that a case found, of all that are not equivalent; 1 if there are none."""
        meant = self.killed + self.untested + self.survivors
        return self.killed / meant if meant else 1.0


def summarize(results: Iterable[Result], reasons: Sequence[Reason]) -> Summary:
    """Count results."""
    numbers: dict[str, int] = defaultdict(int)
    by_level: dict[int, int] = defaultdict(int)
    total = 0
    for result in results:
        total += 1
        if result.killed:
            by_level[result.level] += 1
        else:
            reason = reason_for(result.id, reasons)
            numbers[reason.kind if reason is not None else ""] += 1
    return Summary(total, numbers[EQUIVALENT], numbers[UNTESTED], numbers[""], dict(by_level))


def markdown(results: Sequence[Result], reasons: Sequence[Reason], by: Sequence[str] = ()) -> str:
    """Return a report.

    Args:
        results: the results of a campaign.
        reasons: the reasons of survivors.
        by: what the tables group by, names of :data:`GROUPINGS`; all if empty. A list of the survivors follows them.
    """
    parts = [_table(name, results, GROUPINGS[name], reasons) for name in by or GROUPINGS]
    parts += ["\n".join(_with_reasons(kind, results, reasons)) for kind in (UNTESTED, EQUIVALENT)]
    parts.append("\n".join(_without_reasons(results, reasons)))
    return "\n\n".join(part for part in parts if part) + "\n"


def _family_of_operators(result: Result) -> str:
    name, _, domain = result.op[::-1].partition(".")
    definition = ops.find(name[::-1], domain[::-1])
    return definition.reference.__module__.rpartition(".")[2] if definition is not None else "unknown"


#: The groupings of a report: the title of the column, and the group of a result.
GROUPINGS: dict[str, Callable[[Result], str]] = {
    "family": lambda result: result.family,
    "kind": lambda result: f"{result.family}: {result.kind}",
    "operators": _family_of_operators,
    "operator": lambda result: result.op,
}


def _table(title: str, results: Sequence[Result], key: Callable[[Result], str], reasons: Sequence[Reason]) -> str:
    groups: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        groups[key(result)].append(result)
    levels = sorted({r.level for r in results if r.killed})
    names = [f"found at L{level}" for level in levels]
    lines = [
        f"| {title} | mutants | {' | '.join(names)} | equivalent | untested | survive without a reason | share found |",
        f"| --- |{' ---: |' * (len(levels) + 5)}",
    ]
    for name in sorted(groups):
        lines.append(_row(name, summarize(groups[name], reasons), levels))
    lines.append(_row("**all**", summarize(results, reasons), levels))
    return "\n".join(lines)


def _row(name: str, summary: Summary, levels: Sequence[int]) -> str:
    found = " | ".join(str(summary.by_level.get(level, 0)) for level in levels)
    numbers = f"{summary.total} | {found} | {summary.equivalent} | {summary.untested} | {summary.survivors}"
    return f"| {name} | {numbers} | {summary.share:.2%} |"


def _with_reasons(kind: str, results: Sequence[Result], reasons: Sequence[Reason]) -> Iterator[str]:
    """Yield the lines of the table of the reasons of a kind."""
    groups: dict[str, list[str]] = defaultdict(list)
    for result in results:
        if not result.killed and (reason := reason_for(result.id, reasons)) is not None and reason.kind == kind:
            groups[reason.reason].append(result.id)
    if not groups:
        return
    yield f"| {kind} | reason | examples |"
    yield "| ---: | --- | --- |"
    for text, ids in sorted(groups.items(), key=lambda item: -len(item[1])):
        named = "<br>".join(f"`{_escaped(id)}`" for id in ids[:_NAMED])
        yield f"| {len(ids)} | {text} | {named} |"


def _without_reasons(results: Sequence[Result], reasons: Sequence[Reason]) -> Iterator[str]:
    """Yield a list of the survivors without a reason."""
    ids = sorted(r.id for r in results if not r.killed and reason_for(r.id, reasons) is None)
    if ids:
        yield "Survivors without a reason, each of which asks for a case:\n"
        yield from (f"- `{id}`" for id in ids)


def _escaped(id: str) -> str:
    return id.replace("|", "\\|").replace("`", "'")
