"""Placing matrix products: how the dimensions of tensors become the batches, groups and rows of the Gemm kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from lite_compiler.tensors import dense_strides
from lite_cpu.chains import Chain
from lite_cpu.kernels.dot import Dot
from lite_cpu.kernels.gemm import Gemm, GemmShape
from lite_cpu.lowering.context import Lowering
from lite_cpu.tensors import Tensor, collapse

__all__ = ["Panels", "Tail", "emit_product", "insert_axis", "rows_contiguous"]

#: Floating-point operations that one work item should have at least.
_ITEM_FLOPS = 50_000


@dataclass(frozen=True, slots=True)
class Panels:
    """Packed matrices [depth, columns], one for each index of ``batch``, whose strides count elements of panels.

    A matrix of one column is not packed: its elements follow each other.
    """

    packed: Tensor
    batch: Tensor
    depth: int
    columns: int

    @staticmethod
    def of(packed: Tensor, batch_shape: Sequence[int], depth: int, columns: int) -> Panels:
        """``packed`` is [batches, n], the batches in the order of ``batch_shape``."""
        strides = tuple(packed.shape[1] * s for s in dense_strides(batch_shape))
        return Panels(packed, packed.view(tuple(batch_shape), strides), depth, columns)


@dataclass(frozen=True, slots=True)
class Tail:
    """What happens to elements of a product before they are stored; operands have the shape of the result."""

    chain: Chain
    operands: tuple[Tensor, ...] = ()


@dataclass(frozen=True, slots=True)
class _Loop:
    """Dimensions that all tensors walk at one distance: C, A, B's panels, then the operands."""

    size: int
    strides: tuple[int, ...]


_ONCE = _Loop(1, (0,) * 64)
_C, _A, _B = range(3)


def emit_product(
    lowering: Lowering, a: Tensor, b: Panels, bias: Tensor, c: Tensor, tail: Tail, *, label: str = ""
) -> None:
    """``C = tail(bias + A * B)`` over any number of batch dimensions.

    Args:
        lowering: where the steps go.
        a: [*batch, rows, depth], neighbours along the depth (see :func:`rows_contiguous`).
        b: its batch broadcasts to that of ``c``.
        bias: [columns].
        c: [*batch, rows, columns], neighbours along the columns.
        tail: applied to every element.
        label: name of the steps in profiles.
    """
    if c.size == 0:
        return
    batch = c.shape[:-2]
    panels = insert_axis(b.batch.expand(batch), len(batch)).expand(c.shape[:-1])
    tensors = [c, a.expand((*batch, *a.shape[-2:])), panels, *tail.operands]
    sizes, strides = collapse([t if t is panels else _without_last(t) for t in tensors])
    loops = [_Loop(n, tuple(s[i] for s in strides)) for i, n in enumerate(sizes)]
    # The same B for all: rows of one product. Another B for each: a batch.
    shared = sorted((n for n in loops if n.strides[_B] == 0), key=_size, reverse=True)
    batched = sorted((n for n in loops if n.strides[_B] != 0), key=_size, reverse=True)
    rows, groups = [*shared[:2], _ONCE, _ONCE][:2]
    batches = batched[0] if batched else _ONCE
    outer = [*shared[2:], *batched[1:]]
    shape = GemmShape(
        rows=rows.size,
        depth=b.depth,
        columns=b.columns,
        a_row=rows.strides[_A],
        c_row=rows.strides[_C],
        batches=batches.size,
        groups=groups.size,
        a_batch=batches.strides[_A],
        a_group=groups.strides[_A],
        b_batch=batches.strides[_B],
        c_batch=batches.strides[_C],
        c_group=groups.strides[_C],
    )
    operand_strides = [
        (batches.strides[i], groups.strides[i], rows.strides[i]) for i in range(3, 3 + len(tail.operands))
    ]
    row_block, column_block = shape.blocks(lowering.machine, lowering.options.threads)
    items = shape.items(row_block, column_block)
    kernel = (Dot if b.columns == 1 else Gemm)(tail.chain, b.packed.dtype)
    params = shape.params(row_block, column_block, operand_strides)
    for offsets in _offsets(outer, 3 + len(tail.operands)):
        moved = [c, a, b.packed, *tail.operands]
        c_, a_, b_, *operands = [t.view(t.shape, t.strides, t.offset + n) if n else t for t, n in zip(moved, offsets)]
        lowering.step(
            kernel, [a_, b_, bias, c_, *operands], params, items,
            max(1, _ITEM_FLOPS * items // max(1, shape.flops)), flops=shape.flops, label=label,
        )  # fmt: skip


def _size(loop: _Loop) -> int:
    return loop.size


def _offsets(loops: Sequence[_Loop], tensors: int) -> Iterator[list[int]]:
    """For each round of the loops, how far on every tensor is."""
    for indices in product(*(range(loop.size) for loop in loops)):
        yield [sum(i * loop.strides[t] for i, loop in zip(indices, loops)) for t in range(tensors)]


def rows_contiguous(lowering: Lowering, tensor: Tensor) -> Tensor:
    """The tensor, copied if need be so that neighbours along its last dimension are neighbours in memory."""
    if tensor.rank == 0 or tensor.shape[-1] <= 1 or tensor.strides[-1] == 1:
        return tensor
    order = sorted(range(tensor.rank - 1), key=lambda axis: -abs(tensor.strides[axis]))
    copy = lowering.allocate(tensor.shape, tensor.dtype, [*order, tensor.rank - 1])
    lowering.copy(tensor, copy)
    return copy


def insert_axis(tensor: Tensor, position: int) -> Tensor:
    """A view with one more dimension, of size 1."""
    shape, strides = list(tensor.shape), list(tensor.strides)
    shape.insert(position, 1)
    strides.insert(position, 0)
    return tensor.view(tuple(shape), tuple(strides))


def _without_last(tensor: Tensor) -> Tensor:
    return tensor.view(tensor.shape[:-1], tensor.strides[:-1])
