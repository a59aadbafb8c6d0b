"""The must-pass cases that a backend did not pass, as text."""

from __future__ import annotations

from lite_conformance.reports.summary import percent, printable
from lite_conformance.run.must_pass import Conformity, Missing
from lite_tools.commands import print_text

__all__ = ["missing_lines", "print_missing"]

_MOST_OPERATORS = 12
_MOST_CASES = 3


def print_missing(found: Conformity) -> None:
    """Print what is missing, the most used operators first; nothing if the backend conforms."""
    for line in missing_lines(found):
        print_text(line)


def missing_lines(found: Conformity) -> list[str]:
    """Return the lines of :func:`print_missing`.

    ``  Resize (0.5 % of the nodes of real models): 7 unsupported: no kernel``, and below the names of some cases.
    """
    if found.conforms:
        return []
    required = found.required
    lines = [f"missing for {required.title}: {len(found.missing):,} of {len(required.cases):,} cases"]
    groups = found.by_operator()
    for op, status, cases in groups[:_MOST_OPERATORS]:
        share = f" ({percent(cases[0].weight)} of the nodes of real models)" if cases[0].weight else ""
        lines.append(printable(f"  {op}{share}: {len(cases):,} {status}{_reason(cases)}"))
        lines += [printable(f"    {missing.repro or missing.case}") for missing in cases[:_MOST_CASES]]
        if len(cases) > _MOST_CASES:
            lines.append(f"    and {len(cases) - _MOST_CASES:,} more")
    if len(groups) > _MOST_OPERATORS:
        rest = sum(len(cases) for _, _, cases in groups[_MOST_OPERATORS:])
        lines.append(f"  and {rest:,} cases of {len(groups) - _MOST_OPERATORS:,} more operators or parts")
    return lines


def _reason(cases: list[Missing]) -> str:
    reasons = list(dict.fromkeys(" ".join(missing.reason.split()) for missing in cases if missing.reason))
    more = f"; {len(reasons) - 1} more reason(s)" if len(reasons) > 1 else ""
    return f": {reasons[0]}{more}" if reasons else ""
