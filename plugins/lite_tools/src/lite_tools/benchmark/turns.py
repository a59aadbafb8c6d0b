"""Turns of a session: runs one after another, or in several threads at once, each of which is timed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import NamedTuple

__all__ = ["Load", "run_concurrently", "run_in_turn"]

Run = Callable[[], object]


class Load(NamedTuple):
    """A turn of several threads.

    Attributes:
        latencies: the seconds of each run, thread by thread.
        rate: runs per second: the sum of the threads' rates, each from the common start to the thread's last run.
    """

    latencies: list[float]
    rate: float


def run_in_turn(run: Run, seconds: float, most: int, warm: bool) -> list[float]:
    """Run for the duration of a turn, and return the seconds of each run that counts.

    Args:
        run: one run.
        seconds: the duration; at least one run is counted.
        most: the largest number of runs that count.
        warm: do not count the first run: the sessions that had their turns in between have changed the processor's
            caches.
    """
    latencies: list[float] = []
    begin = time.perf_counter()
    if warm:
        run()
    end = time.perf_counter()
    while True:
        start = end
        run()
        end = time.perf_counter()
        latencies.append(end - start)
        if end - begin > seconds or len(latencies) >= most:
            return latencies


def run_concurrently(run: Run, concurrent: int, seconds: float, most: int, warm: bool) -> Load:
    """Run in several threads for the duration of a turn.

    Args:
        run: one run.
        concurrent: the number of threads.
        seconds: the duration; at least one run of each thread is counted.
        most: the largest number of runs of a thread that count.
        warm: do not count the first run of each thread.

    Raises:
        Exception: what a run raised, in the first thread that failed.
    """
    barrier = threading.Barrier(concurrent)
    found: list[list[float]] = [[] for _ in range(concurrent)]
    rates = [0.0] * concurrent
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            if warm:
                run()
            barrier.wait()
            begin = end = time.perf_counter()
            while not found[number] or (end - begin < seconds and len(found[number]) < most):
                start = end
                run()
                end = time.perf_counter()
                found[number].append(end - start)
            rates[number] = len(found[number]) / (end - begin)
        except threading.BrokenBarrierError:
            pass
        except BaseException as error:
            failures.append(error)
            barrier.abort()

    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(concurrent)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return Load([seconds for latencies in found for seconds in latencies], sum(rates))
