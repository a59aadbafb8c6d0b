"""Dense 8-bit convolution: bands of output rows as matrix products over a padded copy of their input.

Like :mod:`.direct`, but the copy has the element type that is multiplied and is padded with the zero point.
"""

from __future__ import annotations

from dataclasses import dataclass

from lite_core.ir import DType
from lite_cpu.chains import Chain
from lite_cpu.emitter import Emitter, Pointer, Val
from lite_cpu.kernels.bands import BAND_PARAMETERS, BandEmitter, BandItem, BandShape
from lite_cpu.kernels.base import Kernel
from lite_cpu.kernels.int8_tiles import Int8BlockEmitter, LeftSide, convert_run
from lite_cpu.kernels.tiles import Rows

__all__ = ["ConvInt8", "ConvInt8Shape"]

#: Number of bytes behind the copy that the last group of a window may read.
_SLACK_BYTES = 64


@dataclass(frozen=True, slots=True)
class ConvInt8Shape(BandShape):
    """Sizes and strides of an 8-bit convolution by bands."""

    def scratch_bytes(self, itemsize: int) -> int:
        return itemsize * self.band_elements + _SLACK_BYTES


@dataclass(frozen=True)
class ConvInt8(Kernel):
    """Dense 8-bit convolution.

    Pointers: input, its zero point, packed weights, the sums of their columns, output, operands of the epilogue.
    """

    left: LeftSide
    epilogue: Chain

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, params, begin, end, scratch):
            p = {name: params[i] for i, name in enumerate(BAND_PARAMETERS)}
            bands = BandEmitter(k, pointers, params, p)
            copy = scratch.cast(self.left.form.left)
            bands.items(
                begin, end, lambda item: self._copy(bands, item, copy), lambda item: self._multiply(bands, item, copy)
            )

    def _copy(self, bands: BandEmitter, item: BandItem, copy: Pointer) -> None:
        """Copy the input rows of an item, converted to the multiplied type and padded with the zero point."""
        k, p, left = bands.k, bands.p, self.left
        x, zero = (bands.pointers.tensor(i, left.stored) for i in range(2))
        image = x[item.image * p["x_batch"] + item.group * p["channels"]]

        def copy_row(y: Val, target: Pointer, pixels: Val) -> None:
            source = image[y * p["x_row"]]
            bands.copy_pixels(source, target, pixels, lambda run, to, length: convert_run(k, left, run, to, length))

        bands.copy(item, copy, left.convert(zero.load()), copy_row)

    def _multiply(self, bands: BandEmitter, item: BandItem, copy: Pointer) -> None:
        k, p, pointers, form = bands.k, bands.p, bands.pointers, self.left.form
        total = p["window_rows"] * p["taps"] * ((p["depth"] + (form.group - 1)) / form.group * form.group)
        none = k.index(0)
        Int8BlockEmitter(k, self.left, self.epilogue, bands.window()).block(
            bands.tensors(item, bands.windows(copy), self.epilogue, output=4),
            Rows(pointers.tensor(1, self.left.stored), none, none),
            item.rows,
            p["out_width"],
            item.columns,
            pointers.tensor(2, form.right)[item.group * p["b_group"] + item.column * total],
            pointers.tensor(3, DType.INT32)[bands.first_column(item)],
        )
