"""Transformation of the filters of a 3 x 3 convolution to Winograd's weights, packed into panels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Pointer, Val
from lite_cpu.kernels.base import Kernel
from lite_cpu.kernels.tiles import gemm_tile
from lite_cpu.kernels.toom_cook import TAPS, emit_filter_transform, window
from lite_cpu.kernels.transpose import transpose_registers
from lite_cpu.winograd_preparation import CHANNELS_AT_ONCE, PARAMETERS

__all__ = ["WinogradWeights"]

F32, F64 = DType.FLOAT32, DType.FLOAT64
_AT = {name: i for i, name in enumerate(PARAMETERS)}
_FILTER = TAPS * TAPS


@dataclass(frozen=True, slots=True)
class _Source:
    """Filters of a vector of columns and several channels in memory; strides in elements."""

    start: Pointer
    columns: Val
    channels: Val
    column: Val
    channel: Val
    row: Val
    tap: Val

    def at(self, column: Val) -> Pointer:
        """Return the first filter of a column; the last column stands for those behind it."""
        return self.start[self.column * self.start.k.minimum(column, self.columns - 1)]


@dataclass(frozen=True)
class WinogradWeights(Kernel):
    """Compute ``G g G^T`` of filters, in float64 and rounded once.

    Pointers: the first tap of the first filter, the panels (float32, beginning at a multiple of a vector). Parameters:
    :data:`~lite_cpu.winograd_preparation.PARAMETERS`. A work item is a block of channels of one panel.

    The taps of a few channels are transposed into scratch memory, so that a vector holds one tap of neighbouring
    columns. They are transformed there, and then copied to the panels of all points by stores that bypass the caches:
    these panels lie so far apart that their lines compete for the same cache sets. This takes half the time of storing
    directly with AVX2, and a quarter with SSE4.2.

    Sums are not fused multiply-adds, so every machine computes the same bits.

    Attributes:
        outputs: m of F(m x m, 3 x 3), 2 or 4.
    """

    outputs: int

    @property
    def points(self) -> int:
        return window(self.outputs) ** 2

    def emit(self, k: Emitter) -> None:
        lanes, (_, vectors) = k.machine.lanes(), gemm_tile(k.machine)
        width = lanes * vectors
        with k.kernel(self.symbol) as (pointers, params, begin, end, scratch):
            p = {name: params[i] for name, i in _AT.items()}
            filters, panels = pointers.tensor(0, F32), pointers.tensor(1, F32)
            taps = scratch.cast(F32)
            transformed = taps[_FILTER * CHANNELS_AT_ONCE * lanes]
            blocks = (p["channels"] + p["channel_block"] - 1) / p["channel_block"]
            matrix = (p["columns"] + lanes - 1) / lanes * lanes * p["channels"]
            with k.loop(begin, end) as item:
                start, first = item / blocks * width, item % blocks * p["channel_block"]
                stop = k.minimum(first + p["channel_block"], p["channels"])
                columns = k.minimum(p["columns"] - start, width)
                padded = (columns + lanes - 1) / lanes * lanes
                with k.loop(first, stop, CHANNELS_AT_ONCE) as channel:
                    channels = k.minimum(stop - channel, CHANNELS_AT_ONCE)
                    with k.loop(0, padded, lanes) as column:
                        valid = k.minimum(columns - column, lanes)
                        here = filters[(start + column) * p["column_stride"] + channel * p["channel_stride"]]
                        strides = (p["column_stride"], p["channel_stride"], p["row_stride"], p["tap_stride"])
                        self._load_taps(k, _Source(here, valid, channels, *strides), taps)
                        self._transform(k, taps, channels, valid, transformed[column], padded, width)
                    target = panels[start * p["channels"] + channel * padded]
                    with k.loop(0, self.points) as point:
                        run, to = transformed[point * (CHANNELS_AT_ONCE * width)], target[point * matrix]
                        with k.loop(0, channels * padded, lanes) as i:
                            to[i].stream(run[i].load(lanes))
            # NOTE: the release of a lock does not order streamed stores, and other threads read the panels.
            k.order_stores()

    @staticmethod
    def _load_taps(k: Emitter, source: _Source, taps: Pointer) -> None:
        """Store the taps as [channels, taps, lanes]."""
        lanes, depth = k.machine.lanes(), source.channels * _FILTER

        def transpose_blocks() -> None:
            columns = [source.at(k.index(i)) for i in range(lanes)]
            with k.loop(0, depth, lanes) as d:
                # The last block overlaps the one before it.
                first = k.minimum(d, depth - lanes)
                for i, row in enumerate(transpose_registers([column[first].load(lanes) for column in columns])):
                    taps[(first + i) * lanes].store(row)

        def copy_elements() -> None:
            with k.loop(0, lanes) as i, k.loop(0, source.channels) as channel:
                from_, to = source.at(i)[channel * source.channel], taps[channel * (_FILTER * lanes) + i]
                for tap in range(_FILTER):
                    offset = source.row * (tap // TAPS) + source.tap * (tap % TAPS)
                    to[tap * lanes].store(from_[offset].load())

        contiguous = source.channel.eq(_FILTER) & source.row.eq(TAPS) & source.tap.eq(1)
        k.if_else(contiguous & (depth >= lanes), transpose_blocks, copy_elements)

    def _transform(
        self, k: Emitter, taps: Pointer, channels: Val, valid: Val, transformed: Pointer, padded: Val, width: int
    ) -> None:
        """Store the points as [points, channels, columns], with zeros behind the first ``valid`` columns."""
        lanes, half = k.machine.lanes(), k.machine.lanes(F64.itemsize)
        with k.loop(0, channels) as channel, k.loop(0, lanes, half) as lane:
            is_valid = k.first_lanes(valid - lane, half)
            loaded = [taps[(channel * _FILTER + tap) * lanes + lane].load(half) for tap in range(_FILTER)]
            g = [is_valid.select(tap, 0.0).to(F64) for tap in loaded]
            for point, value in enumerate(self._points_of(k, g)):
                run = transformed[point * (CHANNELS_AT_ONCE * width)]
                run[channel * padded + lane].store(value.to(F32))

    def _points_of(self, k: Emitter, g: Sequence[Val]) -> list[Val]:
        columns = [emit_filter_transform(k, self.outputs, g[tap::TAPS]) for tap in range(TAPS)]
        return [value for row in zip(*columns) for value in emit_filter_transform(k, self.outputs, row)]
