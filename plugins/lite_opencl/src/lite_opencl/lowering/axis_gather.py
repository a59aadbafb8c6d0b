"""Gathering along all axes at once: each element of the result is an element of the source, or a fill value."""

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

__all__ = ["OUTSIDE", "gather_axes"]

Array = np.ndarray[Any, Any]

#: An index of a table that stands for the fill value; the same number as in ``axis_gather.cl``.
OUTSIDE = -(2**31)

_LOCAL = (64, 1, 1)
#: Rows shorter than this are not worth a separate work group.
_SHORT_ROW = 32


def gather_axes(
    lowering: Lowering,
    source: Tensor,
    destination: Tensor,
    indices: Sequence[Array],
    fill_value: Tensor,
    epilogue: Callable[[int], Epilogue] | None = None,
) -> None:
    """Emit ``destination[i, j, ...] = source[indices[0][i], indices[1][j], ...]``.

    Args:
        lowering: gets the step.
        source: the source, which may be strided.
        destination: the dense result.
        indices: for each axis of the destination the indices in the source, or :data:`OUTSIDE`, as int64.
        fill_value: one element, stored where an index is :data:`OUTSIDE`.
        epilogue: returns the epilogue for a number of dimensions that are rows.
    """
    if destination.size == 0:
        return
    split = _split(destination.shape)
    offsets = [np.where(i == OUTSIDE, OUTSIDE, i * s) for i, s in zip(indices, source.strides)]
    row_table, column_table = _combined_table(offsets[:split]), _combined_table(offsets[split:])
    rows, columns = row_table.size, column_table.size
    is_flat = columns < _SHORT_ROW and rows > 1
    all_inside = not any((table == OUTSIDE).any() for table in (row_table, column_table))
    bound = Epilogue(Chain(source.dtype), []) if epilogue is None else epilogue(split)
    kernel = KernelSource(
        "axis_gather",
        "gather_axes",
        _LOCAL,
        tuple((name, 1) for name, is_set in (("FLAT", is_flat), ("ALL_INSIDE", all_inside)) if is_set),
        types_of(X=source, F=fill_value, Y=destination),
        bound.chain,
    )
    tables = [upload_table(lowering, table) for table in (row_table, column_table)]
    lowering.step(
        kernel,
        [destination, source, fill_value, *tables, np.int32(rows), np.int32(columns), *bound.arguments],
        (rows * columns,) if is_flat else (columns, rows),
        flops=bound.chain.cost * destination.size,
    )


def _split(shape: Sequence[int]) -> int:
    """Return the number of leading dimensions to count as rows, for small tables and, if possible, enough columns."""

    def cost(split: int) -> tuple[bool, int]:
        rows, columns = prod(shape[:split]), prod(shape[split:])
        return columns < 2 * _LOCAL[0], rows + columns

    return min(range(len(shape) + 1), key=cost)


def _combined_table(offsets: Sequence[Array]) -> Array:
    """Combine the offsets along several dimensions in one int32 table of their sums."""
    total = np.zeros(1, np.int64)
    for along_axis in offsets:
        sums = total[:, np.newaxis] + along_axis
        outside = (total == OUTSIDE)[:, np.newaxis] | (along_axis == OUTSIDE)
        total = np.where(outside, OUTSIDE, sums).reshape(-1)
    return total.astype(np.int32)
