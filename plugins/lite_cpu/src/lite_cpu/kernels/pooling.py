"""Pooling of channels-last images; vectors hold channels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Pointer, Val
from lite_cpu.kernels.base import Kernel
from lite_cpu.kernels.largest_half import LargestHalf
from lite_cpu.kernels.reduction import larger, lowest
from lite_cpu.kernels.rows import computed
from lite_cpu.vector_math import absolute, sqrt

__all__ = ["AVERAGE", "MAXIMUM", "NORMS", "Pool"]

MAXIMUM, AVERAGE = "maximum", "average"
#: Norms of windows, by their order p.
NORMS = {1: "norm1", 2: "norm2"}

#: Number of vectors of channels that are pooled together, in separate accumulators, so that additions overlap.
_VECTORS = 4

#: Order of the parameters.
PARAMETERS = (
    "channels", "height", "width",
    "x_batch", "x_row", "x_pixel", "y_batch", "y_row", "y_pixel",
    "row_dilation", "column_dilation",
)  # fmt: skip
_AT = {name: i for i, name in enumerate(PARAMETERS)}

#: Length of a window's entry in a table: first input element, number of elements, number of counted elements.
WINDOW_NUMBERS = 3


@dataclass(frozen=True, slots=True)
class _Extent:
    """A window's extent along one axis; see :data:`WINDOW_NUMBERS`."""

    first: Val
    taps: Val
    counted: Val

    @staticmethod
    def load(table: Pointer, window: Val) -> _Extent:
        entry = table[window * WINDOW_NUMBERS]
        return _Extent(*(entry[i].load() for i in range(WINDOW_NUMBERS)))


@dataclass(frozen=True)
class Pool(Kernel):
    """Maximum, average or norm of windows of an image.

    Pointers: image, result, and the tables of windows along height and width (int64).

    A work item is a row of windows of one image. The tables refer only to elements inside the image, so padding is
    never read. ``taps`` is the size of complete windows, whose loops are unrolled, or (0, 0) if windows are too large
    for that.
    """

    kind: str
    dtype: DType
    taps: tuple[int, int]

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, params, begin, end, _):
            p = {name: params[i] for name, i in _AT.items()}
            x, y = pointers.tensor(0, self.dtype), pointers.tensor(1, self.dtype)
            rows, columns = pointers.tensor(2, DType.INT64), pointers.tensor(3, DType.INT64)
            with k.loop(begin, end) as item:
                window, batch = item % p["height"], item / p["height"]
                down = _Extent.load(rows, window)
                source = x[batch * p["x_batch"] + down.first * p["x_row"]]
                target = y[batch * p["y_batch"] + window * p["y_row"]]
                with k.loop(0, p["width"]) as column:
                    right = _Extent.load(columns, column)
                    self._emit_window(
                        k, p, source[right.first * p["x_pixel"]], target[column * p["y_pixel"]], down, right
                    )

    def _emit_window(
        self, k: Emitter, p: dict[str, Val], x: Pointer, y: Pointer, down: _Extent, right: _Extent
    ) -> None:
        tall, wide = self.taps
        if not tall:
            self._emit_channels(k, p, x, y, down, right, unrolled=False)
            return
        k.if_else(
            down.taps.eq(tall) & right.taps.eq(wide),
            lambda: self._emit_channels(k, p, x, y, down, right, unrolled=True),
            lambda: self._emit_channels(k, p, x, y, down, right, unrolled=False),
        )

    def _emit_channels(
        self, k: Emitter, p: dict[str, Val], x: Pointer, y: Pointer, down: _Extent, right: _Extent, *, unrolled: bool
    ) -> None:
        """Emit all channels of one window."""
        by_bits = self.kind == MAXIMUM and self.dtype.is_half
        lanes = k.machine.lanes(self.dtype.itemsize if by_bits else computed(self.dtype).itemsize)
        accumulator = DType.FLOAT64 if self.kind == NORMS[2] else computed(self.dtype)
        counted = (down.counted * right.counted).to(accumulator)
        row_step, column_step = p["row_dilation"] * p["x_row"], p["column_dilation"] * p["x_pixel"]
        start = lowest(self.dtype) if self.kind == MAXIMUM else 0

        def each_element(channel: Val, take: Callable[[Pointer], None]) -> None:
            if unrolled:
                for r in range(self.taps[0]):
                    for c in range(self.taps[1]):
                        take(x[channel + row_step * r + column_step * c])
            else:
                with k.loop(0, down.taps) as row, k.loop(0, right.taps) as column:
                    take(x[channel + row * row_step + column * column_step])

        def pool_bits(channel: Val, vectors: int, valid: Val | None) -> None:
            results = [LargestHalf(k, self.dtype, lanes) for _ in range(vectors)]

            def take(at: Pointer) -> None:
                for vector, result in enumerate(results):
                    result.take(k.load_first(at.cast(DType.INT16)[vector * lanes], valid, lanes))

            each_element(channel, take)
            for vector, result in enumerate(results):
                k.store_first(y.cast(DType.INT16)[channel + vector * lanes], result.bits(), valid)

        def pool(channel: Val, vectors: int, valid: Val | None) -> None:
            results = [k.variable(k.constant(start, accumulator, lanes)) for _ in range(vectors)]

            def take(at: Pointer) -> None:
                for vector, result in enumerate(results):
                    value = k.load_first(at[vector * lanes], valid, lanes)
                    result.set(self._accumulate(result.get(), value.to(computed(self.dtype)).to(accumulator)))

            each_element(channel, take)
            for vector, result in enumerate(results):
                pooled = result.get()
                if self.kind == AVERAGE:
                    pooled = pooled * (1.0 / counted)
                elif self.kind == NORMS[2]:
                    pooled = sqrt(pooled)
                k.store_first(y[channel + vector * lanes], pooled.to(computed(self.dtype)).to(self.dtype), valid)

        emit = pool_bits if by_bits else pool
        first = k.index(0)
        for vectors in (_VECTORS, 1):
            width = vectors * lanes
            stop = first + (p["channels"] - first) / width * width
            with k.loop(first, stop, width) as channel:
                emit(channel, vectors, None)
            first = stop
        with k.if_(first < p["channels"]):
            emit(first, 1, p["channels"] - first)

    def _accumulate(self, result: Val, value: Val) -> Val:
        if self.kind == MAXIMUM:
            return larger(result, value)
        if self.kind == AVERAGE:
            return result + value
        return result + (absolute(value) if self.kind == NORMS[1] else value * value)
