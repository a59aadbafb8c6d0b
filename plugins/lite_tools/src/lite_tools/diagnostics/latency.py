"""How long a run takes: several sessions in turns, because only times of one and the same while can be compared."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lite_core.errors import InputError
from lite_core.session import Session

__all__ = ["Latency", "measure_latency"]

Array = np.ndarray[Any, Any]

#: A turn of one session. Its first run is not counted: the others have used the caches meanwhile.
_TURN_SECONDS = 0.1
_FEWEST_RUNS = 5


@dataclass
class Latency:
    """What runs of one session took, in seconds.

    Attributes:
        name: the session's, for the reader.
        devices: labels of those that ran nodes of the model.
        load: reading the model and preparing it for the shapes.
        first: the first run.
        runs: each of the others that was counted.
    """

    name: str
    devices: tuple[str, ...]
    load: float
    first: float
    runs: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.runs)

    @property
    def fastest(self) -> float:
        return min(self.runs)

    @property
    def slow(self) -> float:
        """Nine runs of ten took no longer."""
        return sorted(self.runs)[int(0.9 * (len(self.runs) - 1))]

    def as_dict(self) -> dict[str, Any]:
        """For JSON; the runs as their number."""
        return {
            "name": self.name,
            "devices": list(self.devices),
            "load_seconds": self.load,
            "first_seconds": self.first,
            "runs": len(self.runs),
            "median_seconds": self.median,
            "fastest_seconds": self.fastest,
            "p90_seconds": self.slow,
        }


def measure_latency(
    makers: Mapping[str, Callable[[], Session]],
    make_inputs: Callable[[Session], Mapping[str, Array]],
    seconds: float,
) -> list[Latency]:
    """Load a session for each name, and run them in turns.

    Args:
        makers: what loads each session.
        make_inputs: given the first session, makes inputs for the model.
        seconds: how long each session runs, all its turns together; it runs five times at least.

    Raises:
        InputError: there is nothing to measure, or the inputs do not fit the model.
    """
    if not makers or seconds <= 0:
        raise InputError(f"there must be a session and a time to measure: {len(makers)} session(s), {seconds} s")
    sessions: dict[str, Session] = {}
    found: dict[str, Latency] = {}
    inputs: Mapping[str, Array] = {}
    for name, make in makers.items():
        start = time.perf_counter()
        session = sessions[name] = make()
        loading = time.perf_counter() - start
        inputs = inputs or make_inputs(session)
        start = time.perf_counter()
        session.plan({key: array.shape for key, array in inputs.items()})
        planned = time.perf_counter()
        session.run(inputs)
        first = time.perf_counter() - planned
        devices = dict.fromkeys(node.device for node in session.assignment())
        found[name] = Latency(name, tuple(devices), loading + planned - start, first)
    spent = dict.fromkeys(sessions, 0.0)
    waiting = list(sessions)
    while waiting:
        for name in waiting:
            spent[name] += _turn(sessions[name], inputs, found[name].runs)
        waiting = [n for n in waiting if spent[n] < seconds or len(found[n].runs) < _FEWEST_RUNS]
    return list(found.values())


def _turn(session: Session, inputs: Mapping[str, Array], runs: list[float]) -> float:
    """Run for a while, and note each run but the first; the seconds that all of it took."""
    begin = time.perf_counter()
    session.run(inputs)
    end = time.perf_counter()
    while True:
        start = end
        session.run(inputs)
        end = time.perf_counter()
        runs.append(end - start)
        if end - begin > _TURN_SECONDS:
            return end - begin
