"""Tables and charts of the comparisons with other engines, from the files in docs/results, one for each processor.

``benchmarks/peers.py --record`` writes these files. The chart of a processor has the name of its file, with ``.svg``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from markdown_tables import table
from workspace import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))
from side_by_side import chart, recorded
from side_by_side.conditions import Condition
from side_by_side.engines import ENGINES
from side_by_side.recorded import Cell, Recorded

__all__ = ["BLOCKS", "FOLDER", "Series", "charts", "claims", "details", "read_all", "series_of"]

FOLDER = ROOT / "docs" / "results"
_GROUPS = {"paddle": "the Paddle models", "onnx": "the ONNX models"}
_VARIANTS = {"": "", "large": ", large"}
_NOTHING = (
    "No results are recorded yet: `make bench ARGS=--record` measures this machine, `make docs` writes this part."
)


class Series(NamedTuple):
    """The cells of one group of models, in one variant and under one condition.

    Attributes:
        title: the models in words.
        condition: the condition.
        cells: the cells in which Lite and another engine were measured.
    """

    title: str
    condition: Condition
    cells: tuple[Cell, ...]

    @property
    def mean(self) -> str:
        """The geometric mean of the ratios of the best other engine to Lite."""
        return f"{recorded.geometric_mean(self.cells):.2f}"

    @property
    def behind(self) -> list[Cell]:
        """The cells in which another engine is faster, the worst first."""
        return sorted((cell for cell in self.cells if cell.ratio < 1), key=lambda cell: float(cell.ratio))


def read_all(folder: Path = FOLDER) -> dict[str, Recorded]:
    """Return the results of all processors, by the names of their files."""
    return {file.stem: recorded.read(file) for file in sorted(folder.glob("*.json"))}


def series_of(results: Recorded) -> list[Series]:
    """Return the series of a processor, in the order of its cells."""
    found: dict[tuple[str, str, Condition], list[Cell]] = {}
    for cell in results.cells:
        if cell.ratio is not None:
            found.setdefault((cell.group, cell.variant, cell.condition), []).append(cell)
    return [
        Series(f"{_GROUPS[group]}{_VARIANTS.get(variant, ', ' + variant.replace('=', ' '))}", condition, tuple(cells))
        for (group, variant, condition), cells in found.items()
    ]


def claims(folder: Path = FOLDER) -> str:
    """Return a table of what holds on which processor, without batches and large images, and the charts."""
    processors = read_all(folder)
    if not processors:
        return f"\n{_NOTHING}\n\n"
    rows = []
    for results in processors.values():
        plain = [cell for cell in results.cells if not cell.variant]
        for series in series_of(replace(results, cells=tuple(plain))):
            lost = ", ".join(f"{cell.title} {cell.ratio_text}" for cell in series.behind) or "none"
            ahead = f"{len(series.cells) - len(series.behind)} of {len(series.cells)}"
            rows.append([results.name, series.title, series.condition.title, f"**{series.mean}**", ahead, lost])
    titles = ["processor", "models", "condition", "best other engine / Lite", "Lite is ahead on", "and behind on"]
    pictures = "".join(
        f"\n![Speed of each engine on each model, as a share of the fastest other engine, on {results.name}]"
        f"(results/{name}.svg)\n"
        for name, results in processors.items()
        if _charted(results)
    )
    return f"\n{table(titles, rows, right=(3,))}{pictures}\n"


def details(folder: Path = FOLDER) -> str:
    """Return every recorded time, by processor, models and condition."""
    processors = read_all(folder)
    if not processors:
        return f"\n{_NOTHING}\n\n"
    return "\n" + "\n".join(_processor(results) for results in processors.values()) + "\n"


def charts(folder: Path = FOLDER) -> dict[Path, str]:
    """Return the chart of each processor: the Paddle models without variants, at the processor's own level."""
    return {
        folder / f"{name}.svg": str(chart.drawing(_charted(results), results.name))
        for name, results in read_all(folder).items()
        if _charted(results)
    }


def _charted(results: Recorded) -> list[Cell]:
    return [
        cell
        for cell in results.cells
        if cell.group == "paddle" and not cell.variant and not cell.condition.level and cell.ratio is not None
    ]


def _processor(results: Recorded) -> str:
    machine = results.machine
    about = f"family {machine['family']}, model {machine['model']}, stepping {machine['stepping']}"
    parts = [f"## {results.name}\n", f"{about}; {' '.join(machine['extensions'])}; {machine['system']}.\n"]
    for series in series_of(results):
        parts += [f"### {series.title.removeprefix('the ')}: {series.condition.title}\n", _origin(series.cells)]
        engines = [name for name in ENGINES if any(name in cell.engines for cell in series.cells)]
        rows = []
        for cell in series.cells:
            times = [cell.engines.get(name) for name in engines]
            ratio = f"**{cell.ratio_text}**{'' if cell.ratio >= 1 else ', behind'}"
            rows.append([cell.title, *("-" if t is None else _digits(t.median) for t in times), ratio])
        rows.append(["geometric mean", *[""] * len(engines), f"**{series.mean}**"])
        titles = ["model", *(ENGINES[name].title for name in engines), "best other engine / Lite"]
        parts.append(table(titles, rows, right=range(1, len(titles))))
    return "\n".join(parts)


def _origin(cells: Sequence[Cell]) -> str:
    """Return when, with which versions and with which tuning cells were measured."""
    versions = {f"{ENGINES[name].title} {version}": None for cell in cells for name, version in cell.versions.items()}
    days, revisions = ({getattr(cell, name) for cell in cells} for name in ("measured", "revision"))
    loads = [cell.load for cell in cells]
    tuning = {line: None for cell in cells for line in cell.tuning}
    return (
        f"Measured {_listed(sorted(days))} at commit {_listed(sorted(revisions))} with {', '.join(versions)}; load of "
        f"the machine before: {min(loads):.1f} to {max(loads):.1f}. Lite: {'; '.join(tuning)}.\n"
    )


def _listed(texts: Iterable[str]) -> str:
    return ", ".join(text for text in texts if text) or "unknown"


def _digits(milliseconds: float) -> str:
    """Format with three significant digits, and at most two decimals."""
    decimals = 0 if milliseconds >= 100 else 1 if milliseconds >= 10 else 2
    return f"{milliseconds:.{decimals}f}"


BLOCKS = {"speed by processor": claims, "results by processor": details}
