"""Pictures of graphs as files, for ``lite inspect`` and ``lite opt``."""

from __future__ import annotations

from lite_core.ir import Graph
from lite_tools.commands.errors import UnavailableError, check_writable
from lite_tools.pages.graph import graph_page
from lite_tools.pages.page import write_page
from lite_tools.pictures import Annotations, has_layout, lay_out, picture_of_graph, svg_file

__all__ = ["check_picture", "draw_graph"]


def check_picture(path: str, option: str) -> None:
    """Check, before long work, that a picture can be laid out and its file can be written.

    Raises:
        UnavailableError: the layout library is not installed.
        click.BadParameter: the file cannot be written.
    """
    check_writable(path, option)
    if not has_layout():
        raise UnavailableError(
            f"{option} draws graphs with Graphviz, which the package pygraphviz brings, and it is not installed",
            "pip install 'lite-tools[pictures]'",
        )


def draw_graph(
    graph: Graph,
    *,
    html: str | None = None,
    svg: str | None = None,
    known: Annotations | None = None,
    option: str = "--html",
) -> int:
    """Write the picture of a graph; return its number of nodes.

    Args:
        graph: the graph.
        html: path of a page, in which the picture can be searched, moved and collapsed.
        svg: path of an SVG file.
        known: devices, kernels and errors of the nodes.
        option: the option that names the file, for messages.

    Raises:
        LayoutError: Graphviz failed.
        click.BadParameter: a file cannot be written.
    """
    picture = picture_of_graph(graph, known)
    layout = lay_out(picture)
    count = sum(node.kind == "node" for node in picture.nodes)
    if html:
        on = f" on {', '.join(picture.devices)}" if picture.devices else ""
        kernels = sum(group.kind == "kernel" for group in picture.groups)
        fused = f"; kernels that compute several nodes: {kernels}" if kernels else ""
        write_page(html, graph_page(picture, layout, f"{count} nodes{on}{fused}"), option)
    if svg:
        write_page(svg, svg_file(picture, layout, picture.colours[0]), option)
    return count
