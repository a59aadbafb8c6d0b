"""The reasons why certain mutants survive: they are no faults, or no case looks for the difference."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from lite_conformance.run.expectations import matches
from lite_core.errors import InputError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["EQUIVALENT", "FILE", "UNTESTED", "Reason", "obsolete_patterns", "read_reasons", "reason_for"]

#: The reasons that come with the suite.
FILE = Path(__file__).with_name("reasons.toml")
#: The kinds of reasons: the mutant computes the same, or what every backend may compute; no case shows its difference.
EQUIVALENT, UNTESTED = "equivalent", "untested"


@dataclass(frozen=True, slots=True)
class Reason:
    """One entry of the file.

    Attributes:
        kind: ``equivalent`` or ``untested``.
        mutants: patterns of the ids of mutants, with ``*`` and ``?``.
        reason: one sentence.
    """

    kind: str
    mutants: tuple[str, ...]
    reason: str


@cache
def read_reasons(file: Path = FILE) -> tuple[Reason, ...]:
    """Read a file of reasons.

    Raises:
        InputError: the file cannot be read, or an entry is wrong.
    """
    try:
        entries: Any = tomllib.loads(file.read_text(encoding="utf-8")).get("survivors", [])
    except (OSError, ValueError) as error:
        raise InputError(f"{file} cannot be read: {error}") from error
    reasons = []
    for number, entry in enumerate(entries, 1):
        kind, mutants, reason = entry.get("kind"), entry.get("mutants"), entry.get("reason")
        if not isinstance(mutants, list) or not mutants or not isinstance(reason, str) or not reason.strip():
            raise InputError(f"{file}: [[survivors]] number {number} needs mutants, a list of patterns, and a reason")
        if kind not in (EQUIVALENT, UNTESTED):
            raise InputError(
                f"{file}: [[survivors]] number {number} needs kind = {EQUIVALENT!r} or {UNTESTED!r}, has {kind!r}"
            )
        reasons.append(Reason(kind, tuple(mutants), " ".join(reason.split())))
    return tuple(reasons)


def reason_for(id: str, reasons: Sequence[Reason]) -> Reason | None:
    """Return the first entry that matches a mutant; None if none does."""
    return next((r for r in reasons if any(matches(p, id) for p in r.mutants)), None)


def obsolete_patterns(reasons: Iterable[Reason], survivors: Iterable[str]) -> list[str]:
    """Return the patterns that match none of these survivors."""
    ids = list(survivors)
    return [p for reason in reasons for p in reason.mutants if not any(matches(p, id) for id in ids)]
