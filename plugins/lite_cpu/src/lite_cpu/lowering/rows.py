"""Placing kernels that work on rows: which loops there are, where the vectors go, how the work is shared."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import prod

from lite_cpu.kernels.rows import UNROLL, RowLayout, Vectors
from lite_cpu.lowering.context import Lowering
from lite_cpu.tensors import Tensor, collapse

__all__ = ["RowPlan", "along_axes", "order_of", "plan_rows"]

#: Elements that a thread should get at least.
_ITEM_ELEMENTS = 8192


@dataclass(frozen=True, slots=True)
class RowPlan:
    """The arguments of :meth:`Lowering.step` for a kernel that works on rows."""

    layout: RowLayout
    params: list[int]
    tasks: int
    grain: int


def plan_rows(
    lowering: Lowering,
    tensors: Sequence[Tensor],
    axes: Collection[int],
    *,
    vectors: Collection[Vectors] = (Vectors.ALONG, Vectors.ACROSS),
) -> RowPlan:
    """How a kernel walks the rows of tensors.

    Args:
        lowering: where the step will go.
        tensors: all of one shape, in the order of the kernel's pointers; the first decides the order of the loops.
            A tensor with one element for each row has stride 0 along ``axes``.
        axes: the reduced dimensions, not negative.
        vectors: which ways of using vectors the kernel has; scalars are always possible.
    """
    rank = tensors[0].rank
    kept, kept_strides = collapse([_only(t, [a for a in range(rank) if a not in axes]) for t in tensors])
    reduced, reduced_strides = collapse([_only(t, sorted(axes)) for t in tensors])
    along, across = [s[-1] for s in reduced_strides], [s[-1] for s in kept_strides]
    where, spread = Vectors.NONE, along
    if Vectors.ALONG in vectors and reduced[-1] > 1 and along[0] == 1 and set(along) <= {0, 1}:
        where = Vectors.ALONG
    elif Vectors.ACROSS in vectors and kept[-1] > 1 and across[0] == 1 and set(across) <= {0, 1}:
        where, spread = Vectors.ACROSS, across
    flags = tuple(where is not Vectors.NONE and s == 0 for s in spread)
    layout = RowLayout(len(kept), len(reduced), where, tuple(t.dtype for t in tensors), flags)
    strides = [n for a, b in zip(kept_strides, reduced_strides) for n in (*a, *b)]
    length = max(1, prod(reduced))
    if where is not Vectors.ACROSS:
        return RowPlan(layout, [1, *kept, *reduced, *strides], prod(kept), max(1, _ITEM_ELEMENTS // length))
    block = _row_block(lowering, layout, kept, length)
    tasks = prod(kept[:-1]) * -(-kept[-1] // block)
    grain = max(1, _ITEM_ELEMENTS // (length * min(block, kept[-1])))
    return RowPlan(layout, [block, *kept, *reduced, *strides], tasks, grain)


def _row_block(lowering: Lowering, layout: RowLayout, kept: Sequence[int], length: int) -> int:
    """Neighbouring rows of a work item: enough to be worth handing out, few enough that every thread gets some."""
    lanes = layout.lanes(lowering.machine)
    block = UNROLL * lanes
    block *= max(1, _ITEM_ELEMENTS // (length * block))
    threads = lowering.options.threads
    while threads > 1 and block > lanes and length * block > _ITEM_ELEMENTS // 2:
        if prod(kept[:-1]) * -(-kept[-1] // block) >= 2 * threads:
            break
        block = max(lanes, block // 2 // lanes * lanes)
    return block


def _only(tensor: Tensor, axes: Sequence[int]) -> Tensor:
    shape, strides = tuple(tensor.shape[a] for a in axes), tuple(tensor.strides[a] for a in axes)
    return tensor.view(shape, strides)


def along_axes(tensor: Tensor, shape: Sequence[int], axes: Collection[int]) -> Tensor:
    """A tensor with size 1 in ``axes`` seen in the shape of what was reduced: stride 0 there."""
    strides = tuple(0 if a in axes else s for a, s in enumerate(tensor.strides))
    return tensor.view(tuple(shape), strides)


def order_of(tensor: Tensor) -> list[int]:
    """The dimensions of a tensor from outermost to innermost in memory."""
    return sorted(range(tensor.rank), key=lambda a: -abs(tensor.strides[a]))
