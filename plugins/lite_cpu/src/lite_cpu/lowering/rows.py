"""Planning of kernels that work on rows: loops, use of vectors, and division of the work."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import prod

from lite_cpu.kernels.rows import UNROLL, RowLayout, Vectors
from lite_cpu.lowering.context import Lowering
from lite_cpu.tensors import Tensor, collapse

__all__ = ["RowPlan", "along_axes", "plan_rows"]

#: Minimum number of elements of a work item.
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
    """Plan how a kernel iterates over the rows of tensors.

    Args:
        lowering: the lowering context.
        tensors: tensors of one shape, in the order of the kernel's pointers; the first determines the order of loops. A
            tensor with one element for each row has stride 0 along ``axes``.
        axes: the reduced dimensions, not negative.
        vectors: the directions of vectors that the kernel supports; scalars are always possible.
    """
    rank = tensors[0].rank
    kept, kept_strides = collapse([_select_dimensions(t, [a for a in range(rank) if a not in axes]) for t in tensors])
    reduced, reduced_strides = collapse([_select_dimensions(t, sorted(axes)) for t in tensors])
    along, across = [s[-1] for s in reduced_strides], [s[-1] for s in kept_strides]
    direction, vector_strides = Vectors.NONE, along
    if Vectors.ALONG in vectors and reduced[-1] > 1 and along[0] == 1 and set(along) <= {0, 1}:
        direction = Vectors.ALONG
    elif Vectors.ACROSS in vectors and kept[-1] > 1 and across[0] == 1 and set(across) <= {0, 1}:
        direction, vector_strides = Vectors.ACROSS, across
    broadcast = tuple(direction is not Vectors.NONE and s == 0 for s in vector_strides)
    layout = RowLayout(len(kept), len(reduced), direction, tuple(t.dtype for t in tensors), broadcast)
    strides = [n for a, b in zip(kept_strides, reduced_strides) for n in (*a, *b)]
    length = max(1, prod(reduced))
    if direction is not Vectors.ACROSS:
        return RowPlan(layout, [1, *kept, *reduced, *strides], prod(kept), max(1, _ITEM_ELEMENTS // length))
    block = _row_block(lowering, layout, kept, length)
    tasks = prod(kept[:-1]) * -(-kept[-1] // block)
    grain = max(1, _ITEM_ELEMENTS // (length * min(block, kept[-1])))
    return RowPlan(layout, [block, *kept, *reduced, *strides], tasks, grain)


def _row_block(lowering: Lowering, layout: RowLayout, kept: Sequence[int], length: int) -> int:
    """Return the neighbouring rows of a work item: enough to amortize scheduling, with items for every thread."""
    lanes = layout.lanes(lowering.machine)
    block = UNROLL * lanes
    block *= max(1, _ITEM_ELEMENTS // (length * block))
    threads = lowering.options.threads
    while threads > 1 and block > lanes and length * block > _ITEM_ELEMENTS // 2:
        if prod(kept[:-1]) * -(-kept[-1] // block) >= 2 * threads:
            break
        block = max(lanes, block // 2 // lanes * lanes)
    return block


def _select_dimensions(tensor: Tensor, axes: Sequence[int]) -> Tensor:
    shape, strides = tuple(tensor.shape[a] for a in axes), tuple(tensor.strides[a] for a in axes)
    return tensor.view(shape, strides)


def along_axes(tensor: Tensor, shape: Sequence[int], axes: Collection[int]) -> Tensor:
    """Return a reduced tensor, of size 1 along ``axes``, as a view of ``shape`` with stride 0 there."""
    strides = tuple(0 if a in axes else s for a, s in enumerate(tensor.strides))
    return tensor.view(tuple(shape), strides)
