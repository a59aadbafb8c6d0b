"""Lowering of dense 3 x 3 convolutions of stride 1 by Winograd's minimal filtering, and the model of its cost."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_cpu.kernels.tiles import gemm_tile
from lite_cpu.kernels.toom_cook import TAPS, window
from lite_cpu.kernels.winograd import Winograd, WinogradShape
from lite_cpu.kernels.winograd_weights import WinogradWeights
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.convolution_task import Convolution
from lite_cpu.lowering.filters import Filters
from lite_cpu.lowering.weights import WinogradRecipe
from lite_cpu.lowering.window import Window, image_strides, with_contiguous_channels
from lite_cpu.machine import Machine
from lite_cpu.tensors import Tensor
from lite_cpu.winograd_preparation import prepare_winograd

__all__ = ["best_tile", "winograd"]

Array = np.ndarray[Any, Any]

#: The cost model, in units of the time of one floating-point operation at full speed. Fitted on a Zen 4 core, AVX2
#: and AVX-512, to 56x56x64, 28x28x128, 14x14x256 and 7x7x512.
_TRANSFORM = 14  # computing, storing and loading one element of the transformed input or of the products
#: The cost of one weight. With few rows, loading it from beyond the second-level cache alone measured as 5. The rest
#: accounts for memory, of which F(4x4) needs four times the original. With 13, 7x7x512 is computed by F(2x2): resnet18
#: takes 63 MB less and 7 % longer with one thread, resnet50 42 MB less and 1 % longer; no other measured layer changes.
_WEIGHT = 13

#: Maximum ratio of costs at which Winograd is used; smaller gains do not justify rounding errors and larger weights.
_WORTHWHILE = 0.9


def best_tile(machine: Machine, geometry: Window, source: Tensor, target: Tensor) -> int | None:
    """Return the m of F(m x m, 3 x 3) with the lowest estimated cost; None if direct convolution is estimated faster.

    NOTE: an infinity or NaN in the input spreads to all outputs of the tiles that read it, through the sums of the
    transforms; with a direct convolution it affects only the outputs whose window contains it.
    """
    unit = ((1, 1), (1, 1))
    if geometry.kernel != (TAPS, TAPS) or (geometry.strides, geometry.dilations) != unit or geometry.groups != 1:
        return None
    batch, channels = source.shape[:2]
    columns, height, width = target.shape[1:]
    lanes = machine.lanes()
    padded_channels, padded_columns = (-(-n // lanes) * lanes for n in (channels, columns))

    def products(points: int, rows: int) -> int:
        return points * channels * padded_columns * (2 * rows + _WEIGHT)

    def cost(outputs: int) -> int:
        points = window(outputs) ** 2
        tiles = batch * -(-height // outputs) * -(-width // outputs)
        return products(points, tiles) + _TRANSFORM * points * tiles * (padded_channels + padded_columns)

    best = min((4, 2), key=cost)
    return best if cost(best) < _WORTHWHILE * products(TAPS * TAPS, batch * height * width) else None


def winograd(lowering: Lowering, task: Convolution, filters: Filters, outputs: int) -> None:
    """Emit one step that computes a convolution with tiles of ``outputs`` x ``outputs``."""
    target, lanes = task.target, lowering.machine.lanes()
    source = with_contiguous_channels(lowering, task.source)
    batch, channels, height, width = source.shape
    columns, out_height, out_width = target.shape[1:]
    weights = _weights(lowering, filters, outputs)
    tiles = batch * -(-out_height // outputs) * -(-out_width // outputs)
    tile_block, column_block = _blocks(lowering, outputs, tiles, channels, columns)
    shape = WinogradShape(
        outputs, batch, height, width, out_height, out_width, *task.window.begin, channels, columns,
        *image_strides(source), *image_strides(target), weights.strides[0], tile_block, column_block, lanes,
    )  # fmt: skip
    lowering.step(
        Winograd(outputs, task.epilogue),
        [source, weights, task.bias, target, *task.operands],
        shape.params([image_strides(operand) for operand in task.operands]),
        shape.items,
        flops=2 * TAPS * TAPS * channels * target.size,
        scratch_bytes=shape.scratch_bytes,
        label=f"winograd f{outputs}x{outputs}",
    )


def _weights(lowering: Lowering, filters: Filters, outputs: int) -> Tensor:
    """Return the transformed filters, packed into panels."""
    lanes, (_, vectors) = lowering.machine.lanes(), gemm_tile(lowering.machine)
    view, source, kernel = filters.view, filters.source, WinogradWeights(outputs)
    assert source is not None
    recipe = WinogradRecipe(outputs, lanes, vectors, view.shape, view.strides, view.offset)

    def pack(_: Array) -> Array:
        address = lowering.library.addresses([kernel])[kernel]
        if not lowering.library.runs_here:  # for a model file, which stores the recipe instead of these weights
            return np.empty(recipe.packed_shape, np.float32)
        return prepare_winograd(address, source, recipe, lowering.options.threads)

    return filters.packed(lowering, ("winograd", outputs, lanes, vectors), pack, recipe)


def _blocks(lowering: Lowering, outputs: int, tiles: int, channels: int, columns: int) -> tuple[int, int]:
    """Choose the tiles and columns of a work item.

    The transformed input of an item takes a third of the second-level cache, its products about as much. Every thread
    gets several items. To get enough items, they get fewer tiles while blocks are tall enough to reuse the weights, and
    then fewer columns, although the input is then transformed again for each block of columns. By measurement, 2 to 12
    register tiles in a block differ by 3 %.
    """
    machine, threads = lowering.machine, lowering.options.threads
    tile_rows, vectors = gemm_tile(machine)
    panel = vectors * machine.lanes()
    tile_bytes = 4 * window(outputs) ** 2 * channels
    tallest = min(machine.l2_bytes // 3 // max(1, tile_bytes), tiles)
    tile_block = max(2, -(-tallest // tile_rows)) * tile_rows
    wanted = 1 if threads == 1 else 4 * threads
    while -(-tiles // tile_block) < wanted and tile_block > 2 * tile_rows:
        tile_block -= tile_rows
    column_block = -(-columns // panel) * panel
    while -(-tiles // tile_block) * -(-columns // column_block) < min(wanted, 2 * threads) and column_block > panel:
        column_block = -(-column_block // 2 // panel) * panel
    return tile_block, column_block
