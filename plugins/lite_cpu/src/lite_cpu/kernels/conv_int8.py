"""Dense 8-bit convolution: bands of output rows as matrix products over a padded copy of their input.

Like :mod:`.direct`, but the copy has the element type that is multiplied and is padded with the zero point.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from lite_core.ir import DType
from lite_cpu.chains import Chain
from lite_cpu.emitter import Emitter, Pointer, Val
from lite_cpu.kernels.bands import BAND_PARAMETERS, BandEmitter, BandItem, BandShape
from lite_cpu.kernels.base import Kernel, Products
from lite_cpu.kernels.int8_tile_blocks import int8_blocks
from lite_cpu.kernels.int8_tiles import LeftSide, convert_run
from lite_cpu.kernels.integer_dots import DotForm
from lite_cpu.kernels.matrix_tiles import MatrixTiles
from lite_cpu.kernels.tile_rows import copy_bytes, copy_rows
from lite_cpu.kernels.tile_setup import matrix_tiles
from lite_cpu.kernels.tiles import Rows

__all__ = ["ConvInt8", "ConvInt8Shape"]

#: Number of bytes behind the copy that the last group of a window may read.
_SLACK_BYTES = 64


@dataclass(frozen=True, slots=True)
class ConvInt8Shape(BandShape):
    """Sizes and strides of an 8-bit convolution by bands."""

    def scratch_bytes(self, form: DotForm, *, blocked: bool) -> int:
        groups = self.window_rows * self.taps * form.steps(self.depth)
        windows = copy_bytes(self.band_rows * self.out_width, groups) if blocked else 0
        return windows + form.left.itemsize * self.band_elements + 2 * _SLACK_BYTES


@dataclass(frozen=True)
class ConvInt8(Kernel):
    """Dense 8-bit convolution.

    Pointers: input, its zero point, packed weights, the sums of their columns, output, operands of the epilogue.

    With ``blocked``, for matrix tiles, the windows of a band are copied once more, in the order of tiles, behind the
    padded copy.
    """

    left: LeftSide
    epilogue: Chain
    blocked: bool = False

    @property
    def computes(self) -> Products:
        return Products("int8")

    def emit(self, k: Emitter) -> None:
        form = self.left.form
        with k.kernel(self.symbol) as (pointers, params, begin, end, scratch), ExitStack() as stack:
            p = {name: params[i] for i, name in enumerate(BAND_PARAMETERS)}
            bands = BandEmitter(k, pointers, params, p)
            copy = scratch.cast(form.left)
            registers = stack.enter_context(matrix_tiles(k)) if form.tiles else None

            def make_copy(item: BandItem) -> None:
                self._copy(bands, item, copy)
                if self.blocked:
                    rows_of_a, window = bands.windows(copy), bands.window()
                    copy_rows(k, rows_of_a, window, item.rows, p["out_width"], self._tiles(bands, copy))

            bands.items(begin, end, make_copy, lambda item: self._multiply(bands, item, copy, registers))

    def _copy(self, bands: BandEmitter, item: BandItem, copy: Pointer) -> None:
        """Copy the input rows of an item, converted to the multiplied type and padded with the zero point."""
        k, p, left = bands.k, bands.p, self.left
        x, zero = (bands.pointers.tensor(i, left.stored) for i in range(2))
        image = x[item.image * p["x_batch"] + item.group * p["channels"]]

        def copy_row(y: Val, target: Pointer, pixels: Val) -> None:
            source = image[y * p["x_row"]]
            bands.copy_pixels(source, target, pixels, lambda run, to, length: convert_run(k, left, run, to, length))

        bands.copy(item, copy, left.convert(zero.load()), copy_row)

    def _multiply(self, bands: BandEmitter, item: BandItem, copy: Pointer, registers: MatrixTiles | None) -> None:
        k, p, pointers, form = bands.k, bands.p, bands.pointers, self.left.form
        total = p["window_rows"] * p["taps"] * ((p["depth"] + (form.group - 1)) / form.group * form.group)
        none = k.index(0)
        blocks = int8_blocks(k, registers, self.left, self.epilogue, bands.window(), blocked=self.blocked)
        a = Rows(self._tiles(bands, copy), none, none) if self.blocked else bands.windows(copy)
        blocks.block(
            bands.tensors(item, a, self.epilogue, output=4),
            Rows(pointers.tensor(1, self.left.stored), none, none),
            item.rows,
            p["out_width"],
            item.columns,
            pointers.tensor(2, form.right)[item.group * p["b_group"] + item.column * total],
            pointers.tensor(3, DType.INT32)[bands.first_column(item)],
        )

    def _tiles(self, bands: BandEmitter, copy: Pointer) -> Pointer:
        """Return the memory behind the padded copy of the highest band, at a multiple of 64 bytes."""
        p = bands.p
        rows = (p["band_rows"] - 1) * p["row_stride"] + (p["window_rows"] - 1) * p["row_dilation"] + 1
        unit = _SLACK_BYTES
        return copy[(rows * p["band_width"] * p["channels"] + (2 * unit - 1)) / unit * unit]
