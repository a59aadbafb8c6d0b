"""Emission of 8-bit products: the dimensions of tensors are mapped to batches, groups and rows of the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from lite_cpu.chains import Chain
from lite_cpu.kernels.gemm_int8 import GemmInt8, GemmInt8Shape
from lite_cpu.kernels.int8_tiles import LeftSide
from lite_cpu.kernels.integer_dots import vector_form
from lite_cpu.kernels.tile_rows import can_stay_in_place
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.int8_operands import RightSide
from lite_cpu.lowering.tile_products import FEWEST_ROWS
from lite_cpu.tensors import Tensor, collapse

__all__ = ["ITEM_OPERATIONS", "emit_int8_product"]

#: Minimum number of operations of a work item; smaller ones are done before another thread can start.
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
    """Emit ``C = epilogue((A - zero) * B)`` over any number of loops.

    Args:
        lowering: the context that steps are emitted into.
        left: the element types of the left operand.
        epilogue: the chain applied to every sum.
        c: [*loops, columns], contiguous along the columns.
        a: [*loops, depth], contiguous along the depth.
        zero: [*loops].
        right: the packed right matrices.
        panel_strides: for each loop, the stride between its panels, in elements; 0 if its iterations share B.
        operands: the operands of the epilogue, [*loops, columns].
    """
    loops, columns, depth = c.shape[:-1], c.shape[-1], a.shape[-1]
    panels = replace(right.panels, shape=loops, strides=panel_strides)
    size = right.panels.shape[1]
    sums = replace(right.sums, shape=loops, strides=tuple(s // size * columns if size else 0 for s in panel_strides))
    views = [_rows(c), _rows(a), zero, panels, sums, *map(_rows, operands)]
    sizes, strides = collapse(views)
    merged = [(n, tuple(s[i] for s in strides)) for i, n in enumerate(sizes)]
    # Loops whose iterations share B are rows of one product; loops with a different B for each are batches.
    single = (1, (0,) * len(views))
    shared = sorted((loop for loop in merged if loop[1][3] == 0), key=lambda loop: loop[0], reverse=True)
    batched = sorted((loop for loop in merged if loop[1][3] != 0), key=lambda loop: loop[0], reverse=True)
    (rows, row), (groups, group) = [*shared, single, single][:2]
    batches, batch = [*batched, single][0]
    outer = [*shared[2:], *batched[1:]]
    shape = GemmInt8Shape(
        rows, depth, columns, row[1], row[0], batches, groups, batch[1], group[1], batch[2], group[2], row[2],
        batch[3], batch[4], batch[0], group[0],
    )  # fmt: skip
    if rows < FEWEST_ROWS:
        left = replace(left, form=vector_form(lowering.machine, left.form))
    in_place = left.is_ready and depth % left.form.group == 0
    if left.form.tiles:
        in_place = can_stay_in_place(rows, depth, row[1])
    kernel = GemmInt8(left, epilogue, in_place, row_points=row[2] != 0)
    row_block, column_block = shape.blocks(lowering.machine, lowering.options.threads, left.form)
    items = shape.items(row_block, column_block)
    operand_strides = [(batch[i], group[i], row[i]) for i in range(5, len(views))]
    for indices in product(*(range(n) for n, _ in outer)):
        offsets = [sum(i * s[t] for i, (_, s) in zip(indices, outer)) for t in range(len(views))]
        c_, a_, zero_, panels_, sums_, *operands_ = (
            replace(t, offset=t.offset + n) for t, n in zip([c, a, zero, right.panels, right.sums, *operands], offsets)
        )
        lowering.step(
            kernel, [a_, zero_, panels_, sums_, c_, *operands_], shape.params(row_block, column_block, operand_strides),
            items, max(1, ITEM_OPERATIONS * items // max(1, shape.operations)), flops=shape.operations,
            scratch_bytes=kernel.scratch_bytes(row_block, depth),
        )  # fmt: skip


def _rows(tensor: Tensor) -> Tensor:
    return replace(tensor, shape=tensor.shape[:-1], strides=tensor.strides[:-1])
