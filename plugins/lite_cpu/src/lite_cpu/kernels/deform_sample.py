"""Elements of images at shifted positions, gathered for the windows of a convolution (operator DeformConv)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Params, Pointer, Val
from lite_cpu.kernels.base import Kernel

__all__ = ["DeformSample", "SampleSizes"]

F32, I64 = DType.FLOAT32, DType.INT64


class SampleSizes(NamedTuple):
    """The first parameters of the kernel: integers for a call, and values in the kernel.

    Attributes:
        height: rows of the images.
        width: columns of the images.
        rows: rows of windows.
        columns: windows of a row.
        kernel_height: taps of a window from top to bottom.
        kernel_width: taps of a window from left to right.
        stride_y: distance between windows.
        stride_x: distance between windows.
        dilation_y: distance between taps.
        dilation_x: distance between taps.
        begin_y: rows of padding above.
        begin_x: columns of padding to the left.
        parts: parts of the channels that share an offset and belong to one group of the convolution.
        part: channels of a part.
        offset_channels: channels that share an offset.
        group_channels: channels of a group.
    """

    height: Any
    width: Any
    rows: Any
    columns: Any
    kernel_height: Any
    kernel_width: Any
    stride_y: Any
    stride_x: Any
    dilation_y: Any
    dilation_x: Any
    begin_y: Any
    begin_x: Any
    parts: Any
    part: Any
    offset_channels: Any
    group_channels: Any


class _Neighbours(NamedTuple):
    """The two elements around a position along an axis, whether they are inside, and their weights."""

    indices: tuple[Val, Val]
    inside: tuple[Val, Val]
    weights: tuple[Val, Val]

    @staticmethod
    def of(k: Emitter, position: Val, size: Val) -> _Neighbours:
        below = k.call("llvm.floor", position)
        neighbours = below, below + 1.0
        inside = [(n >= 0.0) & (n < size.to(F32)) for n in neighbours]
        indices = [there.select(n, 0.0).to(I64) for n, there in zip(neighbours, inside)]
        weights = [there.select(1.0 - k.call("llvm.fabs", position - n), 0.0) for n, there in zip(neighbours, inside)]
        return _Neighbours(*((a, b) for a, b in (indices, inside, weights)))


@dataclass(frozen=True)
class DeformSample(Kernel):
    """Columns of a convolution: for each window, group, tap and channel the element at the tap's shifted position.

    Pointers: images, offsets [batch, offset groups, taps, 2, rows, columns], columns, as many zeros as a part has
    channels, which stand for elements outside, and the factors of elements [batch, offset groups, taps, rows, columns]
    if :attr:`masked`. The channels of images and of columns are contiguous.
    Parameters: :class:`SampleSizes`, and the strides of the batch, rows and columns of images and of columns. A work
    item is a row of windows.
    """

    masked: bool

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, params, begin, end, _):
            sizes = SampleSizes(*(params[i] for i in range(len(SampleSizes._fields))))
            images, offsets, results, zeros, masks = (pointers.tensor(min(i, 3 + self.masked), F32) for i in range(5))
            first, taps = len(sizes), sizes.kernel_height * sizes.kernel_width
            windows = sizes.rows * sizes.columns
            with k.loop(begin, end) as item:
                number, row = item / sizes.rows, item % sizes.rows
                image = images[number * params[first]]
                line = results[number * params[first + 3] + row * params[first + 4]]
                groups = sizes.parts * sizes.part / sizes.offset_channels
                with k.loop(0, sizes.columns) as column, k.loop(0, sizes.parts) as part:
                    channel = part * sizes.part
                    group = number * groups + channel / sizes.offset_channels
                    window = row * sizes.columns + column
                    place = channel / sizes.group_channels * taps * sizes.group_channels
                    target = line[column * params[first + 5] + place + channel % sizes.group_channels]
                    with k.loop(0, sizes.kernel_height) as down, k.loop(0, sizes.kernel_width) as across:
                        tap = down * sizes.kernel_width + across
                        at = (group * taps + tap) * windows + window
                        shift = offsets[(group * taps + tap) * 2 * windows + window]
                        regular_y = row * sizes.stride_y + down * sizes.dilation_y - sizes.begin_y
                        regular_x = column * sizes.stride_x + across * sizes.dilation_x - sizes.begin_x
                        y = _Neighbours.of(k, regular_y.to(F32) + shift.load(), sizes.height)
                        x = _Neighbours.of(k, regular_x.to(F32) + shift[windows].load(), sizes.width)
                        factor = masks[at].load() if self.masked else None
                        place = target[tap * sizes.group_channels]
                        self._gather(k, params, (image[channel], zeros), (y, x), factor, place, sizes.part)

    @staticmethod
    def _gather(
        k: Emitter,
        params: Params,
        sources: tuple[Pointer, Pointer],
        around: tuple[_Neighbours, _Neighbours],
        factor: Val | None,
        target: Pointer,
        channels: Val | int,
    ) -> None:
        """Store the weighted sum of four elements for all channels of a part."""
        first = len(SampleSizes._fields)
        corners, weights = [], []
        (image, zeros), (y, x) = sources, around
        for row, is_row, weight in zip(*y):
            for column, is_column, other in zip(*x):
                element = image[row * params[first + 1] + column * params[first + 2]]
                corners.append(k.choose(is_row & is_column, element, zeros))
                weights.append(weight * other if factor is None else weight * other * factor)

        def body(index: Val, lanes: int) -> None:
            total = corners[0][index].load(lanes) * weights[0]
            for corner, weight in zip(corners[1:], weights[1:]):
                total = k.fma(corner[index].load(lanes), weight, total)
            target[index].store(total)

        k.span(channels, k.machine.lanes(), body, unroll=2, narrow=True)
