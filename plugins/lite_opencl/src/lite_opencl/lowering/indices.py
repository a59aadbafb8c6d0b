"""Indices that are data: checked where they are known before the run."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from lite_core.errors import ExecutionError
from lite_core.ir import Node, Value
from lite_opencl.addressing import address
from lite_opencl.lowering.context import Lowering
from lite_opencl.tensors import Tensor

__all__ = ["SHORT_ROW", "at_index_zero", "check_indices", "row_items"]

#: Rows shorter than this are not worth a work group of their own.
SHORT_ROW = 32


def check_indices(lowering: Lowering, node: Node, value: Value, sizes: Sequence[int]) -> None:
    """Raise for an index that is known to be out of range.

    Args:
        lowering: knows constants.
        node: for the message.
        value: the indices; tuples in their last dimension where there is more than one size.
        sizes: of the dimensions that they address.

    Raises:
        ExecutionError: an index is out of range.
    """
    array = lowering.known(value)
    if 0 in sizes and prod(value.shape):
        raise ExecutionError(f"{node.describe()}: no index is in range for dimensions of {list(sizes)}")
    if array is None or not array.size or not sizes:
        return
    for size, column in zip(sizes, array.reshape(-1, len(sizes)).T):
        wrong = column[(column < -size) | (column >= size)]
        if wrong.size:
            raise ExecutionError(f"{node.describe()}: index {wrong[0]} is out of range for a dimension of {size}")


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
