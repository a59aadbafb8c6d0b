"""Results whose every element is one of the source's, axis by axis, or a filler."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from lite_opencl.chains import Chain
from lite_opencl.lowering.chaining import Epilogue
from lite_opencl.lowering.context import Lowering
from lite_opencl.lowering.tables import upload_table
from lite_opencl.programs.kernel_source import KernelSource
from lite_opencl.tensors import Tensor, types_of

__all__ = ["OUTSIDE", "pick"]

Array = np.ndarray[Any, Any]

#: In a table: there is no such element. Also in ``axis_gather.cl``.
OUTSIDE = -(2**31)

_LOCAL = (64, 1, 1)
#: Rows shorter than this are not worth a work group of their own.
_SHORT_ROW = 32


def pick(
    lowering: Lowering,
    source: Tensor,
    destination: Tensor,
    indices: Sequence[Array],
    filler: Tensor,
    epilogue: Callable[[int], Epilogue] | None = None,
) -> None:
    """``destination[i, j, ...] = source[indices[0][i], indices[1][j], ...]``.

    Args:
        lowering: gets the step.
        source: may be strided.
        destination: dense.
        indices: for each axis of the destination the index in the source, or :data:`OUTSIDE`: int64.
        filler: one element, which stands where an index is outside.
        epilogue: what is done to each element before it is stored, for a number of dimensions that are rows.
    """
    if destination.size == 0:
        return
    split = _split(destination.shape)
    places = [np.where(i == OUTSIDE, OUTSIDE, i * s) for i, s in zip(indices, source.strides)]
    row_table, column_table = _joined(places[:split]), _joined(places[split:])
    rows, columns = row_table.size, column_table.size
    is_flat = columns < _SHORT_ROW and rows > 1
    all_inside = not any((table == OUTSIDE).any() for table in (row_table, column_table))
    bound = Epilogue(Chain(source.dtype), []) if epilogue is None else epilogue(split)
    kernel = KernelSource(
        "axis_gather",
        "pick",
        _LOCAL,
        tuple((name, 1) for name, is_so in (("FLAT", is_flat), ("ALL_INSIDE", all_inside)) if is_so),
        types_of(X=source, F=filler, Y=destination),
        bound.chain,
    )
    tables = [upload_table(lowering, table) for table in (row_table, column_table)]
    lowering.step(
        kernel,
        [destination, source, filler, *tables, np.int32(rows), np.int32(columns), *bound.arguments],
        (rows * columns,) if is_flat else (columns, rows),
        flops=bound.chain.cost * destination.size,
    )


def _split(shape: Sequence[int]) -> int:
    """How many dimensions are rows: the tables are then smallest, and columns enough for a work group, if they can."""

    def cost(split: int) -> tuple[bool, int]:
        rows, columns = prod(shape[:split]), prod(shape[split:])
        return columns < 2 * _LOCAL[0], rows + columns

    return min(range(len(shape) + 1), key=cost)


def _joined(places: Sequence[Array]) -> Array:
    """The table of some dimensions together: int32, sums of the entries of each."""
    total = np.zeros(1, np.int64)
    for place in places:
        sums = total[:, np.newaxis] + place
        outside = (total == OUTSIDE)[:, np.newaxis] | (place == OUTSIDE)
        total = np.where(outside, OUTSIDE, sums).reshape(-1)
    return total.astype(np.int32)
