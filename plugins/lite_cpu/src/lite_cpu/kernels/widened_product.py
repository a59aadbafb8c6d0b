"""Matrix product of many rows with narrow weights, on machines without dot products of bytes.

Each panel of the weights is widened to float32 in the scratch memory of the thread, once for all rows of a work item,
and multiplied by the tiles of :mod:`.tiles`.
"""

from __future__ import annotations

from dataclasses import dataclass

from lite_core.ir import DType
from lite_cpu.chains import Chain
from lite_cpu.emitter import Emitter, Pointer, Val
from lite_cpu.kernels.base import Kernel, Products
from lite_cpu.kernels.narrow_product import UNROLLED, emit_codes, middle_of, vectors_of
from lite_cpu.kernels.tiles import BlockEmitter, BlockTensors, Rows, Window
from lite_cpu.machine import Machine

__all__ = ["WidenedProduct"]

F32, I32, I8, U8 = DType.FLOAT32, DType.INT32, DType.INT8, DType.UINT8

#: Order of the parameters; then follow the row strides of the epilogue's operands.
PARAMETERS = ("rows", "columns", "blocks", "c_row", "row_block", "column_block", "depth", "a_row")


@dataclass(frozen=True)
class WidenedProduct(Kernel):
    """Matrix product with an epilogue; for the attributes see :class:`~lite_cpu.kernels.narrow_product.NarrowProduct`.

    Pointers: A, panels of the weights, of the scales, of the zero points, bias, C, then the operands of the epilogue. A
    work item is a block of rows by a block of columns.
    """

    epilogue: Chain
    bits: int
    block: int
    scales: DType
    by_block: bool
    zeros: bool

    @property
    def computes(self) -> Products:
        return Products("float32", f"{self.bits} bits")

    def scratch_bytes(self, machine: Machine, blocks: int) -> int:
        """Return the memory for a widened panel, and for what its last step stores behind it."""
        return 4 * vectors_of(machine) * machine.lanes() * (blocks * self.block + 1)

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, params, begin, end, scratch):
            p = {name: params[i] for i, name in enumerate(PARAMETERS)}
            lanes, none = k.machine.lanes(), k.index(0)
            width = vectors_of(k.machine) * lanes
            column_blocks = (p["columns"] + p["column_block"] - 1) / p["column_block"]
            tiles = BlockEmitter(k, self.epilogue, Window(k.index(1), k.index(1), p["depth"], none, none))
            operands = tuple(
                Rows(pointers.tensor(6 + i, o.dtype), params[len(PARAMETERS) + i], none, o.spread)
                for i, o in enumerate(self.epilogue.operands)
            )
            a, c = (
                Rows(pointers.tensor(0, F32), p["a_row"], none),
                Rows(pointers.tensor(5, self.epilogue.output), p["c_row"], none),
            )
            counts = p["blocks"] if self.by_block else k.index(1)
            panel = scratch.cast(F32)
            with k.loop(begin, end) as item:
                row = item / column_blocks * p["row_block"]
                first = item % column_blocks * p["column_block"]
                rows = k.minimum(p["row_block"], p["rows"] - row)
                with k.loop(first, k.minimum(first + p["column_block"], p["columns"]), width) as column:
                    number, valid = column / width, k.minimum(p["columns"] - column, width)
                    weights = pointers.tensor(1, U8)[number * p["blocks"] * (self.block * self.bits // 8 * width)]
                    scales = pointers.tensor(2, self.scales)[number * counts * width]
                    zeros = pointers.tensor(3, I8)[number * counts * width]
                    line = (valid + (lanes - 1)) / lanes * lanes
                    self._widen(k, p["blocks"], (weights, scales, zeros), panel, line)
                    tensors = BlockTensors(a, c, operands).at(0, row, column)
                    tiles.block(tensors, 1, rows, valid, panel, pointers.tensor(4, F32)[column])

    def _widen(
        self, k: Emitter, blocks: Val, sources: tuple[Pointer, Pointer, Pointer], panel: Pointer, line: Val
    ) -> None:
        """Emit the widening of a panel to rows of ``line`` elements.

        All vectors of the panel are stored, in the order of their addresses: what is behind a line is overwritten by
        the next one.
        """
        lanes, vectors = k.machine.lanes(), vectors_of(k.machine)
        width, length = vectors * lanes, min(self.block, UNROLLED)
        middle = middle_of(k.machine, self.bits)
        at = k.cursor(panel)
        by_block = width if self.by_block else 0
        section = length * self.bits // 8 * width
        moving = [(sources[0], self.block // length * section), (sources[1], by_block), (sources[2], by_block)]
        with k.walk(blocks, *moving) as (weights, scales, zeros):
            factors = [scales[v * lanes].load(lanes).to(F32) for v in range(vectors)]
            points = [k.constant(middle, I32, lanes)] * vectors
            if self.zeros:
                points = [zeros[v * lanes].load(lanes).to(I32) + middle for v in range(vectors)]
            with k.walk(self.block // length, (weights, section)) as (part,):
                for words in emit_codes(k, part, self.bits, length):
                    for i in range(4):
                        for v, word in enumerate(words):
                            code = ((word >> (8 * i)) & 0xFF) - points[v]
                            at.get()[v * lanes].store(code.to(F32) * factors[v])
                        at.advance(line)
