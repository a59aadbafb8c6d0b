"""Tables of the comparison in fewer bits, from the files in docs/results/precision, one for each processor.

``benchmarks/peers.py --precision NAME --record`` writes these files.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from markdown_tables import table
from workspace import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))
from side_by_side import precision_results
from side_by_side.engines import ENGINES, LITE
from side_by_side.precision_results import FLOAT32, Cell, Figures

__all__ = ["BLOCKS", "FOLDER", "claims", "details"]

FOLDER = ROOT / "docs" / "results" / "precision"
_NOTHING = (
    "No results are recorded yet: `benchmarks/peers.py --precision bfloat16 --record` measures this machine, "
    "`make docs` writes this part."
)


def claims(folder: Path = FOLDER) -> str:
    """Return a table with a row for each processor, precision and number of threads: the mean ratio, and the losses."""
    rows = []
    for recorded in (precision_results.read(file) for file in sorted(folder.glob("*.json"))):
        measured = [cell for cell in recorded.cells if cell.ratio is not None]
        for precision, threads in dict.fromkeys((cell.precision, cell.threads) for cell in measured):
            cells = [cell for cell in measured if (cell.precision, cell.threads) == (precision, threads)]
            behind = sorted((cell for cell in cells if _is_behind(cell)), key=lambda cell: float(cell.ratio or 0))
            lost = ", ".join(f"{cell.title} {cell.ratio_text}" for cell in behind) or "none"
            mean = statistics.geometric_mean(cell.ratio for cell in cells if cell.ratio is not None)
            ahead = f"{len(cells) - len(behind)} of {len(cells)}"
            rows.append([recorded.name, precision, _threads(threads), f"**{mean:.2f}**", ahead, lost])
    if not rows:
        return f"\n{_NOTHING}\n\n"
    titles = ["processor", "in", "condition", "best other engine / Lite", "Lite is ahead on", "and behind on"]
    return f"\n{table(titles, rows, right=(3,))}\n"


def details(folder: Path = FOLDER) -> str:
    """Return the tables of every processor and precision: times, then accuracy and memory."""
    files = sorted(folder.glob("*.json"))
    if not files:
        return f"\n{_NOTHING}\n\n"
    parts = []
    for recorded in (precision_results.read(file) for file in files):
        machine = recorded.machine
        parts += [
            f"## {recorded.name}\n",
            f"family {machine['family']}, model {machine['model']}; {' '.join(machine['extensions'])}; "
            f"{machine['system']}.\n",
        ]
        for precision in dict.fromkeys(cell.precision for cell in recorded.cells):
            cells = [cell for cell in recorded.cells if cell.precision == precision]
            parts += [f"### {precision}\n", _origin(cells)]
            for threads in sorted({cell.threads for cell in cells}):
                parts += [_times([cell for cell in cells if cell.threads == threads], threads)]
            fewest = min(cell.threads for cell in cells)
            parts += [_accuracy([cell for cell in cells if cell.threads == fewest]), _absences(cells)]
    return "\n" + "\n".join(parts) + "\n"


def _times(cells: Sequence[Cell], threads: int) -> str:
    """Return a table of medians; in the last column, the ratios in which another engine is faster are marked."""
    columns = _columns(cells)
    rows = []
    for cell in cells:
        figures = [cell.figures(*column) for column in columns]
        ratio = f"**{cell.ratio_text}**{', behind' if _is_behind(cell) else ''}" if cell.ratio_text else "-"
        rows.append([cell.title, *("-" if f is None else _milliseconds(f.median) for f in figures), ratio])
    ratios = [cell.ratio for cell in cells if cell.ratio is not None]
    if ratios:
        rows.append(["geometric mean", *[""] * len(columns), f"**{statistics.geometric_mean(ratios):.2f}**"])
    unit = f"ms, {_threads(threads)}"
    titles = [unit, *(_column_title(*column) for column in columns), "best other engine / Lite"]
    return table(titles, rows, right=range(1, len(titles)))


def _accuracy(cells: Sequence[Cell]) -> str:
    """Return tables of the distance from the float64 reference, and of peak memory."""
    columns = _columns(cells)
    titles = [_column_title(*column) for column in columns]

    def one(name: str, text: Callable[[Figures], str], last: str, compare: Callable[[Cell], str]) -> str:
        rows = [
            [cell.title, *("-" if (f := cell.figures(*c)) is None else text(f) for c in columns), compare(cell)]
            for cell in cells
        ]
        return table([name, *titles, last], rows, right=range(1, len(titles) + 2))

    snr = one("SNR in dB; greatest error", lambda f: f"{f.snr:.0f}; {_share(f.error)}", "Lite - best other", _closeness)
    memory = one("peak memory, MiB", lambda f: f"{f.memory / 2**20:.0f}", "least other / Lite", _thrift)
    return f"{snr}\n{memory}"


def _closeness(cell: Cell) -> str:
    """Return by how many dB Lite's output is nearer to the reference than those of other engines in the precision."""
    own, others = cell.figures(LITE), _others(cell)
    if own is None or not others:
        return "-"
    gain = own.snr - max(other.snr for other in others)
    return f"**{gain:+.1f}**{', behind' if gain < 0 else ''}"


