"""Lowering of depthwise Conv: every channel has its own window."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass
from functools import cache, lru_cache

from lite_compiler.fusion import Group
from lite_compiler.tracing.numbers import at_most, call, largest, smallest
from lite_core.ir import DType, Node, Value
from lite_cpu.chains import Chain
from lite_cpu.kernels.depthwise import Axis, Depthwise, DepthwiseShape, Edges, pack_depthwise
from lite_cpu.lowering.context import Lowering, channels_last_order
from lite_cpu.lowering.window import Window, as_image, image_strides
from lite_cpu.machine import Machine
from lite_cpu.tensors import Tensor

__all__ = ["DepthwisePlan", "depthwise", "is_depthwise", "is_depthwise_node", "plan_depthwise", "reserve_spaced_images"]

#: Minimum number of operations of a work item; scheduling a smaller one takes about as long as computing it.
_ITEM_FLOPS = 1 << 16

#: Pixels whose distance is a multiple of this share sets of the first-level cache, so that the rows and columns under a
#: tile evict each other. With a vector of padding between pixels, a kernel on 7x7x1024 or 14x14x512 is 1.4 to 4 times
#: faster, and one on 56x56x128 with stride 2 up to 1.4 times (Zen 4, AVX2 and AVX-512).
_SET_BYTES = 512

#: Maximum number of columns of a window; the unrolled code of wider ones would be too long.
_MAX_WINDOW_COLUMNS = 64


@dataclass(frozen=True, slots=True)
class DepthwisePlan:
    """A kernel with its arguments. ``tensors`` are the input, packed weights, output and operands of the epilogue."""

    kernel: Depthwise
    tile_rows: int
    shape: DepthwiseShape
    tensors: list[Tensor]
    operand_strides: list[tuple[int, int, int]]
    flops: int

    @property
    def items(self) -> int:
        """The work items: rows of tiles over blocks of channels."""
        shape = self.shape
        return shape.batches * -(-shape.rows // self.tile_rows) * -(-shape.channels // shape.channel_block)


def is_depthwise(lowering: Lowering, group: Group, window: Window) -> bool:
    """Return True if the depthwise kernel can compute a Conv: known weights, one input channel in each group."""
    known = all(v is None or lowering.known(v) is not None for v in group.head.inputs[1:])
    return known and _reads_depthwise(group.head) and window.kernel[1] <= _MAX_WINDOW_COLUMNS


def is_depthwise_node(node: Node, constants: Container[Value]) -> bool:
    """Return True if the depthwise kernel computes a node, whose input may then have floats of 16 bits.

    Args:
        node: any node; its shapes are known.
        constants: the values that are constants.
    """
    if not _reads_depthwise(node) or any(v is not None and v not in constants for v in node.inputs[1:]):
        return False
    x, w = node.inputs[:2]
    assert x is not None
    assert w is not None
    return len(x.shape) in (3, 4) and bool(w.shape[-1] <= _MAX_WINDOW_COLUMNS)


def reserve_spaced_images(lowering: Lowering) -> None:
    """Reserve destinations whose pixels share no cache sets, for images that only depthwise convolutions read.

    This happens before the graph is lowered.
    """
    nodes = lowering.graph.nodes
    images = dict.fromkeys(node.inputs[0] for node in nodes if _reads_depthwise(node))
    conflicting = [x for x in images if x is not None and len(x.shape) == 4 and _pixel_bytes(x) % _SET_BYTES == 0]
    if not conflicting:
        return
    read_by_others = {value for node in nodes if not _reads_depthwise(node) for value in node.used()}
    for x in conflicting:
        if not lowering.is_reserved(x) and x not in read_by_others:
            batch, channels, height, width = x.shape
            pixel = channels + lowering.machine.lanes(x.dtype.itemsize)
            wide = lowering.allocate((batch, pixel, height, width), x.dtype, channels_last_order(4))
            lowering.reserve(x, wide.slice(1, 0, channels))


def _pixel_bytes(image: Value) -> int:
    channels: int = image.shape[1]
    return channels * image.dtype.itemsize


def _reads_depthwise(node: Node) -> bool:
    """Return True if a node is a Conv with a separate window for each input channel."""
    x = node.inputs[0] if node.op == "Conv" and not node.domain else None
    return x is not None and 1 < x.shape[1] == node.attributes.get("group", 1)


def depthwise(lowering: Lowering, group: Group, window: Window, source: Tensor, target: Tensor) -> None:
    """Emit a depthwise convolution of images [batch, channels, height, width]; ``target`` is channels last."""
    if target.size == 0:
        return
    plan = plan_depthwise(lowering, group, window, source, target)
    items = plan.items
    grain = largest(1, _ITEM_FLOPS * items // plan.flops)
    params = plan.shape.params(plan.operand_strides)
    lowering.step(plan.kernel, plan.tensors, params, items, grain, flops=plan.flops)


def plan_depthwise(lowering: Lowering, group: Group, window: Window, source: Tensor, target: Tensor) -> DepthwisePlan:
    """Choose the kernel of a depthwise convolution and lay out its operands."""
    batch, channels, rows, columns = target.shape
    lanes = lowering.machine.lanes()
    source = _repeat_channels(lowering, source, channels)
    if source.strides[1] != 1:
        source = lowering.channels_last(source)
    weights = lowering.cached(group.head, ("depthwise", lanes), lambda: _packed(lowering, group, lanes))
    epilogue, operands = lowering.epilogue(group, group.output.shape, axis=1)
    images = [as_image(t) for t in operands]
    image = _Image(channels, source.shape[2], source.shape[3], source.strides[3], source.dtype)
    machine, threads = lowering.machine, lowering.options.threads
    kernel, tile_rows, block = _kernel(window, image, target.shape, epilogue, machine, threads)
    shape = DepthwiseShape(
        batches=batch,
        rows=rows,
        columns=columns,
        channels=channels,
        x_rows=source.shape[2],
        x_columns=source.shape[3],
        x_batch=source.strides[0],
        x_row=source.strides[2],
        x_pixel=source.strides[3],
        y_batch=target.strides[0],
        y_row=target.strides[2],
        y_pixel=target.strides[3],
        top=window.begin[0],
        left=window.begin[1],
        window_rows=window.kernel[0],
        row_stride=window.strides[0],
        row_dilation=window.dilations[0],
        channel_block=block,
    )
    strides = [image_strides(t) for t in images]
    flops = 2 * target.size * window.kernel[0] * window.kernel[1]
    return DepthwisePlan(kernel, tile_rows, shape, [source, weights, target, *images], strides, flops)


@dataclass(frozen=True, slots=True)
class _Image:
    """The input of a convolution: its sizes, the distance of pixels in elements, and its element type."""

    channels: int
    rows: int
    columns: int
    pixel: int
    dtype: DType

    @property
    def bytes(self) -> int:
        """The bytes from the first to the last pixel."""
        return self.rows * self.columns * self.pixel_bytes

    @property
    def pixel_bytes(self) -> int:
        """The bytes from a pixel to the next one."""
        return self.pixel * self.dtype.itemsize


def _kernel(
    window: Window, image: _Image, shape: tuple[int, ...], epilogue: Chain, machine: Machine, threads: int
) -> tuple[Depthwise, int, int]:
    """Return the kernel for a result of a shape, the rows of its tiles, and the channels of a work item."""
    batch, channels, rows, columns = shape
    lanes = machine.lanes()
    tile, tile_rows, ahead = _tile(window, rows, columns, image, machine)
    block = _channel_block(channels, batch * -(-rows // largest(1, tile_rows)), lanes, threads)
    # The blocks of a pixel would prefetch each other's channels.
    ahead = at_most(channels, block, ahead, 0)
    edges = Edges.numbers(
        Axis(window.kernel[1], window.strides[1], window.dilations[1], tile), window.begin[1], columns, image.columns
    )
    kernels = _kernels(window, bool(channels < lanes), epilogue, image.dtype)
    return call(kernels, tile, tile_rows, ahead, *edges), largest(1, tile_rows), block


@lru_cache(1024)  # the layers of a block are alike
def _kernels(window: Window, narrow: bool, epilogue: Chain, dtype: DType) -> Callable[..., Depthwise]:
    """Return the function that makes a kernel from what :func:`_tile` and :meth:`Edges.numbers` return."""

    @cache
    def kernel(tile: int, tile_rows: int, ahead: int, has_edges: int, before: int, after: int, only: int) -> Depthwise:
        across = Axis(window.kernel[1], window.strides[1], window.dilations[1], tile)
        down = Axis(window.kernel[0], window.strides[0], window.dilations[0], tile_rows) if tile_rows else None
        edges = Edges(before, after, only=bool(only)) if has_edges else None
        return Depthwise(across, down, narrow, epilogue, edges, bool(ahead), dtype)

    return kernel


def _tile(window: Window, rows: int, columns: int, source: _Image, machine: Machine) -> tuple[int, int, int]:
    """Choose the register tile: its columns and, if the rows of the window are unrolled, its rows.

    The rows of larger windows stay a loop: two rows gain less there, and the unrolled code would take twice as long to
    compile.

    Returns:
        The columns, the rows or 0, and 1 if each tile prefetches the input of the next one.
    """
    (kh, kw), (sh, sw), (dh, dw) = window.kernel, window.strides, window.dilations
    if not (1 < kh <= 3 and kw <= 3 and rows > 1):
        return smallest(_tile_columns(columns), max(1, 128 // kw)), 0, 0
    few_registers = machine.vector_registers < 32
    tile, tile_rows = _tile_sides(columns, few_registers and sw == 1)
    # The input under a tile and that of the next one must fit into the first-level cache together. With many registers
    # a single row of output is no faster than two without prefetching.
    for ahead_rows in () if sw == 1 else (2, 1) if few_registers else (2,):
        across, down = Axis(kw, sw, dw, 4), Axis(kh, sh, dh, ahead_rows)
        if 2 * (across.reach + 1) * (down.reach + 1) * source.pixel_bytes <= machine.l1_bytes:
            ahead = at_most(8, columns, _gains_by_prefetching(source, machine), 0)
            return at_most(1, ahead, 4, tile), at_most(1, ahead, ahead_rows, tile_rows), ahead
    return tile, tile_rows, 0


def _gains_by_prefetching(source: _Image, machine: Machine) -> int:
    """Return 1 if tiles should prefetch input of a convolution with a stride, else 0.

    Measured on Zen 4 with 1 MiB of second-level cache: images of 56 and 112 pixels, which do not fit there, gain 5 to
    25 % with AVX2 and up to 10 % with AVX-512; those that fit lose up to 20 %. With stride 1, which reads fewer pixels
    for each multiply-add, some layers gain 8 % and others lose 5 %.
    """
    is_far = at_most(machine.l2_bytes * 2 // 3 + 1, source.bytes, 1, 0)
    lanes = machine.lanes(source.dtype.itemsize)
    return is_far if machine.lanes() < source.channels and source.pixel <= source.channels + lanes else 0


def _tile_sides(columns: int, cramped: bool) -> tuple[int, int]:
    """Return the columns and rows of the register tile if the rows of the window are unrolled.

    Two rows of output share the input they read. Wide images are read from far caches, and narrow tiles read them as
    fast as wide ones, or faster. In narrower images tiles of 2 x 7 pixels win. Their 14 sums are too many for 16
    registers: with stride 1 (``cramped``) they then lose to 2 x 4, and in images of up to 14 columns both lose to
    1 x 7. With stride 2 they win all the same (Zen 4, AVX2 and AVX-512).
    """
    tile = at_most(columns, 14 if cramped else 28, _tile_columns(columns), 4)
    return tile, at_most(7, tile, 1, 2) if cramped else 2


def _tile_columns(columns: int) -> int:
    """Return the width of tiles: 7 or 4, whichever computes fewer columns twice, or all columns if they are fewer."""
    best = at_most(-(-columns // 7) * 7, -(-columns // 4) * 4, 7, 4)
    return at_most(7, columns, best, smallest(columns, 4))


def _channel_block(channels: int, rows_of_tiles: int, lanes: int, threads: int) -> int:
    """Return the channels of a work item: all, or fewer if there are too few rows for the threads."""
    vectors = -(-channels // lanes)
    wanted = 1 if threads == 1 else 4 * threads
    if channels % lanes:
        return vectors * lanes
    part = -(-vectors // smallest(vectors, -(-wanted // largest(1, rows_of_tiles)))) * lanes
    return at_most(wanted, rows_of_tiles, vectors * lanes, part)


def _packed(lowering: Lowering, group: Group, lanes: int) -> Tensor:
    """Pack the bias and the weights for the kernel."""
    arrays = [array for v in group.head.inputs[1:] if (array := lowering.known(v)) is not None]
    weights, bias = arrays[0], arrays[1] if len(arrays) > 1 else None
    return lowering.packed(("depthwise", lanes), arrays, lambda: pack_depthwise(weights, bias, lanes))


def _repeat_channels(lowering: Lowering, source: Tensor, channels: int) -> Tensor:
    """Return the image with every channel repeated once for each of its windows."""
    batch, count, height, width = source.shape
    if count == channels:
        return source
    times = channels // count
    copy = lowering.allocate((batch, channels, height, width), source.dtype, channels_last_order(4))
    (n, _, h, w), (_, c, _, _) = copy.strides, source.strides
    shape = (batch, count, times, height, width)
    repeated = source.view(shape, (source.strides[0], c, 0, *source.strides[2:]))
    lowering.copy(repeated, copy.view(shape, (n, times, 1, h, w)))
    return copy
