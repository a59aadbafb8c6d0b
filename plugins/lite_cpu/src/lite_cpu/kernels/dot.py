"""Matrix-vector product: B has a single column, and vectors hold elements along the depth."""

from __future__ import annotations

from dataclasses import dataclass

from lite_core.ir import DType
from lite_cpu.chains import Operand
from lite_cpu.emitter import Emitter, Number, Pointer, Val
from lite_cpu.kernels.gemm import Gemm
from lite_cpu.kernels.tiles import BlockEmitter, BlockTensors, Window

__all__ = ["Dot"]

F32 = DType.FLOAT32

#: Number of rows that are multiplied together by the same vector of B.
_ROWS = 4


@dataclass(frozen=True)
class Dot(Gemm):
    """:class:`~lite_cpu.kernels.gemm.Gemm` with one column; B is not packed, but [batches, depth]."""

    def block_emitter(self, k: Emitter, unit: Val | None, window: Window) -> BlockEmitter:
        return _DotEmitter(k, self.epilogue, window, self.products)


@dataclass(frozen=True, slots=True)
class _DotEmitter(BlockEmitter):
    def block(
        self,
        tensors: BlockTensors,
        groups: Number,
        rows: Val,
        columns: Val,
        b: Pointer,
        bias: Pointer | None,
        following: Pointer | None = None,
    ) -> None:
        """Emit all rows of a block; the window is one run, and B is read as a stream: nothing is prefetched."""
        k = self.k
        start = k.constant(0.0, F32) if bias is None else bias.load()
        whole = rows / _ROWS * _ROWS
        with k.loop(0, groups) as group:
            with k.loop(0, whole, _ROWS) as row:
                self._dots(tensors.at(group, row), b, start, _ROWS)
            with k.loop(whole, rows) as row:
                self._dots(tensors.at(group, row), b, start, 1)

    def _dots(self, tensors: BlockTensors, b: Pointer, start: Val, rows: int) -> None:
        k, depth, lanes = self.k, self.window.depth, self.k.machine.lanes()
        # A single row is summed in several independent chains, so that no multiply-add waits for the one before.
        chains = _ROWS // rows
        zero = k.constant(0.0, F32, lanes)
        sums = [[k.variable(zero) for _ in range(rows)] for _ in range(chains)]

        def add(d: Val, chain: int, valid: Val | None) -> None:
            x = k.load_first(b[d], valid, lanes)
            x = x.to(F32) if x.dtype.is_half else x
            for row, total in enumerate(sums[chain]):
                a = k.load_first(tensors.a.at(0, row, d).start, valid, lanes)
                total.set(self.products(a, x, total.get()))

        stop = k.index(0)
        for turn in dict.fromkeys((chains, 1)):
            first, stop = stop, depth / (turn * lanes) * (turn * lanes)
            with k.loop(first, stop, turn * lanes) as d:
                for chain in range(turn):
                    add(d + chain * lanes, chain, None)
        with k.if_(stop < depth):
            add(stop, 0, depth - stop)
        for row in range(rows):
            total = sums[0][row].get()
            for others in sums[1:]:
                total = total + others[row].get()

            def load(i: int, operand: Operand, row: int = row) -> Val:
                return tensors.operands[i].at(0, row).start.load()

            tensors.c.at(0, row).start.store(self.epilogue.emit(k, start + k.sum_lanes(total), load))
