"""Matrix product with packed weights: pointwise and dense convolution, MatMul, Gemm, the products of Winograd.

One kernel multiplies rows of A, gathered at regular strides, by panels of B. For a pointwise convolution on
channels-last data the rows are pixels. For a dense convolution a row is a window of the (padded) input: its *segments*
are the rows of the window, each a contiguous run of pixels x channels. With a dilation pixels are not contiguous, and
each is a separate *tap*.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial

from lite_core.ir import DType
from lite_cpu.chains import Chain
from lite_cpu.emitter import Emitter, Params, Pointers, Val, float_bits
from lite_cpu.kernels.base import Kernel, Products
from lite_cpu.kernels.bfloat16_pairs import PAIR, add_pairs
from lite_cpu.kernels.depth_loops import AddProducts, multiply_add
from lite_cpu.kernels.gemm_blocks import gemm_blocks
from lite_cpu.kernels.half_products import add_halves, with_lanes_of_halves
from lite_cpu.kernels.pair_tile_blocks import PairTileBlocks
from lite_cpu.kernels.tiles import BlockEmitter, BlockTensors, Rows, Window, gemm_tile, pack_panels
from lite_cpu.machine import Machine

__all__ = ["Gemm", "GemmShape", "gemm_tile", "operand_rows", "pack_panels"]

F16, F32 = DType.FLOAT16, DType.FLOAT32

#: Order of the parameters; then follow the (batch, group, row) strides of each epilogue operand.
PARAMETERS = (
    "batches", "groups", "rows", "segments", "taps", "depth", "columns",
    "a_batch", "a_group", "a_row", "a_segment", "a_tap",
    "b_batch", "bias_batch",
    "c_batch", "c_group", "c_row",
    "row_block", "column_block", "group_block", "b_unit",
)  # fmt: skip
_AT = {name: i for i, name in enumerate(PARAMETERS)}


@dataclass(frozen=True, slots=True)
class GemmShape:
    """Sizes and strides of one product, in elements; see :data:`PARAMETERS`.

    ``C[batch, group, row, :] = epilogue(bias + sum over segments s, taps t, depth d of
    A[batch, group, row, s, t, d] * B[batch, (s * taps + t) * depth + d, :])``. ``b_unit`` multiplies B if A is float16.
    """

    rows: int
    depth: int
    columns: int
    a_row: int
    c_row: int
    batches: int = 1
    groups: int = 1
    segments: int = 1
    taps: int = 1
    a_batch: int = 0
    a_group: int = 0
    a_segment: int = 0
    a_tap: int = 0
    b_batch: int = 0
    bias_batch: int = 0
    c_batch: int = 0
    c_group: int = 0
    b_unit: float = 1.0

    @property
    def flops(self) -> int:
        return 2 * self.batches * self.groups * self.rows * self.total_depth * self.columns

    @property
    def total_depth(self) -> int:
        return self.segments * self.taps * self.depth

    def blocks(self, machine: Machine, threads: int, tile_rows: int = 0) -> tuple[int, int]:
        """Return rows and columns of a work item: A's rows fit the second-level cache, every thread gets some items.

        ``tile_rows`` are the rows of a tile if it is none of vector registers.
        """
        return gemm_blocks(
            self.rows, self.total_depth, self.columns, self.batches, self.groups, machine, threads, tile_rows
        )

    def items(self, row_block: int, column_block: int, group_block: int = 1) -> int:
        group_blocks = -(-self.groups // group_block)
        return self.batches * group_blocks * -(-self.rows // row_block) * -(-self.columns // column_block)

    def params(
        self, row_block: int, column_block: int, operands: Sequence[tuple[int, int, int]], group_block: int = 1
    ) -> list[int]:
        blocks = {"row_block": row_block, "column_block": column_block, "group_block": group_block}
        blocks["b_unit"] = float_bits(self.b_unit)
        listed = [blocks[n] if n in blocks else getattr(self, n) for n in PARAMETERS]
        return listed + [stride for strides in operands for stride in strides]


def operand_rows(
    epilogue: Chain, pointers: Pointers, params: Params, parameter: int, tensor: int, batch: Val
) -> tuple[Rows, ...]:
    """Return a batch's epilogue operands: the tensors from ``tensor`` on, with strides from ``parameter`` on."""
    operands = []
    for i, operand in enumerate(epilogue.operands):
        by_batch, by_group, by_row = (params[parameter + 3 * i + s] for s in range(3))
        start = pointers.tensor(tensor + i, operand.dtype)[batch * by_batch]
        operands.append(Rows(start, by_row, by_group, operand.spread))
    return tuple(operands)


