"""The comparison in fewer bits: each engine in the precision, and in float32 beside it, in turns.

Engines that lack the precision take part in float32, which their users have instead.
"""

from __future__ import annotations

import contextlib
import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from side_by_side import exact
from side_by_side.conditions import Condition
from side_by_side.contenders import Contender
from side_by_side.engines import LITE
from side_by_side.models import ConversionError, ModelOnDisk
from side_by_side.precision_models import Pair, Precision
from side_by_side.precision_results import FLOAT32, Cell, Figures
from side_by_side.timing import SLICE_SECONDS, Turns, take_turns
from side_by_side.worker_process import WorkerError, WorkerProcess

__all__ = ["measure", "summary"]

Array = np.ndarray[Any, Any]


def measure(
    contenders: Sequence[Contender],
    precision: Precision,
    pair: Pair,
    threads: int,
    seconds: float,
    about: Mapping[str, Any],
) -> Cell:
    """Measure one model with a number of threads; with several, each engine alone at its own defaults.

    Args:
        contenders: the engines.
        precision: the precision.
        pair: the model.
        threads: number of threads.
        seconds: time that each form runs in each engine, in slices.
        about: the fields of the cell that are not measured: the day, the revision, the load.

    Raises:
        ConversionError: the references cannot compute the exact output.
    """
    condition = Condition(threads=threads, alone=threads > 1)
    truth: Array = np.load(pair.wide.exact())
    absent: dict[str, str] = {}
    engines: dict[str, dict[str, Figures]] = {}
    with contextlib.ExitStack() as stack:
        turns: dict[tuple[str, str], Turns] = {}
        accuracy: dict[tuple[str, str], tuple[float, float]] = {}
        for contender in contenders:
            name = contender.engine.name
            for form, computes, model in _forms(contender, precision, pair, absent):
                try:
                    worker = stack.enter_context(_started(contender, model, condition, computes))
                    distance = exact.distances(_output(worker), truth)
                except (ConversionError, WorkerError) as error:
                    absent[name] = f"{form}: {error}"
                    continue
                if not math.isfinite(distance[0]):
                    absent[name] = f"{form}: its output is no number, or has another shape than the reference's"
                    continue
                turns[name, form], accuracy[name, form] = Turns(worker), distance
        take_turns(list(turns.values()), math.ceil(seconds / SLICE_SECONDS), seconds)
        for (name, form), turn in turns.items():
            engines.setdefault(name, {})[form] = _figures(turn, accuracy[name, form])
    versions = {c.engine.name: c.version for c in contenders if c.engine.name in engines}
    return Cell(
        model=pair.name,
        title=pair.title,
        precision=precision.name,
        threads=threads,
        versions=versions,
        engines=engines,
        absent=absent,
        **about,
    )


def summary(cell: Cell) -> str:
    """Return a cell in one line."""
    parts = [
        f"{name} {form} {figures.median:.2f} ms {figures.snr:.1f} dB {figures.memory >> 20} MiB"
        for name, forms in cell.engines.items()
        for form, figures in forms.items()
    ]
    return ", ".join([*parts, *(f"{name}: {reason}" for name, reason in cell.absent.items()), cell.ratio_text])


def _forms(
    contender: Contender, precision: Precision, pair: Pair, absent: dict[str, str]
) -> Iterator[tuple[str, str, ModelOnDisk]]:
    """Yield the forms that an engine has, with the type it may compute in, and the model; note one that it lacks."""
    yield FLOAT32, FLOAT32, pair.wide
    if precision.computes in (FLOAT32, *contender.engine.narrow):
        yield precision.name, precision.computes, pair.narrow
    else:
        absent[contender.engine.name] = f"it does not compute float32 models in {precision.title} on a processor"


def _started(contender: Contender, model: ModelOnDisk, condition: Condition, computes: str) -> WorkerProcess:
    """Start a worker. Lite is started twice: its first process compiles kernels, which later ones find in the cache."""
    if contender.engine.name == LITE:
        contender.start(model, condition, precision=computes).close()
    return contender.start(model, condition, precision=computes)


def _output(worker: WorkerProcess) -> Array:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "output.npy"
        worker.save(file)
        output: Array = np.load(file)
        return output


def _figures(turn: Turns, accuracy: tuple[float, float]) -> Figures:
    times = turn.milliseconds
    lower, median, upper = np.percentile(times, [25, 50, 75]).tolist()
    return Figures(
        *(round(float(time), 4) for time in (median, lower, upper, min(times))),
        runs=len(times),
        snr=round(accuracy[0], 1),
        error=float(f"{accuracy[1]:.2e}"),
        memory=turn.worker.peak_memory_bytes,
        computes=turn.worker.computes,
    )
