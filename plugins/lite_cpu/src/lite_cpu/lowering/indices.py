"""Checks of indices and lengths: before the run if they are known, else in it."""

from __future__ import annotations

from collections.abc import Sequence

from lite_core.errors import ExecutionError
from lite_core.ir import Node, Value
from lite_cpu.kernels.bounds import CheckRanges
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.shape import required_input

__all__ = ["check_indices", "check_ranges"]


def check_indices(lowering: Lowering, node: Node, sizes: Sequence[int]) -> None:
    """Check indices, where negative ones count from the end; see :func:`check_ranges`.

    Args:
        lowering: the context that steps are emitted into.
        node: the node; its second input has the indices, tuples that address dimensions.
        sizes: the sizes of these dimensions.

    Raises:
        ExecutionError: a known index is out of range.
    """
    dimensions = f"a dimension of {sizes[0]}" if len(sizes) == 1 else f"dimensions of {', '.join(map(str, sizes))}"
    message = f"{node.describe()}: index {{}} is out of range for {dimensions}"
    check_ranges(lowering, required_input(node, 1), [range(-size, size) for size in sizes], message)


def check_ranges(lowering: Lowering, value: Value, ranges: Sequence[range], message: str) -> None:
    """Raise an error for a number out of range: now if the numbers are known, else by a step of the program.

    Args:
        lowering: the context that steps are emitted into.
        value: the numbers; tuples in their last dimension unless there is a single range.
        ranges: the allowed range of each number of a tuple.
        message: the message of the error, with ``{}`` for the number.

    Raises:
        ExecutionError: a known number is out of range.
    """
    array = lowering.known(value)
    if array is None:
        numbers = lowering.dense(lowering.tensor(value))
        fault, number = lowering.fault(message)
        tuples = numbers.size // len(ranges) if ranges else 0
        bounds = [bound for allowed in ranges for bound in (allowed.start, allowed.stop)]
        kernel = CheckRanges(value.dtype, len(ranges))
        lowering.step(kernel, [numbers, fault], [tuples, number, *bounds], min(tuples, 1))
    elif array.size:
        for allowed, column in zip(ranges, array.reshape(-1, max(len(ranges), 1)).T):
            invalid = column[(column < allowed.start) | (column >= allowed.stop)]
            if invalid.size:
                raise ExecutionError(message.replace("{}", str(invalid[0])))
