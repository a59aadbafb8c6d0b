"""Drawing of docs/architecture.svg: the distributions in their layers, and the imports between them.

Everything follows from the sources: the arrows from the imports, the layer of a distribution from its pyproject.toml.
``make docs`` writes the drawing; a test fails when it is stale.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from import_graph import import_graph, modules_in
from workspace import ROOT, Distribution, distributions

__all__ = ["FILE", "drawing"]

FILE = ROOT / "docs/architecture.svg"

BOX_WIDTH, BOX_HEIGHT = 162, 84
GAP, GROUP_GAP, LAYER_GAP = 22, 64, 44  # between boxes, between the two groups of a layer, between layers
PADDING, LABEL = 16, 26  # space of a layer around its boxes, and for its name above or below them
MARGIN = 28
CLEARANCE = 10  # distance of a line from a box or a text that it passes
TEXT_WIDTH = 6.8  # greatest width of a letter 12 pixels high

#: Each layer with its title, its background colour and the colour of its boxes' edges.
LAYERS = {
    "commands": ("commands and conformance suite", "#eef4fd", "#3b6fb6"),
    "backend": ("backends", "#fdf3e4", "#b8741a"),
    "format": ("model formats", "#f4eefb", "#7a4fb0"),
    "shared": ("shared by compiling backends", "#eaf6ee", "#2f8552"),
    "core": ("the core", "#eceff3", "#3c4656"),
}
INK, FAINT = "#1d2530", "#5b6675"


@dataclass
class Box:
    """A distribution in the drawing; ``x`` and ``y`` are its upper left corner, in pixels."""

    distribution: Distribution
    layer: str
    x: float = 0
    y: float = 0
    width: float = BOX_WIDTH
    height: float = BOX_HEIGHT

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def bottom(self) -> float:
        return self.y + self.height

    @property
    def centre(self) -> float:
        return self.x + self.width / 2


@dataclass
class Arrow:
    """A line from a package to one that it imports, given by its corners."""

    corners: list[tuple[float, float]]
    is_upwards: bool = False
    has_point: bool = True


def layer_of(distribution: Distribution) -> str:
    """Return the layer of a distribution, from its pyproject.toml."""
    if distribution.package == "lite_core":
        return "core"
    if "backends" in distribution.about_lite:
        return "backend"
    if "formats" in distribution.about_lite:
        return "format"
    project = distribution.pyproject["project"]
    return "commands" if "scripts" in project or "entry-points" in project else "shared"


def imports_between(found: Sequence[Distribution]) -> dict[str, set[str]]:
    """Return the packages that each package imports."""
    modules = {name: file for one in found for name, file in modules_in(one.sources).items()}
    arrows: dict[str, set[str]] = {one.package: set() for one in found}
    for name, imported in import_graph(modules).items():
        package = name.partition(".")[0]
        arrows[package] |= {other.partition(".")[0] for other in imported} - {package}
    return arrows


def without_implied(arrows: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return the arrows without those implied by a path of others."""

    def reachable(package: str) -> set[str]:
        return arrows[package].union(*(reachable(other) for other in arrows[package]))

    return {
        package: {one for one in others if not any(one in reachable(other) for other in others)}
        for package, others in arrows.items()
    }


