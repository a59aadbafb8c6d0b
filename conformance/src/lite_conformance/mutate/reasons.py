"""The reasons why certain mutants survive: they compute the same as the reference, or what every backend may do."""

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

__all__ = ["FILE", "Reason", "obsolete_patterns", "read_reasons", "reason_for"]

#: The reasons that come with the suite.
FILE = Path(__file__).with_name("equivalent.toml")


@dataclass(frozen=True, slots=True)
class Reason:
    """One entry of the file.

    Attributes:
        mutants: patterns of the ids of mutants, with ``*`` and ``?``.
        reason: one sentence.
    """

    mutants: tuple[str, ...]
    reason: str


@cache
def read_reasons(file: Path = FILE) -> tuple[Reason, ...]:
    """Read a file of reasons.

    Raises:
        InputError: the file cannot be read, or an entry is wrong.
    """
    try:
        entries: Any = tomllib.loads(file.read_text(encoding="utf-8")).get("equivalent", [])
    except (OSError, ValueError) as error:
        raise InputError(f"{file} cannot be read: {error}") from error
    reasons = []
    for number, entry in enumerate(entries, 1):
        mutants, reason = entry.get("mutants"), entry.get("reason")
        if not isinstance(mutants, list) or not mutants or not isinstance(reason, str) or not reason.strip():
            raise InputError(f"{file}: [[equivalent]] number {number} needs mutants, a list of patterns, and a reason")
        reasons.append(Reason(tuple(mutants), " ".join(reason.split())))
    return tuple(reasons)


def reason_for(id: str, reasons: Sequence[Reason]) -> str:
    """Return the reason of the first entry that matches a mutant; empty if none does."""
    return next((r.reason for r in reasons if any(matches(p, id) for p in r.mutants)), "")


def obsolete_patterns(reasons: Iterable[Reason], survivors: Iterable[str]) -> list[str]:
    """Return the patterns that match none of these survivors."""
    ids = list(survivors)
    return [p for reason in reasons for p in reason.mutants if not any(matches(p, id) for id in ids)]
