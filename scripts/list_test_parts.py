"""The list of the parts of the full tier of tests: a block of CONTRIBUTING.md, which ``make docs`` writes."""

from __future__ import annotations

from full_tests import PARTS
from markdown_tables import table

__all__ = ["BLOCKS"]


def parts() -> str:
    """Return a table of the parts and their descriptions."""
    return table(("part", "tests"), ((f"`{name}`", text) for name, text in PARTS.items()))


BLOCKS = {"parts of the full tier": parts}
