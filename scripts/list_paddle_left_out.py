"""The list of operators that lite-paddle leaves out: a block of docs/paddle-left-out.md, which ``make docs`` writes."""

from __future__ import annotations

from lite_paddle.lowering.left_out import groups
from markdown_tables import code

__all__ = ["BLOCKS"]


def by_reason() -> str:
    """Return a section for each reason, with the operators that are left out for it."""
    sections = (f"## {g.title}\n\n{_sentence(g.reason)}\n\n{code(g.names)}\n" for g in groups())
    return "\n" + "\n".join(sections) + "\n"


def _sentence(reason: str) -> str:
    return f"{reason[0].upper()}{reason[1:]}."


BLOCKS = {"operators that lite-paddle leaves out": by_reason}
