"""Rows that were read: a record batch of a table, or arrays by name; and their division into batches of one size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["Array", "Rows", "batches", "count", "sliced"]

Array = np.ndarray[Any, Any]
#: A ``pyarrow.RecordBatch``, or arrays [rows, ...] by name.
Rows = Any


def count(rows: Rows) -> int:
    """Return the number of rows."""
    if isinstance(rows, pa.RecordBatch):
        return int(rows.num_rows)
    return len(next(iter(rows.values()))) if rows else 0


def sliced(rows: Rows, start: int, stop: int) -> Rows:
    """Return rows, without copying them."""
    if isinstance(rows, pa.RecordBatch):
        return rows.slice(start, stop - start)
    return {name: array[start:stop] for name, array in rows.items()}


def batches(pieces: Iterable[Rows], size: int) -> Iterator[Rows]:
    """Divide rows into batches of one size; only the last one may be smaller. Empty pieces are left out.

    Args:
        pieces: the rows in pieces of any size.
        size: the rows of a batch.
    """
    waiting: list[Rows] = []
    missing = size
    for piece in pieces:
        total, start = count(piece), 0
        while start < total:
            stop = min(total, start + missing)
            waiting.append(sliced(piece, start, stop))
            missing -= stop - start
            start = stop
            if missing == 0:
                yield _joined(waiting)
                waiting, missing = [], size
    if waiting:
        yield _joined(waiting)


def _joined(pieces: list[Rows]) -> Rows:
    if len(pieces) == 1:
        return pieces[0]
    if isinstance(pieces[0], pa.RecordBatch):
        (joined,) = pa.Table.from_batches(pieces).combine_chunks().to_batches()
        return joined
    return {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
