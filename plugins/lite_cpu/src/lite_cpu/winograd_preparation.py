"""Winograd's weights, made by a native kernel from the filters of a convolution.

This takes less time than reading them from a file, so a model file stores only the filters. This module imports nothing
of the compiler: a restored program brings the kernel's code.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_cpu.aligned import aligned_empty
from lite_cpu.lowering.weights import WinogradRecipe
from lite_cpu.runtime import Program, ProgramError, Step
from lite_cpu.runtime.native import Native
from lite_cpu.tensors import ABSOLUTE

__all__ = ["CHANNELS_AT_ONCE", "PARAMETERS", "prepare_winograd"]

Array = np.ndarray[Any, Any]

#: Parameters of :class:`~lite_cpu.kernels.winograd_weights.WinogradWeights`; strides are in elements.
PARAMETERS = ("columns", "channels", "column_stride", "channel_stride", "row_stride", "tap_stride", "channel_block")

#: Channels that the kernel transforms in scratch memory at a time. Measured on a Zen 4 core, SSE4.2 to AVX-512, 4 to 16
#: channels take the same time, 2 take a tenth longer.
CHANNELS_AT_ONCE = 8

#: Channels of a work item.
_CHANNEL_BLOCK = 4 * CHANNELS_AT_ONCE

_TAPS = 3


def prepare_winograd(
    address: int, source: Array, recipe: WinogradRecipe, threads: int, native: Native | None = None
) -> Array:
    """Return the transformed filters, packed into panels.

    Args:
        address: address of the kernel :class:`~lite_cpu.kernels.winograd_weights.WinogradWeights` for
            ``recipe.outputs``, compiled for a machine with ``recipe.lanes`` and ``recipe.vectors``.
        source: the constant with the filters, float32.
        recipe: the filters as a view of ``source``, and the panels.
        threads: maximum number of threads to use; the result does not depend on it.
        native: the runtime; by default the one that is compiled on this machine.

    Returns:
        float32 [points, n]: for each point of a tile the matrix [channels, columns] in the panels of
        :func:`~lite_cpu.kernels.tiles.pack_panels`.

    Raises:
        ProgramError: the recipe does not fit ``source``.
    """
    elements = np.ascontiguousarray(source)
    _check(recipe, elements)
    columns, channels = recipe.shape[1:3]
    packed, width = aligned_empty(recipe.packed_shape, np.float32), recipe.lanes * recipe.vectors
    taps_floats, points_floats = _TAPS * _TAPS * CHANNELS_AT_ONCE * recipe.lanes, len(packed) * CHANNELS_AT_ONCE * width
    step = Step(
        address,
        [(ABSOLUTE, elements.ctypes.data + recipe.offset * elements.itemsize), (ABSOLUTE, packed.ctypes.data)],
        [columns, channels, *recipe.strides[1:], _CHANNEL_BLOCK],
        -(-columns // width) * -(-channels // _CHANNEL_BLOCK),
        label="winograd weights",
    )
    program = Program([step], 0, (taps_floats + points_floats) * packed.itemsize, code=native)
    scratch = aligned_empty((program.scratch_bytes(threads),), np.uint8)
    program.run([scratch.ctypes.data, 0], threads)
    return packed


def _check(recipe: WinogradRecipe, source: Array) -> None:
    """Raise ProgramError if the kernel would read outside ``source`` or the recipe describes no 3 x 3 filters."""
    shape, strides = recipe.shape, recipe.strides
    is_filter = len(shape) == len(strides) == 5 and shape[0] == 1 and min(shape) > 0 and shape[3:] == (_TAPS, _TAPS)
    if source.dtype != np.float32 or not is_filter or min(recipe.outputs, recipe.lanes, recipe.vectors) < 1:
        raise ProgramError(
            f"{recipe} of a constant {source.dtype}{list(source.shape)}: expected filters [1, columns, channels, "
            f"{_TAPS}, {_TAPS}] of a float32 constant, and panels of at least one element"
        )
    reaches = [(size - 1) * stride for size, stride in zip(shape, strides)]
    first, last = (recipe.offset + sum(f(0, reach) for reach in reaches) for f in (min, max))
    if first < 0 or last >= source.size:
        raise ProgramError(
            f"{recipe} reads elements {first} to {last} of a constant: expected none outside its {source.size} elements"
        )
