"""Lowering of ConvInteger, fused with the element-wise nodes after it."""

from __future__ import annotations

from dataclasses import replace

from lite_compiler.fusion import Group
from lite_core.ir import Node
from lite_cpu.dot_panels import Matrices
from lite_cpu.kernels.bands import cut_bands
from lite_cpu.kernels.conv_int8 import ConvInt8, ConvInt8Shape
from lite_cpu.kernels.int8_tiles import LeftSide
from lite_cpu.kernels.integer_dots import DotForm
from lite_cpu.kernels.tiles import gemm_tile
from lite_cpu.lowering.context import Lowering, channels_last_order
from lite_cpu.lowering.int8_depthwise import emit_depthwise
from lite_cpu.lowering.int8_operands import (
    RightSide,
    choose_form,
    is_single,
    pack_at_run_time,
    pack_known,
    zero_point,
)
from lite_cpu.lowering.int8_products import emit_int8_product
from lite_cpu.lowering.registry import lowers
from lite_cpu.lowering.shape import input_of, required_input
from lite_cpu.lowering.tile_products import windows_stay_in_place
from lite_cpu.lowering.window import Window, as_image, image_strides, window_of, with_contiguous_channels
from lite_cpu.tensors import Tensor

__all__ = ["refuse_conv_integer"]


def refuse_conv_integer(node: Node) -> str | None:
    """Return the reason why an integer convolution cannot be run, or None."""
    x = required_input(node)
    if x.shape is None or len(x.shape) not in (3, 4):
        return f"{node.op} over other than one or two spatial dimensions"
    return None


@lowers("ConvInteger", refuse=refuse_conv_integer, epilogue=True)
def conv_integer(lowering: Lowering, group: Group) -> None:
    """Emit a convolution of 8-bit integers; the result is channels last."""
    node = group.head
    order = channels_last_order(len(group.output.shape))
    target = lowering.target(group.output, order)
    written = target if target.is_channels_last else lowering.allocate(target.shape, target.dtype, order)
    if target.size:
        window = window_of(node)
        source = with_contiguous_channels(lowering, as_image(lowering.tensor(required_input(node))))
        w, zero = node.inputs[1], input_of(node, 3)
        known = lowering.known(w) is not None and (zero is None or lowering.known(zero) is not None)
        if known and 1 < window.groups == source.shape[1] == written.shape[1]:
            emit_depthwise(lowering, group, window, source, as_image(written))
        else:
            emit = _pointwise if window.is_pointwise else _dense
            emit(lowering, group, window, source, as_image(written))
    if written is not target:
        lowering.copy(written, target)


