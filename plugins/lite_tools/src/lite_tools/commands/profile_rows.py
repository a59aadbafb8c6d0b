"""Rows of a profile that add up: the operators of each partition with the time that no kernel accounts for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from lite_core.schedule.profile import KernelRecord
from lite_core.session import RunProfile

__all__ = ["UNACCOUNTED", "OperatorRow", "operator_rows", "unaccounted_seconds"]

#: The row of a partition's time outside of its kernels: launching them, waiting for them, and clocks that differ.
UNACCOUNTED = "unaccounted"


class OperatorRow(NamedTuple):
    """The time of one operator, or group of fused operators, in one partition.

    Attributes:
        partition: the partition.
        op: the operators, or :data:`UNACCOUNTED`.
        kernels: number of kernels; 0 in the row of the unaccounted time.
        seconds: their time together. The rows of a partition add up to its time.
        share: that time as a share of the partition's time; 0 if that is 0.
    """

    partition: str
    op: str
    kernels: int
    seconds: float
    share: float


def operator_rows(profile: RunProfile) -> list[OperatorRow]:
    """Return the rows of every partition, longest first, the unaccounted time last.

    A partition whose backend does not measure kernels has only the row of the unaccounted time. That time is negative
    if the kernels were measured by another clock, which gave them more time than the partition took.
    """
    kernels: dict[str, list[KernelRecord]] = {}
    for kernel in profile.kernels:
        kernels.setdefault(kernel.partition, []).append(kernel)
    return [row for p in profile.partitions for row in _rows_of(p.partition, p.seconds, kernels.get(p.partition, []))]


def unaccounted_seconds(profile: RunProfile) -> float:
    """Return the time of the run outside of partitions and copies: checking arguments, and preparing memory."""
    return profile.seconds - profile.accounted_seconds()


def _rows_of(partition: str, whole: float, kernels: Iterable[KernelRecord]) -> Iterator[OperatorRow]:
    totals: dict[str, tuple[int, float]] = {}
    for kernel in kernels:
        count, seconds = totals.get(kernel.op, (0, 0.0))
        totals[kernel.op] = (count + 1, seconds + kernel.seconds)
    rest = whole - sum(seconds for _, seconds in totals.values())
    for op, (count, seconds) in sorted(totals.items(), key=lambda item: -item[1][1]):
        yield OperatorRow(partition, op, count, seconds, _share(seconds, whole))
    yield OperatorRow(partition, UNACCOUNTED, 0, rest, _share(rest, whole))


def _share(seconds: float, whole: float) -> float:
    return seconds / whole if whole else 0.0
