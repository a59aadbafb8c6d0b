"""The list of the workspace's distributions: a block of docs/architecture.md, which ``make docs`` writes."""

from __future__ import annotations

from draw_architecture import LAYERS, imports_between, layer_of
from markdown_tables import code, table
from workspace import ROOT, distributions

__all__ = ["BLOCKS"]


def by_layer() -> str:
    """Return a table of the distributions from the top layer to the core, with their imports of each other."""
    found = sorted(distributions(), key=lambda distribution: list(LAYERS).index(layer_of(distribution)))
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


BLOCKS = {"distributions": by_layer}
