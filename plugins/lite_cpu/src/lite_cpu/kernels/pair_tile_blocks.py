"""The matrix tiles of a product of bfloat16 in pairs, for the kernels that :class:`~.tiles.BlockEmitter` serves.

Intel's TDPBF16PS sums the first and the second elements of the pairs of 64 bytes separately, with one rounding for each
product, before it adds both to the sum; it takes denormal numbers as zeros. The sums have the precision of float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lite_core.ir import DType
from lite_cpu.chains import Chain
from lite_cpu.emitter import Emitter, Number, Pointer, Val, Variable
from lite_cpu.kernels.bfloat16_pairs import PAIR
from lite_cpu.kernels.matrix_tiles import MatrixTiles
from lite_cpu.kernels.tile_blocks import TileBlocks
from lite_cpu.kernels.tile_rows import copy_rows
from lite_cpu.kernels.tiles import BlockTensors, Rows, Window, load_columns

__all__ = ["HeldRows", "PairTileBlocks"]

_TYPES = (DType.BFLOAT16, DType.BFLOAT16)


@dataclass(frozen=True, slots=True)
class HeldRows:
    """The copy of rows of A that a kernel has made last, with what it was made from."""

    copy: Pointer
    address: Variable
    groups: Variable
    rows: Variable

    @classmethod
    def of(cls, k: Emitter, memory: Pointer) -> HeldRows:
        """Return a copy that is not made yet."""
        return cls(memory.cast(PAIR), *(k.variable(k.index(0)) for _ in range(3)))

    def hold(self, k: Emitter, source: Rows, window: Window, groups: Number, rows: Val) -> Rows:
        """Emit the copy of rows unless it holds them, and return it."""
        found = [(self.address, k.address(source.start)), (self.groups, k.index(groups)), (self.rows, rows)]
        changed = [variable.get().ne(value) for variable, value in found]
        with k.if_(changed[0] | changed[1] | changed[2]):
            for variable, value in found:
                variable.set(value)
            copy_rows(k, source, window, groups, rows, self.copy)
        return Rows(self.copy, k.index(0), k.index(0))


@dataclass(frozen=True, slots=True)
class PairTileBlocks:
    """Emitter of the tiles of a block: ``C = epilogue(bias + A * B)``; A and B have pairs of bfloat16.

    Attributes:
        k: the emitter.
        registers: the tiles, configured to be whole.
        epilogue: chain applied to each sum.
        window: layout of a row of A.
        blocked: A is multiplied from a copy in the order of tiles.
        held: the memory for this copy; None if A is one already.
    """

    k: Emitter
    registers: MatrixTiles
    epilogue: Chain
    window: Window
    blocked: bool = False
    held: HeldRows | None = None

    def block(
        self, tensors: BlockTensors, groups: Number, rows: Val, columns: Val, b: Pointer, bias: Pointer | None
    ) -> None:
        """Emit a whole block, see :meth:`.tiles.BlockEmitter.block`."""
        k = self.k

        def starts(column: Val, vectors: int, valid: Val | None) -> Sequence[Val]:
            if bias is None:
                return [k.constant(0.0, DType.FLOAT32, k.machine.lanes())] * vectors
            return load_columns(k, bias[column], vectors, valid)

        if self.held is not None:
            tensors = replace(tensors, a=self.held.hold(k, tensors.a, self.window, groups, rows))
        TileBlocks(k, self.registers, _TYPES, self.epilogue, self.window, self.blocked).block(
            tensors, groups, rows, columns, b, starts
        )
