"""Latency of runs. Several sessions are interleaved, so that load on the machine affects all of them alike."""

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

#: The duration of a turn of one session. Its first run is not counted: other sessions have changed the caches.
_TURN_SECONDS = 0.1
_MIN_RUNS = 5


@dataclass
class Latency:
    """The times of one session, in seconds.

    Attributes:
        name: the session's name for the user.
        devices: the labels of the devices that ran nodes of the model.
        load: the time to read the model and prepare it for the shapes.
        first: the time of the first run.
        runs: the times of all other runs that count.
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
    def p90(self) -> float:
        """The 90th percentile."""
        return sorted(self.runs)[int(0.9 * (len(self.runs) - 1))]

    def as_dict(self) -> dict[str, Any]:
        """Convert the times to plain data, with the number of runs instead of single times."""
        return {
            "name": self.name,
            "devices": list(self.devices),
            "load_seconds": self.load,
            "first_seconds": self.first,
            "runs": len(self.runs),
            "median_seconds": self.median,
            "fastest_seconds": self.fastest,
            "p90_seconds": self.p90,
        }


def measure_latency(
    makers: Mapping[str, Callable[[], Session]],
    make_inputs: Callable[[Session], Mapping[str, Array]],
    seconds: float,
) -> list[Latency]:
    """Load a session for each name, and run them in turns.

    Args:
        makers: a function for each name that loads the session.
        make_inputs: creates inputs for the model from the first session.
        seconds: the total run time of each session; each runs at least five times.

    Raises:
        InputError: there are no sessions or no time, or the inputs do not fit the model.
    """
    if not makers or seconds <= 0:
        raise InputError(f"nothing to measure: {len(makers)} session(s), {seconds} s")
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
    pending = list(sessions)
    while pending:
        for name in pending:
            spent[name] += _turn(sessions[name], inputs, found[name].runs)
        pending = [n for n in pending if spent[n] < seconds or len(found[n].runs) < _MIN_RUNS]
    return list(found.values())


def _turn(session: Session, inputs: Mapping[str, Array], runs: list[float]) -> float:
    """Run for the duration of a turn, record each run but the first, and return the total seconds."""
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