def _conv_weights(lowering: Lowering, node: Node, window: Window) -> RightSide:
    """Pack the weights of a convolution: constants once, other weights in every run."""
    w, zero = node.inputs[1], input_of(node, 3)
    assert w is not None
    columns, channels, *_ = w.shape
    groups, (height, width) = window.groups, window.kernel
    # With a dilation, the pixels of a window row are not contiguous.
    runs, depth = (height, width * channels) if window.dilations[1] == 1 else (height * width, channels)
    zero_shape = () if is_single(zero) else (columns, *(1 for _ in w.shape[1:]))
    form = choose_form(lowering, required_input(node).dtype, w, zero, zero_shape)
    split, order = (groups, columns // groups, channels, height, width), (0, 3, 4, 2, 1)
    array, point = lowering.known(w), lowering.known(zero)
    if array is not None and (zero is None or point is not None):
        matrices = Matrices(split, order, (groups, runs, depth, columns // groups), zero_shape)
        return pack_known(lowering, array, point, form, matrices)
    view = lowering.dense(lowering.tensor(w)).reshape(split)
    assert view is not None
    ordered = lowering.allocate(tuple(split[a] for a in order), w.dtype)
    lowering.copy(view.permute(order), ordered)
    b = ordered.reshape((groups, runs, depth, columns // groups))
    assert b is not None
    points = zero_point(lowering, zero, w.dtype)
    dense = lowering.dense(points)
    strides = (0, 0) if is_single(zero) else (columns // groups, 1)
    flat = replace(dense, shape=(groups, columns // groups), strides=strides)
    return pack_at_run_time(lowering, b, flat, form)


def _pointwise(lowering: Lowering, group: Group, window: Window, source: Tensor, target: Tensor) -> None:
    """Emit a 1 x 1 convolution without padding, of any stride, as a matrix product of the pixels for each group."""
    x = required_input(group.head)
    right = _conv_weights(lowering, group.head, window)
    epilogue, others = lowering.epilogue(group, group.output.shape, axis=1)
    for axis, stride, count in ((2, window.strides[0], target.shape[2]), (3, window.strides[1], target.shape[3])):
        source = source.slice(axis, 0, count, stride)

    def by_group(tensor: Tensor) -> Tensor:
        """Return [batch, channels, height, width] as [groups, batch, height, width, channels of a group]."""
        (batch, channels, height, width), (sn, sc, sh, sw) = tensor.shape, tensor.strides
        each = channels // window.groups
        return replace(tensor, shape=(window.groups, batch, height, width, each), strides=(each * sc, sn, sh, sw, sc))

    c, a, *operands = (by_group(t) for t in (target, source, *map(as_image, others)))
    loops = c.shape[:-1]
    zero = zero_point(lowering, input_of(group.head, 2), x.dtype)
    emit_int8_product(
        lowering, LeftSide(x.dtype, right.form), epilogue, c, a, replace(zero, shape=loops, strides=(0,) * 4), right,
        (right.panels.shape[1], 0, 0, 0), operands,
    )  # fmt: skip


def _dense(lowering: Lowering, group: Group, window: Window, source: Tensor, target: Tensor) -> None:
    """Emit a convolution with any window: bands of the input are copied with their padding, then multiplied."""
    x = required_input(group.head)
    right = _conv_weights(lowering, group.head, window)
    epilogue, others = lowering.epilogue(group, group.output.shape, axis=1)
    operands = [as_image(tensor) for tensor in others]
    batch, all_channels, height, width = source.shape
    all_columns, out_height, out_width = target.shape[1:]
    columns = all_columns // window.groups
    shape = ConvInt8Shape(
        batch, window.groups, height, width, out_height, out_width, *window.begin,
        all_channels // window.groups, columns, *image_strides(source), *image_strides(target),
        *window.strides, *window.dilations, *window.kernel, right.panels.shape[1],
        band_rows=1, column_block=columns,
    )  # fmt: skip
    blocked = right.form.tiles and not windows_stay_in_place(shape, 1)
    shape = _with_blocks(lowering, shape, right.form, blocked=blocked)
    zero = zero_point(lowering, input_of(group.head, 2), x.dtype)
    lowering.step(
        ConvInt8(LeftSide(x.dtype, right.form), epilogue, blocked),
        [source, zero, right.panels, right.sums, target, *operands],
        shape.params([(*image_strides(t), columns * t.strides[1]) for t in operands]),
        shape.items,
        flops=2 * target.size * shape.window_rows * shape.taps * shape.depth,
        scratch_bytes=shape.scratch_bytes(right.form, blocked=blocked),
    )


def _with_blocks(lowering: Lowering, shape: ConvInt8Shape, form: DotForm, *, blocked: bool) -> ConvInt8Shape:
    """Choose the rows of a band and the columns of a work item: bands fit into the cache, threads get several items."""
    machine, threads = lowering.machine, lowering.options.threads
    panel = gemm_tile(machine)[1] * machine.lanes()
    row_bytes = form.left.itemsize * shape.row_stride * shape.band_width * shape.channels
    if blocked:
        row_bytes += 4 * shape.out_width * shape.window_rows * shape.taps * form.steps(shape.depth)
    rows = min(shape.out_height, max(1, machine.l2_bytes // 4 // max(1, row_bytes)))
    shape = replace(shape, band_rows=rows, column_block=-(-shape.columns // panel) * panel)
    return cut_bands(shape, 1 if threads == 1 else 4 * threads, 2 * shape.window_rows, panel)
