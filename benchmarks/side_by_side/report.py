"""The report of the results as Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from side_by_side.conditions import LEVELS, Condition
from side_by_side.engines import ENGINES, LITE
from side_by_side.results import FirstResult, Results

_NOTHING = "-"


def markdown(results: Results) -> str:
    """Return the whole report."""
    parts = ["# Lite side by side with other engines", _about(results)]
    for condition in results.conditions():
        parts += [f"## {condition.title}", _times(results, condition)]
    if results.first_results:
        parts += ["## Process start to first result, one thread", _first_results(results)]
    if results.timings:
        if Condition() in results.conditions():
            parts += ["## Processor time for one run, one thread", _processor_time(results)]
        parts += ["## Differences between the outputs", _differences(results)]
        parts += ["## Processor use in own and others' turns", _processor_use(results)]
    if results.left_out:
        parts += ["## Left out", _left_out(results)]
    return "\n\n".join(parts) + "\n"


def _about(results: Results) -> str:
    machine = results.machine
    versions = ", ".join(
        f"{ENGINES[name].title} {version}"
        for name, version in results.versions.items()
        if not ENGINES[name].startup_only
    )
    return "\n".join(
        [
            f"- Machine: {machine['processor']} ({machine['microarchitecture']}: family {machine['family']}, model "
            f"{machine['model']}), {_count(machine['cores'], 'core')}, {' '.join(machine['extensions'])}, "
            f"{machine['memory_bytes'] / 2**30:.0f} GiB, {machine['system']}; "
            f"load {machine['load_average']:.2f} before the run.",
            *(
                f"- Lite{f', {LEVELS[level][0]}' if level else ''}, {line}"
                for level, lines in machine["lite"].items()
                for line in lines
            ),
            f"- Engines: {versions}; Lite's backend is {results.settings['backend']}.",
            f"- float32, batch 1 unless the model's name says otherwise; {results.settings['seconds']:g} s a cell, in "
            f"slices taken in turns. Measured {results.made_at}.",
        ]
    )


def _times(results: Results, condition: Condition) -> str:
    names = [
        name for name in _timed(results) if any((t.engine, t.condition) == (name, condition) for t in results.timings)
    ]
    titles = [ENGINES[name].title for name in names]
    rows = []
    for model, title in results.models.items():
        cells = []
        for name in names:
            timing = results.timing(model, name, condition)
            if timing is None:
                cells.append(_NOTHING)
                continue
            lower, upper = timing.quartiles
            cells.append(f"{_digits(timing.median)} ({_digits(lower)} to {_digits(upper)})")
        ratio = results.ratio(model, condition)
        cells += [f"**{ratio.of_medians:.2f}**", f"{ratio.of_minima:.2f}"] if ratio else [_NOTHING, _NOTHING]
        if any(cell != _NOTHING for cell in cells):
            rows.append([title, *cells])
    means = results.geometric_means(condition)
    if means:
        blank = [""] * len(names)
        rows.append(["geometric mean", *blank, f"**{means[0]:.2f}**", f"{means[1]:.2f}"])
    table = _table(["model", *titles, "best peer / Lite", "of minima"], rows)
    return (
        "Milliseconds: median (lower to upper quartile). *Best peer / Lite*: the shortest median of the other engines "
        f"over Lite's, above 1 if Lite is faster.\n\n{table}"
    )


def _processor_time(results: Results) -> str:
    names = _timed(results)
    rows = []
    for model, title in results.models.items():
        timings = {name: results.timing(model, name, Condition()) for name in names}
        spent = {name: statistics.mean(t.milliseconds) * t.cpu_per_wall for name, t in timings.items() if t}
        peers = [time for name, time in spent.items() if name != LITE]
        ratio = f"**{min(peers) / spent[LITE]:.2f}**" if peers and LITE in spent else _NOTHING
        rows.append([title, *(_digits(spent[name]) if name in spent else _NOTHING for name in names), ratio])
    table = _table(["model", *(ENGINES[name].title for name in names), "best peer / Lite"], rows)
    return (
        "Milliseconds, mean over all runs. With other work on the machine, processor time is the better measure: it "
        f"does not include the time that a run waits for the processor.\n\n{table}"
    )


def _first_results(results: Results) -> str:
    names = [name for name in results.versions if any(r.engine == name for r in results.first_results)]
    rows = []
    for model, title in results.models.items():
        found = {r.engine: r for r in results.first_results if r.model == model}
        if found:
            rows.append([title, *(_first_result(found[name]) if name in found else _NOTHING for name in names)])
    table = _table(["model", *(ENGINES[name].title for name in names)], rows)
    return (
        "Cold / warm: the time, and the peak resident memory of the process until then. *Cold* is a process with an "
        "empty cache folder, *warm* the next process, with the files that the first has cached; "
        f"libraries and model files are in the system's page cache.\n\n{table}"
    )


def _first_result(result: FirstResult) -> str:
    cold, warm = (statistics.median(seconds) * 1e3 for seconds in (result.cold_seconds, result.warm_seconds))
    cold_memory, warm_memory = (statistics.median(sizes) / 2**20 for sizes in (result.cold_bytes, result.warm_bytes))
    return f"{cold:.0f} / {warm:.0f} ms, {cold_memory:.0f} / {warm_memory:.0f} MiB"


def _differences(results: Results) -> str:
    names = _timed(results)
    rows = []
    for model, title in results.models.items():
        cells = []
        for name in names:
            found = [t.difference for t in results.timings if (t.model, t.engine) == (model, name)]
            cells.append(f"{max(found):.1e}" if found else _NOTHING)
        rows.append([title, *cells])
    table = _table(["model", *(ENGINES[name].title for name in names)], rows)
    return (
        "Largest difference of the output from the engines' median output, as a share of the output's range, "
        f"over all conditions.\n\n{table}"
    )


def _processor_use(results: Results) -> str:
    rows = []
    for name in results.versions:
        timings = [t for t in results.timings if t.engine == name]
        for condition in results.conditions():
            busy = [t.cpu_per_wall for t in timings if t.condition == condition]
            idle = [t.idle_cpu_share for t in timings if t.condition == condition]
            if busy:
                spread = f"{min(busy):.2f} to {max(busy):.2f}"
                rows.append([ENGINES[name].title, condition.title, spread, f"{max(idle):.1%}"])
    table = _table(["engine", "condition", "CPU seconds a second, in its turns", "most in the others' turns"], rows)
    return (
        "Over all models. Much less than 1 in an engine's turns means that other work had the processor: the minima "
        f"are then more reliable than the medians.\n\n{table}"
    )


def _left_out(results: Results) -> str:
    lines = []
    for entry in results.left_out:
        where = f", {results.models[entry.model]}" if entry.model else ""
        where += f", {entry.condition.title}" if entry.condition else ""
        lines.append(f"- {ENGINES[entry.engine].title}{where}: {' '.join(entry.reason.split())}")
    return "\n".join(lines)


def _timed(results: Results) -> list[str]:
    """Return the engines with at least one timing."""
    return [name for name in results.versions if any(t.engine == name for t in results.timings)]


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _digits(milliseconds: float) -> str:
    """Format with three significant digits, and at most two decimals."""
    decimals = 0 if milliseconds >= 100 else 1 if milliseconds >= 10 else 2
    return f"{milliseconds:.{decimals}f}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
