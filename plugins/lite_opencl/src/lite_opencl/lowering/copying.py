"""Copies between tensors: row by row, or in tiles for transpositions; elements are moved as bits."""

from __future__ import annotations

from math import prod

import numpy as np

from lite_opencl.addressing import address
from lite_opencl.chains import Chain
from lite_opencl.lowering.chaining import run_chain
from lite_opencl.lowering.steps import StepEmitter
from lite_opencl.programs.kernel_source import KernelSource
from lite_opencl.tensors import Tensor, collapse

__all__ = ["copy_elements", "same_bits"]

#: Rows and columns of a tile, and the work group, which moves 8 of its rows at a time.
_TILE = 32
_LOCAL = (_TILE, 8, 1)

#: A matrix that is narrower wastes most of its tiles.
_MIN_WIDTH = 16


def same_bits(*tensors: Tensor) -> list[Tensor]:
    """Return views of tensors as bits, for moving elements, unless their types differ and elements are converted."""
    if len({t.dtype for t in tensors}) == 1:
        return [t.as_bits() for t in tensors]
    return list(tensors)


def copy_elements(emitter: StepEmitter, source: Tensor, destination: Tensor) -> None:
    """Copy elements between tensors of one shape; ``source`` may repeat elements (stride 0).

    Elements are converted if the types differ: one of them may store floats in 16 bits. Transpositions are done in
    tiles on GPUs; on a processor the caches serve the same purpose, and local memory would be a detour.
    """
    if destination.size == 0:
        return
    source, destination = same_bits(source, destination)
    to, from_ = collapse([destination, source])
    columns = next((i for i, (n, s) in enumerate(zip(from_.shape, from_.strides)) if n > 1 and s == 1), None)
    if emitter.device.is_gpu and columns is not None and _is_wide_matrix(to, columns):
        _transpose(emitter, from_, to, columns)
    else:
        run_chain(emitter, Chain(source.dtype), source, [], destination)


def _is_wide_matrix(destination: Tensor, columns: int) -> bool:
    """Return True if the last dimension is contiguous, and tiles over it and dimension ``columns`` are well used."""
    last = destination.rank - 1
    width = min(destination.shape[last], destination.shape[columns])
    return destination.strides[last] == 1 and columns < last and width >= _MIN_WIDTH


def _transpose(emitter: StepEmitter, source: Tensor, destination: Tensor, columns: int) -> None:
    """Copy to a destination that is contiguous in its last dimension from a source contiguous in ``columns``."""
    last = destination.rank - 1
    around = [a for a in range(last) if a != columns]
    outer = [t.view([t.shape[a] for a in around], [t.strides[a] for a in around]) for t in (destination, source)]
    (y, y_arguments), (x, x_arguments) = (address(t, len(around)) for t in outer)
    kernel = KernelSource(
        "transpose",
        "transpose",
        _LOCAL,
        (
            ("TILE", _TILE),
            ("Y_PARAMETERS", "".join(f", {p}" for p in y.parameters("y"))),
            ("X_PARAMETERS", "".join(f", {p}" for p in x.parameters("x"))),
            ("Y_INDEX", f"({y.index('y')})"),
            ("X_INDEX", f"({x.index('x')})"),
        ),
        (("X", source.dtype), ("Y", destination.dtype)),
    )
    rows, width = destination.shape[last], destination.shape[columns]
    sizes = (rows, width, source.strides[last], destination.strides[columns])
    tiles = (-(-width // _TILE) * _LOCAL[0], -(-rows // _TILE) * _LOCAL[1], prod(outer[0].shape))
    emitter.step(kernel, [destination, source, *map(np.int32, sizes), *y_arguments, *x_arguments], tiles)
