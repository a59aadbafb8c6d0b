"""Checks of indices and lengths: before the run if they are known, else in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lite_compiler.tracing.numbers import decided, smallest
from lite_core.errors import ExecutionError
from lite_core.ir import Node, Value
from lite_cpu.kernels.bounds import CheckRanges
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.shape import required_input

__all__ = ["check_bounds", "check_indices"]

Array = np.ndarray[Any, Any]


def check_indices(lowering: Lowering, node: Node, sizes: Sequence[int]) -> None:
    """Check indices, where negative ones count from the end; see :func:`check_bounds`.

    Args:
        lowering: the context that steps are emitted into.
        node: the node; its second input has the indices, tuples that address dimensions.
        sizes: the sizes of these dimensions.

    Raises:
        ExecutionError: a known index is out of range.
    """

    def message() -> str:
        dimensions = f"a dimension of {sizes[0]}" if len(sizes) == 1 else f"dimensions of {', '.join(map(str, sizes))}"
        return f"{node.describe()}: index {{}} is out of range for {dimensions}"

    check_bounds(lowering, required_input(node, 1), [(-size, size) for size in sizes], lowering.text(message))


def check_bounds(lowering: Lowering, value: Value, bounds: Sequence[tuple[int, int]], message: str) -> None:
    """Raise an error for a number out of range: now if the numbers are known, else by a step of the program.

    Args:
        lowering: the context that steps are emitted into.
        value: the numbers; tuples in their last dimension unless there is a single range.
        bounds: the lowest number that is allowed at each position of a tuple, and the one after the highest.
        message: the message of the error, with ``{}`` for the number.

    Raises:
        ExecutionError: a known number is out of range.
    """
    array = lowering.known(value)
    if array is None:
        numbers = lowering.dense(lowering.tensor(value))
        fault, number = lowering.fault(message)
        tuples = numbers.size // len(bounds) if bounds else 0
        kernel = CheckRanges(value.dtype, len(bounds))
        params = [tuples, number, *(bound for pair in bounds for bound in pair)]
        lowering.step(kernel, [numbers, fault], params, smallest(tuples, 1))
        return
    invalid = _first_outside(array, tuple(bounds))
    if invalid is not None:
        raise ExecutionError(message.replace("{}", str(invalid)))


@decided
def _first_outside(array: Array, bounds: tuple[tuple[int, int], ...]) -> Any:
    """Return a number that is out of bounds, or None if there is none."""
    columns = array.reshape(-1, max(len(bounds), 1)).T if array.size else ()
    outside = [column[(column < first) | (column >= end)] for (first, end), column in zip(bounds, columns)]
    return next((numbers[0] for numbers in outside if numbers.size), None)
