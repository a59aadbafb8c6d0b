"""Dense convolution with padding: bands of output rows as matrix products over a padded copy of their input.

:mod:`.bands` makes the copy and :mod:`.tiles` the product: a row of A is a window of the copy, and its segments are the
rows of the window. If rows of output are too short for the register tile, the windows are also copied one after
another, to form one large product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from lite_core.ir import DType
from lite_cpu.chains import Chain
from lite_cpu.emitter import Emitter, Pointer, Val, float_bits
from lite_cpu.kernels.bands import BAND_PARAMETERS, BandEmitter, BandItem, BandShape
from lite_cpu.kernels.base import Kernel, Products
from lite_cpu.kernels.bfloat16_pairs import PAIR, add_pairs, join_pairs
from lite_cpu.kernels.depth_loops import multiply_add
from lite_cpu.kernels.half_products import add_halves, with_lanes_of_halves
from lite_cpu.kernels.tiles import BlockEmitter, Rows, Window
from lite_cpu.machine import Machine

__all__ = ["MOST_PLANES", "Direct", "DirectShape"]

F16, F32 = DType.FLOAT16, DType.FLOAT32

#: Maximum number of channels that can be gathered from separate planes; a picture has three.
MOST_PLANES = 4

#: Order of the parameters; then follow the strides of epilogue operands.
PARAMETERS = (*BAND_PARAMETERS, "x_channel", "band_elements", "unit_bits")


@dataclass(frozen=True, slots=True)
class DirectShape(BandShape):
    """Sizes and strides of a float convolution by bands; for ``gathered`` see :class:`Direct`.

    Attributes:
        itemsize: bytes of an element of the copy.
        b_unit: the number that multiplies weights of float16.
    """

    parameters: ClassVar[tuple[str, ...]] = PARAMETERS

    x_channel: int
    gathered: bool = False
    itemsize: int = 4
    b_unit: float = 1.0

    @property
    def unit_bits(self) -> int:
        return float_bits(self.b_unit)

    @property
    def scratch_bytes(self) -> int:
        window = self.window_rows * self.taps * self.depth
        return self.itemsize * (self.band_elements + self.gathered * self.band_rows * self.out_width * window)


@dataclass(frozen=True)
class Direct(Kernel):
    """Dense convolution by matrix products over a padded copy.

    Pointers: input, packed weights, bias, output, then the operands of the epilogue.

    Attributes:
        epilogue: chain applied to each output.
        planes: number of channels, 2 to :data:`MOST_PLANES`, of an input with a separate plane per channel; 0 if the
            channels of a pixel are contiguous.
        gathered: the windows of a band are copied one after another. The pixels of the output and of the operands must
            be evenly spaced within an image.
        pairs: the copy and the weights are bfloat16, in pairs along the depth: their sizes and strides count pairs, and
            so do those of an input without planes.
        matrices: the pairs of the weights are packed in groups of two, see :class:`.tiles.BlockEmitter`; the pairs of a
            pixel are even.
        plane: element type of planes.
        halves: the input, the copy and the weights are float16, multiplied as :mod:`.half_products` describes.
    """

    epilogue: Chain
    planes: int = 0
    gathered: bool = False
    pairs: bool = False
    plane: DType = F32
    matrices: bool = False
    halves: bool = False

    @property
    def computes(self) -> Products:
        return Products("bfloat16" if self.pairs else "float16" if self.halves else "float32")

    def machine_of_tile(self, machine: Machine) -> Machine:
        """Return the machine whose lanes are the columns of a vector of the tile."""
        return with_lanes_of_halves(machine) if self.halves else machine

    @property
    def _element(self) -> DType:
        """The element type of the copy."""
        return F16 if self.halves else F32

    def emit(self, k: Emitter) -> None:
        k.machine = self.machine_of_tile(k.machine)
        with k.kernel(self.symbol) as (pointers, params, begin, end, scratch):
            p = {name: params[i] for i, name in enumerate(PARAMETERS)}
            bands = BandEmitter(k, pointers, params, p)
            copy = scratch.cast(self._element)
            bands.items(
                begin, end, lambda item: self._copy(bands, item, copy), lambda item: self._multiply(bands, item, copy)
            )

    def _copy(self, bands: BandEmitter, item: BandItem, copy: Pointer) -> None:
        """Copy the input rows of an item padded with zeros, and behind them their windows if these are gathered."""
        k, p = bands.k, bands.p
        start = item.image * p["x_batch"]
        # Planes are those of a single group.
        element = self.plane if self.planes else self._element
        image = bands.pointers.tensor(0, element)[start + (0 if self.planes else item.group * p["channels"])]

        def copy_row(y: Val, target: Pointer, pixels: Val) -> None:
            source = image[y * p["x_row"]]
            if self.planes:
                planes = [source[p["x_channel"] * c] for c in range(self.planes)]
                _interleave(k, planes, target, pixels, pairs=self.pairs)
            else:
                bands.copy_pixels(source, target, pixels, lambda run, to, length: _copy_run(k, run, to, length))

        bands.copy(item, copy, k.constant(0.0, self._element), copy_row)
        if self.gathered:
            self._gather_windows(bands, item, copy)

    def _gather_windows(self, bands: BandEmitter, item: BandItem, copy: Pointer) -> None:
        k, p, window, source = bands.k, bands.p, bands.window(), bands.windows(copy)
        with k.loop(0, item.rows) as r, k.loop(0, p["out_width"]) as x:
            from_ = source.at(r, x).start
            to = copy[p["band_elements"] + (r * p["out_width"] + x) * window.total]
            with k.loop(0, window.segments) as segment, k.loop(0, window.taps) as tap:
                run = from_[segment * window.a_segment + tap * window.a_tap]
                _copy_run(k, run, to[(segment * window.taps + tap) * window.depth], window.depth)

    def _multiply(self, bands: BandEmitter, item: BandItem, copy: Pointer) -> None:
        k, p, pointers = bands.k, bands.p, bands.pointers
        window = bands.window()
        a, groups, pixels = bands.windows(copy), item.rows, p["out_width"]
        if self.gathered:
            one, none, total = k.index(1), k.index(0), window.total
            a, groups, pixels = Rows(copy[p["band_elements"]], total, none), one, item.rows * p["out_width"]
            window = Window(one, one, total, none, none)
        tensors = bands.tensors(item, a, self.epilogue, output=3)
        element = PAIR if self.pairs else self._element
        tensors = replace(tensors, a=replace(tensors.a, start=tensors.a.start.cast(element)))
        b = pointers.tensor(1, element)[item.group * p["b_group"] + item.column * window.total]
        bias = pointers.tensor(2, F32)[bands.first_column(item)]
        products = add_pairs if self.pairs else add_halves if self.halves else multiply_add
        unit = bands.params.number(PARAMETERS.index("unit_bits"), F32) if self.halves else None
        blocks = BlockEmitter(k, self.epilogue, window, products, self.matrices, unit)
        blocks.block(tensors, groups, pixels, item.columns, b, bias)


def _copy_run(k: Emitter, source: Pointer, target: Pointer, count: Val) -> None:
    k.span(count, k.machine.lanes(), lambda i, n: target[i].store(source[i].load(n)))


def _interleave(k: Emitter, planes: Sequence[Pointer], target: Pointer, pixels: Val, *, pairs: bool) -> None:
    """Copy pixels from planes, one for each channel, to contiguous channels, or to pairs of them in bfloat16."""

    def interleave(i: Val, lanes: int) -> None:
        vectors = [plane[i].load(lanes) for plane in planes]
        if pairs:
            rounded = [vector.to(DType.BFLOAT16) for vector in vectors]
            vectors = [join_pairs(*rounded[c : c + 2]).bits(F32) for c in range(0, len(rounded), 2)]
        for c, vector in enumerate(_interleaved(vectors)):
            target[i * len(vectors) + c * lanes].store(vector)

    k.span(pixels, k.machine.lanes(), interleave)


def _interleaved(planes: Sequence[Val]) -> list[Val]:
    """Return as many vectors with the first element of each plane, then the second of each, and so on."""
    lanes, count = planes[0].lanes, len(planes)
    if lanes == 1:
        return list(planes)
    vectors = []
    for first in range(0, lanes * count, lanes):
        picked = [divmod(n, count) for n in range(first, first + lanes)]  # (element, plane)
        vector = planes[0].shuffle(planes[0], [element for element, _ in picked])
        for c in range(1, count):
            mask = [lanes + element if plane == c else lane for lane, (element, plane) in enumerate(picked)]
            vector = vector.shuffle(planes[c], mask)
        vectors.append(vector)
    return vectors
