"""Division of a step into work items that keep all threads busy, by estimates of their time.

Times are in units of a floating-point operation of one thread at full speed.

Threads begin with equal shares of the items, in their order. Steps therefore number their items by rows of the image:
if one step after another is divided by rows, each thread reads what it wrote itself. A cache line that another core has
read takes long to write again: 7 ns on a Zen 4, twelve times as long as one that only this core used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from lite_compiler.tracing.numbers import computed
from lite_cpu.kernels.tiles import gemm_tile
from lite_cpu.machine import Machine

__all__ = [
    "ITEM_TIME",
    "Items",
    "best_division",
    "fractions",
    "gives_own_rows",
    "nearby",
    "parts",
    "time_of_a_weight",
    "time_of_threads",
]

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


@computed
def nearby(length: int) -> int:
    """Return one of sixteen lengths in each octave, the next one: what is best for it is good for ``length``."""
    step = 1 << max(0, length.bit_length() - 5)
    return (length + step // 2) // step * step


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
    """Return the time until the last thread has finished.

    Each begins with its share of the items, in their order, and then takes the first one left of the thread after it.
    """
    total = sum(time * count for time, count in items)
    if threads == 1:
        return total
    if sum(count for _, count in items) > _MANY_ITEMS * threads:
        return total / threads + max(time for time, _ in items) / 2
    times = [time for time, count in items for _ in range(count)]
    share = -(-len(times) // threads)
    shares = [times[start : start + share][::-1] for start in range(0, threads * share, share)]
    busy = [0.0] * threads
    for _ in times:
        thread = busy.index(min(busy))
        left = next(left for left in (*shares[thread:], *shares[:thread]) if left)
        busy[thread] += left.pop()
    return max(busy)


def gives_own_rows(rows: int, rows_of_item: int, threads: int) -> bool:
    """Return True if each thread begins with rows of its own, about as many as the others."""
    items = -(-rows // rows_of_item)
    return items >= threads and -(-items // threads) * rows_of_item * threads <= _NEARLY * rows


def best_division(items_of: Mapping[Division, Items], threads: int, is_better: Callable[[Division], bool]) -> Division:
    """Return the division whose threads finish first.

    Of equally good ones it is one that is better, if there is any, with about four items for each thread, so that a
    thread that was late or interrupted has work to give away.

    Args:
        items_of: the divisions and their work items.
        threads: the number of threads.
        is_better: returns True for a division that has an advantage which the times of its items do not show.
    """
    times = {division: time_of_threads(items, threads) for division, items in items_of.items()}
    enough, wanted = _NEARLY * min(times.values()), _ITEMS_OF_A_THREAD * threads
    good = [division for division, time in times.items() if time <= enough]
    good = [division for division in good if is_better(division)] or good
    return min(good, key=lambda division: abs(sum(count for _, count in items_of[division]) - wanted))
