"""Emission of matrix products: the dimensions of tensors are mapped to batches, groups and rows of the Gemm kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from lite_compiler.tensors import dense_strides
from lite_compiler.tracing.numbers import largest
from lite_core.ir import DType
from lite_cpu.chains import Chain
from lite_cpu.kernels.bfloat16_pairs import PAIR
from lite_cpu.kernels.dot import Dot
from lite_cpu.kernels.gemm import Gemm, GemmShape
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.tile_products import gemm_in_tiles, rows_of_tile
from lite_cpu.tensors import Tensor, collapse

__all__ = ["Epilogue", "Panels", "emit_product", "insert_axis", "with_contiguous_rows"]

F32 = DType.FLOAT32

#: Minimum number of floating-point operations of a work item.
_ITEM_FLOPS = 50_000


@dataclass(frozen=True, slots=True)
class Panels:
    """Packed matrices [depth, columns], one for each index of ``batch``, whose strides count elements of panels.

    A matrix of one column is not packed but contiguous. Of matrices of bfloat16 in pairs, an element is a pair.
    With ``matrices`` the pairs are packed in groups of two. ``unit`` multiplies matrices that are read as float16.
    """

    packed: Tensor
    batch: Tensor
    depth: int
    columns: int
    matrices: bool = False
    unit: float = 1.0

    @staticmethod
    def of(
        packed: Tensor, batch_shape: Sequence[int], depth: int, columns: int, matrices: bool = False, unit: float = 1.0
    ) -> Panels:
        """Return the panels of ``packed`` [batches, n], whose batches are in the order of ``batch_shape``."""
        strides = tuple(packed.shape[1] * s for s in dense_strides(batch_shape))
        return Panels(packed, packed.view(tuple(batch_shape), strides), depth, columns, matrices, unit)


@dataclass(frozen=True, slots=True)
class Epilogue:
    """A chain applied to the elements of a product, with operands of the shape of the result."""

    chain: Chain
    operands: tuple[Tensor, ...] = ()


@dataclass(frozen=True, slots=True)
class _Loop:
    """A loop over merged dimensions; ``strides`` are those of C, A, B's panels and the operands."""

    size: int
    strides: tuple[int, ...]


_ONCE = _Loop(1, (0,) * 64)
_C, _A, _B = range(3)


def emit_product(
    lowering: Lowering, a: Tensor, b: Panels, bias: Tensor, c: Tensor, epilogue: Epilogue, *, label: str = ""
) -> None:
    """Emit ``C = epilogue(bias + A * B)`` over any number of batch dimensions.

    Args:
        lowering: the context that steps are emitted into.
        a: [*batch, rows, depth], contiguous along the depth (see :func:`with_contiguous_rows`). If it is float16, the
            product is computed in float16.
        b: the right operand; its batch broadcasts to that of ``c``.
        bias: [columns].
        c: [*batch, rows, columns], contiguous along the columns.
        epilogue: the chain applied to every element, with its operands.
        label: the name of the steps in profiles.
    """
    if c.size == 0:
        return
    batch = c.shape[:-2]
    panels = insert_axis(b.batch.expand(batch), len(batch)).expand(c.shape[:-1])
    tensors = [c, a.expand((*batch, *a.shape[-2:])), panels, *epilogue.operands]
    sizes, strides = collapse([t if t is panels else _without_last(t) for t in tensors])
    loops = [_Loop(n, tuple(s[i] for s in strides)) for i, n in enumerate(sizes)]
    # Loops whose iterations share B are rows of one product; loops with a different B for each are batches.
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
        b_unit=b.unit,
    )
    operand_strides = [
        (batches.strides[i], groups.strides[i], rows.strides[i]) for i in range(3, 3 + len(epilogue.operands))
    ]
    pairs, halves = b.packed.dtype is PAIR, a.dtype is DType.FLOAT16
    weights = F32 if pairs else b.packed.dtype
    kernel = (Dot if b.columns == 1 else Gemm)(epilogue.chain, weights, pairs, b.matrices, halves)
    kernel = gemm_in_tiles(lowering.machine, kernel, shape)
    machine = kernel.machine_of_tile(lowering.machine)
    row_block, column_block = shape.blocks(machine, lowering.options.threads, rows_of_tile(kernel))
    items = shape.items(row_block, column_block)
    flops = shape.flops * (2 if pairs else 1)
    params = shape.params(row_block, column_block, operand_strides)
    for offsets in _offsets(outer, 3 + len(epilogue.operands)):
        views = [c, a, b.packed, *epilogue.operands]
        c_, a_, b_, *operands = [t.view(t.shape, t.strides, t.offset + n) if n else t for t, n in zip(views, offsets)]
        lowering.step(
            kernel, [a_, b_, bias, c_, *operands], params, items,
            largest(1, _ITEM_FLOPS * items // largest(1, flops)), flops=flops, label=label,
            scratch_bytes=kernel.scratch_bytes(row_block, shape),
        )  # fmt: skip


def _size(loop: _Loop) -> int:
    return loop.size


def _offsets(loops: Sequence[_Loop], tensors: int) -> Iterator[list[int]]:
    """Yield the offset of every tensor for each iteration of the loops."""
    for indices in product(*(range(loop.size) for loop in loops)):
        yield [sum(i * loop.strides[t] for i, loop in zip(indices, loops)) for t in range(tensors)]


def with_contiguous_rows(lowering: Lowering, tensor: Tensor) -> Tensor:
    """Return the tensor, copied if necessary to make its last dimension contiguous."""
    if tensor.rank == 0 or tensor.shape[-1] <= 1 or tensor.strides[-1] == 1:
        return tensor
    order = sorted(range(tensor.rank - 1), key=lambda axis: -abs(tensor.strides[axis]))
    copy = lowering.allocate(tensor.shape, tensor.dtype, [*order, tensor.rank - 1])
    lowering.copy(tensor, copy)
    return copy


def insert_axis(tensor: Tensor, position: int) -> Tensor:
    """Return a view with a dimension of size 1 inserted."""
    shape, strides = list(tensor.shape), list(tensor.strides)
    shape.insert(position, 1)
    strides.insert(position, 0)
    return tensor.view(tuple(shape), tuple(strides))


def _without_last(tensor: Tensor) -> Tensor:
    return tensor.view(tensor.shape[:-1], tensor.strides[:-1])
