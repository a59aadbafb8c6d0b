"""The register tile of a matrix product with packed weights, and the loops that cover a block with it.

Several kernels use :class:`BlockEmitter`: :mod:`.gemm` on tensors, others on data in the scratch memory of a thread.

The register tile is ``rows`` x ``vectors``: every step along the depth loads ``vectors`` vectors of B once and
multiplies them by one element of each row of A (:mod:`.depth_loops`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from lite_compiler.tracing.numbers import call
from lite_core.ir import DType
from lite_cpu.aligned import aligned_empty
from lite_cpu.chains import Chain, Operand
from lite_cpu.emitter import Emitter, Number, Pointer, Val, Variable
from lite_cpu.kernels.bfloat16_pairs import add_pair_matrices
from lite_cpu.kernels.depth_loops import (
    AddProducts,
    Fetch,
    Sums,
    by_lane,
    multiply_add,
    multiply_by_broadcast,
    multiply_by_lane,
)
from lite_cpu.kernels.half_products import HalfSums
from lite_cpu.kernels.small_matrices import blocks_of_rows, multiply_matrices, rows_of_blocks
from lite_cpu.machine import Machine

__all__ = [
    "Ahead",
    "BlockEmitter",
    "BlockTensors",
    "PanelShares",
    "Rows",
    "Window",
    "counts_of_rest",
    "cover_columns",
    "cover_rows",
    "gemm_tile",
    "load_columns",
    "pack_columns",
    "pack_panels",
    "rows_time",
    "store_tile",
]

Array = np.ndarray[Any, Any]
F32 = DType.FLOAT32

#: Number of independent multiply-adds that hides their latency.
_INDEPENDENT = 8

#: The register tiles of a panel prefetch the next one if they are at least as many. A single tile reads a panel only
#: once, as a stream, which prefetches of another stream would disturb.
_FEWEST_SHARERS = 2

#: The cache that the next panel is prefetched into. The nearest cache would lose the current panel.
_PANEL_CACHE = 2


def gemm_tile(machine: Machine) -> tuple[int, int]:
    """Return rows and vectors of the register tile for a machine.

    The accumulators must hide the latency of the multiply-add, and leave registers for B and for the broadcast. With
    AVX-512, 7 rows measured better than 14, because rows at distances of a power of two share a cache set. Multiplying
    by lane takes a register for each row of A, so a wide tile needs fewer (6 x 3: 97 % of the peak of a Neoverse N1 in
    LLVM's model, 8 x 2: 91 %).
    """
    rows = machine.tuning.tile_rows
    if machine.multiply_by_lane:
        return rows or 6, 3
    if machine.vector_registers >= 32:
        return rows or (7 if machine.masks else 8), 2
    return rows or 6, 2


def pack_panels(b: Array, lanes: int, vectors: int) -> Array:
    """Pack B in the order in which the kernel reads it.

    Args:
        b: [batches, depth, columns], float32.
        lanes: elements of a vector register.
        vectors: vectors of a panel.

    Returns:
        [batches, n]: for each batch panels of [depth, lanes * vectors], and for the remaining columns a narrower panel
        of whole vectors, padded with zeros.
    """
    return pack_columns(lambda part: b[:, :, part], b.shape, lanes, vectors)


def pack_columns(columns_of: Callable[[slice], Array], shape: tuple[int, ...], lanes: int, vectors: int) -> Array:
    """Pack B like :func:`pack_panels`, but compute B one panel at a time, directly into the result.

    Args:
        columns_of: returns the part [batches, depth, n] of B with the given columns.
        shape: shape of B: batches, depth, columns.
        lanes: elements of a vector register.
        vectors: vectors of a panel.
    """
    batches, depth, columns = shape
    width = lanes * vectors
    packed = aligned_empty((batches, depth * -(-columns // lanes) * lanes), np.float32)
    for start in range(0, columns, width):
        count = min(width, columns - start)
        filled = -(-count // lanes) * lanes
        panel = packed[:, depth * start : depth * (start + filled)].reshape(batches, depth, filled)
        panel[:, :, :count] = columns_of(slice(start, start + count))
        panel[:, :, count:] = 0
    return packed


@dataclass(frozen=True, slots=True)
class Window:
    """Layout of one row of A: ``segments`` x ``taps`` runs of ``depth`` elements; strides in elements."""

    segments: Val
    taps: Val
    depth: Val
    a_segment: Val
    a_tap: Val

    @property
    def total(self) -> Val:
        """Number of elements of a row."""
        return self.segments * self.taps * self.depth


@dataclass(frozen=True, slots=True)
class Rows:
    """Groups of rows of a matrix: their start and strides in elements.

    With ``spread`` one element serves all columns of a row.
    """

    start: Pointer
    row: Val
    group: Val
    spread: bool = False

    def at(self, group: Number, row: Number, column: Number = 0) -> Rows:
        """Return the rows from another element on."""
        offset = self.group * group + self.row * row
        return Rows(self.start[offset if self.spread else offset + column], self.row, self.group, self.spread)


@dataclass(frozen=True, slots=True)
class BlockTensors:
    """The tensors of a block of rows: A, C and the operands of the epilogue."""

    a: Rows
    c: Rows
    operands: tuple[Rows, ...] = ()

    def at(self, group: Number, row: Number, column: Number = 0) -> BlockTensors:
        """Return the block from another element on; the column does not apply to A."""
        operands = tuple(operand.at(group, row, column) for operand in self.operands)
        return BlockTensors(self.a.at(group, row), self.c.at(group, row, column), operands)


def cover_columns(k: Emitter, columns: Val, panel: Callable[[Val, int, Val | None], None]) -> None:
    """Emit ``panel(column, vectors, valid)`` for the panels of a block; at most the last one is narrower.

    ``valid`` is the number of valid columns of a panel's last vector; None for all.
    """
    lanes, (_, vectors) = k.machine.lanes(), gemm_tile(k.machine)
    width = lanes * vectors
    whole = columns / width * width
    with k.loop(0, whole, width) as column:
        panel(column, vectors, None)
    rest = columns - whole
    for narrow in range(1, vectors + 1):
        with k.if_((rest > (narrow - 1) * lanes) & (rest <= narrow * lanes)):
            panel(whole, narrow, rest - (narrow - 1) * lanes)


def cover_rows(k: Emitter, groups: Number, rows: Val, tile: Callable[[Val, Val, int], None]) -> None:
    """Emit ``tile(group, row, count)`` for the register tiles of a panel."""
    tile_rows, _ = gemm_tile(k.machine)
    whole = rows / tile_rows * tile_rows
    with k.loop(0, groups) as group:
        with k.loop(0, whole, tile_rows) as row:
            tile(group, row, tile_rows)
        row = whole
        for count in counts_of_rest(tile_rows):
            fits = rows - row >= count
            with k.if_(fits):
                tile(group, row, count)
            row += fits.select(k.index(count), 0)


def counts_of_rest(tile_rows: int) -> tuple[int, ...]:
    """Return the rows of the tiles that cover the rows after the last whole tile, the highest first.

    Powers of two need fewer tiles to compile than one for each number of rows. A tall tile is halved first: images of
    7 x 7 and 14 x 14 pixels leave half a tile of 14 rows.
    """
    return (tile_rows // 2, 4, 2, 1) if tile_rows > 8 else (4, 2, 1)


def rows_time(machine: Machine, rows: int) -> int:
    """Estimate the time of a product with this many rows, in units of one row of a full register tile."""
    times = _times_of_rest(machine)
    rest = rows % len(times)
    time: int = rows - rest + call(operator.getitem, times, rest)
    return time


@lru_cache(64)
def _times_of_rest(machine: Machine) -> tuple[int, ...]:
    """Return the time of the rows after the last whole tile, for each number of them."""
    tile_rows, vectors = gemm_tile(machine)
    # A low tile takes as long as one whose multiply-adds hide their latency: that needs eight of them where two units
    # compute, and four where one computes vectors of 512 bits, as the height of its tile tells.
    independent = _INDEPENDENT // 2 if machine.vector_bytes >= 64 and tile_rows <= 8 else _INDEPENDENT
    least = -(-independent // vectors)
    times = []
    for rest in range(tile_rows):
        time = 0
        for count in counts_of_rest(tile_rows):
            if rest >= count:
                rest -= count
                time += max(count, least)
        times.append(time)
    return tuple(times)


def load_columns(k: Emitter, pointer: Pointer, vectors: int, valid: Val | None) -> list[Val]:
    """Load one element for each column of a panel; for ``valid`` see :func:`cover_columns`."""
    lanes = k.machine.lanes()
    return [k.load_first(pointer[v * lanes], _partial(v, vectors, valid), lanes) for v in range(vectors)]


def store_tile(
    k: Emitter, epilogue: Chain, tensors: BlockTensors, sums: Sequence[Sequence[Variable]], valid: Val | None
) -> None:
    """Store ``C = epilogue(sums)`` of a register tile, given by rows; for ``valid`` see :func:`cover_columns`."""
    lanes = k.machine.lanes()
    # Loaded once: after a store, LLVM would load them anew.
    singles = {
        i: tensors.operands[i].start.load().splat(lanes) for i, one in enumerate(epilogue.operands) if one.single
    }
    for row, vectors in enumerate(sums):
        for v, total in enumerate(vectors):
            partial = _partial(v, len(vectors), valid)

            def load(i: int, operand: Operand, row: int = row, v: int = v, partial: Val | None = partial) -> Val:
                if i in singles:
                    return singles[i]
                at = tensors.operands[i].at(0, row, v * lanes).start
                return at.load().splat(lanes) if operand.spread else k.load_first(at, partial, lanes)

            result = epilogue.emit(k, total.get(), load)
            k.store_first(tensors.c.at(0, row, v * lanes).start, result, partial)


def _partial(vector: int, vectors: int, valid: Val | None) -> Val | None:
    """Return the number of valid columns of a vector, None for all: only the last vector may be partial."""
    return valid if vector == vectors - 1 else None


@dataclass(frozen=True, slots=True)
class Ahead:
    """The part of the next panel of B that a register tile prefetches: ``step`` bytes at each step of the depth."""

    start: Pointer
    step: Val

    def fetch(self, position: Val) -> Fetch:
        """Return what a loop along the depth prefetches; ``position`` is its first step in the whole row of A."""
        # With three tiles of six rows, the share of one is 64 bytes in four steps.
        return Fetch(self.start, self.step, position * self.step, _PANEL_CACHE, every=4)


@dataclass(frozen=True, slots=True)
class PanelShares:
    """The division of a panel's bytes among the register tiles of the panel before, which prefetch them.

    A panel is often larger than the first-level cache and comes from memory. If only its own first tile asked for it,
    that tile would wait for the memory, which would idle during the others.
    """

    rows: Val
    bytes_of_row: Val
    step: Val

    @classmethod
    def of(cls, k: Emitter, groups: Number, rows: Val, steps: Val, panel_bytes: Val) -> PanelShares:
        """Divide panels of a block of ``groups`` x ``rows`` rows, each with a number of steps along the depth."""
        tile_rows, _ = gemm_tile(k.machine)
        all_rows, steps = k.maximum(rows * groups, 1), k.maximum(steps, 1)
        # Rounded down: with 65 bytes instead of 64 at each step, two tiles take a quarter longer (Zen 4, weights from
        # memory).
        bytes_of_row = panel_bytes / all_rows
        step = (bytes_of_row * tile_rows + steps - 1) / steps
        is_shared = all_rows > tile_rows * (_FEWEST_SHARERS - 1)
        return cls(rows, is_shared.select(bytes_of_row, 0), is_shared.select(step, 0))

    def ahead(self, panel: Pointer, group: Val, row: Val) -> Ahead:
        """Return the part of the next panel for the tile that begins at a row."""
        return Ahead(panel.cast(DType.UINT8)[(group * self.rows + row) * self.bytes_of_row], self.step)


@dataclass(frozen=True, slots=True)
class BlockEmitter:
    """Emitter of the tiles of a block: ``C = epilogue(bias + A * B)``; a bias of None is omitted.

    A and B have elements of 32 bits, float32 or what ``products`` multiplies; B may also be 16-bit floats. With
    ``matrices`` they are pairs of bfloat16 in groups of two, multiplied as :mod:`.small_matrices` describes. With
    ``unit`` both are float16, multiplied as :mod:`.half_products` describes; the emitter's machine has lanes for it.
    """

    k: Emitter
    epilogue: Chain
    window: Window
    products: AddProducts = multiply_add
    matrices: bool = False
    unit: Val | None = None

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
        """Emit a whole block; the outer loop is over panels, so that a panel stays in the first-level cache.

        Args:
            tensors: A, C and operands from the first row and column of the block on.
            groups: number of groups of rows.
            rows: rows of a group.
            columns: columns of C from the start of ``tensors``, ``b`` and ``bias`` on.
            b: panels packed by :func:`pack_panels`; begins at a whole panel.
            bias: one element for each column.
            following: the panel that is read after this block; by default the first one of this block.
        """
        k, total = self.k, self.window.total
        width = gemm_tile(k.machine)[1] * k.machine.lanes()
        shares = PanelShares.of(k, groups, rows, total, total * (width * b.dtype.itemsize))

        def panel(column: Val, vectors: int, valid: Val | None) -> None:
            biases = None if bias is None else bias[column]
            here, weights = tensors.at(0, 0, column), b[column * total]
            fresh = k.index(column).eq(0)
            has_next = column + width < columns
            next_panel = k.choose(has_next, weights[total * width], b if following is None else following)

            def tile(group: Val, row: Val, count: int) -> None:
                ahead = shares.ahead(next_panel, group, row)
                self._tile(here.at(group, row), weights, biases, count, vectors, valid, fresh, ahead)

            cover_rows(k, groups, rows, tile)

        cover_columns(k, columns, panel)

    def _tile(
        self,
        tensors: BlockTensors,
        b: Pointer,
        bias: Pointer | None,
        rows: int,
        vectors: int,
        valid: Val | None,
        fresh: Val,
        ahead: Ahead,
    ) -> None:
        """Emit one register tile. ``fresh``: no panel has read these rows of A before."""
        k, window, lanes = self.k, self.window, self.k.machine.lanes()
        width = vectors * lanes
        if bias is None:
            starts = [k.constant(0.0, F32, lanes)] * vectors
        else:
            starts = load_columns(k, bias, vectors, valid)
        first = [starts] * rows
        sums = [[k.variable(start) for start in row] for row in (blocks_of_rows(first) if self.matrices else first)]
        zero = k.constant(0.0, F32, lanes)
        # A single row is summed in several independent chains, so that no multiply-add waits for the one before. With
        # more rows the gain would not be worth the compile time. Narrow panels have as many chains as wide ones, so
        # that every column is summed in the same order: equal columns of B give bitwise equal columns of C. Where
        # tiles are three vectors wide, loads take nearly as long as a single chain, so all rows have the same order.
        several = rows == 1 and not k.machine.multiply_by_lane
        others = _INDEPENDENT // gemm_tile(k.machine)[1] - 1 if several else 0
        halves = None if self.unit is None else HalfSums.of(k, sums, 1 + others, self.unit)
        others = 0 if halves else others
        chains = [sums, *([[k.variable(zero) for _ in range(vectors)] for _ in range(rows)] for _ in range(others))]
        with k.loop(0, window.segments) as segment, k.loop(0, window.taps) as tap:
            a = tensors.a.start[segment * window.a_segment + tap * window.a_tap]
            position = (segment * window.taps + tap) * window.depth
            panel = b[position * width]
            # With few columns for each row of A, hardware prefetching is too late for the rows of the next tile. Later
            # panels find these rows in the cache and prefetch the current ones, which has no effect.
            following = k.choose(fresh, a[tensors.a.row * rows], a)
            # Computed here, because LLVM would compute the addresses of rows at every step.
            rows_of_a = [a[tensors.a.row * row] for row in range(rows)]
            fetches = [Fetch(following, rows, every=2)] if rows > 1 else []
            fetches.append(ahead.fetch(position))
            if halves is not None:
                halves.add_run(self._multiply, rows_of_a, panel, window.depth, fetches)
            elif self.matrices:
                groups = [replace(fetch, step=k.index(fetch.step) * 2, every=fetch.every // 2) for fetch in fetches]
                multiply_matrices(k, rows_of_a, panel, window.depth / 2, sums, groups, add_pair_matrices)
            else:
                self._multiply(rows_of_a, panel, window.depth, chains, fetches)
        if halves is not None:
            halves.finish()
        for chain in chains[1:]:
            for row in range(rows):
                for v in range(vectors):
                    sums[row][v].set(sums[row][v].get() + chain[row][v].get())
        if self.matrices:
            totals = rows_of_blocks([[total.get() for total in row] for row in sums], rows)
            sums = [[k.variable(total) for total in row] for row in totals]
        store_tile(k, self.epilogue, tensors, sums, valid)

    def _multiply(
        self, rows: Sequence[Pointer], panel: Pointer, steps: Val, chains: Sequence[Sums], fetches: Sequence[Fetch]
    ) -> None:
        """Emit the loop over the steps of a contiguous run of the rows."""
        if self.k.machine.multiply_by_lane:
            multiply_by_lane(self.k, rows, panel, steps, chains, fetches, by_lane(self.products))
        else:
            multiply_by_broadcast(self.k, rows, panel, steps, chains, fetches, self.products)
