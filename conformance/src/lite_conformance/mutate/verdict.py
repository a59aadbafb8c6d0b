"""The verdict of the suite on a mutant."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Verdict"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on a mutant.

    Attributes:
        killed: a case failed.
        level: the level of that case; -1 if none failed.
        case: its name.
        reason: the reason that the suite gave, or why the mutant was not found.
    """

    killed: bool
    level: int = -1
    case: str = ""
    reason: str = ""
