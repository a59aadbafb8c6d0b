"""Chart of the results: each engine's speed on each model, relative to the fastest peer. Needs matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from side_by_side.engines import ENGINES, LITE
from side_by_side.results import Results

_COLOURS = {
    "lite": "#d1495b",
    "onnxruntime": "#30638e",
    "openvino": "#5b9ec9",
    "paddle": "#9aa5b1",
    "paddle_lite": "#cdd3da",
}
_BARS = 0.84  # share of the distance between two models that their bars take


def draw(results: Results, file: Path) -> None:
    """Write the chart, a PNG or SVG by the file's suffix: one panel for each number of threads.

    Raises:
        ImportError: matplotlib is not installed.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    threads = results.threads()
    height = 1.8 + 0.17 * len(results.models) * len(results.versions)
    figure, panels = pyplot.subplots(
        1,
        len(threads),
        figsize=(1.5 + 5.2 * len(threads), height),
        sharex=True,
        sharey=True,
        squeeze=False,
        layout="constrained",
    )
    for panel, count in zip(panels[0], threads):
        _panel(panel, results, count)
    panels[0][0].set_xlim(0, panels[0][0].get_xlim()[1] + 0.1)  # space for the number at the longest bar
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    machine = results.machine
    figure.suptitle(
        "Speed as a share of the fastest other engine (longer is faster)\n"
        f"batch 1, float32, medians; {machine['processor']}, {machine['cores']} cores, {results.made_at[:10]}",
        fontsize=10,
    )
    figure.savefig(file, dpi=150)
    pyplot.close(figure)


def _panel(panel: Any, results: Results, threads: int) -> None:
    """Draw one bar for each engine and model; Lite's bars have numbers."""
    engines = [name for name in results.versions if any(t.engine == name for t in results.timings)]
    bar = _BARS / len(engines)
    for row, model in enumerate(results.models):
        medians = {name: t.median for name in engines if (t := results.timing(model, name, threads))}
        best = min((median for name, median in medians.items() if name != LITE), default=None)
        if best is None:
            continue
        for index, name in enumerate(engines):
            if name not in medians:
                continue
            speed = best / medians[name]
            middle = row - _BARS / 2 + (index + 0.5) * bar
            panel.barh(middle, speed, bar * 0.9, color=_COLOURS[name])
            if name == LITE:
                number = panel.text(speed, middle, f" {speed:.2f}", va="center", fontsize=7, color=_COLOURS[name])
                number.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 0.4})  # over the line at 1
    for name in engines:
        panel.barh(0, 0, color=_COLOURS[name], label=ENGINES[name].title)
    panel.axvline(1.0, color="#333333", linewidth=0.8)
    panel.set_yticks(range(len(results.models)), list(results.models.values()))
    panel.set_ylim(len(results.models) - 0.5, -0.5)
    panel.tick_params(axis="y", length=0)
    panel.set_title(f"{threads} thread{'' if threads == 1 else 's'}", fontsize=10)
    panel.spines[["top", "right", "left"]].set_visible(False)
