"""The page of a graph: its drawing with search, zoom and collapsible groups, and the facts of a chosen node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lite_tools.pages.page import assemble_page, escaped, page_file
from lite_tools.pictures.layout import Box, Layout
from lite_tools.pictures.picture import Picture, PictureNode, elided
from lite_tools.pictures.svg import group_classes, legend_of, picture_style, svg_of

__all__ = ["graph_data", "graph_page", "viewer_html"]

_SCRIPTS = ("dom.js", "picture.js", "graph.js")


def graph_page(picture: Picture, layout: Layout, about: str) -> str:
    """Return the page as text.

    Args:
        picture: the graph.
        layout: the places of its boxes.
        about: one sentence on what is shown.
    """
    body = f"""<header class="bar"><h1>{escaped(picture.title)}</h1><p>{escaped(about)}</p></header>
<main class="split">
{viewer_html(picture, layout)}
<aside id="facts" aria-live="polite" aria-label="The chosen node"><p class="hint">Click a node to see its facts.
Drag to move, hold Ctrl and turn the wheel to zoom. Click the title of a frame to collapse it. By keyboard: arrows go
from node to node, Enter collapses the group of the node, + and - zoom, / searches.</p></aside>
</main>"""
    data = {"graph": graph_data(picture, layout, has_facts=True)}
    styles = [picture_style(), page_file("base.css"), page_file("graph.css")]
    return assemble_page(f"{picture.title} · graph", body, data, styles, _SCRIPTS)


def viewer_html(picture: Picture, layout: Layout) -> str:
    """Return the drawing in a frame that scrolls; ``picture.js`` adds the tools."""
    return (
        '<section class="viewer" aria-label="The graph"><div class="tools" role="toolbar" hidden></div>'
        '<ul class="legend" aria-label="Colours"></ul>'
        '<div class="scroller" tabindex="0" aria-label="Drawing of the graph">\n'
        f"{svg_of(picture, layout, picture.colours[0])}\n</div></section>"
    )


def graph_data(picture: Picture, layout: Layout, *, has_facts: bool) -> dict[str, Any]:
    """Return what ``picture.js`` works with: places, groups, edges and legends."""
    nodes = [
        {"name": node.name, "group": node.group, **_place(box), **({"facts": node.facts} if has_facts else {})}
        for node, box in zip(picture.nodes, layout.boxes)
    ]
    groups = [
        {
            "title": group.title,
            "kind": group.kind,
            "outer": group.outer,
            "inside": _inside(members, group.kind),
            "classes": group_classes(picture, members),
            **_place(frame),
        }
        for group, frame, members in zip(picture.groups, layout.frames, picture.members())
    ]
    return {
        "nodes": nodes,
        "groups": groups,
        "edges": [(edge.source, edge.target) for edge in picture.edges],
        "legends": {colour: legend_of(picture, colour) for colour in picture.colours},
        "colour": picture.colours[0],
    }


def _inside(members: Sequence[PictureNode], kind: str) -> str:
    """Return what a collapsed group says about its nodes."""
    nodes = [node.op for node in members if node.kind == "node"]
    return elided("+".join(nodes), 34) if kind == "kernel" else f"{len(nodes)} nodes"


def _place(box: Box) -> dict[str, float]:
    return {"x": box.x, "y": box.y, "w": box.width, "h": box.height}
