"""Dense convolution of images: as one matrix product, by Winograd's minimal filtering, or as products over bands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from itertools import pairwise, product

from lite_compiler.tracing.numbers import call, is_traced, largest, smallest
from lite_core.ir import DType
from lite_cpu.kernels.direct import MOST_PLANES, Direct, DirectShape
from lite_cpu.kernels.gemm import Gemm, GemmShape
from lite_cpu.kernels.shares import (
    ITEM_TIME,
    Items,
    best_division,
    fractions,
    gives_own_rows,
    nearby,
    parts,
    time_of_a_weight,
)
from lite_cpu.kernels.tiles import gemm_tile, rows_time
from lite_cpu.lowering.algorithms import Algorithm, algorithms, sizes_of
from lite_cpu.lowering.context import Lowering, channels_last_order
from lite_cpu.lowering.convolution_task import Convolution
from lite_cpu.lowering.filters import Filters
from lite_cpu.lowering.pairs import as_pairs
from lite_cpu.lowering.tile_products import direct_in_tiles, gemm_in_tiles, rows_of_tile
from lite_cpu.lowering.window import image_strides, with_contiguous_channels
from lite_cpu.lowering.winograd import winograd
from lite_cpu.machine import Machine
from lite_cpu.tensors import Tensor

__all__ = ["dense", "pointwise"]

F32 = DType.FLOAT32

#: The time that copying an element takes, in units of a floating-point operation.
_COPY = 6


def dense(lowering: Lowering, task: Convolution, filters: Filters) -> None:
    """Emit a convolution by the fastest algorithm."""
    if task.target.size == 0:
        return
    # An odd number of channels has no pairs: they are joined as the input is copied for a larger window.
    if task.window.is_pointwise and not (task.pairs and task.source.shape[1] % 2):
        pointwise(lowering, task, task.panels(filters, lowering))
        return

    def emit(emitter: Lowering, algorithm: Algorithm) -> None:
        if algorithm.tile is None:
            direct(emitter, task, task.panels(filters, emitter))
        else:
            winograd(emitter, task, filters, algorithm.tile)

    candidates = algorithms(lowering, task, filters)
    lowering.choose("convolution", [task.source, task.target], sizes_of(task), candidates, emit)


def pointwise(lowering: Lowering, task: Convolution, weights: Tensor) -> None:
    """Emit a 1 x 1 convolution without padding, of any stride, as a matrix product whose rows are the input pixels."""
    window, source, target, operands, machine = task.window, task.source, task.target, task.operands, lowering.machine
    batch, columns, height, width = target.shape
    for axis, stride, count in ((2, window.strides[0], height), (3, window.strides[1], width)):
        source = source.slice(axis, 0, count, stride)
    source = with_contiguous_channels(lowering, source)
    by_rows, at_once = height * rows_time(machine, width), rows_time(machine, height * width)
    if pixels_stride(source) is None and by_rows > 1.1 * at_once:
        # Rows are too short for the register tile, which makes copying the used pixels worthwhile.
        copy = lowering.allocate(source.shape, source.dtype, channels_last_order(4))
        lowering.copy(source, copy)
        source = copy
    if task.pairs:
        source = as_pairs(lowering, source, axis=1)
    channels, groups = source.shape[1] // window.groups, window.groups
    kernel = Gemm(task.epilogue, weights.dtype if task.halves else F32, task.pairs, task.multiplies_matrices(machine))
    kernel = replace(kernel, halves=task.halves)
    tensors = [source, target, *operands]
    pixel_strides = [pixels_stride(tensor) for tensor in tensors]
    uniform = [stride for stride in pixel_strides if stride is not None]
    is_one_product = len(uniform) == len(tensors)
    shape = GemmShape(
        rows=batch * height * width if is_one_product else width,
        depth=channels,
        columns=columns // groups,
        a_row=uniform[0] if is_one_product else source.strides[3],
        c_row=uniform[1] if is_one_product else target.strides[3],
        batches=groups,
        groups=1 if is_one_product else height,
        a_batch=channels,
        a_group=source.strides[2],
        b_batch=weights.strides[0],
        bias_batch=columns // groups,
        c_batch=columns // groups,
        c_group=target.strides[2],
        b_unit=task.unit,
    )
    if is_one_product:
        strides = [(columns // groups * t.strides[1], 0, s) for t, s in zip(operands, uniform[2:])]
        emit_gemm(lowering, kernel, shape, strides, [source, weights, task.bias, target, *operands])
        return
    strides = [(columns // groups * t.strides[1], t.strides[2], t.strides[3]) for t in operands]
    for image in range(batch):
        a, c, *extra = (tensor.slice(0, image, 1) for tensor in tensors)
        emit_gemm(lowering, kernel, shape, strides, [a, weights, task.bias, c, *extra])


def direct(lowering: Lowering, task: Convolution, weights: Tensor) -> None:
    """Emit a convolution with any window: bands of the input are copied with their padding, then multiplied."""
    window, source, target, operands = task.window, task.source, task.target, task.operands
    planes = 0
    batch, all_channels, height, width = source.shape
    is_odd = task.pairs and all_channels % 2 == 1
    if is_odd:
        source = lowering.dense(source)  # an odd number of channels is joined to pairs as it is copied from planes
    few = all_channels <= MOST_PLANES and window.groups == 1 and (all_channels > 1 or task.pairs)
    # Planes of one element each look like contiguous channels.
    if few and (is_odd or (source.strides[1] != 1 and source.strides[3] == 1)):
        planes = all_channels
        all_channels = -(-planes // 2) if task.pairs else planes
    else:
        source = with_contiguous_channels(lowering, source)
        source = as_pairs(lowering, source, axis=1) if task.pairs else source
        all_channels = source.shape[1]
    all_columns, out_height, out_width = target.shape[1:]
    columns = all_columns // window.groups
    shape = DirectShape(
        batch=batch,
        groups=window.groups,
        height=height,
        width=width,
        out_height=out_height,
        out_width=out_width,
        top=window.begin[0],
        left=window.begin[1],
        channels=all_channels // window.groups,
        columns=columns,
        x_batch=source.strides[0],
        x_row=source.strides[2],
        x_pixel=source.strides[3],
        x_channel=source.strides[1],
        y_batch=target.strides[0],
        y_row=target.strides[2],
        y_pixel=target.strides[3],
        row_stride=window.strides[0],
        pixel_stride=window.strides[1],
        row_dilation=window.dilations[0],
        pixel_dilation=window.dilations[1],
        window_rows=window.kernel[0],
        window_pixels=window.kernel[1],
        b_group=weights.strides[0],
        band_rows=1,
        column_block=columns,
        itemsize=source.dtype.itemsize if task.halves else 4,
        b_unit=task.unit,
    )
    kernel = Direct(
        task.epilogue, planes, False, task.pairs, source.dtype if planes else F32,
        task.multiplies_matrices(lowering.machine), task.halves,
    )  # fmt: skip
    rows, block = _block(shape, kernel.machine_of_tile(lowering.machine), lowering.options.threads)
    shape = replace(shape, band_rows=rows, column_block=block)
    is_uniform = all(t.strides[2] == out_width * t.strides[3] or out_height == 1 for t in (target, *operands))
    if is_uniform and _worth_gathering(lowering.machine, rows, shape.out_width, columns):
        shape, kernel = replace(shape, gathered=True), replace(kernel, gathered=True)
    kernel, shape, scratch_bytes = direct_in_tiles(lowering.machine, kernel, shape)
    lowering.step(
        kernel,
        [source, weights, task.bias, target, *operands],
        shape.params([(*image_strides(t), columns * t.strides[1]) for t in operands]),
        shape.items,
        flops=2 * target.size * shape.window_rows * shape.taps * shape.depth * (2 if task.pairs else 1),
        scratch_bytes=scratch_bytes,
        label="direct",
    )


def _block(shape: DirectShape, machine: Machine, threads: int) -> tuple[int, int]:
    """Return the rows of a band and the columns of a work item."""
    if threads == 1:
        return _highest_block(shape, machine)
    if not is_traced(shape):
        return _best_block(shape, machine, threads)
    # Only these sizes matter.
    like = replace(
        shape, height=0, width=0, out_height=0, out_width=0, x_batch=0, x_row=0, x_pixel=0, x_channel=0, y_batch=0,
        y_row=0, y_pixel=0, b_group=0,
    )  # fmt: skip
    sizes = shape.out_height, shape.out_width
    block: tuple[int, int] = (
        call(_similar_block, like, machine, threads, *sizes)
        if is_traced(like)
        else _blocks_like(like, machine, threads)(*sizes)
    )
    return block


@lru_cache(1024)  # the layers of a block are alike
def _blocks_like(like: DirectShape, machine: Machine, threads: int) -> Callable[[int, int], tuple[int, int]]:
    """Return the function that returns blocks of convolutions which differ only in the sizes of the output."""
    best = cache(lambda height, width: _best_block(replace(like, out_height=height, out_width=width), machine, threads))

    def block(height: int, width: int) -> tuple[int, int]:
        near = nearby(height)
        rows, columns = call(best, near, nearby(width))
        return -(-height // -(-near // rows)), columns

    return block


def _similar_block(like: DirectShape, machine: Machine, threads: int, height: int, width: int) -> tuple[int, int]:
    """Return the block of a convolution of about the same size, with bands that are as high as all others.

    See :func:`lite_cpu.kernels.gemm_blocks.gemm_blocks`, for which the same is done for the same reason.
    """
    return _blocks_like(like, machine, threads)(height, width)


def _highest_block(shape: DirectShape, machine: Machine) -> tuple[int, int]:
    """Return the block with all columns, and bands of input that take at most half of the second-level cache."""
    panel = gemm_tile(machine)[1] * machine.lanes()
    row_bytes = shape.itemsize * shape.row_stride * shape.band_width * shape.channels
    highest = smallest(shape.out_height, largest(1, machine.l2_bytes // 2 // largest(1, row_bytes)))
    return -(-shape.out_height // -(-shape.out_height // highest)), -(-shape.columns // panel) * panel


@lru_cache(1024)  # the layers of a block are alike
def _best_block(shape: DirectShape, machine: Machine, threads: int) -> tuple[int, int]:
    """Return the rows of a band and the columns of a work item that keep all of several threads busy.

    Low bands copy more rows twice and read the weights more often, and items of few columns copy the same input again.
    """
    panel = gemm_tile(machine)[1] * machine.lanes()
    rows, columns = _highest_block(shape, machine)
    divisions = product(fractions(rows, 1), fractions(columns, panel))
    times = {division: _timed_items(machine, shape, *division) for division in divisions}
    return best_division(times, threads, lambda d: gives_own_rows(shape.out_height, d[0], threads))


def _timed_items(machine: Machine, shape: DirectShape, band_rows: int, column_block: int) -> Items:
    window, times = shape.window_rows * shape.taps * shape.depth, []
    for rows, bands in parts(shape.out_height, band_rows):
        band = replace(shape, band_rows=rows)
        together = rows_time(machine, rows * shape.out_width)
        copied = band.band_elements
        if _worth_gathering(machine, rows, band.out_width, band.columns):
            time, copied = together, copied + rows * shape.out_width * window
        else:
            time = rows * rows_time(machine, shape.out_width)
        weight = time_of_a_weight(machine, time)
        for columns, count in parts(shape.columns, column_block):
            item = weight * window * columns + _COPY * copied + ITEM_TIME
            times.append((item, shape.batch * shape.groups * bands * count))
    return times


def _worth_gathering(machine: Machine, rows: int, width: int, columns: int) -> bool:
    """Return True if one product over all pixels of a band is faster than one product for each of its rows.

    The band has ``rows`` rows of ``width`` pixels, of as many columns.

    Copying an element of a window takes about as long as multiplying it with three columns, see :data:`_COPY`.
    Measured with AVX2, whose tile has 6 rows: 7x7x512 of stride 2 from 70 to 97 GFLOP/s, 14x14x256 from 99 to 114.
    """
    by_rows = rows * rows_time(machine, width)
    at_once = rows_time(machine, rows * width)
    columns = largest(1, columns)
    # More than 1.03 + 3 / columns times as long, in whole numbers, which native code compares for other sizes.
    return 100 * columns * by_rows > (103 * columns + 300) * at_once


def pixels_stride(tensor: Tensor) -> int | None:
    """Return the stride between pixels over batch and space: 0 if all pixels share one, None if it varies."""
    dims = [(n, s) for axis, (n, s) in enumerate(zip(tensor.shape, tensor.strides)) if axis != 1 and n > 1]
    if all(s == 0 for _, s in dims):
        return 0
    for (_, outer), (count, inner) in pairwise(dims):
        if outer != count * inner:
            return None
    return dims[-1][1]


def emit_gemm(
    lowering: Lowering,
    kernel: Gemm,
    shape: GemmShape,
    operand_strides: Sequence[tuple[int, int, int]],
    tensors: Sequence[Tensor],
) -> None:
    """Emit a matrix product. ``tensors`` are A, packed B, bias, C and the operands of the epilogue."""
    # Blocks are cut from all rows. If rows are in groups, a block has whole groups or rows of a single group.
    everything = shape if shape.groups == 1 else replace(shape, rows=shape.groups * shape.rows, groups=1)
    kernel = gemm_in_tiles(lowering.machine, kernel, shape)
    machine = kernel.machine_of_tile(lowering.machine)
    row_block, column_block = everything.blocks(machine, lowering.options.threads, rows_of_tile(kernel))
    group_block = largest(1, smallest(row_block, everything.rows) // shape.rows)
    lowering.step(
        kernel,
        tensors,
        shape.params(row_block, column_block, operand_strides, group_block),
        shape.items(row_block, column_block, group_block),
        flops=shape.flops * (2 if kernel.pairs else 1),
        scratch_bytes=kernel.scratch_bytes(group_block * smallest(row_block, shape.rows), shape),
    )
