"""8-bit matrix product with packed weights: pointwise convolution, MatMulInteger, quantized layers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from lite_core.ir import DType
from lite_cpu.chains import Chain
from lite_cpu.emitter import Emitter, Pointer, Val
from lite_cpu.kernels.base import Kernel, Products
from lite_cpu.kernels.gemm import operand_rows
from lite_cpu.kernels.int8_tile_blocks import int8_blocks
from lite_cpu.kernels.int8_tiles import LeftSide, convert_run
from lite_cpu.kernels.integer_dots import DotForm
from lite_cpu.kernels.tile_blocks import BLOCK_ROWS
from lite_cpu.kernels.tile_rows import copy_bytes, copy_rows
from lite_cpu.kernels.tile_setup import matrix_tiles
from lite_cpu.kernels.tiles import BlockTensors, Rows, Window, gemm_tile
from lite_cpu.machine import Machine

__all__ = ["GemmInt8", "GemmInt8Shape"]

#: Minimum number of operations of a work item; with fewer, another thread would start too late to help.
_ITEM_OPERATIONS = 200_000

#: Order of the parameters; then follow the (batch, group, row) strides of each epilogue operand.
PARAMETERS = (
    "batches", "groups", "rows", "depth", "columns",
    "a_batch", "a_group", "a_row", "zero_batch", "zero_group", "zero_row",
    "b_batch", "sums_batch", "c_batch", "c_group", "c_row",
    "row_block", "column_block",
)  # fmt: skip
_AT = {name: i for i, name in enumerate(PARAMETERS)}


@dataclass(frozen=True, slots=True)
class GemmInt8Shape:
    """Sizes and strides of one product, in elements; see :data:`PARAMETERS`.

    ``C[batch, group, row, :] = epilogue(sum over d of (A[batch, group, row, d] - zero[batch, group, row]) *
    B[batch, d, :])``.
    """

    rows: int
    depth: int
    columns: int
    a_row: int
    c_row: int
    batches: int = 1
    groups: int = 1
    a_batch: int = 0
    a_group: int = 0
    zero_batch: int = 0
    zero_group: int = 0
    zero_row: int = 0
    b_batch: int = 0
    sums_batch: int = 0
    c_batch: int = 0
    c_group: int = 0

    @property
    def operations(self) -> int:
        return 2 * self.batches * self.groups * self.rows * self.depth * self.columns

    def blocks(self, machine: Machine, threads: int, form: DotForm) -> tuple[int, int]:
        """Return rows and columns of a work item: A's rows fit the second-level cache, every thread gets some items."""
        tile_rows, vectors = gemm_tile(machine)
        tile_rows = BLOCK_ROWS if form.tiles else tile_rows
        width = vectors * machine.lanes()
        fitting = machine.l2_bytes // 4 // (form.left.itemsize * max(1, self.depth))
        row_block = min(max(1, fitting // tile_rows), -(-self.rows // tile_rows)) * tile_rows
        column_block = -(-self.columns // width) * width
        most = 1 if threads == 1 else min(4 * threads, self.operations // _ITEM_OPERATIONS)
        while self.items(row_block, column_block) < most:
            if row_block >= 4 * tile_rows:  # tall enough to reuse B
                row_block = -(-row_block // 2 // tile_rows) * tile_rows
            elif column_block >= 2 * width:
                column_block = -(-column_block // 2 // width) * width
            else:
                break
        return row_block, column_block

    def items(self, row_block: int, column_block: int) -> int:
        return self.batches * self.groups * -(-self.rows // row_block) * -(-self.columns // column_block)

    def params(self, row_block: int, column_block: int, operands: Sequence[tuple[int, int, int]]) -> list[int]:
        blocks = {"row_block": row_block, "column_block": column_block}
        listed = [blocks[n] if n in blocks else getattr(self, n) for n in PARAMETERS]
        return listed + [stride for strides in operands for stride in strides]


@dataclass(frozen=True)
class GemmInt8(Kernel):
    """8-bit matrix product with packed B and an epilogue.

    Pointers: A, its zero points, packed B, the sums of B's columns, C, then the operands of the epilogue.

    A work item is a block of rows of one group by a block of columns. Rows that cannot be multiplied in place
    (``in_place`` is False) are first converted into the scratch memory of the thread, for matrix tiles in their order.
    """

    left: LeftSide
    epilogue: Chain
    in_place: bool
    row_points: bool = False

    @property
    def computes(self) -> Products:
        return Products("int8")

    def scratch_bytes(self, row_block: int, depth: int) -> int:
        form = self.left.form
        if form.tiles and not self.in_place:
            return copy_bytes(row_block, form.steps(depth))
        return 0 if self.in_place else row_block * form.steps(depth) * form.group * form.left.itemsize

    def emit(self, k: Emitter) -> None:
        form = self.left.form
        with k.kernel(self.symbol) as (pointers, params, begin, end, scratch), ExitStack() as stack:
            p = {name: params[i] for name, i in _AT.items()}
            row_blocks = (p["rows"] + p["row_block"] - 1) / p["row_block"]
            column_blocks = (p["columns"] + p["column_block"] - 1) / p["column_block"]
            steps = (p["depth"] + (form.group - 1)) / form.group
            window = Window(k.index(1), k.index(1), p["depth"], k.index(0), k.index(0))
            registers = stack.enter_context(matrix_tiles(k)) if form.tiles else None
            blocks = partial(int8_blocks, k, registers, self.left, self.epilogue, window)
            tiles = blocks(blocked=not self.in_place, row_points=self.row_points)
            a = pointers.tensor(0, self.left.stored)
            converted = scratch.cast(form.left)
            held = k.variable(k.index(-1))
            with k.loop(begin, end) as item:
                number = item / column_blocks
                row, rest = number % row_blocks * p["row_block"], number / row_blocks
                group, batch = rest % p["groups"], rest / p["groups"]
                column = item % column_blocks * p["column_block"]
                rows = k.minimum(p["row_block"], p["rows"] - row)
                first = Rows(a[batch * p["a_batch"]], p["a_row"], p["a_group"]).at(group, row)
                if not self.in_place:
                    # Consecutive items that differ only in their columns share the copy.
                    with k.if_(number.ne(held.get())):
                        held.set(number)
                        if form.tiles:
                            copy_rows(k, first, window, 1, rows, converted)
                        else:
                            self._convert(k, first, converted, rows, p["depth"], steps * form.group)
                    first = Rows(converted, steps * form.group, k.index(0))
                operands = operand_rows(self.epilogue, pointers, params, len(PARAMETERS), 5, batch)
                operands = tuple(operand.at(group, row, column) for operand in operands)
                c = Rows(pointers.tensor(4, self.epilogue.output)[batch * p["c_batch"]], p["c_row"], p["c_group"])
                points = pointers.tensor(1, self.left.stored)[batch * p["zero_batch"]]
                tiles.block(
                    BlockTensors(first, c.at(group, row, column), operands),
                    Rows(points, p["zero_row"], p["zero_group"]).at(group, row),
                    1,
                    rows,
                    k.minimum(p["column_block"], p["columns"] - column),
                    pointers.tensor(2, form.right)[batch * p["b_batch"] + column * steps * form.group],
                    pointers.tensor(3, DType.INT32)[batch * p["sums_batch"] + column],
                )

    def _convert(self, k: Emitter, source: Rows, target: Pointer, rows: Val, depth: Val, line: Val) -> None:
        """Convert rows of A to rows that are ``line`` elements apart; as one run if A already has that row stride."""
        whole = source.row.eq(line) & depth.eq(line)
        runs, length = whole.select(k.index(1), rows), whole.select(rows * depth, depth)
        with k.loop(0, runs) as run:
            convert_run(k, self.left, source.start[run * source.row], target[run * line], length)
