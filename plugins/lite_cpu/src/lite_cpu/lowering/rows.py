"""Planning of kernels that work on rows: loops, use of vectors, and division of the work."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from math import prod

from lite_compiler.tensors import dense_strides
from lite_compiler.tracing.numbers import computed, largest, smallest
from lite_core.ir import DType
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
    scratch_bytes: int = 0


def plan_rows(
    lowering: Lowering,
    tensors: Sequence[Tensor],
    axes: Collection[int],
    *,
    vectors: Collection[Vectors] = (Vectors.ALONG, Vectors.ACROSS),
    wide: bool = False,
) -> RowPlan:
    """Plan how a kernel iterates over the rows of tensors.

    Args:
        lowering: the lowering context.
        tensors: tensors of one shape, in the order of the kernel's pointers; the first determines the order of loops. A
            tensor with one element for each row has stride 0 along ``axes``.
        axes: the reduced dimensions, not negative.
        vectors: the directions of vectors that the kernel supports; scalars are always possible.
        wide: the kernel can hold rows in scratch memory (:attr:`RowLayout.wide`), which the plan uses if they fit into
            the caches.
    """
    rank = tensors[0].rank
    kept, kept_strides = collapse([_select_dimensions(t, [a for a in range(rank) if a not in axes]) for t in tensors])
    reduced, reduced_strides = collapse([_select_dimensions(t, sorted(axes)) for t in tensors])
    along, across = [s[-1] for s in reduced_strides], [s[-1] for s in kept_strides]
    direction, vector_strides = Vectors.NONE, along
    if Vectors.ALONG in vectors and reduced[-1] > 1 and along[0] == 1 and _are_units(along):
        direction = Vectors.ALONG
    elif Vectors.ACROSS in vectors and kept[-1] > 1 and across[0] == 1 and _are_units(across):
        direction, vector_strides = Vectors.ACROSS, across
    broadcast = tuple(direction is not Vectors.NONE and s == 0 for s in vector_strides)
    layout = RowLayout(len(kept), len(reduced), direction, tuple(t.dtype for t in tensors), broadcast)
    strides = [n for a, b in zip(kept_strides, reduced_strides) for n in (*a, *b)]
    length = largest(1, prod(reduced))
    across_rows = direction is Vectors.ACROSS
    lanes, threads = layout.lanes(lowering.machine), lowering.options.threads
    block = _row_block(lanes, prod(kept[:-1]), kept[-1], length, threads) if across_rows else 1
    scratch_bytes = 4 * length * block
    if wide and scratch_bytes <= lowering.machine.l2_bytes // 2:
        layout = replace(layout, dtypes=(*layout.dtypes, DType.FLOAT32), spread=(*layout.spread, False), wide=True)
        strides += [*[0] * (len(kept) - 1), int(across_rows), *(block * n for n in dense_strides(reduced))]
    else:
        scratch_bytes = 0
    params = [block, *kept, *reduced, *strides]
    if not across_rows:
        return RowPlan(layout, params, prod(kept), largest(1, _ITEM_ELEMENTS // length), scratch_bytes)
    tasks = prod(kept[:-1]) * -(-kept[-1] // block)
    return RowPlan(
        layout, params, tasks, largest(1, _ITEM_ELEMENTS // (length * smallest(block, kept[-1]))), scratch_bytes
    )


def _are_units(strides: Sequence[int]) -> bool:
    return all(stride in (0, 1) for stride in strides)


@computed
def _row_block(lanes: int, outer: int, rows: int, length: int, threads: int) -> int:
    """Return the neighbouring rows of a work item: enough to amortize scheduling, with items for every thread.

    There are ``outer`` times ``rows`` rows of ``length`` elements, and vectors of ``lanes`` rows.
    """
    block = UNROLL * lanes
    block *= max(1, _ITEM_ELEMENTS // (length * block))
    while threads > 1 and block > lanes and length * block > _ITEM_ELEMENTS // 2:
        if outer * -(-rows // block) >= 2 * threads:
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
