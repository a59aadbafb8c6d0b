"""Depthwise convolution of bytes on channels-last data: every channel has a window of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lite_core.ir import DType
from lite_cpu.chains import Chain, Operand
from lite_cpu.emit import Emitter, Val
from lite_cpu.kernels.base import Kernel

__all__ = ["DepthwiseInt8", "DepthwiseInt8Shape", "pack_depthwise_int8"]

Array = np.ndarray[Any, Any]
I32 = DType.INT32

#: Positions in the parameters; strides of epilogue operands follow, (batch, row, pixel) each.
PARAMETERS = (
    "height", "width", "out_height", "out_width", "channels", "x_batch", "x_row", "x_pixel", "y_batch", "y_row",
    "y_pixel", "top", "left", "window_rows", "window_pixels", "row_stride", "pixel_stride", "row_dilation",
    "pixel_dilation", "tap",
)  # fmt: skip
_AT = {name: i for i, name in enumerate(PARAMETERS)}


def pack_depthwise_int8(weights: Array, lanes: int) -> Array:
    """Weights less their zero point in the order the kernel reads them.

    Args:
        weights: [channels, 1, height, width], integers of at most 16 bits.
        lanes: int32 elements of a vector register.

    Returns:
        [height * width, n], int16: ``n`` is the number of channels, filled up to whole vectors with zeros.
    """
    channels = weights.shape[0]
    taps = weights.reshape(channels, -1).T
    packed = np.zeros((len(taps), -(-channels // lanes) * lanes), np.int16)
    packed[:, :channels] = taps
    return packed


@dataclass(frozen=True, slots=True)
class DepthwiseInt8Shape:
    """Sizes, strides (in elements) and padding; see :data:`PARAMETERS`. ``tap``: the length of a row of weights."""

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
    """Pointers: input, its zero point, packed weights, output, then the operands of the epilogue.

    A work item is a row of the output. Taps outside of the image add nothing: there the input is the zero point.
    """

    stored: DType
    epilogue: Chain

    def emit(self, k: Emitter) -> None:
        lanes = k.machine.lanes()
        with k.kernel(self.symbol) as (pointers, params, begin, end, _):
            p = {name: params[i] for name, i in _AT.items()}
            zero = pointers.tensor(1, self.stored).load().to(I32)
            weights = pointers.tensor(2, DType.INT16)
            whole = p["channels"] / lanes * lanes
            with k.loop(begin, end) as item:
                row, image = item % p["out_height"], item / p["out_height"]
                x = pointers.tensor(0, self.stored)[image * p["x_batch"]]
                y = pointers.tensor(3, self.epilogue.output)[image * p["y_batch"] + row * p["y_row"]]
                operands = []
                for i, operand in enumerate(self.epilogue.operands):
                    by_image, by_row, by_pixel = (params[len(PARAMETERS) + 3 * i + s] for s in range(3))
                    start = pointers.tensor(4 + i, operand.dtype)[image * by_image + row * by_row]
                    operands.append((start, by_pixel))
                rows = _Reach(k, row, p["row_stride"], p["top"], p["row_dilation"], p["window_rows"], p["height"])
                with k.loop(0, p["out_width"]) as column:
                    columns = _Reach(
                        k, column, p["pixel_stride"], p["left"], p["pixel_dilation"], p["window_pixels"], p["width"]
                    )

                    def channels(channel: Val, valid: Val | None, column: Val = column, columns: _Reach = columns) -> None:
                        total = k.variable(k.constant(0, I32, lanes))
                        with k.loop(rows.first, rows.stop) as r, k.loop(columns.first, columns.stop) as c:
                            at = rows.place(r) * p["x_row"] + columns.place(c) * p["x_pixel"] + channel
                            pixel = k.load_first(x[at], valid, lanes).to(I32)
                            factor = weights[(r * p["window_pixels"] + c) * p["tap"] + channel].load(lanes).to(I32)
                            total.set(total.get() + (pixel - zero) * factor)

                        def load(i: int, operand: Operand) -> Val:
                            start, by_pixel = operands[i]
                            at = start[column * by_pixel]
                            return at.load().splat(lanes) if operand.spread else k.load_first(at[channel], valid, lanes)

                        result = self.epilogue.emit(k, total.get(), load)
                        k.store_first(y[column * p["y_pixel"] + channel], result, valid)

                    with k.loop(0, whole, lanes) as channel:
                        channels(channel, None)
                    with k.if_(whole < p["channels"]):
                        channels(whole, p["channels"] - whole)


class _Reach:
    """Which taps of a window lie in the image, along one axis."""

    def __init__(
        self, k: Emitter, output: Val, stride: Val, before: Val, dilation: Val, window: Val, size: Val
    ) -> None:
        self._start, self._dilation = output * stride - before, dilation
        self.first = k.maximum(0, (dilation - 1 - self._start) / dilation)
        self.stop = k.minimum(window, (size - self._start + dilation - 1) / dilation)

    def place(self, tap: Val) -> Val:
        """Where in the image a tap lies."""
        return self._start + tap * self._dilation
