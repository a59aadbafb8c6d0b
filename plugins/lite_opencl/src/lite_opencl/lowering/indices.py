"""Checks of indices: before the run if they are known, else in it."""

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

__all__ = ["SHORT_ROW", "check_indices", "check_ranges", "line_start", "row_items"]

#: Rows shorter than this are not worth a separate work group.
SHORT_ROW = 32

_LOCAL = (64, 1, 1)


def check_indices(lowering: Lowering, node: Node, value: Value, sizes: Sequence[int]) -> None:
    """Check indices, where negative ones count from the end; see :func:`check_ranges`.

    Args:
        lowering: gets the step of the check.
        node: the node, for the message.
        value: the indices; tuples in their last dimension if there is more than one size.
        sizes: the sizes of the dimensions that they address.

    Raises:
        ExecutionError: an index is known to be out of range.
    """
    if 0 in sizes and prod(value.shape):
        raise ExecutionError(f"{node.describe()}: no index is in range for dimensions of {list(sizes)}")
    check_ranges(lowering, node, value, "index", [range(-size, size) for size in sizes])


def check_ranges(lowering: Lowering, node: Node, value: Value, what: str, ranges: Sequence[range]) -> None:
    """Raise an error for a number out of range: now if the numbers are known, else at the end of the run.

    Args:
        lowering: gets the step of the check.
        node: the node, for the message.
        value: the numbers; tuples in their last dimension if there is more than one range.
        what: the meaning of a number, for the message, such as ``"index"``.
        ranges: the allowed ranges, none of them empty.

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
    lowering.bind(value, indices)  # so that the next reader needs no copy
    limits = upload_table(lowering, np.array([[r.start for r in ranges], [r.stop - 1 for r in ranges]], np.int64))
    kernel = KernelSource("indices", "check_indices", _LOCAL, (("DEPTH", len(ranges)),), types_of(I=indices))
    numbers = map(np.int32, (indices.size, lowering.fault(messages)))
    lowering.step(kernel, [lowering.record, indices, limits, *numbers], (indices.size,))


def line_start(
    name: str, tensor: Tensor, shape: Sequence[int], axis: int, split: int
) -> tuple[list[tuple[str, int | str]], list[np.int32]]:
    """Define ``<name>_INDEX``, the first element of the line along ``axis`` that an index addresses.

    Args:
        name: the prefix of the macros, and in lower case of the parameters.
        tensor: the tensor that the indices address.
        shape: the shape of the indices; in the other dimensions at most as large as the tensor.
        axis: the axis that the indices address.
        split: number of dimensions of the indices that are rows.

    Returns:
        The macros of the kernel, and the arguments for its parameters.
    """
    strides = [0 if a == axis else s for a, s in enumerate(tensor.strides)]
    addressing, arguments = address(tensor.view(shape, strides), split)
    parameters = "".join(f", {p}" for p in addressing.parameters(name.lower()))
    return [(f"{name}_PARAMETERS", parameters), (f"{name}_INDEX", f"({addressing.index(name.lower())})")], arguments


def row_items(rows: int, columns: int) -> tuple[list[tuple[str, int | str]], tuple[int, ...]]:
    """Return the macro FLAT if rows are short, and the numbers of work items."""
    if columns < SHORT_ROW and rows > 1:
        return [("FLAT", 1)], (rows * columns,)
    return [], (columns, rows)
