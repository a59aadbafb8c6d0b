"""Depthwise 8-bit convolution on channels-last images: every channel has its own filter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lite_core.ir import DType
from lite_cpu.chains import Chain, Operand
from lite_cpu.emitter import Emitter, Pointer, Val
from lite_cpu.kernels.base import Kernel, Products

__all__ = ["DepthwiseInt8", "DepthwiseInt8Shape", "pack_depthwise_int8"]

Array = np.ndarray[Any, Any]
I32 = DType.INT32

#: Order of the parameters; then follow the (batch, row, pixel) strides of each epilogue operand.
PARAMETERS = (
    "height", "width", "out_height", "out_width", "channels", "x_batch", "x_row", "x_pixel", "y_batch", "y_row",
    "y_pixel", "top", "left", "window_rows", "window_pixels", "row_stride", "pixel_stride", "row_dilation",
    "pixel_dilation", "tap",
)  # fmt: skip
_AT = {name: i for i, name in enumerate(PARAMETERS)}

#: Number of pixels that share weights held in registers.
_PIXELS = 4


def pack_depthwise_int8(weights: Array, lanes: int) -> Array:
    """Pack weights, from which the zero point is already subtracted, in the order in which the kernel reads them.

    Args:
        weights: [channels, 1, height, width], integers of at most 16 bits.
        lanes: int32 elements of a vector register.

    Returns:
        [height * width, n], int16: ``n`` is the number of channels, padded to whole vectors with zeros.
    """
    channels = weights.shape[0]
    taps = weights.reshape(channels, -1).T
    packed = np.zeros((len(taps), -(-channels // lanes) * lanes), np.int16)
    packed[:, :channels] = taps
    return packed


@dataclass(frozen=True, slots=True)
class DepthwiseInt8Shape:
    """Sizes, strides (in elements) and padding; see :data:`PARAMETERS`. ``tap`` is the length of a row of weights."""

    batch: int
    height: int
    width: int
    out_height: int
    out_width: int
    channels: int
    x_batch: int
    x_row: int
    x_pixel: int
    y_batch: int
    y_row: int
    y_pixel: int
    top: int
    left: int
    window_rows: int
    window_pixels: int
    row_stride: int
    pixel_stride: int
    row_dilation: int
    pixel_dilation: int
    tap: int

    @property
    def items(self) -> int:
        return self.batch * self.out_height

    def params(self, operands: Sequence[tuple[int, int, int]]) -> list[int]:
        return [getattr(self, name) for name in PARAMETERS] + [stride for strides in operands for stride in strides]


@dataclass(frozen=True)
class DepthwiseInt8(Kernel):
    """8-bit depthwise convolution.

    Pointers: input, its zero point, packed weights, output, then the operands of the epilogue.

    A work item is a row of the output. Taps outside the image are skipped: the input is padded with its zero point.
    """

    stored: DType
    epilogue: Chain

    @property
    def computes(self) -> Products:
        return Products("int8")

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, params, begin, end, _):
            p = {name: params[i] for name, i in _AT.items()}
            zero = pointers.tensor(1, self.stored).load().to(I32)
            with k.loop(begin, end) as item:
                row, image = item % p["out_height"], item / p["out_height"]
                operands = []
                for i, operand in enumerate(self.epilogue.operands):
                    by_image, by_row, by_pixel = (params[len(PARAMETERS) + 3 * i + s] for s in range(3))
                    start = pointers.tensor(4 + i, operand.dtype)[image * by_image + row * by_row]
                    operands.append((start, by_pixel))
                line = _Line(
                    k,
                    self.epilogue,
                    p,
                    pointers.tensor(0, self.stored)[image * p["x_batch"]],
                    zero,
                    pointers.tensor(2, DType.INT16),
                    pointers.tensor(3, self.epilogue.output)[image * p["y_batch"] + row * p["y_row"]],
                    tuple(operands),
                    _Taps.inside(k, row, p["row_stride"], p["top"], p["row_dilation"], p["window_rows"], p["height"]),
                )
                line.emit()


@dataclass(frozen=True, slots=True)
class _Taps:
    """The range of a window's taps that are inside the image along one axis, and the start of the window."""

    start: Val
    first: Val
    stop: Val

    @staticmethod
    def inside(k: Emitter, output: Val, stride: Val, before: Val, dilation: Val, window: Val, size: Val) -> _Taps:
        start = output * stride - before
        first = k.maximum(0, (dilation - 1 - start) / dilation)
        return _Taps(start, first, k.minimum(window, (size - start + dilation - 1) / dilation))


