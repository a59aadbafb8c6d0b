"""A depthwise convolution fused with the pointwise convolution that follows it.

A work item is a band of rows: the depthwise part writes it to the thread's scratch memory, and the matrix product
reads it from there while it is still in the caches. The image between the two convolutions is never in main memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lite_core.ir import DType
from lite_cpu.chains import Chain
from lite_cpu.emitter import Emitter
from lite_cpu.kernels.base import Kernel, Products
from lite_cpu.kernels.depthwise import PARAMETERS as DEPTHWISE_PARAMETERS
from lite_cpu.kernels.depthwise import Depthwise, DepthwiseShape
from lite_cpu.kernels.tiles import BlockEmitter, BlockTensors, Rows, Window

__all__ = ["DepthwisePointwise"]

F32 = DType.FLOAT32

#: Order of the parameters after those of the depthwise part; then follow the pixel strides of epilogue operands.
PARAMETERS = ("outputs", "c_pixel", "band")


@dataclass(frozen=True)
class DepthwisePointwise(Kernel):
    """Depthwise convolution fused with a pointwise one.

    Pointers: input, packed depthwise weights, packed B, bias, C; operands of the first and of the second epilogue.

    In the shape of the depthwise part the output is a band in scratch memory: ``y_row`` is ``columns * y_pixel``.
    """

    depthwise: Depthwise
    epilogue: Chain

    @property
    def computes(self) -> Products:
        return Products("float32")

    @staticmethod
    def params(
        shape: DepthwiseShape,
        depthwise_operands: Sequence[tuple[int, int, int]],
        outputs: int,
        c_pixel: int,
        band: int,
        operand_pixels: Sequence[int],
    ) -> list[int]:
        """Return the parameters: C has ``outputs`` channels and pixel stride ``c_pixel``; an item has ``band`` rows."""
        return [*shape.params(depthwise_operands), outputs, c_pixel, band, *operand_pixels]

    @staticmethod
    def items(shape: DepthwiseShape, band: int) -> int:
        return shape.batches * -(-shape.rows // band)

    def emit(self, k: Emitter) -> None:
        first, second = self.depthwise, self.epilogue
        with k.kernel(self.symbol) as (pointers, params, begin, end, scratch):
            p = first.read_params(params)
            at = len(DEPTHWISE_PARAMETERS) + 3 * len(first.epilogue.operands)
            outputs, c_pixel, band = (params[at + i] for i in range(len(PARAMETERS)))
            b, bias, c = pointers.tensor(2, F32), pointers.tensor(3, F32), pointers.tensor(4, second.output)
            one, zero = k.index(1), k.index(0)
            block = BlockEmitter(k, second, Window(one, one, p["channels"], zero, zero))
            bands = (p["rows"] + band - 1) / band
            with k.loop(begin, end) as item:
                row, image = item % bands * band, item / bands
                last_row = k.minimum(row + band, p["rows"])
                pixels = scratch.cast(F32)
                plane = first.plane(pointers, params, p, image, pixels[row * p["y_row"] * -1], first_operand=5)
                with k.loop(row, last_row, first.tile_rows) as tile_row:
                    first.emit_row(k, p, plane, tile_row, last_row, (zero, p["channels"]))
                pixel = (image * p["rows"] + row) * p["columns"]
                operands = []
                for i, operand in enumerate(second.operands):
                    start = pointers.tensor(5 + len(first.epilogue.operands) + i, operand.dtype)
                    operands.append(Rows(start, params[at + len(PARAMETERS) + i], zero, operand.spread).at(0, pixel))
                tensors = BlockTensors(
                    Rows(pixels, p["y_pixel"], zero), Rows(c, c_pixel, zero).at(0, pixel), tuple(operands)
                )
                block.block(tensors, 1, (last_row - row) * p["columns"], outputs, b, bias)
