"""Errors of a conversion: all problems in one error, before anything is written."""

from __future__ import annotations

from collections.abc import Sequence

from lite_core.errors import BackendUnavailableError, ConversionError
from lite_tools.conversion.report import Check
from lite_tools.conversion.targets import Coverage

__all__ = ["DisagreementError", "coverage_problems", "raise_disagreement", "raise_problems"]

_MAX_NODES_SHOWN = 5


class DisagreementError(ConversionError):
    """The results of a converted model differ from those of the model, or it failed in a run; it was not written.

    Attributes:
        target: the first target whose results differ or that failed; None for the references, whose results differ if
            passes changed what they compute.
        failed: True if the run failed.
    """

    target: str | None = None
    failed: bool = False


def coverage_problems(coverages: Sequence[Coverage]) -> list[str]:
    """Return a text for each target that refuses nodes, which lists them by operator and reason."""
    return [_refused(coverage) for coverage in coverages if coverage.refusals]


def _refused(coverage: Coverage) -> str:
    groups: dict[tuple[str, str], list[str]] = {}
    for refusal in coverage.refusals or ():
        groups.setdefault((refusal.op, refusal.reason), []).append(refusal.node)
    target, refused = coverage.target, sum(map(len, groups.values()))
    lines = [
        f"target {target.name!r} ({target.plugin}) cannot run {refused} of {coverage.nodes} nodes; allow_fallback=True "
        "(--allow-fallback) lets the other targets and host run them:"
    ]
    for (op, reason), nodes in groups.items():
        shown = ", ".join(nodes[:_MAX_NODES_SHOWN]) + (", ..." if len(nodes) > _MAX_NODES_SHOWN else "")
        lines.append(f"    {op} ({len(nodes)} node(s): {shown}): {reason}")
    return "\n".join(lines)


def raise_problems(model: str, missing: Sequence[str], others: Sequence[str]) -> None:
    """Raise an error if there are problems.

    Args:
        model: the model's name.
        missing: problems of targets that are not installed.
        others: all other problems.

    Raises:
        BackendUnavailableError: the only problem is missing plugins.
        ConversionError: there are other problems.
    """
    subject = f"model {model!r} cannot be converted; nothing was written:"
    if others:
        raise ConversionError(subject, [*missing, *others])
    if missing:
        raise BackendUnavailableError("\n".join([subject, *(f"  {problem}" for problem in missing)]))


def raise_disagreement(model: str, checks: Sequence[Check], passes: Sequence[str]) -> None:
    """Raise an error if the results of a new file differ from those of the model, or if it does not run.

    Args:
        model: the model's name.
        checks: the comparisons.
        passes: the passes that changed the graph; those of plugins are named with their packages.

    Raises:
        DisagreementError: a check does not agree.
    """
    wrong = [str(check) for check in checks if not check.agrees]
    if wrong:
        first = next(check for check in checks if not check.agrees)
        subject = f"model {model!r}: the results of the converted model differ, and it was not written"
        remedy = "force=True (--force) writes it anyway; limit= (--limit) sets a wider limit"
        if first.problem:
            subject = f"model {model!r}: the converted model failed in a run, and it was not written"
            remedy = "force=True (--force) writes it anyway"
        of_plugins = [name for name in passes if name.endswith(")")]
        if of_plugins and first.target == "references" and not first.problem:
            changed = f"the graph was changed by passes of plugins: {', '.join(of_plugins)}"
            wrong.append(f"{changed}; `lite bisect MODEL --by pass` finds the one that is wrong")
        error = DisagreementError(f"{subject}; {remedy}:", wrong)
        error.target = None if first.target == "references" else first.target
        error.failed = bool(first.problem)
        raise error
