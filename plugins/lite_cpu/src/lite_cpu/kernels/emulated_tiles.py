"""Matrix tiles in plain instructions, with the results that AMX defines, for tests on processors without it.

The definitions are those of the instructions LDTILECFG, TILELOADD, TILESTORED, TILEZERO and TDP* in Intel's manual
(order number 325462, volume 2). Products of bfloat16 follow it in every rounding: the first and the second elements of
pairs are summed separately by fused multiply-adds along the row, and the two sums are added before they join the old
one. Denormal numbers count as zeros, also results. A wrong configuration ends the process, as it does with AMX.
"""

from __future__ import annotations

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Number, Pointer, Val, Variable
from lite_cpu.kernels.matrix_tiles import COUNT, ROW_BYTES, ROWS, MatrixTiles
from lite_cpu.machine_code.ir_module import ir

__all__ = ["EmulatedTiles"]

_BYTES, I32, U32, F32 = DType.UINT8, DType.INT32, DType.UINT32, DType.FLOAT32
_TILE_BYTES = ROWS * ROW_BYTES
#: Columns of a tile of sums, and groups of a row.
_COLUMNS = ROW_BYTES // 4


class EmulatedTiles(MatrixTiles):
    """Tiles in the memory of the kernel: eight times 1 KiB, and behind them the configuration."""

    def __init__(self, k: Emitter) -> None:
        super().__init__(k)
        self._memory = k.stack_bytes(COUNT * _TILE_BYTES + ROW_BYTES, ROW_BYTES)

    def configure(self, memory: Pointer) -> None:
        self._memory[COUNT * _TILE_BYTES].store(memory.load(ROW_BYTES))
        for tile in range(COUNT):
            self.zero(tile)

    def release(self) -> None:
        self._memory[COUNT * _TILE_BYTES].store(self.k.constant(0, _BYTES, ROW_BYTES))

    def zero(self, tile: int) -> None:
        self.k.function("tilezero", lambda target: _fill_from(self.k, target, self.k.index(0)), self._tile(tile))

    def load(self, tile: int, start: Pointer, stride: Number) -> None:
        k, (rows, width) = self.k, self._sizes(tile)

        def load(target: Pointer, source: Pointer, step: Val, rows: Val, width: Val) -> None:
            mask = k.first_lanes(width, ROW_BYTES)
            with k.loop(0, rows) as row:
                target[row * ROW_BYTES].store(source[row * step].load(ROW_BYTES, mask))
            _fill_from(k, target, rows)

        k.function("tileloadd", load, self._tile(tile), start.cast(_BYTES), k.index(stride), rows, width)

    def store(self, tile: int, start: Pointer, stride: Number) -> None:
        k, (rows, width) = self.k, self._sizes(tile)

        def store(source: Pointer, target: Pointer, step: Val, rows: Val, width: Val) -> None:
            mask = k.first_lanes(width, ROW_BYTES)
            with k.loop(0, rows) as row:
                target[row * step].store(source[row * ROW_BYTES].load(ROW_BYTES), mask)

        k.function("tilestored", store, self._tile(tile), start.cast(_BYTES), k.index(stride), rows, width)

    def dot(self, types: tuple[DType, DType], sums: int, left: int, right: int) -> None:
        k = self.k
        (rows, width), (left_rows, left_width), (right_rows, right_width) = map(self._sizes, (sums, left, right))
        fits = rows.eq(left_rows) & width.eq(right_width) & left_width.eq(right_rows * 4)
        with k.if_(~fits):
            k.intrinsic("llvm.trap", ir.VoidType(), [])

        def dot(target: Pointer, a: Pointer, b: Pointer, rows: Val, width: Val, groups: Val) -> None:
            multiply = _multiply_halves if types[0] is DType.BFLOAT16 else _multiply_bytes
            mask = k.first_lanes(width / 4, _COLUMNS)
            with k.loop(0, rows) as row:
                here = target[row * ROW_BYTES].cast(F32 if types[0] is DType.BFLOAT16 else I32)
                total = multiply(k, types, here.load(_COLUMNS), a[row * ROW_BYTES], b, groups)
                here.store(mask.select(total, k.constant(0, total.dtype, _COLUMNS)))
            _fill_from(k, target, rows)

        name = "tdp_" + "_".join(dtype.value for dtype in types)
        k.function(name, dot, *map(self._tile, (sums, left, right)), rows, width, left_width / 4)

    def _tile(self, tile: int) -> Pointer:
        return self._memory[tile * _TILE_BYTES]

    def _sizes(self, tile: int) -> tuple[Val, Val]:
        """Return the configured rows of a tile and the bytes of a row."""
        configured = self._memory[COUNT * _TILE_BYTES]
        rows, width = configured[48 + tile].load(), configured[16 + 2 * tile].cast(DType.UINT16).load()
        return rows.to(DType.INT64), width.to(DType.INT64)


def _fill_from(k: Emitter, tile: Pointer, first: Val) -> None:
    """Fill the rows of a tile from ``first`` on with zeros."""
    with k.loop(first, ROWS) as row:
        tile[row * ROW_BYTES].store(k.constant(0, _BYTES, ROW_BYTES))


def _multiply_bytes(k: Emitter, types: tuple[DType, DType], total: Val, a: Pointer, b: Pointer, groups: Val) -> Val:
    """Return a row of int32 sums plus the products of a row of ``a``."""
    left, right = types
    sums = k.variable(total)
    with k.loop(0, groups) as group:
        weights = b[group * ROW_BYTES].cast(right).load(ROW_BYTES)
        for i in range(4):
            x = a[group * 4 + i].cast(left).load().to(I32)
            sums.set(sums.get() + weights.shuffle(weights, range(i, ROW_BYTES, 4)).to(I32) * x)
    return sums.get()


def _multiply_halves(k: Emitter, types: tuple[DType, DType], total: Val, a: Pointer, b: Pointer, groups: Val) -> Val:
    """Return a row of float32 sums plus the products of a row of ``a``, all of bfloat16."""
    dtype, _ = types
    zero = k.constant(0.0, F32, _COLUMNS)
    sums: list[Variable] = [k.variable(zero), k.variable(zero)]
    with k.loop(0, groups) as group:
        weights = b[group * ROW_BYTES].cast(dtype).load(2 * _COLUMNS)
        for i, each in enumerate(sums):
            x = _flushed(a[group * 4 + 2 * i].cast(dtype).load().to(F32))
            weight = _flushed(weights.shuffle(weights, range(i, 2 * _COLUMNS, 2)).to(F32))
            each.set(_flushed(k.fma(weight, x, each.get())))
    pairs = _flushed(sums[0].get() + sums[1].get())
    return _flushed(_flushed(total) + pairs)


def _flushed(x: Val) -> Val:
    """Return float32 numbers with zeros of the same sign instead of denormal numbers."""
    bits = x.bits(U32)
    denormal = (bits & 0x7F800000).eq(0)
    return denormal.select(bits & 0x80000000, bits).bits(F32)
