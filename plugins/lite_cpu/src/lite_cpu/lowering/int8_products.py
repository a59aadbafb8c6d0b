"""Placing 8-bit products: how the dimensions of tensors become the batches, groups and rows of the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from lite_cpu.chains import Chain
from lite_cpu.kernels.gemm_int8 import GemmInt8, GemmInt8Shape
from lite_cpu.kernels.int8_tiles import LeftSide
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.int8_operands import RightSide
from lite_cpu.tensors import Tensor, collapse

__all__ = ["ITEM_OPERATIONS", "emit_int8_product"]

#: Operations that a work item should have at least: for fewer, another thread would come too late.
ITEM_OPERATIONS = 200_000


def emit_int8_product(
    lowering: Lowering,
    left: LeftSide,
    epilogue: Chain,
    c: Tensor,
    a: Tensor,
    zero: Tensor,
    right: RightSide,
    panel_strides: tuple[int, ...],
    operands: Sequence[Tensor],
) -> None:
    """``C = epilogue((A - zero) * B)`` over any number of loops.

    Args:
        lowering: where the steps go.
        left: the element types.
        epilogue: applied to every sum.
        c: [*loops, columns], neighbours along the columns.
        a: [*loops, depth], neighbours along the depth.
        zero: [*loops].
        right: the packed right matrices.
        panel_strides: from the panels of one index of each loop to those of the next; 0 where B is the same.
        operands: of the epilogue, [*loops, columns].
    """
    loops, columns, depth = c.shape[:-1], c.shape[-1], a.shape[-1]
    panels = replace(right.panels, shape=loops, strides=panel_strides)
    size = right.panels.shape[1]
    sums = replace(right.sums, shape=loops, strides=tuple(s // size * columns if size else 0 for s in panel_strides))
    views = [_rows(c), _rows(a), zero, panels, sums, *map(_rows, operands)]
    sizes, strides = collapse(views)
    walks = [(n, tuple(s[i] for s in strides)) for i, n in enumerate(sizes)]
    # The same B for all: rows of one product. Another B for each: a batch.
    once = (1, (0,) * len(views))
    shared = sorted((w for w in walks if w[1][3] == 0), key=lambda w: w[0], reverse=True)
    batched = sorted((w for w in walks if w[1][3] != 0), key=lambda w: w[0], reverse=True)
    (rows, row), (groups, group) = [*shared, once, once][:2]
    batches, batch = [*batched, once][0]
    outer = [*shared[2:], *batched[1:]]
    shape = GemmInt8Shape(
        rows, depth, columns, row[1], row[0], batches, groups, batch[1], group[1], batch[2], group[2], row[2],
        batch[3], batch[4], batch[0], group[0],
    )  # fmt: skip
    in_place = left.is_ready and depth % left.form.group == 0
    kernel = GemmInt8(left, epilogue, in_place, row_points=row[2] != 0)
    row_block, column_block = shape.blocks(lowering.machine, lowering.options.threads, left.form.left.itemsize)
    items = shape.items(row_block, column_block)
    operand_strides = [(batch[i], group[i], row[i]) for i in range(5, len(views))]
    for indices in product(*(range(n) for n, _ in outer)):
        moved = [sum(i * s[t] for i, (_, s) in zip(indices, outer)) for t in range(len(views))]
        c_, a_, zero_, panels_, sums_, *operands_ = (
            replace(t, offset=t.offset + n) for t, n in zip([c, a, zero, right.panels, right.sums, *operands], moved)
        )
        lowering.step(
            kernel, [a_, zero_, panels_, sums_, c_, *operands_], shape.params(row_block, column_block, operand_strides),
            items, max(1, ITEM_OPERATIONS * items // max(1, shape.operations)), flops=shape.operations,
            scratch_bytes=kernel.scratch_bytes(row_block, depth),
        )  # fmt: skip


def _rows(tensor: Tensor) -> Tensor:
    return replace(tensor, shape=tensor.shape[:-1], strides=tensor.strides[:-1])
