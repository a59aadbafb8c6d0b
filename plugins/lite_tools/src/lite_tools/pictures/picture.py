"""The picture of a graph as plain data, without places and colours."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from lite_tools.pages.page import printable

__all__ = ["Edge", "Group", "Picture", "PictureNode", "elided", "time_text"]

_LONGEST_NAME, _LONGEST_OPERATOR = 30, 40


@dataclass(frozen=True, slots=True)
class PictureNode:
    """A box of the picture.

    Attributes:
        name: the node's name.
        op: its operator, or the operators that one step computes: ``Conv+Relu``.
        kind: ``node``, or ``input`` or ``output`` of the graph.
        group: index of the innermost group that contains it.
        device: label of the device that runs it.
        seconds: the time of the kernel that computes it, alone or with other nodes of its group.
        error: its error against another run, a share of the largest element; infinity for a NaN on one side only.
        status: the judgement of a comparison, such as ``diverges``.
        facts: what is shown when the node is selected: labels and texts.
    """

    name: str
    op: str
    kind: str = "node"
    group: int | None = None
    device: str = ""
    seconds: float | None = None
    error: float | None = None
    status: str = ""
    facts: tuple[tuple[str, str], ...] = ()

    def lines(self, *, has_figures: bool) -> list[str]:
        """Return the lines of text in the box: operator, name and figures."""
        name, op = elided(self.name), elided(self.op, _LONGEST_OPERATOR)
        if self.kind != "node":
            return [name, op]
        lines = [op, name]
        if has_figures:
            time = "" if self.seconds is None else time_text(self.seconds)
            error = "" if self.error is None else f"error {error_text(self.error)}"
            lines.append(" · ".join(filter(None, (elided(self.device, 20), time, error))))
        return lines


@dataclass(frozen=True, slots=True)
class Group:
    """Nodes with a frame around them that can be collapsed.

    Attributes:
        title: the text on the frame.
        kind: ``kernel`` for nodes that one kernel computes, ``body`` for a sub-graph of If, Loop or Scan.
        outer: index of the group around it.
    """

    title: str
    kind: str
    outer: int | None = None


@dataclass(frozen=True, slots=True)
class Edge:
    """A value that one node computes and another reads: indices of the nodes, and the value's name and type."""

    source: int
    target: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    """Nodes, groups and edges.

    Attributes:
        title: the heading, usually the model's name.
        nodes: the boxes; edges and groups refer to them by index.
        groups: the frames; a group comes after the group around it.
        edges: the arrows.
        devices: the labels of the devices, in the order of their first nodes.
        longest: the longest time of a node in seconds, 0 if none is known.
    """

    title: str
    nodes: Sequence[PictureNode]
    groups: Sequence[Group] = ()
    edges: Sequence[Edge] = ()
    devices: tuple[str, ...] = field(init=False)
    longest: float = field(init=False)

    def __post_init__(self) -> None:
        times = [node.seconds for node in self.nodes if node.seconds is not None]
        object.__setattr__(self, "longest", max(times, default=0.0))
        object.__setattr__(self, "devices", tuple(dict.fromkeys(node.device for node in self.nodes if node.device)))

    def members(self) -> list[list[PictureNode]]:
        """Return for each group the nodes in it and in the groups inside it."""
        found: list[list[PictureNode]] = [[] for _ in self.groups]
        for node in self.nodes:
            group = node.group
            while group is not None:
                found[group].append(node)
                group = self.groups[group].outer
        return found

    @property
    def has_times(self) -> bool:
        return any(node.seconds is not None for node in self.nodes)

    @property
    def has_errors(self) -> bool:
        return any(node.error is not None or node.status for node in self.nodes)

    @property
    def has_figures(self) -> bool:
        """True if boxes have a line for device, time and error."""
        return bool(self.devices) or self.has_times or self.has_errors

    @property
    def colours(self) -> tuple[str, ...]:
        """Kinds of colours that boxes can have, the most telling first."""
        known = (("error", self.has_errors), ("time", self.has_times), ("device", True))
        return tuple(name for name, is_known in known if is_known)


def elided(text: str, longest: int = _LONGEST_NAME) -> str:
    """Return the text without control characters, and with its middle left out if it is too long for a box."""
    text = printable(text)
    if len(text) <= longest:
        return text
    tail = longest // 2
    return f"{text[: longest - tail - 1]}…{text[-tail:]}"


def time_text(seconds: float) -> str:
    """Format a time of a kernel."""
    if seconds < 1e-4:
        return f"{seconds * 1e6:.1f} µs"
    return f"{seconds * 1e3:.3f} ms" if seconds < 0.01 else f"{seconds * 1e3:.1f} ms"


def error_text(error: float) -> str:
    """Format a relative error with two digits."""
    if not math.isfinite(error):
        return "NaN"
    if error == 0 or 0.01 <= error < 1000:
        return f"{error:.2g}" if error < 100 else f"{error:.0f}"
    mantissa, exponent = f"{error:.1e}".split("e")
    return f"{mantissa}e{int(exponent)}"