@dataclass(frozen=True, slots=True)
class _Line:
    """Emitter of one row of the output; ``operands`` are given with their pixel strides."""

    k: Emitter
    epilogue: Chain
    p: dict[str, Val]
    x: Pointer
    zero: Val
    weights: Pointer
    y: Pointer
    operands: tuple[tuple[Pointer, Val], ...]
    rows: _Taps

    def emit(self) -> None:
        """Emit pixels whose whole window is inside the image several at a time, the others one by one."""
        k, p = self.k, self.p
        stride, width = p["pixel_stride"], p["out_width"]
        last_start = p["width"] - 1 - (p["window_pixels"] - 1) * p["pixel_dilation"] + p["left"]
        first = k.minimum((p["left"] + stride - 1) / stride, width)
        whole = k.minimum(k.maximum((last_start + stride) / stride, first), width)
        whole = first + (whole - first) / _PIXELS * _PIXELS

        def border(column: Val) -> None:
            self._pixels(column, 1, self._columns(column))

        with k.loop(0, first) as column:
            border(column)
        with k.loop(first, whole, _PIXELS) as column:
            taps = _Taps(column * stride - p["left"], k.index(0), p["window_pixels"])
            self._pixels(column, _PIXELS, taps)
        with k.loop(whole, width) as column:
            border(column)

    def _columns(self, column: Val) -> _Taps:
        p = self.p
        return _Taps.inside(
            self.k, column, p["pixel_stride"], p["left"], p["pixel_dilation"], p["window_pixels"], p["width"]
        )

    def _pixels(self, column: Val, count: int, taps: _Taps) -> None:
        """Emit all channels of ``count`` pixels that have the same range of taps."""
        k, lanes = self.k, self.k.machine.lanes()
        whole = self.p["channels"] / lanes * lanes
        with k.loop(0, whole, lanes) as channel:
            self._tile(column, count, taps, channel, None)
        with k.if_(whole < self.p["channels"]):
            self._tile(column, count, taps, whole, self.p["channels"] - whole)

    def _tile(self, column: Val, count: int, taps: _Taps, channel: Val, valid: Val | None) -> None:
        """Emit one vector of channels of each pixel: ``sum (x - zero) w`` as ``sum x w - zero sum w``."""
        k, p, lanes = self.k, self.p, self.k.machine.lanes()
        nothing = k.constant(0, I32, lanes)
        sums, of_weights = [k.variable(nothing) for _ in range(count)], k.variable(nothing)
        row, tap = p["row_dilation"] * p["x_row"], p["pixel_dilation"] * p["x_pixel"]
        weights_row, next_pixel = p["window_pixels"] * p["tap"], p["pixel_stride"] * p["x_pixel"]
        first = self.rows.first
        x = self.x[self.rows.start * p["x_row"] + first * row][taps.start * p["x_pixel"] + taps.first * tap + channel]
        weights = self.weights[first * weights_row + taps.first * p["tap"] + channel]
        with (
            k.walk(self.rows.stop - first, (x, row), (weights, weights_row)) as (line, of_line),
            k.walk(taps.stop - taps.first, (line, tap), (of_line, p["tap"])) as (pixel, at),
        ):
            weight = at.load(lanes).to(I32)
            of_weights.set(of_weights.get() + weight)
            for i in range(count):
                element = k.load_first(pixel, valid, lanes).to(I32)
                sums[i].set(sums[i].get() + element * weight)
                pixel = pixel[next_pixel]
        for i in range(count):

            def load(number: int, operand: Operand, i: int = i) -> Val:
                start, by_pixel = self.operands[number]
                at = start[(column + i) * by_pixel]
                return at.load().splat(lanes) if operand.spread else k.load_first(at[channel], valid, lanes)

            result = self.epilogue.emit(k, sums[i].get() - of_weights.get() * self.zero, load)
            k.store_first(self.y[(column + i) * p["y_pixel"] + channel], result, valid)
