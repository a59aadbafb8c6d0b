"""Depthwise 8-bit convolution by dot products down the columns of the window, on channels-last images.

The rows of an input column are interleaved, so that each lane holds a group of them for one channel. Neighbouring
output pixels share the interleaved column: each multiplies it by another column of its window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lite_core.ir import DType
from lite_cpu.chains import Chain, Operand
from lite_cpu.emitter import Emitter, Pointer, Val
from lite_cpu.kernels.base import Kernel, Products
from lite_cpu.kernels.int8_tiles import LeftSide
from lite_cpu.kernels.integer_dots import DotForm, emit_dots

__all__ = ["DepthwiseDots", "DepthwiseDotsShape", "pack_depthwise_dots"]

Array = np.ndarray[Any, Any]
I32 = DType.INT32

#: Order of the parameters; then follow the (batch, row, pixel) strides of each epilogue operand.
PARAMETERS = (
    "height", "width", "out_height", "out_width", "channels", "x_batch", "x_row", "x_pixel", "y_batch", "y_row",
    "y_pixel", "top", "left", "row_stride", "row_dilation", "tap",
)  # fmt: skip
_AT = {name: i for i, name in enumerate(PARAMETERS)}

#: Number of output pixels that share input columns.
_PIXELS = 4
#: Exclusive or with it converts four bytes between signed and unsigned.
_SIGNS = -0x7F7F7F80


def pack_depthwise_dots(weights: Array, form: DotForm, lanes: int) -> Array:
    """Pack weights, from which the zero point is already subtracted, in the order in which the kernel reads them.

    Args:
        weights: [channels, 1, height, width], integers that fit ``form.right``.
        form: the form of dot product.
        lanes: int32 elements of a vector register.

    Returns:
        [width, groups of rows, n, rows of a group]: ``n`` is the number of channels, padded to whole vectors.
    """
    channels, _, height, width = weights.shape
    groups = form.steps(height)
    packed = np.zeros((width, groups * form.group, -(-channels // lanes) * lanes), form.right.numpy)
    packed[:, :height, :channels] = weights[:, 0].transpose(2, 1, 0)
    split = packed.reshape(width, groups, form.group, -1)
    return np.ascontiguousarray(split.transpose(0, 1, 3, 2))


@dataclass(frozen=True, slots=True)
class DepthwiseDotsShape:
    """Sizes, strides (in elements) and padding; see :data:`PARAMETERS`. ``tap`` is the number of packed channels."""

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
    row_stride: int
    row_dilation: int
    tap: int

    @property
    def items(self) -> int:
        return self.batch * self.out_height

    @property
    def scratch_bytes(self) -> int:
        """Size of a pixel of padding."""
        return self.tap

    def params(self, operands: Sequence[tuple[int, int, int]]) -> list[int]:
        return [getattr(self, name) for name in PARAMETERS] + [stride for strides in operands for stride in strides]


@dataclass(frozen=True)
class DepthwiseDots(Kernel):
    """8-bit depthwise convolution with dot products.

    Pointers: input, its zero point, packed weights, the sums of their channels, output, then the operands of the
    epilogue. A work item is a row of the output. Pixels outside the image are read from the scratch memory, which
    holds the zero point.

    Attributes:
        left: the element types of the input.
        epilogue: the chain applied to every sum.
        window: rows and pixels of the window.
        stride: input pixels between output pixels.
    """

    left: LeftSide
    epilogue: Chain
    window: tuple[int, int]
    stride: int

    @property
    def computes(self) -> Products:
        return Products("int8")

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, params, begin, end, scratch):
            p = {name: params[i] for name, i in _AT.items()}
            padding, zero = scratch.cast(self.left.stored), pointers.tensor(1, self.left.stored)
            k.span(p["channels"], k.machine.lanes(), lambda i, n: padding[i].store(zero.load().splat(n)))
            with k.loop(begin, end) as item:
                row, image = item % p["out_height"], item / p["out_height"]
                operands = []
                for i, operand in enumerate(self.epilogue.operands):
                    by_image, by_row, by_pixel = (params[len(PARAMETERS) + 3 * i + s] for s in range(3))
                    start = pointers.tensor(5 + i, operand.dtype)[image * by_image + row * by_row]
                    operands.append((start, by_pixel))
                line = _Line(
                    k,
                    self,
                    p,
                    pointers.tensor(0, self.left.stored)[image * p["x_batch"]],
                    padding,
                    self.left.zero_point(zero),
                    pointers.tensor(2, self.left.form.right),
                    pointers.tensor(3, I32),
                    pointers.tensor(4, self.epilogue.output)[image * p["y_batch"] + row * p["y_row"]],
                    tuple(operands),
                    row * p["row_stride"] - p["top"],
                )
                line.emit()


@dataclass(frozen=True, slots=True)
class _Line:
    """Emitter of one row of the output; ``top`` is the first input row of its windows.

    ``operands`` are given with their pixel strides.
    """

    k: Emitter
    kernel: DepthwiseDots
    p: dict[str, Val]
    x: Pointer
    padding: Pointer
    point: Val
    weights: Pointer
    sums: Pointer
    y: Pointer
    operands: tuple[tuple[Pointer, Val], ...]
    top: Val

    def emit(self) -> None:
        """Emit several pixels at a time; the last ones may be computed twice."""
        k, width = self.k, self.p["out_width"]

        def several() -> None:
            with k.loop(0, width, _PIXELS) as column:
                self._pixels(k.minimum(column, width - _PIXELS), _PIXELS)

        def single() -> None:
            with k.loop(0, width) as column:
                self._pixels(column, 1)

        k.if_else(width >= _PIXELS, several, single)

    def _pixels(self, column: Val, count: int) -> None:
        """Emit all channels of ``count`` adjacent pixels."""
        k, lanes = self.k, self.k.machine.lanes()
        (rows, pixels), stride = self.kernel.window, self.kernel.stride
        starts = self._starts(column * stride - self.p["left"], rows, (count - 1) * stride + pixels)
        whole = self.p["channels"] / lanes * lanes
        with k.loop(0, whole, lanes) as channel:
            self._tile(starts, column, count, channel, None)
        with k.if_(whole < self.p["channels"]):
            self._tile(starts, column, count, whole, self.p["channels"] - whole)

    def _starts(self, first: Val, rows: int, columns: int) -> list[list[Pointer]]:
        """Return the pixels of each input column, from the top row of the window down."""
        k, p = self.k, self.p
        lines = []
        for r in range(rows):
            row = self.top + r * p["row_dilation"]
            lines.append(((row >= 0) & (row < p["height"]), row * p["x_row"]))
        starts = []
        for c in range(columns):
            pixel = first + c
            inside, offset = (pixel >= 0) & (pixel < p["width"]), pixel * p["x_pixel"]
            starts.append([k.choose(inside & is_row, self.x[line + offset], self.padding) for is_row, line in lines])
        return starts

    def _tile(self, starts: list[list[Pointer]], column: Val, count: int, channel: Val, valid: Val | None) -> None:
        """Emit one vector of channels of each pixel: ``sum (x - zero) w`` as ``sum x w - zero sum w``."""
        k, p, lanes, form = self.k, self.p, self.k.machine.lanes(), self.kernel.left.form
        (_, pixels), stride = self.kernel.window, self.kernel.stride
        groups = form.steps(self.kernel.window[0])
        weights = [
            [
                self.weights[((w * groups + g) * p["tap"] + channel) * form.group].load(lanes * form.group)
                for g in range(groups)
            ]
            for w in range(pixels)
        ]
        start = -(self.sums[channel].load(lanes) * self.point)
        totals = [start] * count
        for c, rows in enumerate(starts):
            interleaved = self._interleaved([k.load_first(row[channel], valid, lanes) for row in rows])
            for i in range(count):
                if 0 <= c - i * stride < pixels:
                    for group, weight in zip(interleaved, weights[c - i * stride]):
                        totals[i] = emit_dots(k, form, totals[i], group, weight)
        singles = {
            i: self.operands[i][0].load().splat(lanes)
            for i, operand in enumerate(self.kernel.epilogue.operands)
            if operand.single
        }
        for i, total in enumerate(totals):

            def load(number: int, operand: Operand, i: int = i) -> Val:
                if number in singles:
                    return singles[number]
                operand_start, by_pixel = self.operands[number]
                at = operand_start[(column + i) * by_pixel]
                return at.load().splat(lanes) if operand.spread else k.load_first(at[channel], valid, lanes)

            result = self.kernel.epilogue.emit(k, total, load)
            k.store_first(self.y[(column + i) * p["y_pixel"] + channel], result, valid)

    def _interleaved(self, rows: Sequence[Val]) -> list[Val]:
        """Return the rows of one input column as groups in the 32 bits of each lane."""
        k, left = self.k, self.kernel.left
        bits = 32 // left.form.group
        groups = []
        for first in range(0, len(rows), left.form.group):
            group: Val | None = None
            for i, row in enumerate(rows[first : first + left.form.group]):
                wide = row.to(I32)
                if left.stored.is_signed:
                    wide = wide & ((1 << bits) - 1)
                shifted = wide << (bits * i) if i else wide
                group = shifted if group is None else group | shifted
            assert group is not None
            groups.append(group ^ k.constant(_SIGNS, I32, group.lanes) if left.shift else group)
        return groups
