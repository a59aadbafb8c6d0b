"""The table of models from the package index, from the files in docs/results/zoo, one for each processor.

``benchmarks/zoo.py --record`` writes these files. Rows that lose come first: refused, wrong, then by their ratio.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from markdown_tables import table
from workspace import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))
from side_by_side import zoo_results
from side_by_side.engines import ENGINES, LITE
from side_by_side.zoo_results import Recorded, Row
from side_by_side.zoo_table import ZooModel, read_table

__all__ = ["BEHIND", "BLOCKS", "FOLDER", "details"]

FOLDER = ROOT / "docs" / "results" / "zoo"
#: A ratio below this counts as behind.
BEHIND = 0.9
_NOTHING = (
    "No results are recorded yet: `benchmarks/zoo.py --record` measures this machine, `make docs` writes this part."
)


def details(folder: Path = FOLDER) -> str:
    """Return a summary, the table of models and the remarks, for each processor."""
    models = read_table()
    processors = [zoo_results.read(file) for file in sorted(folder.glob("*.json"))]
    if not processors:
        return f"\n{_NOTHING}\n\n"
    return "\n" + "\n".join(_processor(recorded, models) for recorded in processors) + "\n"


def _processor(recorded: Recorded, models: dict[str, ZooModel]) -> str:
    rows = sorted((row for row in recorded.rows if row.model in models), key=lambda row: _place(row, models[row.model]))
    threads = sorted({count for row in rows for count in row.timings}, key=int)
    machine = recorded.machine
    titles = ["model", "task", "release", "licence", "outputs", "native"]
    titles += [f"{count} thread{'' if count == '1' else 's'}" for count in threads] + ["memory"]
    lines = [_line(row, models[row.model], threads) for row in rows]
    return "\n".join(
        [
            f"## {recorded.name}\n",
            f"family {machine['family']}, model {machine['model']}; {' '.join(machine['extensions'])}; "
            f"{machine['system']}.\n",
            _origin(rows, models),
            table(titles, lines, right=range(5, len(titles))),
            _remarks(rows, models),
        ]
    )


def _place(row: Row, model: ZooModel) -> tuple[int, float]:
    """Return the key that sorts rows: refused, wrong, by ratio, and last those that cannot be compared."""
    if row.refusal:
        return 0, 0.0
    if not row.is_right(model.max_difference):
        return 1, 0.0
    worst = row.worst_ratio
    return (3, 0.0) if worst is None else (2, worst)


def _line(row: Row, model: ZooModel, threads: Sequence[str]) -> list[str]:
    release = f"{model.distribution.name} {model.distribution.version}"
    about = [f"`{row.model}`", model.task, release, model.distribution.licence]
    if row.refusal:
        return [*about, "**refused**", *["-"] * (len(threads) + 2)]
    native = "-" if row.native is None else f"{row.native:.0%}".replace("%", " %")
    memory = "-" if row.memory_ratio is None else f"{row.memory_ratio:.2f}"
    return [*about, _outputs(row, model), native, *(_time(row, count) for count in threads), memory]


def _outputs(row: Row, model: ZooModel) -> str:
    if row.peer_refusal:
        return f"not refused, as by {ENGINES[row.engine].title}"
    if row.is_right(model.max_difference):
        return "right"
    return "**wrong**" if row.difference is None else f"**wrong**: {row.difference:.1e} of the range"


def _time(row: Row, threads: str) -> str:
    """Return Lite's time and the ratio of the other engine's to it."""
    times, ratio = row.timings.get(threads, {}), row.ratio(threads)
    if LITE not in times:
        return "-"
    time = f"{_digits(times[LITE]['median'])} ms"
    if ratio is None:
        return time
    return f"{time}, **{ratio:.2f}**{' behind' if ratio < BEHIND else ''}"


def _digits(milliseconds: float) -> str:
    decimals = 0 if milliseconds >= 100 else 1 if milliseconds >= 10 else 2 if milliseconds >= 0.1 else 3
    return f"{milliseconds:.{decimals}f}"


def _origin(rows: Sequence[Row], models: dict[str, ZooModel]) -> str:
    """Return how many models load, are right and are behind; and when and with which versions they were measured."""
    loaded = [row for row in rows if not row.refusal]
    right = [row for row in loaded if row.is_right(models[row.model].max_difference)]
    parts = [f"{len(loaded)} of {len(rows)} models load, and {len(right)} have the outputs of their engine."]
    for count in sorted({count for row in rows for count in row.timings}, key=int):
        ratios = [ratio for row in rows if (ratio := row.ratio(count)) is not None]
        if ratios:
            behind = sum(ratio < BEHIND for ratio in ratios)
            parts.append(
                f"With {count} thread{'' if count == '1' else 's'} the ratios have the geometric mean "
                f"**{statistics.geometric_mean(ratios):.2f}**; {behind} of {len(ratios)} are below {BEHIND}."
            )
    versions = {f"{ENGINES[name].title} {version}": None for row in rows for name, version in row.versions.items()}
    days, revisions = (", ".join(sorted({getattr(row, name) for row in rows})) for name in ("measured", "revision"))
    loads = [row.load for row in rows]
    parts.append(
        f"Measured {days} at commit {revisions or 'unknown'} with {', '.join(versions)}; load of the machine before: "
        f"{min(loads):.1f} to {max(loads):.1f}."
    )
    return f"{' '.join(parts)}\n"


def _remarks(rows: Sequence[Row], models: dict[str, ZooModel]) -> str:
    """Return the reasons of refusals, and the remarks of the table about models that are behind."""
    remarks: dict[str, list[str]] = {}
    for row in rows:
        worst = row.worst_ratio
        if row.refusal:
            remarks.setdefault(f"Refused: {row.refusal}", []).append(f"`{row.model}`")
        if row.refusal or (worst is not None and worst < BEHIND):
            remarks.setdefault(models[row.model].remark, []).append(f"`{row.model}`")
    lines = [f"- {', '.join(names)}: {remark}" for remark, names in remarks.items() if remark]
    return "\n".join([*lines, ""]) if lines else ""


BLOCKS = {"models from the package index": details}
