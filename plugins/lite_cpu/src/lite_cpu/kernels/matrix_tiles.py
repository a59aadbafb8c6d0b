"""Matrix tiles: registers of 16 rows of 64 bytes that are multiplied as matrices (Intel's AMX).

A kernel works with them inside :func:`~.tile_setup.matrix_tiles`, which configures them for its thread and releases
them after the last work item. Before a process may use them, it must ask its operating system; the backend does that.

A machine whose features lack ``amx-tile`` gets plain instructions that compute the same (:mod:`.emulated_tiles`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from lite_core.ir import DType
from lite_cpu.emitter import I8, Emitter, Number, Pointer
from lite_cpu.machine_code.ir_module import ir

__all__ = ["COUNT", "ROWS", "ROW_BYTES", "AmxTiles", "MatrixTiles"]

#: Number of tiles; rows of a tile, and bytes of a row.
COUNT, ROWS, ROW_BYTES = 8, 16, 64

_VOID = ir.VoidType()

#: Instructions by the element types of the left and the right matrix. Sums of bytes are int32 and wrap around, those of
#: bfloat16 are float32.
_DOTS = {
    (DType.UINT8, DType.INT8): "tdpbusd",
    (DType.INT8, DType.INT8): "tdpbssd",
    (DType.BFLOAT16, DType.BFLOAT16): "tdpbf16ps",
}


class MatrixTiles(ABC):
    """The instructions of tiles 0 to 7, for one kernel."""

    def __init__(self, k: Emitter) -> None:
        self.k = k

    @abstractmethod
    def configure(self, memory: Pointer) -> None:
        """Set the sizes of all tiles to those of a :func:`~.tile_setup.configuration`, and fill them with zeros."""

    @abstractmethod
    def release(self) -> None:
        """Return the tiles to their initial state, in which threads switch without saving them."""

    @abstractmethod
    def zero(self, tile: int) -> None:
        """Fill a tile with zeros."""

    @abstractmethod
    def load(self, tile: int, start: Pointer, stride: Number) -> None:
        """Load the rows of a tile, which are ``stride`` bytes apart."""

    @abstractmethod
    def store(self, tile: int, start: Pointer, stride: Number) -> None:
        """Store the rows of a tile, ``stride`` bytes apart."""

    @abstractmethod
    def dot(self, types: tuple[DType, DType], sums: int, left: int, right: int) -> None:
        """Add the product of two tiles to a tile of sums.

        A row of ``right`` has a group of 32 bits for each column; the groups of a row of ``left`` multiply its rows.

        Args:
            types: the element types of ``left`` and ``right``.
            sums: the tile of sums.
            left: the tile of the left matrix.
            right: the tile of the right matrix.
        """


class AmxTiles(MatrixTiles):
    """The instructions of processors with AMX. LLVM keeps their order, and moves no tile to another one."""

    def configure(self, memory: Pointer) -> None:
        self.k.intrinsic("llvm.x86.ldtilecfg", _VOID, [memory.ir])

    def release(self) -> None:
        self.k.intrinsic("llvm.x86.tilerelease", _VOID, [])

    def zero(self, tile: int) -> None:
        self._call("tilezero", tile)

    def load(self, tile: int, start: Pointer, stride: Number) -> None:
        self._call("tileloadd64", tile, start.ir, self.k.index(stride).ir)

    def store(self, tile: int, start: Pointer, stride: Number) -> None:
        self._call("tilestored64", tile, start.ir, self.k.index(stride).ir)

    def dot(self, types: tuple[DType, DType], sums: int, left: int, right: int) -> None:
        self._call(_DOTS[types], sums, ir.Constant(I8, left), ir.Constant(I8, right))

    def _call(self, name: str, tile: int, *arguments: ir.Value) -> None:
        self.k.intrinsic(f"llvm.x86.{name}", _VOID, [ir.Constant(I8, tile), *arguments])
