"""Lowering of dense 3 x 3 convolutions of stride 1 by Winograd's minimal filtering."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lite_compiler.tracing.numbers import computed, decided
from lite_cpu.kernels.tiles import gemm_tile
from lite_cpu.kernels.toom_cook import TAPS
from lite_cpu.kernels.winograd import Winograd, WinogradShape
from lite_cpu.kernels.winograd_weights import WinogradWeights
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.convolution_task import Convolution
from lite_cpu.lowering.filters import Filters
from lite_cpu.lowering.weights import WinogradRecipe
from lite_cpu.lowering.window import Window, image_strides, with_contiguous_channels
from lite_cpu.lowering.winograd_blocks import Block, Products, blocks, lowest_cost
from lite_cpu.machine import Machine
from lite_cpu.tensors import Tensor
from lite_cpu.winograd_preparation import prepare_winograd

__all__ = ["best_tile", "can_filter", "winograd"]

Array = np.ndarray[Any, Any]

#: Maximum ratio of costs at which Winograd is used; smaller gains do not justify rounding errors and larger weights.
_WORTHWHILE = 0.9

#: Number of blocks that a tournament compares.
_BLOCKS = 4


def can_filter(geometry: Window) -> bool:
    """Return True if Winograd's minimal filtering can compute a convolution."""
    unit = ((1, 1), (1, 1))
    is_plain = (geometry.strides, geometry.dilations) == unit and geometry.groups == 1
    return is_plain and geometry.kernel == (TAPS, TAPS)


def best_tile(
    machine: Machine, geometry: Window, source: Sequence[int], target: Sequence[int], share: float = 1.0
) -> int | None:
    """Return the m of F(m x m, 3 x 3) with the lowest estimated cost; None if direct convolution is estimated faster.

    Args:
        machine: the processor.
        geometry: the window.
        source: the shape of the input, [batch, channels, height, width].
        target: the shape of the output.
        share: the time of the direct convolution, as a share of that in float32.

    NOTE: an infinity or NaN in the input spreads to all outputs of the tiles that read it, through the sums of the
    transforms; with a direct convolution it affects only the outputs whose window contains it.
    """
    (batch, channels), (columns, height, width) = source[:2], target[1:]
    return _best_tile(machine, batch, channels, columns, height, width, share) if can_filter(geometry) else None


@decided
def _best_tile(
    machine: Machine, batch: int, channels: int, columns: int, height: int, width: int, share: float
) -> int | None:
    """Return what :func:`best_tile` does, for sizes of the input and the result."""

    def cost(outputs: int) -> float:
        tiles = batch * -(-height // outputs) * -(-width // outputs)
        return lowest_cost(machine, Products(outputs, tiles, channels, columns))

    padded_columns = -(-columns // machine.lanes()) * machine.lanes()
    per_weight = 2 * batch * height * width + machine.tuning.winograd_weight
    best = min((4, 2), key=cost)
    return best if cost(best) < share * _WORTHWHILE * TAPS * TAPS * channels * padded_columns * per_weight else None


def winograd(lowering: Lowering, task: Convolution, filters: Filters, outputs: int) -> None:
    """Emit one step that computes a convolution with tiles of ``outputs`` x ``outputs``."""
    target, lanes = task.target, lowering.machine.lanes()
    source = with_contiguous_channels(lowering, task.source)
    batch, channels, height, width = source.shape
    columns, out_height, out_width = target.shape[1:]
    weights = _weights(lowering, filters, outputs)
    tiles = batch * -(-out_height // outputs) * -(-out_width // outputs)

    def emit(emitter: Lowering, block: Block) -> None:
        shape = WinogradShape(
            outputs, batch, height, width, out_height, out_width, *task.window.begin, channels, columns,
            *image_strides(source), *image_strides(target), weights.strides[0], block.tiles, block.columns, lanes,
        )  # fmt: skip
        emitter.step(
            Winograd(outputs, task.epilogue),
            [source, weights, task.bias, target, *task.operands],
            shape.params([image_strides(operand) for operand in task.operands]),
            shape.items,
            flops=2 * TAPS * TAPS * channels * target.size,
            scratch_bytes=shape.scratch_bytes,
            label=f"winograd f{outputs}x{outputs}",
        )

    sizes = {"m": outputs, "tiles": tiles, "channels": f"{channels}>{columns}"}
    likely = _likely_blocks(lowering.machine, Products(outputs, tiles, channels, columns), lowering.options.threads)
    lowering.choose("winograd blocks", [source, target], sizes, likely, emit)


@computed
def _likely_blocks(machine: Machine, products: Products, threads: int) -> tuple[Block, ...]:
    """Return the blocks that a tournament compares; if there are fewer, the last one several times."""
    found = blocks(machine, products, threads)[:_BLOCKS]
    return (*found, *found[-1:] * (_BLOCKS - len(found)))


def _weights(lowering: Lowering, filters: Filters, outputs: int) -> Tensor:
    """Return the transformed filters, packed into panels."""
    lanes, (_, vectors) = lowering.machine.lanes(), gemm_tile(lowering.machine)
    view, source, kernel = filters.view, filters.source, WinogradWeights(outputs)
    assert source is not None
    recipe = WinogradRecipe(outputs, lanes, vectors, view.shape, view.strides, view.offset)
    lowering.makers.add(kernel)

    def pack(_: Array) -> Array:
        address = lowering.library.addresses([kernel])[kernel]
        if not lowering.library.runs_here:  # for a model file, which stores the recipe instead of these weights
            return np.empty(recipe.packed_shape, np.float32)
        return prepare_winograd(address, source, recipe, lowering.options.threads, lowering.library.native)

    return filters.packed(lowering, ("winograd", outputs, lanes, vectors), pack, recipe)
