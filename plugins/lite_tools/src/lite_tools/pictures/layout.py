"""Places for the boxes of a picture, computed by Graphviz (its layered layout, ``dot``)."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lite_core.errors import LiteError
from lite_tools.pictures.picture import Picture, PictureNode

__all__ = ["TITLE_CHARACTER", "Box", "Layout", "LayoutError", "has_layout", "lay_out", "size_of"]

#: Width in pixels of a character in each line of a box: bold text, fixed-width text, small text.
_CHARACTER_WIDTHS = (8.0, 6.7, 6.2)
_LINE_HEIGHT, _PADDING, _MARGIN = 16, 22, 16
#: Width in pixels of a character in the title of a group, and the most characters that make a frame wider.
TITLE_CHARACTER, _LONGEST_TITLE = 6.4, 44
_POINTS_PER_INCH = 72  # a point of Graphviz is a pixel of the picture
_MANY = 600
_TIMEOUT = 300
_PROCESS = Path(__file__).with_name("graphviz_process.py")

Point = tuple[float, float]


class LayoutError(LiteError):
    """The library that lays out pictures is not installed, or failed."""


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle: its centre and size in pixels."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Layout:
    """Places in pixels, from the top left corner.

    Attributes:
        width: width of the picture.
        height: height of the picture.
        boxes: the box of each node.
        frames: the box of each group.
        paths: for each edge the control points of its Bézier curves: the first point, then three for each curve.
    """

    width: float
    height: float
    boxes: Sequence[Box]
    frames: Sequence[Box]
    paths: Sequence[Sequence[Point]]


def has_layout() -> bool:
    """Return True if the layout library is installed."""
    return importlib.util.find_spec("pygraphviz") is not None


def lay_out(picture: Picture) -> Layout:
    """Lay out a picture from top to bottom, in the direction of the data.

    Graphviz runs in a process of its own: a graph that it cannot handle ends that process only.

    Raises:
        LayoutError: pygraphviz is not installed, or Graphviz failed or took too long.
    """
    if not has_layout():
        raise LayoutError(
            "pictures of graphs are laid out by Graphviz, which is not installed: pip install 'lite-tools[pictures]'"
        )
    sizes = [size_of(node, has_figures=picture.has_figures) for node in picture.nodes]
    if not sizes:
        return Layout(2 * _MARGIN, 2 * _MARGIN, [], [], [])
    described = f"Graphviz cannot lay out the picture of {picture.title!r} ({len(sizes)} nodes)"
    command = [sys.executable, "-I", str(_PROCESS), *sys.path]
    try:
        done = subprocess.run(command, input=_dot(picture, sizes).encode(), capture_output=True, timeout=_TIMEOUT)
    except subprocess.TimeoutExpired:
        raise LayoutError(
            f"{described}: it took longer than {_TIMEOUT} s; draw a part of the model, or use `lite inspect` without "
            "--html and --svg"
        ) from None
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no message"]
        raise LayoutError(
            f"{described}: its process ended with code {done.returncode}: {last[0]}; install the newest one with "
            "pip install --upgrade pygraphviz"
        )
    return _parsed(json.loads(done.stdout), picture, sizes)


def size_of(node: PictureNode, *, has_figures: bool) -> tuple[int, int]:
    """Return width and height of a node's box in pixels."""
    lines = node.lines(has_figures=has_figures)
    widths = [len(line) * width for line, width in zip(lines, _CHARACTER_WIDTHS)]
    return max(84, round(max(widths) + _PADDING)), _LINE_HEIGHT * len(lines) + 14


def _dot(picture: Picture, sizes: Sequence[tuple[int, int]]) -> str:
    """Return the picture in Graphviz's language; names of the model do not occur in it."""
    lines = [
        "digraph {",
        "graph [rankdir=TB, nodesep=0.28, ranksep=0.42];",
        'node [shape=box, fixedsize=true, label=""];',
        "edge [arrowhead=none];",
    ]
    if len(sizes) > _MANY:  # fewer rounds of improvement, which take most of the time in large graphs
        lines.append("graph [nslimit=2, nslimit1=2, mclimit=0.5];")
    inside: dict[int | None, list[int]] = {}
    for index, group in enumerate(picture.groups):
        inside.setdefault(group.outer, []).append(index)
    members: dict[int | None, list[int]] = {}
    for index, node in enumerate(picture.nodes):
        members.setdefault(node.group, []).append(index)

    def write(group: int | None) -> None:
        for index in members.get(group, ()):
            width, height = sizes[index]
            lines.append(f"n{index} [width={width / _POINTS_PER_INCH:.4f}, height={height / _POINTS_PER_INCH:.4f}];")
        for inner in inside.get(group, ()):
            room = TITLE_CHARACTER * min(len(picture.groups[inner].title), _LONGEST_TITLE) + 12
            cell = f'BORDER="0" FIXEDSIZE="TRUE" WIDTH="{room:.0f}" HEIGHT="14"'  # an empty one, as wide as the title
            lines.append(f"subgraph cluster_{inner} {{ label=<<TABLE {cell}><TR><TD></TD></TR></TABLE>>; margin=9;")
            write(inner)
            lines.append("}")

    write(None)
    lines += [f"n{edge.source} -> n{edge.target} [id=e{index}];" for index, edge in enumerate(picture.edges)]
    return "\n".join([*lines, "}"])


def _parsed(data: dict[str, Any], picture: Picture, sizes: Sequence[tuple[int, int]]) -> Layout:
    (left, bottom), (right, top) = _corners(data)

    def place(x: float, y: float) -> Point:
        """Return a point of Graphviz, whose y axis points up, as a point of the picture."""
        return round(x - left + _MARGIN, 1), round(top - y + _MARGIN, 1)

    boxes = [Box(0, 0, 0, 0)] * len(sizes)
    frames = [Box(0, 0, 0, 0)] * len(picture.groups)
    for found in data.get("objects", ()):
        (x0, y0), (x1, y1) = _corners(found)
        centre = place((x0 + x1) / 2, (y0 + y1) / 2)
        name: str = found["name"]
        if name.startswith("cluster_"):
            frames[int(name.removeprefix("cluster_"))] = Box(*centre, round(x1 - x0, 1), round(y1 - y0, 1))
        else:
            boxes[int(name[1:])] = Box(*centre, *sizes[int(name[1:])])
    paths: list[list[Point]] = [[] for _ in picture.edges]
    for found in data.get("edges", ()):
        paths[int(found["id"][1:])] = [place(*point) for point in _points(found, "bB")]
    return Layout(round(right - left) + 2 * _MARGIN, round(top - bottom) + 2 * _MARGIN, boxes, frames, paths)


def _corners(drawn: dict[str, Any]) -> tuple[Point, Point]:
    """Return the corners of what Graphviz draws as a polygon. NOTE: its other figures have five digits only."""
    xs, ys = zip(*_points(drawn, "pP"))
    return (min(xs), min(ys)), (max(xs), max(ys))


def _points(drawn: dict[str, Any], kinds: str) -> list[list[float]]:
    """Return the points of the first polygon (``pP``) or curve (``bB``) that Graphviz draws for an object."""
    return next((step["points"] for step in drawn["_draw_"] if step["op"] in kinds), [])
