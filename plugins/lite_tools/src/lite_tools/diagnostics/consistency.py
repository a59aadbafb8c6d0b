"""Does a model give the same answer every time: run after run, session after session, on several threads at once?"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from lite_core.session import Session

__all__ = ["ConsistencyReport", "Difference", "check_consistency"]

Array = np.ndarray[Any, Any]
Outputs = Mapping[str, Array]

_THREADS = 4
_SESSIONS = 3


@dataclass(frozen=True, slots=True)
class Difference:
    """An output that was not what the first run gave.

    Attributes:
        output: its name.
        where: the run: which one, in which session, on which thread.
        elements: how many elements differ.
        largest: the largest difference between numbers; nan where only shapes, nan or infinity differ.
    """

    output: str
    where: str
    elements: int
    largest: float

    def __str__(self) -> str:
        return (
            f"{self.where}: output {self.output!r} differs in {self.elements} element(s), by {self.largest:.3g} at most"
        )


@dataclass(frozen=True, slots=True)
class ConsistencyReport:
    """How many runs were compared bit by bit, and what differed."""

    runs: int
    sessions: int
    threads: int
    differences: tuple[Difference, ...]

    @property
    def ok(self) -> bool:
        """Whether every run gave the same."""
        return not self.differences


def check_consistency(make_session: Callable[[], Session], inputs: Mapping[str, Array], runs: int) -> ConsistencyReport:
    """Run a model again and again on the same inputs, and compare everything with the first run, bit by bit.

    One session runs ``runs`` times, so do two more, and then four threads at once share one of them. What the first run
    gave is compared with a copy at the end, when its session is gone: it must not have changed either.

    Args:
        make_session: makes a new session of the model.
        inputs: array by name.
        runs: how often each session and each thread runs; at least 1.
    """
    session = make_session()
    first = session.run(inputs)
    expected = {name: array.copy() for name, array in first.items()}
    differences: list[Difference] = []
    lock = threading.Lock()

    def compare(outputs: Outputs, where: str) -> None:
        found = [d for name, array in expected.items() if (d := _difference(name, array, outputs[name], where))]
        with lock:
            differences.extend(found)

    for number in range(_SESSIONS):
        session = make_session() if number else session
        for run in range(runs):
            compare(session.run(inputs), f"run {run + 1} of session {number + 1}")

    def repeat(shared: Session, thread: int) -> None:
        for run in range(runs):
            compare(shared.run(inputs), f"run {run + 1} of thread {thread + 1}, {_THREADS} at once")

    with ThreadPoolExecutor(_THREADS) as threads:
        list(threads.map(partial(repeat, session), range(_THREADS)))
    del session
    compare(first, "what the first run gave, looked at after all others")
    return ConsistencyReport(runs * (_SESSIONS + _THREADS), _SESSIONS, _THREADS, tuple(differences))


def _difference(name: str, expected: Array, found: Array, where: str) -> Difference | None:
    if expected.shape != found.shape or expected.dtype != found.dtype:
        return Difference(name, where, max(expected.size, found.size), float("nan"))
    bits = np.dtype(f"u{expected.dtype.itemsize}")
    differs = np.ascontiguousarray(expected).view(bits) != np.ascontiguousarray(found).view(bits)
    count = int(np.count_nonzero(differs))
    if not count:
        return None
    with np.errstate(invalid="ignore"):
        gaps = np.abs(expected[differs].astype(np.float64) - found[differs].astype(np.float64))
    return Difference(name, where, count, float(np.nanmax(gaps)) if not np.isnan(gaps).all() else float("nan"))
