"""Lists the distributions of the workspace: a block of docs/architecture.md, which ``make docs`` writes."""

from __future__ import annotations

from draw_architecture import FLOORS, floor_of, imports_between
from markdown_tables import code, table
from workspace import ROOT, distributions

__all__ = ["BLOCKS"]


def by_floor() -> str:
    """A table of the distributions from the top floor to the core, with what they import of each other."""
    found = sorted(distributions(), key=lambda distribution: list(FLOORS).index(floor_of(distribution)))
    imported = imports_between(found)
    rows = (
        (
            f"`{one.folder.relative_to(ROOT).as_posix()}/`",
            f"`{one.name}`",
            code(sorted(imported[one.package])),
            one.description.replace("_", r"\_"),
        )
        for one in found
    )
    return table(("folder", "distribution", "imports", "what it is"), rows)


BLOCKS = {"distributions": by_floor}