@dataclass(frozen=True)
class Gemm(Kernel):
    """Matrix product with packed B and an epilogue.

    Pointers: A, packed B, bias, C, then the operands of the epilogue.

    A work item is a block of ``group_block`` groups, ``row_block`` rows of each, and ``column_block`` columns.

    Attributes:
        epilogue: chain applied to each element before it is stored.
        weights: element type of B, a float of 32 or 16 bits; B is multiplied in float32.
        pairs: A and B are bfloat16, in pairs along the depth: sizes and strides of A and B count pairs.
        matrices: the pairs of B are packed in groups of two, see :class:`.tiles.BlockEmitter`; the depth is even.
        halves: A and B are float16, multiplied as :mod:`.half_products` describes; there are several columns.
    """

    epilogue: Chain
    weights: DType = F32
    pairs: bool = False
    matrices: bool = False
    halves: bool = False

    @property
    def computes(self) -> Products:
        if self.halves:
            return Products("float16")
        return Products("bfloat16" if self.pairs else "float32", str(self.weights) if self.weights.is_half else "")

    def machine_of_tile(self, machine: Machine) -> Machine:
        """Return the machine whose lanes are the columns of a vector of the tile."""
        return with_lanes_of_halves(machine) if self.halves else machine

    def scratch_bytes(self, row_block: int, shape: GemmShape) -> int:
        """Return the scratch memory of a thread for items of ``row_block`` rows."""
        return 0

    @property
    def products(self) -> AddProducts:
        return add_pairs if self.pairs else add_halves if self.halves else multiply_add

    def emit(self, k: Emitter) -> None:
        k.machine = self.machine_of_tile(k.machine)
        with k.kernel(self.symbol) as (pointers, params, begin, end, _):
            unit = params.number(_AT["b_unit"], F32) if self.halves else None
            self.emit_items(k, pointers, params, begin, end, partial(self.block_emitter, k, unit))

    def block_emitter(self, k: Emitter, unit: Val | None, window: Window) -> BlockEmitter:
        """Return the emitter of the product of a block; ``unit`` multiplies B, which is float16."""
        return BlockEmitter(k, self.epilogue, window, self.products, self.matrices, unit)

    def emit_items(
        self,
        k: Emitter,
        pointers: Pointers,
        params: Params,
        begin: Val,
        end: Val,
        blocks: Callable[[Window], BlockEmitter | PairTileBlocks],
    ) -> None:
        """Emit the work items; ``blocks(window)`` returns the emitter of a block's product."""
        p = {name: params[i] for name, i in _AT.items()}
        row_blocks = (p["rows"] + p["row_block"] - 1) / p["row_block"]
        column_blocks = (p["columns"] + p["column_block"] - 1) / p["column_block"]
        group_blocks = (p["groups"] + p["group_block"] - 1) / p["group_block"]
        operands_of_product = (PAIR, PAIR) if self.pairs else (F16 if self.halves else F32, self.weights)
        a, b, bias = (pointers.tensor(i, dtype) for i, dtype in enumerate((*operands_of_product, F32)))
        c = pointers.tensor(3, self.epilogue.output)
        block = blocks(Window(**{f.name: p[f.name] for f in fields(Window)}))
        with k.loop(begin, end) as item:
            column_block, rest = item % column_blocks, item / column_blocks
            row_block, rest = rest % row_blocks, rest / row_blocks
            group, batch = rest % group_blocks * p["group_block"], rest / group_blocks
            row, column = row_block * p["row_block"], column_block * p["column_block"]
            operands = operand_rows(self.epilogue, pointers, params, len(PARAMETERS), 4, batch)
            tensors = BlockTensors(
                Rows(a[batch * p["a_batch"]], p["a_row"], p["a_group"]),
                Rows(c[batch * p["c_batch"]], p["c_row"], p["c_group"]),
                operands,
            )
            block.block(
                tensors.at(group, row, column),
                k.minimum(p["group_block"], p["groups"] - group),
                k.minimum(p["row_block"], p["rows"] - row),
                k.minimum(p["column_block"], p["columns"] - column),
                b[batch * p["b_batch"] + column * block.window.total],
                bias[batch * p["bias_batch"] + column],
            )