def _thrift(cell: Cell) -> str:
    """Return the least memory of another engine in the precision over Lite's."""
    own, others = cell.figures(LITE), _others(cell)
    if own is None or not others:
        return "-"
    ratio = min(other.memory for other in others) / own.memory
    return f"**{math.floor(ratio * 100) / 100:.2f}**{', behind' if ratio < 1 else ''}"


def _others(cell: Cell) -> list[Figures]:
    """Return the figures of the other engines in the cell's precision."""
    return [forms[cell.precision] for name, forms in cell.engines.items() if name != LITE and cell.precision in forms]


def _columns(cells: Iterable[Cell]) -> list[tuple[str, str]]:
    """Return the engines with their forms, Lite first, float32 before the precision."""
    found = {(engine, form) for cell in cells for engine, forms in cell.engines.items() for form in forms}
    return sorted(found, key=lambda column: (list(ENGINES).index(column[0]), column[1] != FLOAT32))


def _column_title(engine: str, form: str) -> str:
    return f"{ENGINES[engine].title} {form}"


def _absences(cells: Sequence[Cell]) -> str:
    """Return what is missing in the tables, with the reasons."""
    models: dict[tuple[str, str], dict[str, None]] = {}
    for cell in cells:
        for engine, reason in cell.absent.items():
            models.setdefault((engine, " ".join(reason.split())), {})[cell.title] = None
    everything = len({cell.model for cell in cells})
    lines = [
        f"- {ENGINES[engine].title}{'' if len(titles) == everything else f', {_listed(titles)}'}: {reason}."
        for (engine, reason), titles in models.items()
    ]
    return "\n".join([*lines, ""]) if lines else ""


def _origin(cells: Sequence[Cell]) -> str:
    """Return when and with which versions cells were measured, and what Lite computed in."""
    versions = {f"{ENGINES[name].title} {version}": None for cell in cells for name, version in cell.versions.items()}
    days, revisions = (sorted({getattr(cell, name) for cell in cells}) for name in ("measured", "revision"))
    loads = [cell.load for cell in cells]
    behind = sum(map(_is_behind, cells))
    lost = f"Lite is behind in {behind} of {len(cells)} cells. " if behind else "Lite is behind in no cell. "
    return (
        f"{lost}Measured {_listed(days)} at commit {_listed(revisions)} with {', '.join(versions)}; load of the "
        f"machine before: {min(loads):.1f} to {max(loads):.1f}.\n"
    )


def _is_behind(cell: Cell) -> bool:
    return cell.ratio is not None and cell.ratio < 1


def _threads(count: int) -> str:
    return f"{count} thread{'' if count == 1 else 's'}"


def _listed(texts: Iterable[str]) -> str:
    every = list(texts)
    return every[0] if len(every) == 1 else f"{', '.join(every[:-1])} and {every[-1]}"


def _milliseconds(value: float) -> str:
    decimals = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:.{decimals}f}"


def _share(error: float) -> str:
    """Return a share in percent with two digits, or as a power of ten if it is tiny."""
    if error < 1e-4:
        return f"{error:.0e}"
    digits = max(0, 1 - math.floor(math.log10(error * 100)))
    return f"{error * 100:.{digits}f} %"


BLOCKS = {"results in fewer bits": details, "speed in fewer bits": claims}
