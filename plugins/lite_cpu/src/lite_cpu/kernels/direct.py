"""Dense convolution with a border: bands of output rows as matrix products over a padded copy of their input.

The copy of a work item's input rows lies in the scratch memory of the thread and stays in its cache; the rest is
:mod:`.tiles`: a row of A is a window of the copy, its segments are the rows of the window. Where rows of output are
too short for the register tile, the windows are copied once more, one after another, to become one long product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lite_core.ir import DType
from lite_cpu.chains import Chain
from lite_cpu.emit import Emitter, Params, Pointer, Pointers, Val
from lite_cpu.kernels.base import Kernel
from lite_cpu.kernels.tiles import BlockEmitter, Place, Rows, Window

__all__ = ["MOST_PLANES", "Direct", "DirectShape"]

F32 = DType.FLOAT32

#: Channels that can be gathered from planes; a picture has three.
MOST_PLANES = 4

#: Positions in the parameters; strides of epilogue operands follow, (batch, row, pixel, convolution group) each.
PARAMETERS = (
    "groups", "height", "width", "out_height", "out_width", "top", "left", "channels", "columns",
    "x_batch", "x_row", "x_pixel", "x_channel", "y_batch", "y_row", "y_pixel",
    "row_stride", "pixel_stride", "row_dilation", "window_rows", "taps", "depth", "a_tap",
    "b_group", "band_width", "band_rows", "column_block", "band_elements",
)  # fmt: skip
_AT = {name: i for i, name in enumerate(PARAMETERS)}


@dataclass(frozen=True, slots=True)
class DirectShape:
    """Sizes and strides, in elements; see :data:`PARAMETERS`. ``channels`` and ``columns`` are those of a group.

    ``taps`` and ``depth`` divide a row of the window: one run of all its pixels, or where a dilation tears
    it apart one run for each pixel, ``a_tap`` apart.
    """

    batch: int
    groups: int
    height: int
    width: int
    out_height: int
    out_width: int
    top: int
    left: int
    channels: int
    columns: int
    x_batch: int
    x_row: int
    x_pixel: int
    x_channel: int
    y_batch: int
    y_row: int
    y_pixel: int
    row_stride: int
    pixel_stride: int
    row_dilation: int
    pixel_dilation: int
    window_rows: int
    window_pixels: int
    b_group: int
    band_rows: int
    column_block: int
    gathered: bool = False

    @property
    def taps(self) -> int:
        return 1 if self.pixel_dilation == 1 else self.window_pixels

    @property
    def depth(self) -> int:
        return self.channels * self.window_pixels // self.taps

    @property
    def a_tap(self) -> int:
        return self.channels * self.pixel_dilation

    @property
    def band_width(self) -> int:
        """Pixels of a row of the padded copy."""
        return (self.out_width - 1) * self.pixel_stride + (self.window_pixels - 1) * self.pixel_dilation + 1

    @property
    def items(self) -> int:
        bands = -(-self.out_height // self.band_rows)
        return self.batch * self.groups * bands * -(-self.columns // self.column_block)

    @property
    def band_elements(self) -> int:
        """Floats of the padded copy."""
        rows = (self.band_rows - 1) * self.row_stride + (self.window_rows - 1) * self.row_dilation + 1
        return rows * self.band_width * self.channels

    @property
    def scratch_bytes(self) -> int:
        window = self.window_rows * self.taps * self.depth
        return 4 * (self.band_elements + self.gathered * self.band_rows * self.out_width * window)

    def params(self, operands: Sequence[tuple[int, int, int, int]]) -> list[int]:
        return [getattr(self, name) for name in PARAMETERS] + [stride for strides in operands for stride in strides]


@dataclass(frozen=True)
class Direct(Kernel):
    """Pointers: input, packed weights, bias, output, then the operands of the epilogue.

    Attributes:
        epilogue: what is done to each output.
        planes: channels of an input that keeps each in a plane of its own, 2 to :data:`MOST_PLANES`; 0 where the
            channels of a pixel are neighbours.
        gathered: the windows of a band are copied one after another. The pixels of the output and of the
            operands have to follow each other evenly within an image.
    """

    epilogue: Chain
    planes: int = 0
    gathered: bool = False

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, params, begin, end, scratch):
            p = {name: params[i] for name, i in _AT.items()}
            column_blocks = (p["columns"] + p["column_block"] - 1) / p["column_block"]
            bands = (p["out_height"] + p["band_rows"] - 1) / p["band_rows"]
            band = scratch.cast(F32)
            copied = k.variable(k.index(-1))
            with k.loop(begin, end) as item:
                number = item / column_blocks
                column = item % column_blocks * p["column_block"]
                columns = k.minimum(p["column_block"], p["columns"] - column)
                row, rest = number % bands * p["band_rows"], number / bands
                group, image = rest % p["groups"], rest / p["groups"]
                rows = k.minimum(p["band_rows"], p["out_height"] - row)
                # Neighbouring items differ in their columns only: they share the copy.
                with k.if_(number.ne(copied.get())):
                    copied.set(number)
                    start = pointers.tensor(0, F32)[image * p["x_batch"] + group * p["channels"] * p["x_channel"]]
                    self._copy_band(k, p, start, band, row * p["row_stride"] - p["top"], rows)
                    if self.gathered:
                        self._gather_windows(k, p, band, rows)
                self._products(k, pointers, params, p, band, (image, group, row, column), rows, columns)

    def _copy_band(self, k: Emitter, p: dict[str, Val], image: Pointer, band: Pointer, top: Val, rows: Val) -> None:
        """The input rows of ``rows`` rows of output, from input row ``top`` on, with zeros around."""
        channels = p["channels"]
        last = (rows - 1) * p["row_stride"] + (p["window_rows"] - 1) * p["row_dilation"]
        length = p["band_width"] * channels
        before = k.minimum(p["left"], p["band_width"])
        pixels = k.maximum(k.minimum(p["band_width"] - before, p["width"]), 0)

        def clear(target: Pointer, first: Val, stop: Val) -> None:
            k.span(stop - first, k.machine.lanes(), lambda i, n: target[first + i].store(k.constant(0.0, F32, n)))

        with k.loop(0, last + 1) as r:
            y, target = top + r, band[r * length]
            valid = ((y >= 0) & (y < p["height"])).select(pixels, 0)
            inside = before * channels
            clear(target, k.index(0), inside)
            self._copy_row(k, p, image[y * p["x_row"]], target[inside], valid)
            clear(target, inside + valid * channels, length)

    def _copy_row(self, k: Emitter, p: dict[str, Val], source: Pointer, target: Pointer, pixels: Val) -> None:
        lanes, channels = k.machine.lanes(), p["channels"]
        if self.planes:
            planes = [source[p["x_channel"] * c] for c in range(self.planes)]

            def interleave(i: Val, n: int) -> None:
                vectors = [plane[i].load(n) for plane in planes]
                for c, vector in enumerate(_interleaved(vectors)):
                    target[i * self.planes + c * n].store(vector)

            k.span(pixels, lanes, interleave)
            return
        whole = p["x_pixel"].eq(channels)
        runs, length = whole.select(k.minimum(pixels, 1), pixels), whole.select(pixels * channels, channels)
        with k.loop(0, runs) as run:
            _copy(k, source[run * p["x_pixel"]], target[run * channels], length)

    def _window(self, p: dict[str, Val]) -> Window:
        line = p["band_width"] * p["channels"]
        return Window(p["window_rows"], p["taps"], p["depth"], line * p["row_dilation"], p["a_tap"])

    def _gather_windows(self, k: Emitter, p: dict[str, Val], band: Pointer, rows: Val) -> None:
        """Copy the windows of ``rows`` rows of output to behind the band."""
        window = self._window(p)
        line = p["band_width"] * p["channels"]
        with k.loop(0, rows) as r, k.loop(0, p["out_width"]) as x:
            source = band[r * p["row_stride"] * line + x * p["pixel_stride"] * p["channels"]]
            target = band[p["band_elements"] + (r * p["out_width"] + x) * window.total]
            with k.loop(0, window.segments) as segment, k.loop(0, window.taps) as tap:
                from_ = source[segment * window.a_segment + tap * window.a_tap]
                to = target[(segment * window.taps + tap) * window.depth]
                _copy(k, from_, to, window.depth)

    def _products(
        self,
        k: Emitter,
        pointers: Pointers,
        params: Params,
        p: dict[str, Val],
        band: Pointer,
        at: tuple[Val, Val, Val, Val],
        rows: Val,
        columns: Val,
    ) -> None:
        image, group, row, column = at
        window = self._window(p)
        first = group * p["columns"] + column
        y = pointers.tensor(3, self.epilogue.output)
        operands = []
        for i, operand in enumerate(self.epilogue.operands):
            by_image, by_row, by_pixel, by_group = (params[len(PARAMETERS) + 4 * i + s] for s in range(4))
            offset = image * by_image + row * by_row + group * by_group
            start = pointers.tensor(4 + i, operand.dtype)[offset if operand.spread else offset + column]
            operands.append(Rows(start, by_pixel, by_row, operand.spread))
        line = p["band_width"] * p["channels"]
        a, groups, pixels = Rows(band, p["pixel_stride"] * p["channels"], p["row_stride"] * line), rows, p["out_width"]
        if self.gathered:
            one, total = k.index(1), window.total
            a, groups, pixels = Rows(band[p["band_elements"]], total, k.index(0)), one, rows * p["out_width"]
            window = Window(one, one, total, k.index(0), k.index(0))
        place = Place(
            a,
            Rows(y[image * p["y_batch"] + row * p["y_row"] + first], p["y_pixel"], p["y_row"]),
            tuple(operands),
        )
        b = pointers.tensor(1, F32)[group * p["b_group"] + column * window.total]
        bias = pointers.tensor(2, F32)[first]
        BlockEmitter(k, self.epilogue, window).block(place, groups, pixels, columns, b, bias)


def _copy(k: Emitter, source: Pointer, target: Pointer, count: Val) -> None:
    k.span(count, k.machine.lanes(), lambda i, n: target[i].store(source[i].load(n)))


def _interleaved(planes: Sequence[Val]) -> list[Val]:
    """The first element of each plane, then the second of each, and so on, in as many vectors."""
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
