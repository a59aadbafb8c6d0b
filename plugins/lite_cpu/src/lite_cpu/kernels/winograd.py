"""Dense 3 x 3 convolution of stride 1 by Winograd's minimal filtering, on channels-last data.

A work item is a block of tiles and of output channels. The tiles' inputs are transformed into the scratch memory of
the thread, :mod:`.tiles` computes one matrix product for each point of a tile, and the products are transformed back,
with bias and epilogue in registers. All intermediate data stays in the second-level cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lite_core.ir import DType
from lite_cpu.chains import Chain, Operand
from lite_cpu.emitter import Emitter, Params, Pointer, Pointers, Val
from lite_cpu.kernels.base import Kernel, Products
from lite_cpu.kernels.tiles import BlockEmitter, BlockTensors, Rows, Window
from lite_cpu.kernels.toom_cook import emit_input_transform, emit_output_transform, window

__all__ = ["Winograd", "WinogradShape"]

F32 = DType.FLOAT32

#: Returns the address of a pixel of a tile's input, given by row and column.
PixelReader = Callable[[int, int], Pointer]

#: Order of the parameters; then follow the (batch, row, pixel) strides of each epilogue operand.
PARAMETERS = (
    "tiles", "tile_rows", "tile_columns", "height", "width", "out_height", "out_width", "top", "left",
    "channels", "columns", "x_batch", "x_row", "x_pixel", "y_batch", "y_row", "y_pixel",
    "b_matrix", "tile_block", "column_block", "v_matrix", "m_matrix",
)  # fmt: skip
_AT = {name: i for i, name in enumerate(PARAMETERS)}

#: Padding between the parts of a tile, in floats, so that they do not compete for the same cache sets.
_GAP = 16


@dataclass(frozen=True, slots=True)
class WinogradShape:
    """Sizes and strides, in elements; see :data:`PARAMETERS`."""

    outputs: int
    batch: int
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
    y_batch: int
    y_row: int
    y_pixel: int
    b_matrix: int
    tile_block: int
    column_block: int
    lanes: int

    @property
    def tile_rows(self) -> int:
        return -(-self.out_height // self.outputs)

    @property
    def tile_columns(self) -> int:
        return -(-self.out_width // self.outputs)

    @property
    def tiles(self) -> int:
        return self.batch * self.tile_rows * self.tile_columns

    @property
    def v_matrix(self) -> int:
        """Size of the transformed input of one tile at one point, in floats."""
        return -(-self.channels // self.lanes) * self.lanes + _GAP

    @property
    def m_matrix(self) -> int:
        """Size of the products of one tile at one point, in floats."""
        return -(-self.column_block // self.lanes) * self.lanes + _GAP

    @property
    def column_blocks(self) -> int:
        return -(-self.columns // self.column_block)

    @property
    def items(self) -> int:
        return -(-self.tiles // self.tile_block) * self.column_blocks

    @property
    def scratch_bytes(self) -> int:
        points = window(self.outputs) ** 2
        tiles = self.tile_block * (points * (self.v_matrix + self.m_matrix) + 2 * _GAP)
        return 4 * (self.v_matrix + points * self.lanes + tiles)

    def params(self, operands: Sequence[tuple[int, int, int]]) -> list[int]:
        return [getattr(self, name) for name in PARAMETERS] + [stride for strides in operands for stride in strides]


@dataclass(frozen=True, slots=True)
class _Scratch:
    """Scratch memory of the thread: zeros read instead of padding, half-transformed outputs, V and M."""

    zeros: Pointer
    halves: Pointer
    v: Pointer
    v_tile: Val
    m: Pointer
    m_tile: Val


@dataclass(frozen=True)
class Winograd(Kernel):
    """Dense 3 x 3 convolution by Winograd's minimal filtering.

    Pointers: input, packed weights, bias, output, then the operands of the epilogue.

    Attributes:
        outputs: m of F(m x m, 3 x 3), 2 or 4.
        epilogue: chain applied to each output.
    """

    outputs: int
    epilogue: Chain

    @property
    def computes(self) -> Products:
        return Products("float32")

    @property
    def points(self) -> int:
        return window(self.outputs) ** 2

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, params, begin, end, scratch):
            p = {name: params[i] for name, i in _AT.items()}
            memory = self._scratch(k, scratch.cast(F32), p)
            with k.loop(0, p["v_matrix"]) as i:
                memory.zeros[i].store(k.constant(0.0, F32))
            column_blocks = (p["columns"] + p["column_block"] - 1) / p["column_block"]
            transformed = k.variable(k.index(-1))
            with k.loop(begin, end) as item:
                block = item / column_blocks
                tile = block * p["tile_block"]
                count = k.minimum(p["tile_block"], p["tiles"] - tile)
                column = item % column_blocks * p["column_block"]
                columns = k.minimum(p["column_block"], p["columns"] - column)
                # Consecutive items that differ only in their columns share the transformed input.
                with k.if_(block.ne(transformed.get())):
                    transformed.set(block)
                    with k.loop(0, count) as t:
                        self._input_tile(k, pointers, p, memory, tile + t, t)
                self._products(k, pointers, p, memory, count, column, columns)
                with k.loop(0, count) as t:
                    self._output_tile(k, pointers, params, p, memory, tile + t, t, column, columns)

    def _scratch(self, k: Emitter, start: Pointer, p: dict[str, Val]) -> _Scratch:
        lanes = k.machine.lanes()
        v_tile, m_tile = (p[name] * self.points + _GAP for name in ("v_matrix", "m_matrix"))
        halves = start[p["v_matrix"]]
        v = halves[self.points * lanes]
        return _Scratch(start, halves, v, v_tile, v[v_tile * p["tile_block"]], m_tile)

    def _position(self, p: dict[str, Val], tile: Val) -> tuple[Val, Val, Val]:
        """Return the image of a tile, and the row and column of its first output."""
        rest = tile / p["tile_columns"]
        row, column = rest % p["tile_rows"] * self.outputs, tile % p["tile_columns"] * self.outputs
        return rest / p["tile_rows"], row, column

    def _input_tile(
        self, k: Emitter, pointers: Pointers, p: dict[str, Val], memory: _Scratch, tile: Val, t: Val
    ) -> None:
        """Emit ``V = B^T d B`` for all channels of a tile."""
        size, lanes = window(self.outputs), k.machine.lanes()
        image, row, column = self._position(p, tile)
        top, left = row - p["top"], column - p["left"]
        start = pointers.tensor(0, F32)[image * p["x_batch"] + top * p["x_row"] + left * p["x_pixel"]]
        v = memory.v[memory.v_tile * t]
        whole = p["channels"] / lanes * lanes

        # Distances in bytes, computed here: from few addresses with few distances, LLVM keeps all in registers.
        x_steps = [p["x_pixel"] * (F32.itemsize * j) for j in range(size)]
        v_steps = [p["v_matrix"] * (F32.itemsize * j) for j in range(size)]

        def inside(channel: Val) -> PixelReader:
            rows = _every(size, start[channel], p["x_row"])
            return lambda i, j: rows[i][x_steps[j]].cast(F32)

        def at_border() -> Callable[[Val], PixelReader]:
            rows = [(top + i >= 0) & (top + i < p["height"]) for i in range(size)]
            columns = [(left + j >= 0) & (left + j < p["width"]) for j in range(size)]
            inner = inside(k.index(0))
            pixels = {
                (i, j): k.choose(rows[i] & columns[j], inner(i, j), memory.zeros)
                for i in range(size)
                for j in range(size)
            }
            return lambda channel: lambda i, j: pixels[i, j][channel]

        def transform(pixel: PixelReader, channel: Val, valid: Val | None) -> None:
            targets = iter(_every(size, v[channel], p["v_matrix"] * size))
            # If all values of a tile do not fit the registers, but those of half the rows do, the input is read twice.
            parts = 2 if size * size // 2 < k.machine.vector_registers < size * size else 1
            for part in range(parts):
                some = slice(part * size // parts, (part + 1) * size // parts)
                columns = [[k.load_first(pixel(i, j), valid, lanes) for i in range(size)] for j in range(size)]
                half = [emit_input_transform(k, self.outputs, values)[some] for values in columns]
                for values in zip(*half):
                    target = next(targets)
                    for j, value in enumerate(emit_input_transform(k, self.outputs, values)):
                        target[v_steps[j]].cast(F32).store(value)

        def channels(reader: Callable[[Val], PixelReader], first: Val, last: Val, *, partial: bool) -> None:
            with k.loop(first, last, lanes) as channel:
                transform(reader(channel), channel, p["channels"] - channel if partial else None)

        is_inside = (top >= 0) & (left >= 0) & (top + size <= p["height"]) & (left + size <= p["width"])
        with k.if_(is_inside):
            channels(inside, k.index(0), whole, partial=False)
        if k.machine.masks:  # masked loads are as fast as others, so all channels at the border share one loop
            rest = is_inside.select(whole, 0)
        else:
            with k.if_(~is_inside):
                channels(at_border(), k.index(0), whole, partial=False)
            rest = whole
        channels(at_border(), rest, p["channels"], partial=True)

    def _products(
        self, k: Emitter, pointers: Pointers, p: dict[str, Val], memory: _Scratch, count: Val, column: Val, columns: Val
    ) -> None:
        """Emit ``M = V U``, one matrix product for each point of a tile."""
        one, none = k.index(1), k.index(0)
        block = BlockEmitter(k, Chain(Operand(F32)), Window(one, one, p["channels"], none, none))
        b = pointers.tensor(1, F32)[column * p["channels"]]
        with k.loop(0, self.points) as point:
            v, m = memory.v[point * p["v_matrix"]], memory.m[point * p["m_matrix"]]
            tensors = BlockTensors(Rows(v, memory.v_tile, none), Rows(m, memory.m_tile, none))
            matrix, following = (b[n * p["b_matrix"]] for n in (point, point + 1))
            block.block(tensors, one, count, columns, matrix, None, following)

    def _output_tile(
        self,
        k: Emitter,
        pointers: Pointers,
        params: Params,
        p: dict[str, Val],
        memory: _Scratch,
        tile: Val,
        t: Val,
        column: Val,
        columns: Val,
    ) -> None:
        """Emit ``y = epilogue(A^T M A + bias)`` for all columns of a tile."""
        size, outputs, lanes = window(self.outputs), self.outputs, k.machine.lanes()
        image, row, left = self._position(p, tile)
        m = memory.m[memory.m_tile * t]
        bias = pointers.tensor(2, F32)[column]
        strides = [(p["y_batch"], p["y_row"], p["y_pixel"])]
        for i in range(len(self.epilogue.operands)):
            first = len(PARAMETERS) + 3 * i
            strides.append((params[first], params[first + 1], params[first + 2]))
        tensors = [Operand(self.epilogue.output), *self.epilogue.operands]
        starts = []
        for i, (tensor, (by_image, by_row, by_pixel)) in enumerate(zip(tensors, strides)):
            offset = image * by_image + row * by_row + left * by_pixel
            starts.append(pointers.tensor(3 + i, tensor.dtype)[offset if tensor.spread else offset + column])
        # Distances in bytes: see the transform of the input.
        m_steps = [p["m_matrix"] * (F32.itemsize * j) for j in range(size)]
        valid_rows, valid_pixels = p["out_height"] - row, p["out_width"] - left

        def transform(c: Val, valid: Val | None) -> None:
            rows = _every(size, m[c], p["m_matrix"] * size)
            for j in range(size):
                products = [row[m_steps[j]].cast(F32).load(lanes) for row in rows]
                for row, value in enumerate(emit_output_transform(k, outputs, products)):
                    memory.halves[(row * size + j) * lanes].store(value)
            biases = k.load_first(bias[c], valid, lanes)
            # The rows of a tile are a loop at run time; if they were unrolled, the epilogue would be emitted m^2 times.
            with k.loop(0, k.minimum(valid_rows, outputs)) as i:
                values = [memory.halves[(i * size + j) * lanes].load(lanes) for j in range(size)]
                for j, value in enumerate(emit_output_transform(k, outputs, values)):
                    with k.if_(valid_pixels > j):
                        self._finish(k, value + biases, starts, strides, i, j, c, valid)

        whole = columns / lanes * lanes
        with k.loop(0, whole, lanes) as c:
            transform(c, None)
        with k.if_(whole < columns):
            transform(whole, columns - whole)

    def _finish(
        self,
        k: Emitter,
        value: Val,
        starts: Sequence[Pointer],
        strides: Sequence[tuple[Val, Val, Val]],
        i: Val,
        j: int,
        c: Val,
        valid: Val | None,
    ) -> None:
        """Emit the epilogue of pixel (i, j) of a tile, and store the result."""
        lanes = k.machine.lanes()

        def load(number: int, operand: Operand) -> Val:
            _, by_row, by_pixel = strides[1 + number]
            at = starts[1 + number][by_row * i + by_pixel * j]
            return at.load().splat(lanes) if operand.spread else k.load_first(at[c], valid, lanes)

        _, by_row, by_pixel = strides[0]
        result = self.epilogue.emit(k, value, load)
        k.store_first(starts[0][by_row * i + by_pixel * j + c], result, valid)


def _every(count: int, start: Pointer, step: Val) -> list[Pointer]:
    """Return addresses ``step`` elements apart, as addresses of bytes; each is computed from the one before."""
    bytes_of_step, found = step * start.dtype.itemsize, [start.cast(DType.UINT8)]
    while len(found) < count:
        found.append(found[-1][bytes_of_step])
    return found
