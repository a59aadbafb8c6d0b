"""Calibration: statistics of activations while the float32 model runs on samples; no activation is kept."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from lite_core.errors import InputError
from lite_core.ir import Graph
from lite_core.observing import Observed
from lite_core.session import Session
from lite_tools.comparing.values import Key, ValueObserver
from lite_tools.quantization.histograms import Extremes
from lite_tools.quantization.ranges import statistics_for

__all__ = ["calibrate"]

Array = np.ndarray[Any, Any]


def calibrate(
    graph: Graph,
    names: Collection[str],
    samples: Sequence[Mapping[str, Array]],
    method: str,
    load: Callable[[Graph], Session],
    progress: Callable[[str], None],
) -> dict[str, Extremes]:
    """Run a graph on samples, and return the statistics of values.

    The values are read while the runs compute them. Values that exist only inside kernels become outputs of the graph,
    so that they are in memory.

    Args:
        graph: the graph.
        names: the names of the values: inputs, or results of nodes that are not in sub-graphs.
        samples: inputs by name, one mapping for each sample.
        method: one of :data:`lite_tools.quantization.ranges.METHODS`, which decides what is counted.
        load: makes a session that runs a graph.
        progress: called with a line before each sample.

    Raises:
        InputError: a value has NaN or infinite elements.
    """
    statistics = {name: statistics_for(method) for name in names}
    inputs = {value.name for value in graph.inputs}
    session = _showing(graph, names, samples[0], load)
    for number, sample in enumerate(samples):
        progress(f"calibrating: sample {number + 1} of {len(samples)}")

        def receive(key: Key, results: Observed) -> None:
            if key.value in statistics:
                statistics[key.value].add(results.read(key.value))

        for name in inputs & statistics.keys():
            statistics[name].add(np.asarray(sample[name]))
        _run(session, sample, receive)
        for name, found in statistics.items():
            if found.not_finite:
                raise InputError(
                    f"calibration: value {name!r} has {found.not_finite} NaN or infinite elements for sample "
                    f"{number + 1}; check how the samples are prepared, or leave it out with keep_float (--keep-float)"
                )
    return statistics


def _showing(
    graph: Graph, names: Collection[str], sample: Mapping[str, Array], load: Callable[[Graph], Session]
) -> Session:
    """Return a session of a graph in whose runs all of the values can be observed."""
    wanted = {*names} - {value.name for value in graph.inputs}
    shown: set[str] = set()
    while True:
        copy = graph.copy()
        present = {value.name for value in copy.outputs}
        copy.outputs += [v for v in copy.defined() if v.name in shown - present]
        session = load(copy)
        missing = wanted - shown - _observable(session, sample)
        if not missing:
            return session
        shown |= missing


def _observable(session: Session, sample: Mapping[str, Array]) -> set[str]:
    seen: set[str] = set()
    _run(session, sample, lambda key, results: seen.add(key.value))
    return seen


def _run(session: Session, sample: Mapping[str, Array], receive: Callable[[Key, Observed], None]) -> None:
    arrays = [np.asarray(sample[value.name], value.dtype.numpy, order="C") for value in session.graph.inputs]
    plan = session.plan({value.name: array.shape for value, array in zip(session.graph.inputs, arrays)})
    plan.run(arrays, observer=ValueObserver(receive))