class Drawing:
    """The boxes in their layers, and the lines between them."""

    def __init__(self, found: Sequence[Distribution]) -> None:
        self.boxes = {one.package: Box(one, layer_of(one)) for one in found}
        imported = imports_between(found)
        #: Upward arrows, which only commands need.
        self.up = {p: {o for o in others if self._is_above(o, p)} for p, others in imported.items()}
        self.down = without_implied({p: others - self.up[p] for p, others in imported.items()})
        self._position_middle()
        self._position_shared()
        self._position_commands()
        self._position_layers()

    def _is_above(self, package: str, other: str) -> bool:
        return self.boxes[package].layer == "commands" and self.boxes[other].layer in ("backend", "format")

    def on(self, *layers: str) -> list[Box]:
        """Return the boxes of some layers, from left to right."""
        return sorted((b for b in self.boxes.values() if b.layer in layers), key=lambda b: b.x)

    def users(self, package: str, *layers: str) -> list[Box]:
        """Return the boxes of some layers with a downward arrow to a package."""
        return [box for name, box in self.boxes.items() if package in self.down[name] and box.layer in layers]

    # **** positions ****

    def _position_middle(self) -> None:
        """Order the backends by distance from the core, the nearest on the right, and by library; then the formats."""

        def steps(package: str) -> int:
            return 1 + max((steps(other) for other in self.down[package]), default=0)

        def imports_a_format(box: Box) -> bool:
            return any(self.boxes[other].layer == "format" for other in self.down[box.distribution.package])

        chips = self.on("backend")
        libraries = {box.distribution.package: sorted(self.down[box.distribution.package])[-1:] for box in chips}
        chips.sort(
            key=lambda b: (imports_a_format(b), -steps(b.distribution.package), libraries[b.distribution.package])
        )
        formats = sorted(self.on("format"), key=lambda b: not self.users(b.distribution.package, "backend"))
        x: float = MARGIN + PADDING
        for box in [*chips, *formats]:
            x += GROUP_GAP - GAP if formats and box is formats[0] else 0
            box.x = x
            x = box.right + GAP
        self.width = x - GAP + PADDING + MARGIN

    def _position_shared(self) -> None:
        """Put each library below the backends that use it, as wide as all of them."""
        taken: float = MARGIN + PADDING
        libraries = self.on("shared")
        spans = {box.distribution.package: self.users(box.distribution.package, "backend") for box in libraries}
        for box in sorted(
            libraries, key=lambda b: min((u.x for u in spans[b.distribution.package]), default=self.width)
        ):
            users = spans[box.distribution.package]
            box.x = max(taken, min((user.x for user in users), default=taken))
            box.width = max([BOX_WIDTH, *(user.right - box.x for user in users)])
            taken = box.right + GAP

    def _position_commands(self) -> None:
        """Put the package that others import above a gap down to the core, and the others beside it."""
        packages = sorted(self.on("commands"), key=lambda b: -len(self.users(b.distribution.package, "commands")))
        if not packages:
            return
        first = packages[0]
        first.x = self._free_column(self.width / 2, self.on("backend", "format"), self.on("shared")) - first.width / 2
        left, right = first.x, first.right
        for number, box in enumerate(packages[1:]):
            if number % 2:
                box.x = right + GROUP_GAP
                right = box.right
            else:
                box.x = left = left - GROUP_GAP - box.width

    def _free_column(self, x: float, *rows: Iterable[Box]) -> float:
        """Return the position nearest to ``x`` where a vertical line meets no box: the middle of a gap."""
        boxes = sorted((box for row in rows for box in row), key=lambda box: box.x)
        positions, left = [], 0.0
        for begin, end in [*((box.x, box.right) for box in boxes), (self.width, self.width)]:
            if begin - left > 2 * CLEARANCE:
                near = min(max(x, left + CLEARANCE), begin - CLEARANCE)
                positions.append(near if begin - left > 2 * GROUP_GAP else (left + begin) / 2)
            left = max(left, end)
        return min(positions, key=lambda position: abs(position - x))

    def _position_layers(self) -> None:
        y: float = MARGIN
        for layers in (("commands",), ("backend", "format"), ("shared",)):
            for box in self.on(*layers):
                box.y = y + LABEL
            if self.on(*layers):
                y += 2 * LABEL + BOX_HEIGHT + LAYER_GAP
        core = self.boxes["lite_core"]
        core.x, core.y, core.width, core.height = MARGIN, y, self.width - 2 * MARGIN, 78
        self.height = core.bottom + 48

    # **** lines ****

    def arrows(self) -> list[Arrow]:
        """Return the lines; upward lines to one package are joined."""
        found = [
            Arrow(self._line(box, self.boxes[other]))
            for package, box in self.boxes.items()
            for other in sorted(self.down[package])
        ]
        for package, target in self.boxes.items():
            lane = target.bottom + LABEL + LAYER_GAP / 2
            entry = target.right - 26
            sources = [box for name, box in self.boxes.items() if package in self.up[name]]
            for side in ([b for b in sources if b.centre < entry], [b for b in sources if b.centre >= entry]):
                # The farthest line leads all the way, the others end where they meet it.
                for number, box in enumerate(sorted(side, key=lambda b: -abs(b.centre - entry))):
                    stub = [(box.centre, box.y), (box.centre, lane)]
                    rest = [] if number else [(entry, lane), (entry, target.bottom)]
                    found.append(Arrow(stub + rest, is_upwards=True, has_point=bool(rest)))
        return found

    def _line(self, box: Box, target: Box) -> list[tuple[float, float]]:
        if box.y == target.y:  # neighbours
            y = box.y + box.height / 2
            return [(box.right, y), (target.x, y)] if box.x < target.x else [(box.x, y), (target.right, y)]
        low, high = max(box.x, target.x) + 12, min(box.right, target.right) - 12
        between = [b for b in self.boxes.values() if box.bottom < b.y < target.y]
        start = min(max(box.centre, low), high) if low <= high else box.centre
        column = self._free_column(start, between)
        if low <= column <= high:
            return [(column, box.bottom), (column, target.y)]
        entry = min(max(column, target.x + 12), target.right - 12)
        first, last = box.bottom + LABEL + LAYER_GAP / 2, target.y - LABEL - LAYER_GAP / 2
        return [(start, box.bottom), (start, first), (column, first), (column, last), (entry, last), (entry, target.y)]

    # **** SVG ****

    def svg(self) -> str:
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width:g} {self.height:g}" '
            f'width="{self.width:g}" height="{self.height:g}" font-family="Helvetica, Arial, sans-serif">',
            "<title>The packages of Lite and what they import</title>",
            "<defs>",
            f'<marker id="point" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" '
            f'orient="auto-start-reverse"><path d="M0,1 L9,5 L0,9 Z" fill="{FAINT}"/></marker>',
            "</defs>",
            f'<rect width="{self.width:g}" height="{self.height:g}" fill="#ffffff"/>',
            *(self._background(layer) for layer in LAYERS if layer != "core" and self.on(layer)),
            *map(self._path, self.arrows()),
            *(line for box in self.boxes.values() for line in self._box(box)),
            self._text(MARGIN, self.height - 18, _LEGEND, 12, FAINT),
            "</svg>",
        ]
        return "\n".join(lines) + "\n"

    def _background(self, layer: str) -> str:
        name, background, edge = LAYERS[layer]
        boxes = self.on(layer)
        x, y, right = boxes[0].x - PADDING, boxes[0].y - LABEL, boxes[-1].right + PADDING
        height = 2 * LABEL + BOX_HEIGHT
        rectangle = f'<rect x="{x:g}" y="{y:g}" width="{right - x:g}" height="{height:g}" rx="10" fill="{background}"/>'
        # The title is put where no line goes through it.
        last = int(right - PADDING - TEXT_WIDTH * len(name))
        positions = [(left, base) for base in (y + 17, y + height - 9) for left in range(int(x) + PADDING, last, 10)]
        left, base = min(positions, key=lambda position: self._lines_through(position[0], position[1], name))
        return f"{rectangle}\n{self._text(left, base, name, 12, edge)}"

    def _lines_through(self, x: float, y: float, text: str) -> int:
        """Count the lines that go through a text of 12 pixels, or close by."""
        segments = (pair for arrow in self.arrows() for pair in pairwise(arrow.corners))
        right = x + TEXT_WIDTH * len(text) + CLEARANCE
        return sum(
            x - CLEARANCE < x1 < right and min(y1, y2) < y < max(y1, y2) for (x1, y1), (x2, y2) in segments if x1 == x2
        )

    def _box(self, box: Box) -> list[str]:
        _, background, edge = LAYERS[box.layer]
        fill = background if box.layer == "core" else "#ffffff"
        short, _, long = box.distribution.description.partition(": ")
        text = long if box.layer == "core" else short
        texts = textwrap.wrap(text, int(box.width / TEXT_WIDTH))[:3]
        height = 20 + 15 * len(texts)
        y = box.y + (box.height - height) / 2 + 14
        return [
            f'<rect x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" height="{box.height:g}" rx="7" fill="{fill}" '
            f'stroke="{edge}" stroke-width="1.4"/>',
            self._text(box.centre, y, box.distribution.name, 15, INK, "middle", bold=True),
            *(self._text(box.centre, y + 20 + 15 * n, text, 11.5, FAINT, "middle") for n, text in enumerate(texts)),
        ]

    def _path(self, arrow: Arrow) -> str:
        steps = " L".join(f"{x:g},{y:g}" for x, y in arrow.corners)
        dashes = ' stroke-dasharray="5 4"' if arrow.is_upwards else ""
        point = ' marker-end="url(#point)"' if arrow.has_point else ""
        return f'<path d="M{steps}" fill="none" stroke="{FAINT}" stroke-width="1.5"{dashes}{point}/>'

    def _text(
        self, x: float, y: float, text: str, size: float, colour: str, anchor: str = "start", bold: bool = False
    ) -> str:
        weight = ' font-weight="bold"' if bold else ""
        return (
            f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" fill="{colour}" text-anchor="{anchor}"{weight}>'
            f"{escape(text)}</text>"
        )


_LEGEND = (
    "An arrow points to an imported package. Implied arrows are left out: all import the core. "
    "Dashed: only for commands."
)


def drawing() -> str:
    """Return the drawing as SVG."""
    return Drawing(distributions()).svg()


if __name__ == "__main__":
    FILE.write_text(drawing(), encoding="utf-8")
