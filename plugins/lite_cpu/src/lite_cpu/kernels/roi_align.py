"""Regions of images pooled to one size, from samples between the elements (operator RoiAlign).

Samples of a bin are on a grid, so their weights are products of weights along both axes. Tables hold, for each bin
along an axis, the elements that its samples use (its taps) and their weights; the mean needs each element only once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Params, Pointer, Val, Variable
from lite_cpu.kernels.base import Kernel

__all__ = ["RoiAlign", "RoiSizes", "most_taps", "scratch_bytes"]

F32, F64, I64 = DType.FLOAT32, DType.FLOAT64, DType.INT64

#: Vectors of channels that are summed together.
_VECTORS = 4
#: More samples along an axis of a bin are not taken.
_MOST_SAMPLES = 1 << 24


class RoiSizes(NamedTuple):
    """The first parameters of the kernel: integers for a call, and values in the kernel.

    Attributes:
        images: number of images.
        channels: number of channels.
        height: rows of the images.
        width: columns of the images.
        rows: bins of a region from top to bottom.
        columns: bins of a region from left to right.
        samples: samples of a bin along each axis; 0 for one for each element of the bin, rounded up.
        block: channels of a work item.
        taps: see :func:`most_taps`.
    """

    images: Any
    channels: Any
    height: Any
    width: Any
    rows: Any
    columns: Any
    samples: Any
    block: Any
    taps: Any


def most_taps(height: int, width: int, samples: int) -> int:
    """Return the largest number of taps of a bin along an axis: two for each sample that can be inside."""
    return 2 * (samples or 2 * max(height, width) + 4) + 2


def scratch_bytes(sizes: RoiSizes) -> int:
    """Return the scratch memory of a thread: the tables, and a row of an image."""
    return int((sizes.rows + sizes.columns) * (8 + 12 * sizes.taps) + 4 * sizes.width + 64)


class _Table(NamedTuple):
    """The taps of the bins of an axis: ``taps`` places for each bin."""

    counts: Pointer
    indices: Pointer
    weights: Pointer
    taps: Val

    def add(self, k: Emitter, bin: Val, index: Val, weight: Val, *, merge: bool) -> None:
        """Add a tap; with ``merge``, the weights of taps of one element are added if they follow one another."""
        count, first = self.counts[bin].load(), bin * self.taps
        added = k.variable(k.constant(0, DType.BOOL))
        for back in (1, 2) if merge else ():
            with k.if_((count >= back) & ~added.get()):
                at = first + count - back
                with k.if_(self.indices[at].load().eq(index)):
                    self.weights[at].store(self.weights[at].load() + weight)
                    added.set(k.constant(1, DType.BOOL))
        with k.if_(~added.get()):
            self.indices[first + count].store(index)
            self.weights[first + count].store(weight)
            self.counts[bin].store(count + 1)

    def each(self, k: Emitter, bin: Val, body: Callable[[Val, Val], None]) -> None:
        """Emit a loop over the taps of a bin; ``body`` gets index and weight."""
        first = bin * self.taps
        with k.loop(first, first + self.counts[bin].load()) as at:
            body(self.indices[at].load(), self.weights[at].load())


@dataclass(frozen=True)
class RoiAlign(Kernel):
    """Average, or maximum, of the samples of each bin of regions.

    Pointers: images, regions (float32), the image of each region (int64), results. Parameters: :class:`RoiSizes`, the
    strides of images and of results, four each, and the scale of regions (float64). A work item is a block of
    channels of a region. Scratch: :func:`scratch_bytes`.

    Attributes:
        maximum: the largest product of an element and its weight, instead of the sum of these products; only with
            :attr:`channels_last`.
        half_pixel: regions are moved by half an element; otherwise they are at least 1 x 1.
        channels_last: the channels of images are contiguous, and vectors run along them; otherwise rows are contiguous.
        contiguous: the channels of results are contiguous.
    """

    maximum: bool
    half_pixel: bool
    channels_last: bool
    contiguous: bool = False

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, params, begin, end, scratch):
            sizes = RoiSizes(*(params[i] for i in range(len(RoiSizes._fields))))
            first = len(sizes)
            scale = params.number(first + 8, F64)
            vertical, rest = _table(scratch, sizes.rows, sizes.taps)
            horizontal, rest = _table(rest, sizes.columns, sizes.taps)
            blocks = (sizes.channels + sizes.block - 1) / sizes.block
            with k.loop(begin, end) as item:
                region, channel = item / blocks, item % blocks * sizes.block
                corners = pointers.tensor(1, F32)[region * 4]
                low_x, low_y, high_x, high_y = (
                    corners[i].load().to(F64) * scale - (0.5 if self.half_pixel else 0.0) for i in range(4)
                )
                self._fill(k, vertical, low_y, high_y, sizes.rows, sizes.height, sizes.samples)
                self._fill(k, horizontal, low_x, high_x, sizes.columns, sizes.width, sizes.samples)
                image = k.minimum(k.maximum(pointers.tensor(2, I64)[region].load(), 0), sizes.images - 1)
                source = pointers.tensor(0, F32)[image * params[first] + channel * params[first + 1]]
                target = pointers.tensor(3, F32)[region * params[first + 4] + channel * params[first + 5]]
                count = k.minimum(sizes.block, sizes.channels - channel)
                emit = self._emit_channels if self.channels_last else self._emit_rows
                emit(k, params, sizes, (vertical, horizontal), source, target, count, rest.cast(F32))

    def _fill(self, k: Emitter, table: _Table, low: Val, high: Val, bins: Val, size: Val, samples: Val) -> None:
        """Emit the table of an axis."""
        length = high - low if self.half_pixel else k.maximum(high - low, 1.0)
        bin_size = length / bins.to(F64)
        wanted = k.minimum(k.call("llvm.ceil", bin_size), float(_MOST_SAMPLES))
        adaptive = (wanted > 0.0).select(wanted, 0.0).to(I64)
        count = (samples > 0).select(samples, adaptive)
        share = 1.0 / k.maximum(count, 1).to(F64)
        last = (size - 1).to(F64)
        with k.loop(0, bins) as bin:
            table.counts[bin].store(0)
            outside = k.variable(k.constant(0, DType.BOOL))
            with k.loop(0, count) as sample:
                position = low + (bin.to(F64) + (sample.to(F64) + 0.5) * share) * bin_size
                inside = (position >= -1.0) & (position <= size.to(F64))

                def add(position: Val = position, bin: Val = bin) -> None:
                    at = k.minimum(k.maximum(position, 0.0), last)
                    below = k.call("llvm.floor", at)
                    fraction = at - below
                    index = below.to(I64)
                    part = k.constant(1.0, F64) if self.maximum else share
                    for neighbour, weight in ((index, 1.0 - fraction), (k.minimum(index + 1, size - 1), fraction)):
                        table.add(k, bin, neighbour, (weight * part).to(F32), merge=not self.maximum)

                k.if_else(inside, add, lambda: outside.set(k.constant(1, DType.BOOL)))
            if self.maximum:  # samples outside are 0
                with k.if_(outside.get()):
                    table.add(k, bin, k.index(0), k.constant(0.0, F32), merge=False)

    def _start(self, k: Emitter, lanes: int) -> Val:
        return k.constant(float("-inf") if self.maximum else 0.0, F32, lanes)

    def _add(self, k: Emitter, total: Variable, value: Val, weight: Val) -> None:
        """Add a weighted element to a bin."""
        if not self.maximum:
            total.set(k.fma(value, weight, total.get()))
            return
        term = value * weight
        total.set(((term > total.get()) | term.is_nan()).select(term, total.get()))

    def _result(self, total: Variable) -> Val:
        """Return the result of a bin: the maximum of no samples is 0."""
        value = total.get()
        return value.eq(float("-inf")).select(0.0, value) if self.maximum else value

    def _emit_channels(
        self,
        k: Emitter,
        params: Params,
        sizes: RoiSizes,
        tables: tuple[_Table, _Table],
        source: Pointer,
        target: Pointer,
        count: Val,
        line: Pointer,
    ) -> None:
        """Emit all bins with vectors of channels."""
        first, (vertical, horizontal) = len(sizes), tables
        with k.loop(0, sizes.rows) as y, k.loop(0, sizes.columns) as x:
            here = target[y * params[first + 6] + x * params[first + 7]]

            def vectors(channel: Val, lanes: int, many: int, x: Val = x, y: Val = y, here: Pointer = here) -> None:
                totals = [k.variable(self._start(k, lanes)) for _ in range(many)]

                def row(index: Val, weight: Val) -> None:
                    pixels = source[channel + index * params[first + 2]]

                    def column(index: Val, other: Val) -> None:
                        pixel, product = pixels[index * params[first + 3]], (weight * other).splat(lanes)
                        for number, total in enumerate(totals):
                            self._add(k, total, pixel[number * lanes].load(lanes), product)

                    horizontal.each(k, x, column)

                vertical.each(k, y, row)
                for number, total in enumerate(totals):
                    self._store(here, channel + number * lanes, params[first + 5], self._result(total))

            lanes, start = k.machine.lanes(), k.index(0)
            for width, many in ((lanes, _VECTORS), (lanes, 1), (1, 1)):
                stop = start + (count - start) / (width * many) * (width * many)
                with k.loop(start, stop, width * many) as channel:
                    vectors(channel, width, many)
                start = stop

    def _store(self, target: Pointer, channel: Val, stride: Val, value: Val) -> None:
        if self.contiguous or value.lanes == 1:
            target[channel * stride].store(value)
            return
        for lane in range(value.lanes):
            target[(channel + lane) * stride].store(value.lane(lane))

    def _emit_rows(
        self,
        k: Emitter,
        params: Params,
        sizes: RoiSizes,
        tables: tuple[_Table, _Table],
        source: Pointer,
        target: Pointer,
        count: Val,
        line: Pointer,
    ) -> None:
        """Emit all averages of one channel after the other: rows are added with vectors, then columns."""
        first, (vertical, horizontal) = len(sizes), tables
        left, right = self._range(k, sizes, horizontal)
        with k.loop(0, count) as channel:
            image, result = source[channel * params[first + 1]], target[channel * params[first + 5]]
            with k.loop(0, sizes.rows) as y:

                def add_rows(index: Val, lanes: int, y: Val = y, image: Pointer = image) -> None:
                    total = k.variable(k.constant(0.0, F32, lanes))

                    def row(number: Val, weight: Val) -> None:
                        value = image[number * params[first + 2] + left + index].load(lanes)
                        total.set(k.fma(value, weight.splat(lanes), total.get()))

                    vertical.each(k, y, row)
                    line[left + index].store(total.get())

                k.span(right - left, k.machine.lanes(), add_rows, narrow=True)
                with k.loop(0, sizes.columns) as x:
                    total = k.variable(k.constant(0.0, F32))

                    def column(index: Val, weight: Val, total: Variable = total) -> None:
                        total.set(k.fma(line[index].load(), weight, total.get()))

                    horizontal.each(k, x, column)
                    result[y * params[first + 6] + x * params[first + 7]].store(total.get())

    @staticmethod
    def _range(k: Emitter, sizes: RoiSizes, table: _Table) -> tuple[Val, Val]:
        """Return the first column that a region uses, and the one after the last."""
        left, right = k.variable(sizes.width), k.variable(k.index(0))
        with k.loop(0, sizes.columns) as x:

            def extend(index: Val, weight: Val) -> None:
                left.set(k.minimum(left.get(), index))
                right.set(k.maximum(right.get(), index + 1))

            table.each(k, x, extend)
        return k.minimum(left.get(), right.get()), right.get()


def _table(memory: Pointer, bins: Val, taps: Val) -> tuple[_Table, Pointer]:
    """Return a table in memory, and the memory after it."""
    counts = memory.cast(I64)
    indices = counts[bins]
    weights = indices[bins * taps].cast(F32)
    return _Table(counts, indices, weights, taps), weights[bins * taps].cast(DType.UINT8)
