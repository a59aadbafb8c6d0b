"""The operators of Paddle that have no lowering, each with the reason: ``left_out.txt`` beside this module.

A group in the file is a line ``== TITLE``, a line with the reason, which completes "lite-paddle has no lowering for
it:", and the names of the operators. Names are legacy names, or those of PIR without the ``_`` of operators that work
in place.
"""

from __future__ import annotations

import pkgutil
from dataclasses import dataclass

__all__ = ["Group", "groups", "reason_of"]


@dataclass(frozen=True, slots=True)
class Group:
    """Operators that are left out for one reason.

    Attributes:
        title: name of the group.
        reason: the reason, with "it" for the operator.
        names: the operators, sorted.
    """

    title: str
    reason: str
    names: tuple[str, ...]


def groups() -> list[Group]:
    """Return all groups, in the order of the file."""
    text = pkgutil.get_data(__package__, "left_out.txt")
    assert text is not None, "the package was installed without its left_out.txt"
    found = []
    for part in text.decode().split("== ")[1:]:
        title, reason, names = part.split("\n", 2)
        found.append(Group(title, reason, tuple(names.split())))
    return found


def reason_of(type_: str) -> str | None:
    """Return the reason why an operator is left out, or None if it is not in the list."""
    name = type_.removesuffix("_")
    return next((group.reason for group in groups() if name in group.names), None)
