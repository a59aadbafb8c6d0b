"""Drawings of laid out pictures as SVG: inside pages, which add colours and interaction, or as files by themselves."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterator, Sequence
from importlib import resources

from lite_tools.pages.page import escaped, printable
from lite_tools.pictures.layout import TITLE_CHARACTER, Box, Layout, Point
from lite_tools.pictures.picture import Group, Picture, PictureNode, elided, error_text, time_text

__all__ = ["group_classes", "legend_of", "picture_style", "svg_file", "svg_of"]

#: Number of classes of colours: shares of the longest time, and decades of the relative error.
TIME_CLASSES, ERROR_CLASSES, DEVICE_CLASSES = 6, 7, 8
_SMALLEST_DECADE = -7
_LEGEND_HEIGHT = 44


def svg_of(picture: Picture, layout: Layout, colour: str) -> str:
    """Return the drawing as an ``svg`` element without colours, for a page with :func:`picture_style`.

    Args:
        picture: the picture.
        layout: its places.
        colour: what boxes are coloured by at first, one of ``picture.colours``.
    """
    width, height = layout.width, layout.height
    size = f'width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}"'
    label = escaped(f"graph of {picture.title}, {len(picture.nodes)} nodes")
    content = "\n".join(_content(picture, layout))
    return f'<svg class="graph by-{colour}" {size} role="group" aria-label="{label}">\n{content}\n</svg>'


def svg_file(picture: Picture, layout: Layout, colour: str) -> str:
    """Return the drawing as a file by itself, with a title, a legend and light colours."""
    entries_at, x = [], 16.0
    for name, text in legend_of(picture, colour):
        entries_at.append((x, name, text))
        x += 34 + 6.6 * len(text)
    width = max(layout.width, x, 16 + 9 * min(len(picture.title), 80))
    height = layout.height + _LEGEND_HEIGHT
    entries = "".join(
        f'<g class="node key" transform="translate({x:g},36)"><rect class="{name}" width="12" height="12" rx="2"/>'
        f'<text x="18" y="10" class="figures">{escaped(text)}</text></g>'
        for x, name, text in entries_at
    )
    style = _without_variables(picture_style())
    shift = (width - layout.width) / 2
    content = "\n".join(_content(picture, layout))
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<svg xmlns="http://www.w3.org/2000/svg" class="graph by-{colour}" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}">\n<style>{style}</style>\n'
        f'<rect class="paper" width="100%" height="100%"/>\n'
        f'<text class="heading" x="16" y="24">{escaped(elided(picture.title, 80))}</text>\n{entries}\n'
        f'<g transform="translate({shift:g},{_LEGEND_HEIGHT})">\n{content}\n</g>\n</svg>\n'
    )


def legend_of(picture: Picture, colour: str) -> list[tuple[str, str]]:
    """Return the classes of a kind of colour with their meanings, as far as the picture has any."""
    if colour == "device":
        return [(f"device-{i % DEVICE_CLASSES}", device) for i, device in enumerate(picture.devices)]
    if colour == "time":
        bounds = [picture.longest * 2.0 ** (i + 1 - TIME_CLASSES) for i in range(TIME_CLASSES)]
        return [(f"time-{i}", f"up to {time_text(bound)}") for i, bound in enumerate(bounds)]
    decades = [_SMALLEST_DECADE + i for i in range(ERROR_CLASSES)]
    texts = [f"below 1e{decades[0]}", *(f"1e{d - 1}…1e{d}" for d in decades[1:-1]), f"above 1e{decades[-2]}"]
    found = {f"error-{_error_class(node.error)}" for node in picture.nodes if node.kind == "node"}
    named = [(f"error-{i}", text) for i, text in enumerate(texts)] + [("error-none", "not compared")]
    return [(name, text) for name, text in named if name in found]


def group_classes(picture: Picture, members: Sequence[PictureNode]) -> list[str]:
    """Return the classes of a group that is drawn as one box: its device, and its longest time and largest error."""
    nodes = [node for node in members if node.kind == "node"]
    device = next((node.device for node in nodes if node.device), "")
    found = [f"device-{picture.devices.index(device) % DEVICE_CLASSES}"] if device else []
    times = [node.seconds for node in nodes if node.seconds is not None]
    errors = [node.error for node in nodes if node.error is not None]
    if times:
        found.append(f"time-{_time_class(max(times), picture.longest)}")
    if errors:
        found.append(f"error-{_error_class(max(errors))}")
    if any(node.status == "diverges" for node in nodes):
        found.append("status-diverges")
    return found


def picture_style() -> str:
    """Return the style sheet of drawings; its variables are light and dark colours."""
    return (resources.files(__package__) / "picture.css").read_text(encoding="utf-8")


def _time_class(seconds: float | None, longest: float) -> int | str:
    if seconds is None or not longest:
        return "none"
    share = seconds / longest
    return max(0, TIME_CLASSES - 1 + math.ceil(round(math.log2(share), 6))) if share > 0 else 0


def _error_class(error: float | None) -> int | str:
    if error is None:
        return "none"
    if not math.isfinite(error):
        return ERROR_CLASSES - 1
    decade = math.floor(math.log10(error)) + 1 if error > 0 else _SMALLEST_DECADE
    return min(max(decade - _SMALLEST_DECADE, 0), ERROR_CLASSES - 1)


def _content(picture: Picture, layout: Layout) -> Iterator[str]:
    yield '<g class="edges">'
    for edge, path in zip(picture.edges, layout.paths):
        yield f'<path class="edge" d="{_curves(path)}"><title>{escaped(edge.text)}</title></path>'
    yield '</g>\n<g class="groups">'  # above the edges, so that these do not cross their titles
    for index, (group, frame) in enumerate(zip(picture.groups, layout.frames)):
        yield _frame(index, group, frame)
    yield '</g>\n<g class="nodes">'
    numbers = {device: i for i, device in enumerate(picture.devices)}
    for index, (node, box) in enumerate(zip(picture.nodes, layout.boxes)):
        yield _node(index, node, box, picture, numbers)
    yield "</g>"


def _frame(index: int, group: Group, frame: Box) -> str:
    x, y = frame.x - frame.width / 2, frame.y - frame.height / 2
    title = elided(group.title, max(8, int((frame.width - 8) / TITLE_CHARACTER)))
    return (
        f'<g class="group {group.kind}" data-group="{index}"><rect x="{x:g}" y="{y:g}" width="{frame.width:g}" '
        f'height="{frame.height:g}" rx="6"/><text x="{x + 8:g}" y="{y + 15:g}">{escaped(title)}</text>'
        f"<title>{escaped(group.title)}</title></g>"
    )


def _node(index: int, node: PictureNode, box: Box, picture: Picture, numbers: dict[str, int]) -> str:
    classes = ["node", node.kind]
    if node.kind == "node":
        device = f"device-{numbers[node.device] % DEVICE_CLASSES}" if node.device else "device-none"
        classes.append(device)
        if picture.has_times:
            classes.append(f"time-{_time_class(node.seconds, picture.longest)}")
        if picture.has_errors:
            classes.append(f"error-{_error_class(node.error)}")
        if node.status:
            classes.append("status-" + re.sub(r"[^a-z]+", "-", node.status.lower()))
    x, y, width, height = box.x - box.width / 2, box.y - box.height / 2, box.width, box.height
    names = ("op", "name", "figures")
    texts = "".join(
        f'<text class="{name}" x="{width / 2:g}" y="{17 + 16 * i}">{escaped(line)}</text>'
        for i, (name, line) in enumerate(zip(names, node.lines(has_figures=picture.has_figures)))
        if line
    )
    radius = 5 if node.kind == "node" else min(height / 2, 18)
    title = escaped(" ".join(filter(None, (node.op, node.name, node.device, _figures(node)))))
    return (
        f'<g class="{" ".join(classes)}" data-node="{index}" transform="translate({x:g},{y:g})">'
        f'<title>{title}</title><rect width="{width:g}" height="{height:g}" rx="{radius:g}"/>{texts}</g>'
    )


def _figures(node: PictureNode) -> str:
    time = "" if node.seconds is None else time_text(node.seconds)
    return " ".join(filter(None, (time, "" if node.error is None else error_text(node.error), node.status)))


def _curves(points: Sequence[Point]) -> str:
    if not points:
        return ""
    texts = [f"{x:g},{y:g}" for x, y in points]
    return f"M{texts[0]}C{' '.join(texts[1:])}" if len(texts) > 1 else f"M{texts[0]}"


def _without_variables(style: str) -> str:
    """Return the style sheet with its light colours in the places of its variables, which few programs know."""
    light = dict(re.findall(r"(--[\w-]+): ([^;]+);", style.partition("@media")[0]))
    rules = style.partition("/* Rules. */")[2]
    return html.escape(re.sub(r"var\((--[\w-]+)\)", lambda found: light[found[1]], printable(rules)), quote=False)
