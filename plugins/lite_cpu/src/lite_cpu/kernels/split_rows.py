"""Rows of float32 as sums of small integers, which dot products of bytes multiply without rounding.

Each block of a row, up to 128 elements, is divided by a power of two, the *unit*, and rounded to integers of 24 bits,
or 16. An integer is then split into signed bytes: ``X = 65536 p1 + 256 p2 + p3``. The unit follows from the largest
magnitude ``m`` in the block, so that every element is off by at most ``m * 2^-23`` (three bytes) or ``m * 2^-15``
(two). The products and sums of float32, each rounded to nearest, are together off by more. Blocks with an infinite
element or NaN get a unit of NaN, and so do all results of their rows.

The alternative for machines without dot products of bytes, ``pieces == 0``, keeps the elements as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Pointer, Val
from lite_cpu.kernels.base import Kernel

__all__ = ["HEADER", "SUM", "UNIT", "SplitRows", "words_of_block"]

F32, I32 = DType.FLOAT32, DType.INT32

#: 32-bit words before the elements of a block: the unit, the sum of the elements in units, then for each piece the
#: number that its sum of products begins with.
HEADER, UNIT, SUM, STARTS = 8, 0, 1, 2

_MAGNITUDE, _INFINITY, _EXPONENT = 0x7FFFFFFF, 0x7F800000, 0x7F800000
#: Blocks whose elements are all smaller than 2^-100 get the unit of such a block.
_SMALLEST = 27 << 23
#: Added to the bits of the largest magnitude: numbers within 2^-6 of the next power of two count as that power.
_BUMP = 1 << 17


def words_of_block(block: int, pieces: int) -> int:
    """Return the 32-bit words that a block of a row takes, with its header."""
    return HEADER + (block * pieces // 4 if pieces else block)


@dataclass(frozen=True)
class SplitRows(Kernel):
    """Split rows. Pointers: the rows, the split rows. A work item is a row.

    Parameters: elements of a row, distance of rows in elements, blocks of a row.

    Attributes:
        block: elements of a block, a multiple of 16.
        pieces: bytes of an integer, 3 or 2; 0 for float32.
        middle: the code of a weight that stands for 0.
    """

    block: int
    pieces: int
    middle: int

    def emit(self, k: Emitter) -> None:
        words = words_of_block(self.block, self.pieces)
        with k.kernel(self.symbol) as (pointers, params, begin, end, _):
            source, target = pointers.tensor(0, F32), pointers.tensor(1, I32)
            depth, stride, blocks = (params[i] for i in range(3))
            whole = depth / self.block
            with k.loop(begin, end) as row:
                x, y = source[row * stride], target[row * blocks * words]
                with k.loop(0, whole) as number:
                    self._block(k, x[number * self.block], y[number * words], None)
                with k.loop(whole, blocks) as number:  # the depth is padded with zeros
                    at = number * self.block
                    self._block(k, x[at], y[number * words], depth - at)

    def _block(self, k: Emitter, x: Pointer, y: Pointer, valid: Val | None) -> None:
        lanes = min(k.machine.lanes(), 16)
        starts = range(0, self.block, lanes)

        def load(start: int) -> Val:
            if valid is None:
                return x[start].load(lanes)
            return k.load_first(x[start], k.minimum(k.maximum(valid - start, 0), lanes), lanes)

        vectors = [load(start) for start in starts]
        if self.pieces:
            self._split(k, vectors, y)
            return
        total = k.variable(k.constant(0.0, F32, lanes))
        for start, vector in zip(starts, vectors):
            total.set(total.get() + vector)
            y.cast(F32)[HEADER + start].store(vector)
        y.cast(F32)[UNIT].store(k.constant(1.0, F32))
        y.cast(F32)[SUM].store(k.sum_lanes(total.get()))

    def _split(self, k: Emitter, vectors: list[Val], y: Pointer) -> None:
        lanes = vectors[0].lanes
        largest = k.constant(_SMALLEST, I32, lanes)
        for vector in vectors:
            largest = k.maximum(largest, vector.bits(I32) & _MAGNITUDE)
        most = k.max_lanes(largest)
        special = most >= _INFINITY
        exponent = (most + _BUMP) & _EXPONENT
        # An exponent of e, biased by 127: the factor is 2^(bits - e), the unit its inverse.
        bits = 8 * self.pieces - 2
        factor = (((254 + bits) << 23) - exponent).bits(F32)
        unit = special.select(k.constant(float("nan"), F32), (exponent - (bits << 23)).bits(F32))
        zero = k.constant(0.0, F32, lanes)
        sums = [k.constant(0, I32, lanes) for _ in range(self.pieces)]
        for number, vector in enumerate(vectors):
            scaled = special.select(zero, k.call("llvm.roundeven", vector * factor.splat(lanes)))
            rest = scaled.to(I32)
            for piece in reversed(range(self.pieces)):
                low = (rest << 24) >> 24 if piece else rest
                rest = (rest - low) >> 8
                sums[piece] = sums[piece] + low
                bytes_ = y[HEADER + piece * len(vectors) * lanes // 4].cast(DType.INT8)
                bytes_[number * lanes].store(low.to(DType.INT8))
        y.cast(F32)[UNIT].store(unit)
        total = k.constant(0.0, F32)
        for piece, vector in enumerate(sums):
            count = k.sum_lanes(vector)
            total = total * 256.0 + count.to(F32)
            y[STARTS + piece].store(count * -self.middle)
        y.cast(F32)[SUM].store(total)
