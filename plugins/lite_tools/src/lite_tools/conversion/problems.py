"""What stands in the way of a conversion: all of it in one error, before anything is written."""

from __future__ import annotations

from collections.abc import Sequence

from lite_core.errors import BackendUnavailableError, ConversionError
from lite_tools.conversion.report import Check
from lite_tools.conversion.targets import Coverage

__all__ = ["coverage_problems", "raise_disagreement", "raise_problems"]

_MOST_SHOWN = 5


def coverage_problems(coverages: Sequence[Coverage]) -> list[str]:
    """For each target that cannot run some nodes one text: the nodes by operator and reason."""
    return [_refused(coverage) for coverage in coverages if coverage.refusals]


def _refused(coverage: Coverage) -> str:
    groups: dict[tuple[str, str], list[str]] = {}
    for refusal in coverage.refusals or ():
        groups.setdefault((refusal.op, refusal.reason), []).append(refusal.node)
    target, refused = coverage.target, sum(map(len, groups.values()))
    lines = [
        f"target {target.name!r} ({target.plugin}) cannot run {refused} of {coverage.nodes} nodes; allow_fallback=True "
        "(--allow-fallback) has the other targets and host run them:"
    ]
    for (op, reason), nodes in groups.items():
        shown = ", ".join(nodes[:_MOST_SHOWN]) + (", ..." if len(nodes) > _MOST_SHOWN else "")
        lines.append(f"    {op} ({len(nodes)} node(s): {shown}): {reason}")
    return "\n".join(lines)


def raise_problems(model: str, missing: Sequence[str], others: Sequence[str]) -> None:
    """Raise where there are problems.

    Args:
        model: the model's name.
        missing: targets that are not installed.
        others: all else.

    Raises:
        BackendUnavailableError: nothing but plugins is missing.
        ConversionError: there are other problems.
    """
    subject = f"model {model!r} cannot be converted; nothing was written:"
    if others:
        raise ConversionError(subject, [*missing, *others])
    if missing:
        raise BackendUnavailableError("\n".join([subject, *(f"  {problem}" for problem in missing)]))


def raise_disagreement(model: str, checks: Sequence[Check]) -> None:
    """Refuse to write a file that computes something else than the model it comes from.

    Raises:
        ConversionError: a check does not agree.
    """
    wrong = [str(check) for check in checks if not check.agrees]
    if wrong:
        subject = f"model {model!r}: the converted model is not what it was made from, and was not written"
        cure = "it is written all the same with force=True (--force); a wider limit is limit= (--limit)"
        raise ConversionError(f"{subject}; {cure}:", wrong)
