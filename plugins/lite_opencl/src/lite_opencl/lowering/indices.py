"""Indices that are data: checked before the run where they are known, else in it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from lite_core.errors import ExecutionError
from lite_core.ir import Node, Value
from lite_opencl.addressing import address
from lite_opencl.lowering.context import Lowering
from lite_opencl.lowering.tables import upload_table
from lite_opencl.programs.kernel_source import KernelSource
from lite_opencl.tensors import Tensor, types_of

__all__ = ["SHORT_ROW", "at_index_zero", "check_indices", "check_ranges", "row_items"]

#: Rows shorter than this are not worth a work group of their own.
SHORT_ROW = 32

_LOCAL = (64, 1, 1)


def check_indices(lowering: Lowering, node: Node, value: Value, sizes: Sequence[int]) -> None:
    """As :func:`check_ranges`, of indices that count from the end where they are negative.

    Args:
        lowering: where they are checked.
        node: for the message.
        value: the indices; tuples in their last dimension where there is more than one size.
        sizes: of the dimensions that they address.

    Raises:
        ExecutionError: an index is known to be out of range.
    """
    if 0 in sizes and prod(value.shape):
        raise ExecutionError(f"{node.describe()}: no index is in range for dimensions of {list(sizes)}")
    check_ranges(lowering, node, value, "index", [range(-size, size) for size in sizes])


def check_ranges(lowering: Lowering, node: Node, value: Value, what: str, ranges: Sequence[range]) -> None:
    """Have a number out of range raise an error: now where it is known, else at the end of the run.

    Args:
        lowering: gets the step that looks for one.
        node: for the message.
        value: the numbers; tuples in their last dimension where there is more than one range.
        what: a number is.
        ranges: that they are to be in, each not empty.

    Raises:
        ExecutionError: a number is known to be out of range.
    """
    if not ranges or not prod(value.shape):
        return
    messages = [
        f"{node.describe()}: {what} {{}} is out of range, it must be from {r.start} to {r.stop - 1}" for r in ranges
    ]
    array = lowering.known(value)
    if array is not None:
        for allowed, message, column in zip(ranges, messages, array.reshape(-1, len(ranges)).T):
            wrong = column[(column < allowed.start) | (column >= allowed.stop)]
            if wrong.size:
                raise ExecutionError(message.replace("{}", str(wrong[0])))
        return
    indices = lowering.dense(lowering.tensor(value))
    lowering.bind(value, indices)  # who reads them next needs no copy of its own
    limits = upload_table(lowering, np.array([[r.start for r in ranges], [r.stop - 1 for r in ranges]], np.int64))
    kernel = KernelSource("indices", "check_indices", _LOCAL, (("DEPTH", len(ranges)),), types_of(I=indices))
    numbers = map(np.int32, (indices.size, lowering.fault(messages)))
    lowering.step(kernel, [lowering.record, indices, limits, *numbers], (indices.size,))


def at_index_zero(
    name: str, tensor: Tensor, shape: Sequence[int], axis: int, split: int
) -> tuple[list[tuple[str, int | str]], list[np.int32]]:
    """Where the elements beside an index lie that is 0: macros of a kernel, and arguments for its parameters.

    Args:
        name: what the macros begin with, and in lower case the parameters.
        tensor: which the indices address along ``axis``.
        shape: of the indices; beside ``axis`` at most as large as the tensor.
        axis: which the indices replace.
        split: how many dimensions of the indices are rows.
    """
    strides = [0 if a == axis else s for a, s in enumerate(tensor.strides)]
    addressing, arguments = address(tensor.view(shape, strides), split)
    parameters = "".join(f", {p}" for p in addressing.parameters(name.lower()))
    return [(f"{name}_PARAMETERS", parameters), (f"{name}_INDEX", f"({addressing.index(name.lower())})")], arguments


def row_items(rows: int, columns: int) -> tuple[list[tuple[str, int | str]], tuple[int, ...]]:
    """How work items count elements: the macro FLAT where rows are short, and their numbers."""
    if columns < SHORT_ROW and rows > 1:
        return [("FLAT", 1)], (rows * columns,)
    return [], (columns, rows)
