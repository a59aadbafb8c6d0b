"""Division of a step into work items that keep all threads busy, by estimates of their time.

Times are in units of a floating-point operation of one thread at full speed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from lite_cpu.kernels.tiles import gemm_tile
from lite_cpu.machine import Machine

__all__ = ["ITEM_TIME", "Items", "best_division", "fractions", "parts", "time_of_a_weight", "time_of_threads"]

Division = TypeVar("Division")

#: The time of each kind of work item, and the number of such items.
Items = Sequence[tuple[float, int]]

#: The time that beginning another work item takes.
ITEM_TIME = 10_000.0

#: The most parts that a length is cut into.
_MOST_PARTS = 12

#: The number of work items for each thread that leaves enough to give away.
_ITEMS_OF_A_THREAD = 4

#: With more items for each thread than these, all threads are taken to be busy until the last item.
_MANY_ITEMS = 8

#: The times of two divisions are taken for equal up to this factor.
_NEARLY = 1.03


def fractions(length: int, unit: int) -> list[int]:
    """Return a length and its fractions, each rounded up to a multiple of a unit, the longest first."""
    return list(dict.fromkeys(-(-length // count // unit) * unit for count in range(1, _MOST_PARTS + 1)))


def parts(total: int, part: int) -> list[tuple[int, int]]:
    """Return the lengths of the parts that a length is cut into, and how often each occurs."""
    return [(length, count) for length, count in ((part, total // part), (total % part, 1)) if length and count]


def time_of_a_weight(machine: Machine, time_of_rows: int) -> float:
    """Return the time to read a weight from beyond the caches and to multiply it with rows.

    Args:
        machine: the processor.
        time_of_rows: see :func:`~lite_cpu.kernels.tiles.rows_time`.
    """
    multiply, read = 2 * time_of_rows, machine.tuning.winograd_weight
    # Several register tiles read the next weights while they multiply, a single one does not.
    return max(multiply, read) if time_of_rows > gemm_tile(machine)[0] else multiply + read


def time_of_threads(items: Items, threads: int) -> float:
    """Return the time until the last thread has finished; each takes the next item, in their order, when it is free."""
    total = sum(time * count for time, count in items)
    if threads == 1:
        return total
    if sum(count for _, count in items) > _MANY_ITEMS * threads:
        return total / threads + max(time for time, _ in items) / 2
    busy = [0.0] * threads
    for time, count in items:
        for _ in range(count):
            busy[busy.index(min(busy))] += time
    return max(busy)


def best_division(items_of: Mapping[Division, Items], threads: int) -> Division:
    """Return the division whose threads finish first.

    Of equally good ones it is the one with about four items for each thread, so that a thread that was late or
    interrupted has work to give away.
    """
    times = {division: time_of_threads(items, threads) for division, items in items_of.items()}
    enough, wanted = _NEARLY * min(times.values()), _ITEMS_OF_A_THREAD * threads
    good = [division for division, time in times.items() if time <= enough]
    return min(good, key=lambda division: abs(sum(count for _, count in items_of[division]) - wanted))
