"""Element-wise operators with broadcasting over strided tensors; without operators, a strided copy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lite_cpu.chains import Chain, Operand
from lite_cpu.emitter import Emitter, Pointer, Val
from lite_cpu.kernels.base import Kernel

__all__ = ["Elementwise"]

_UNROLL = 2


@dataclass(frozen=True)
class Elementwise(Kernel):
    """A chain of element-wise operators with broadcasting.

    Pointers: output, start, operands. Parameters: see :meth:`params`.

    Work items are blocks of rows; a row is the innermost loop. There are ``outer`` loops around the rows. With
    ``strided`` some tensor is neither contiguous nor repeated along a row, so vectors cannot be used.
    """

    chain: Chain
    outer: int = 0
    strided: bool = False

    @staticmethod
    def params(sizes: Sequence[int], strides: Sequence[Sequence[int]], row_block: int) -> list[int]:
        """Return row length, rows, rows of an item and outer sizes, then each tensor's strides, innermost first."""
        *outer, rows, length = [1, *sizes] if len(sizes) == 1 else sizes
        listed = [length, rows, row_block, *outer]
        for mine in strides:
            padded = [0, *mine] if len(sizes) == 1 else list(mine)
            listed += reversed(padded)
        return listed

    def emit(self, k: Emitter) -> None:
        operands = (Operand(self.chain.output), self.chain.start, *self.chain.operands)
        with k.kernel(self.symbol) as (pointers, params, begin, end, _):
            length, rows, row_block = params[0], params[1], params[2]
            loops = 2 + self.outer
            first = 3 + self.outer
            strides = [[params[first + t * loops + i] for i in range(loops)] for t in range(len(operands))]
            starts = [pointers.tensor(t, o.dtype) for t, o in enumerate(operands)]
            blocks = (rows + row_block - 1) / row_block
            with k.loop(begin, end) as item:
                row, rest = item % blocks * row_block, item / blocks
                here = [s[row * st[1]] for s, st in zip(starts, strides)]
                for axis in range(self.outer):
                    size = params[3 + self.outer - 1 - axis]
                    here = [p[rest % size * st[2 + axis]] for p, st in zip(here, strides)]
                    rest = rest / size
                with k.loop(0, k.minimum(row_block, rows - row)) as r:
                    tensors = [p[r * st[1]] for p, st in zip(here, strides)]
                    self._emit_row(k, tensors, [st[0] for st in strides], operands, length)

    def _emit_row(
        self, k: Emitter, tensors: Sequence[Pointer], steps: Sequence[Val], operands: Sequence[Operand], length: Val
    ) -> None:
        def element(at: Sequence[Pointer], lanes: int = 1) -> None:
            def read(t: int) -> Val:
                return at[t].load().splat(lanes) if operands[t].spread else at[t].load(lanes)

            at[0].store(self.chain.emit(k, read(1), lambda o, _: read(2 + o)))

        def vector(i: Val, lanes: int) -> None:
            element([p if o.spread else p[i] for p, o in zip(tensors, operands)], lanes)

        if self.strided:
            k.repeat(length, element, *zip(tensors, steps), unroll=_UNROLL)
        else:
            k.span(length, k.machine.lanes(max(4, *(o.dtype.itemsize for o in operands))), vector, unroll=_UNROLL)
