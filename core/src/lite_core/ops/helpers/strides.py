"""Strides in elements, of dense and of broadcast operands, and the fewest loops that walk operands together."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["broadcast_strides", "dense_strides", "merge_loops"]


def dense_strides(shape: Sequence[int], order: Sequence[int] | None = None) -> tuple[int, ...]:
    """Return the strides of a dense tensor; ``order`` lists its dimensions from outermost to innermost in memory."""
    strides = [0] * len(shape)
    step = 1
    for axis in reversed(range(len(shape)) if order is None else order):
        strides[axis] = step
        step *= shape[axis]
    return tuple(strides)


def broadcast_strides(
    shape: Sequence[int], result: Sequence[int], strides: Sequence[int] | None = None
) -> tuple[int, ...]:
    """Return the strides with which an operand is read for each element of a result that it is broadcast to.

    Args:
        shape: the operand's shape; it broadcasts to ``result`` by NumPy's rule.
        result: the shape of the result.
        strides: the operand's own strides; by default it is dense.

    Returns:
        One stride for each dimension of the result, 0 where the operand is repeated.
    """
    own = dense_strides(shape) if strides is None else strides
    lead = len(result) - len(shape)
    repeated = [0 if n == 1 and m != 1 else s for n, s, m in zip(shape, own, result[lead:])]
    return (*[0] * lead, *repeated)


def merge_loops(
    shape: Sequence[int], strides: Sequence[Sequence[int]], order: Sequence[int] | None = None
) -> tuple[list[int], list[list[int]]]:
    """Return the fewest nested loops that walk several operands together, innermost last.

    Args:
        shape: the sizes that all operands are walked over.
        strides: for each operand its stride in each dimension, see :func:`broadcast_strides`.
        order: the dimensions from outermost to innermost; their natural order if None.

    Returns:
        The size of each loop, and for each operand its stride in each loop. Neighbouring dimensions are one loop if
        every operand can walk them with one stride. There is at least one loop.
    """
    sizes: list[int] = []
    merged: list[list[int]] = [[] for _ in strides]
    for axis in range(len(shape)) if order is None else order:
        count = shape[axis]
        if count == 1:
            continue
        if sizes and all(one[-1] == count * old[axis] for one, old in zip(merged, strides)):
            sizes[-1] *= count
            for one, old in zip(merged, strides):
                one[-1] = old[axis]
        else:
            sizes.append(count)
            for one, old in zip(merged, strides):
                one.append(old[axis])
    if not sizes:
        return [1], [[1 if i == 0 else 0] for i in range(len(strides))]
    return sizes, merged
