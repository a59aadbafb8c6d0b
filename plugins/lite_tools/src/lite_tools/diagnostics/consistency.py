"""Check that a model's results are identical in repeated runs, in several sessions, and in concurrent threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from lite_core.log import tracked
from lite_core.session import Session

__all__ = ["ConsistencyReport", "Difference", "check_consistency"]

Array = np.ndarray[Any, Any]
Outputs = Mapping[str, Array]

_THREADS = 4
_SESSIONS = 3


@dataclass(frozen=True, slots=True)
class Difference:
    """An output that differs from that of the first run.

    Attributes:
        output: its name.
        where: the run, with its session or thread.
        elements: the number of elements that differ.
        largest: the largest difference between numbers; nan if only shapes, nan or infinity differ.
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
    """The number of runs that were compared bit by bit, and the differences."""

    runs: int
    sessions: int
    threads: int
    differences: tuple[Difference, ...]

    @property
    def ok(self) -> bool:
        """True if all runs had identical results."""
        return not self.differences


def check_consistency(make_session: Callable[[], Session], inputs: Mapping[str, Array], runs: int) -> ConsistencyReport:
    """Run a model repeatedly on the same inputs, and compare all outputs with those of the first run, bit by bit.

    Three sessions run ``runs`` times each, then four threads share one of them. At the end, after the sessions are
    deleted, the arrays of the first run are compared with a copy: they must not have changed.

    Args:
        make_session: creates a session of the model.
        inputs: arrays by name.
        runs: the number of runs of each session and each thread; at least 1.
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
        for run in tracked(range(runs), f"runs of session {number + 1} of {_SESSIONS}"):
            compare(session.run(inputs), f"run {run + 1} of session {number + 1}")

    def repeat(shared: Session, thread: int) -> None:
        for run in range(runs):
            compare(shared.run(inputs), f"run {run + 1} of thread {thread + 1} of {_THREADS}")

    with ThreadPoolExecutor(_THREADS) as threads:
        ending = [threads.submit(repeat, session, number) for number in range(_THREADS)]
        for ended in tracked(ending, "runs in several threads"):
            ended.result()
    del session
    compare(first, "the arrays of the first run, after all other runs")
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
