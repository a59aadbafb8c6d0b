"""Matrix product that reads weights of 4 or 8 bits directly: ``C = epilogue(bias + A * W)``.

``W[d, c] = (q[d, c] - z[d / block, c]) * s[d / block, c]`` with small integers ``q`` and ``z``. One row is bound by the
bandwidth of reading ``q``; more rows by computing. In both cases dot products of bytes are fastest where the machine
has them: A is split into three bytes (:mod:`.split_rows`), so the products and their sums within a block are exact, and
take three quarters of the instructions of float32. Other machines widen ``q`` in registers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from lite_core.ir import DType
from lite_cpu.aligned import LINE_BYTES
from lite_cpu.chains import Chain
from lite_cpu.emitter import Emitter, Params, Pointer, Pointers, Val, Variable
from lite_cpu.kernels.base import Kernel, Products
from lite_cpu.kernels.integer_dots import DotForm, emit_dots, is_x86
from lite_cpu.kernels.split_rows import HEADER, STARTS, SUM, UNIT, words_of_block
from lite_cpu.kernels.tiles import BlockTensors, Rows, gemm_tile, store_tile
from lite_cpu.machine import Machine

__all__ = ["UNROLLED", "NarrowProduct", "emit_codes", "middle_of", "tile_rows", "vectors_of"]

F32, I32, I8, U8 = DType.FLOAT32, DType.INT32, DType.INT8, DType.UINT8

#: Elements of the depth that are unrolled.
UNROLLED = 32

#: Bytes ahead of the weights that a single row prefetches: it reads them once, as a stream from memory. On a Zen 4, it
#: is 6 to 15 % faster than without.
_AHEAD = 4096

#: Order of the parameters; then follow the row strides of the epilogue's operands.
PARAMETERS = ("rows", "columns", "blocks", "c_row", "row_block", "column_block")


def middle_of(machine: Machine, bits: int) -> int:
    """Return the code of a weight that stands for 0: SDOT multiplies signed bytes, everything else unsigned codes."""
    signed = machine.dot_product and not is_x86(machine) and bits == 8
    return 0 if signed else 1 << (bits - 1)


def vectors_of(machine: Machine) -> int:
    """Return the vectors of a panel: without dot products, panels are also widened for tiles of float32."""
    return 2 if machine.dot_product else gemm_tile(machine)[1]


def tile_rows(machine: Machine) -> int:
    """Return the rows that are multiplied together by the same weights; with four, sums of AVX-512 leave registers."""
    return 3 if machine.vector_registers >= 32 else 2


@dataclass(frozen=True)
class NarrowProduct(Kernel):
    """Matrix product with narrow weights and an epilogue.

    Pointers: split rows of A, panels of the weights, of the scales, of the zero points, bias, C, then the operands of
    the epilogue. A work item is a block of rows by a block of columns.

    Attributes:
        epilogue: chain applied to each element before it is stored.
        bits: bits of a weight, 4 or 8.
        block: elements of the depth in a block of A, and of the weights.
        pieces: see :class:`~lite_cpu.kernels.split_rows.SplitRows`.
        scales: element type of the scales.
        by_block: True if each block has its own scales and zero points.
        zeros: True if zero points are subtracted.
    """

    epilogue: Chain
    bits: int
    block: int
    pieces: int
    scales: DType
    by_block: bool
    zeros: bool

    @property
    def computes(self) -> Products:
        return Products("float32", f"{self.bits} bits")

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, params, begin, end, _):
            p = {name: params[i] for i, name in enumerate(PARAMETERS)}
            width = vectors_of(k.machine) * k.machine.lanes()
            column_blocks = (p["columns"] + p["column_block"] - 1) / p["column_block"]
            emitter = _Tiles(k, self, p["blocks"], pointers)
            with k.loop(begin, end) as item:
                first_row = item / column_blocks * p["row_block"]
                first = item % column_blocks * p["column_block"]
                rows = k.minimum(p["row_block"], p["rows"] - first_row)
                with k.loop(first, k.minimum(first + p["column_block"], p["columns"]), width) as column:
                    tensors = self._tensors(pointers, params, p["c_row"], first_row, column)
                    valid = k.minimum(p["columns"] - column, width)
                    emitter.panel(tensors, first_row, rows, column / width, column, valid)

    def _tensors(self, pointers: Pointers, params: Params, c_row: Val, row: Val, column: Val) -> BlockTensors:
        k = c_row.k
        none = k.index(0)
        operands = tuple(
            Rows(pointers.tensor(6 + i, o.dtype), params[len(PARAMETERS) + i], none, o.spread)
            for i, o in enumerate(self.epilogue.operands)
        )
        c = Rows(pointers.tensor(5, self.epilogue.output), c_row, none)
        return BlockTensors(Rows(pointers.tensor(5, F32), none, none), c, operands).at(0, row, column)


@dataclass(frozen=True, slots=True)
class _Tiles:
    k: Emitter
    kernel: NarrowProduct
    blocks: Val
    pointers: Pointers

    @property
    def vectors(self) -> int:
        return vectors_of(self.k.machine)

    def panel(self, tensors: BlockTensors, first_row: Val, rows: Val, number: Val, column: Val, valid: Val) -> None:
        """Emit all rows of a panel of columns."""
        k, kernel, most = self.k, self.kernel, tile_rows(self.k.machine)
        width = vectors_of(k.machine) * k.machine.lanes()
        line = self.blocks * words_of_block(kernel.block, kernel.pieces)
        counts = self.blocks if kernel.by_block else k.index(1)
        weights = self.pointers.tensor(1, U8)[number * self.blocks * (kernel.block * kernel.bits // 8 * width)]
        scales = self.pointers.tensor(2, kernel.scales)[number * counts * width]
        zeros = self.pointers.tensor(3, I8)[number * counts * width]
        bias = self.pointers.tensor(4, F32)[column]
        x = self.pointers.tensor(0, I32)[first_row * line]

        def tile(row: Val, count: int) -> None:
            self._tile(tensors.at(0, row), x[row * line], line, (weights, scales, zeros, bias), count, valid)

        whole = rows / most * most
        with k.loop(0, whole, most) as row:
            tile(row, most)
        for rest in range(1, most):
            with k.if_((rows - whole).eq(rest)):
                tile(whole, rest)

    def _tile(
        self,
        tensors: BlockTensors,
        x: Pointer,
        line: Val,
        panel: tuple[Pointer, Pointer, Pointer, Pointer],
        rows: int,
        valid: Val,
    ) -> None:
        k, kernel, lanes = self.k, self.kernel, self.k.machine.lanes()
        width = self.vectors * lanes
        weights, scales, zeros, bias = panel
        totals = [[k.variable(k.constant(0.0, F32, lanes)) for _ in range(self.vectors)] for _ in range(rows)]
        lines = [line * row for row in range(rows)]
        by_block = width if kernel.by_block else 0
        moving = [
            (x, words_of_block(kernel.block, kernel.pieces)),
            (weights, kernel.block * kernel.bits // 8 * width),
            (scales, by_block),
            (zeros, by_block),
        ]
        with k.walk(self.blocks, *moving) as (x_at, w_at, s_at, z_at):
            blocks = [x_at[at] for at in lines]
            sums = self._sums(blocks, w_at, rows)
            offsets = self._offsets(z_at)
            factors = [s_at[v * lanes].load(lanes).to(F32) for v in range(self.vectors)] if kernel.by_block else []
            for row, block in enumerate(blocks):
                unit, of_row = (block.cast(F32)[i].load().splat(lanes) for i in (UNIT, SUM))
                for v in range(self.vectors):
                    value = sums[row][v]
                    if offsets:
                        value = k.fma(offsets[v], of_row, value)
                    factor = factors[v] * unit if factors else unit
                    totals[row][v].set(k.fma(value, factor, totals[row][v].get()))
        if not kernel.by_block:
            for v in range(self.vectors):
                factor = scales[v * lanes].load(lanes).to(F32)
                for vectors in totals:
                    vectors[v].set(vectors[v].get() * factor)
        self._store(tensors, totals, bias, valid)

    def _offsets(self, zeros: Pointer) -> list[Val]:
        """Return for each vector of columns what multiplies the sum of a row's elements; nothing if it is 0."""
        k, kernel, lanes = self.k, self.kernel, self.k.machine.lanes()
        middle = 0 if kernel.pieces else middle_of(k.machine, kernel.bits)
        if kernel.zeros:
            return [(-middle - zeros[v * lanes].load(lanes).to(I32)).to(F32) for v in range(self.vectors)]
        return [k.constant(-float(middle), F32, lanes)] * self.vectors if middle else []

    def _sums(self, blocks: Sequence[Pointer], weights: Pointer, rows: int) -> list[list[Val]]:
        """Return the sums of a block, in units of each row."""
        if not self.kernel.pieces:
            return self._float_sums(blocks, weights, rows)
        k, kernel, lanes = self.k, self.kernel, self.k.machine.lanes()
        pieces = kernel.pieces
        starts = [[block[STARTS + p].load().splat(lanes) for p in range(pieces)] for block in blocks]
        sums = [[[k.variable(start) for start in row] for _ in range(self.vectors)] for row in starts]
        with self._sections(blocks, weights) as (section, w_at):
            for step, words in enumerate(self._codes(w_at, rows == 1)):
                for row, x in enumerate(section):
                    for p in range(pieces):
                        group = x[HEADER + p * (kernel.block // 4) + step].load().splat(lanes)
                        for v, word in enumerate(words):
                            total = sums[row][v][p]
                            total.set(_dot(k, total.get(), word, group))
        return [[_combined([total.get() for total in column]) for column in row] for row in sums]

    def _float_sums(self, blocks: Sequence[Pointer], weights: Pointer, rows: int) -> list[list[Val]]:
        k, lanes = self.k, self.k.machine.lanes()
        sums = [[k.variable(k.constant(0.0, F32, lanes)) for _ in range(self.vectors)] for _ in range(rows)]
        with self._sections(blocks, weights) as (section, w_at):
            for step, words in enumerate(self._codes(w_at, rows == 1)):
                for i in range(4):
                    elements = [((word >> (8 * i)) & 0xFF).to(F32) for word in words]
                    for row, x in enumerate(section):
                        group = x.cast(F32)[HEADER + 4 * step + i].load().splat(lanes)
                        for total, element in zip(sums[row], elements):
                            total.set(k.fma(group, element, total.get()))
        return [[total.get() for total in row] for row in sums]

    @contextmanager
    def _sections(self, blocks: Sequence[Pointer], weights: Pointer) -> Iterator[tuple[list[Pointer], Pointer]]:
        """Emit a loop over the parts of a block that are unrolled; yield the rows' words and the weights of a part."""
        kernel, k = self.kernel, self.k
        length = min(kernel.block, UNROLLED)
        words = length // 4 if kernel.pieces else length
        if length == kernel.block:
            yield [*blocks], weights
            return
        bytes_ = length * kernel.bits // 8 * self.vectors * k.machine.lanes()
        moving = [*((block, words) for block in blocks), (weights, bytes_)]
        with k.walk(kernel.block // length, *moving) as pointers:
            yield pointers[:-1], pointers[-1]

    def _codes(self, weights: Pointer, is_stream: bool) -> Iterator[list[Val]]:
        kernel = self.kernel
        return emit_codes(self.k, weights, kernel.bits, min(kernel.block, UNROLLED), _AHEAD if is_stream else 0)

    def _store(self, tensors: BlockTensors, totals: Sequence[Sequence[Variable]], bias: Pointer, valid: Val) -> None:
        k, lanes = self.k, self.k.machine.lanes()

        def store(vectors: int, count: Val | None) -> None:
            for v in range(vectors):
                partial = count if v == vectors - 1 else None
                start = k.load_first(bias[v * lanes], partial, lanes)
                for row in totals:
                    row[v].set(row[v].get() + start)
            store_tile(k, self.kernel.epilogue, tensors, [row[:vectors] for row in totals], count)

        def partly() -> None:
            for vectors in range(1, self.vectors + 1):
                with k.if_((valid > (vectors - 1) * lanes) & (valid <= vectors * lanes)):
                    store(vectors, valid - (vectors - 1) * lanes)

        k.if_else(valid.eq(self.vectors * lanes), lambda: store(self.vectors, None), partly)


def emit_codes(k: Emitter, weights: Pointer, bits: int, length: int, ahead: int = 0) -> Iterator[list[Val]]:
    """Yield for each four elements of the depth the codes of a panel's columns: four bytes in each lane of int32.

    Args:
        k: the emitter.
        weights: the panel, from the first of these elements on.
        bits: bits of a code.
        length: elements of the depth.
        ahead: bytes ahead of them that are prefetched; 0 for none.
    """
    lanes, vectors = k.machine.lanes(), vectors_of(k.machine)
    for step in range(length * bits // 32):
        at = step * vectors * lanes * 4
        words = [weights[at + v * lanes * 4].cast(I32).load(lanes) for v in range(vectors)]
        for line in range(0, vectors * lanes * 4 if ahead else 0, LINE_BYTES):
            weights[at + line + ahead].prefetch()
        if bits == 8:
            yield words
        else:
            yield [word & 0x0F0F0F0F for word in words]
            yield [(word >> 4) & 0x0F0F0F0F for word in words]


def _dot(k: Emitter, sums: Val, codes: Val, group: Val) -> Val:
    """Add the products of four codes in each lane with the four bytes of A in each lane."""
    if is_x86(k.machine):
        return emit_dots(k, DotForm(U8, I8), sums, codes, group.bits(I8))
    return emit_dots(k, DotForm(I8, I8), sums, group, codes.bits(I8))


def _combined(pieces: Sequence[Val]) -> Val:
    """Return ``65536 p1 + 256 p2 + p3``, or ``256 p1 + p2``, as float32; the last two fit int32 together."""
    low = ((pieces[-2] << 8) + pieces[-1]).to(F32)
    return low if len(pieces) == 2 else low.k.fma(pieces[0].to(F32), low.k.constant(65536.0, F32, low.lanes), low)
