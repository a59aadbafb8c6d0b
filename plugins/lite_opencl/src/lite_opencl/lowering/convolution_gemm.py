"""Convolutions as matrix products over padded images, shared by all kinds of convolution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

import numpy as np

from lite_compiler.tensors import dense_strides
from lite_compiler.tournaments.choice import problem
from lite_core.ir import DType
from lite_opencl.chains import Chain
from lite_opencl.device.images import ConstantImage
from lite_opencl.lowering.chaining import Epilogue
from lite_opencl.lowering.context import Lowering
from lite_opencl.lowering.convolution_choice import Tile, gemm_tiles, image_tiles
from lite_opencl.lowering.steps import Argument
from lite_opencl.lowering.tables import upload_table
from lite_opencl.lowering.vectors import Defines, sum_defines, vector_defines
from lite_opencl.programs.kernel_source import KernelSource
from lite_opencl.tensors import Tensor, types_of

__all__ = ["Images", "OutputGrid", "as_images", "emit_gemm", "packed_type", "pad_images"]

_PHASES_LOCAL = (32, 1, 1)


class Images(NamedTuple):
    """Planes whose rows are contiguous.

    Attributes:
        tensor: the tensor that begins with the first element.
        image, channel, depth, row: strides in elements.
    """

    tensor: Tensor
    image: int
    channel: int
    depth: int
    row: int


@dataclass(frozen=True, slots=True)
class OutputGrid:
    """The elements of a destination [images, channels, ...] that a convolution writes: a strided grid in each channel.

    Attributes:
        tensor: the destination: dense, or one image with dense planes.
        counts: the numbers of depths, rows and columns.
        steps: elements from one depth, row and column to the next.
        first: the first element of a channel that is written.
    """

    tensor: Tensor
    counts: tuple[int, int, int]
    steps: tuple[int, int, int]
    first: int = 0

    @property
    def channel(self) -> int:
        """Distance between channels in elements, also from the last channel of an image to the next image."""
        return self.tensor.strides[1] if self.tensor.shape[1] > 1 else prod(self.tensor.shape[2:])

    @staticmethod
    def fits(tensor: Tensor) -> bool:
        """Return True if a product can be written to a tensor; see :attr:`tensor`."""
        return tensor.is_dense or (tensor.shape[0] == 1 and tensor.view(tensor.shape[2:], tensor.strides[2:]).is_dense)

    @staticmethod
    def all_of(tensor: Tensor) -> OutputGrid:
        """Return the grid of all elements of a tensor with up to three spatial dimensions."""
        depth, height, width = (1, 1, 1, *tensor.shape[2:])[-3:]
        return OutputGrid(tensor, (depth, height, width), (height * width, width, 1))


def as_images(lowering: Lowering, tensor: Tensor, *, whole: bool = False) -> Images:
    """Return a tensor [images, channels, ...] as images, copied unless its planes are dense.

    ``whole`` requires the whole tensor to be dense, not just its planes.
    """
    height, width = (1, *tensor.shape[2:])[-2:]
    planes = tensor.view(tensor.shape[2:], tensor.strides[2:])
    if not (tensor if whole else planes).is_dense:
        tensor = lowering.dense(tensor)
    image, channel = (s if n != 1 else 0 for n, s in zip(tensor.shape[:2], tensor.strides[:2]))
    return Images(tensor, image, channel, height * width, width)


def pad_images(
    lowering: Lowering,
    tensor: Tensor,
    phases: Sequence[tuple[int, int]],
    strides: tuple[int, int],
    begin: tuple[int, int, int],
    size: tuple[int, int, int],
) -> Images:
    """Return padded images that are split into phases; see ``convolution_phases.cl``.

    Args:
        lowering: gets the step.
        tensor: [images, channels, ...].
        phases: the remainders (row, column) by the strides.
        strides: rows and columns between two elements of a phase.
        begin: padding before the first depth, row and column.
        size: depths of the result, and rows and columns of a phase.

    Returns:
        The images; a depth holds all phases one after another.
    """
    source = as_images(lowering, tensor, whole=True).tensor
    depth, height, width = (1, 1, 1, *source.shape[2:])[-3:]
    images, channels = source.shape[:2]
    result = lowering.allocate((images, channels, size[0], len(phases), *size[1:]), source.dtype)
    local = _PHASES_LOCAL if lowering.device.is_gpu else (1, 1, 1)
    table = upload_table(lowering, np.array(phases, np.int32).reshape(-1))
    is_even = not lowering.device.is_gpu and strides[1] == 2 and source.dtype.itemsize == 4
    kernel = KernelSource(
        "convolution_phases",
        "convolution_phases",
        local,
        (("STRIDE", strides[1]), *([("EVEN_VECTORS", 1)] if is_even else [])),
        types_of(X=source.as_bits()),
    )
    planes = images * channels * size[0] * len(phases)
    numbers = [planes, len(phases), depth, height, width, *size, *begin, strides[0]]
    lowering.step(
        kernel, [result, source, table, *map(np.int32, numbers)], (local[0], planes), label="convolution_phases"
    )
    image, channel, depth_step, _, row, _ = dense_strides(result.shape)
    return Images(result, image, channel, depth_step, row)


def packed_type(lowering: Lowering, x: DType, w: DType) -> DType:
    """Return the type of packed weights: the narrower operand's type, or float32 for 16-bit floats on a processor."""
    narrow = x if x.is_half else w
    return DType.FLOAT32 if narrow.is_half and not lowering.device.is_gpu else narrow


def emit_gemm(
    lowering: Lowering,
    pack: Callable[[Lowering, int], Tensor],
    images: Images,
    grid: OutputGrid,
    tap_offsets: Sequence[int] | None,
    *,
    groups: int = 1,
    channels: int,
    outputs: int,
    constant: DType | None = None,
    bias: Tensor | None = None,
    epilogue: Epilogue | None = None,
    depth_stride: int = 1,
    has_plane_weights: bool = False,
    label: str = "convolution_gemm",
) -> None:
    """Emit a step of ``convolution_gemm.cl``.

    Args:
        lowering: gets the step.
        pack: returns the weights packed in blocks of a number of output channels, such as :meth:`Filters.panels`.
        images: the input, padded so that it contains all taps of all outputs.
        grid: the destination of the results.
        tap_offsets: for each tap, in the filters' order, the elements from an output's position in ``images`` to the
            input of the tap; None for a single tap at the position itself.
        groups: groups of the convolution.
        channels: input channels of one group.
        outputs: output channels of one group.
        constant: the type of the packed weights if they are known before the run and may be read as an image.
        bias: one number for each output channel of all groups.
        epilogue: the epilogue of the group of nodes, or None.
        depth_stride: depths of the input between two depths of the output.
        has_plane_weights: True if each image has separate weights, which are packed one image after another.
        label: its name in profiles.
    """
    x, y = images.tensor, grid.tensor
    depths, rows, columns = grid.counts
    positions = (rows - 1) * images.row + columns
    if not x.shape[0] * groups * outputs * depths * rows * columns:
        return
    chain, operands = epilogue or Epilogue(Chain(x.dtype), [])
    is_wide = (rows > 1 and images.row != columns) or grid.steps[1:] != (columns, 1)
    taps = 1 if tap_offsets is None else len(tap_offsets)
    table = None if tap_offsets is None else upload_table(lowering, np.array(tap_offsets, np.int32))

    def emit(emitter: Lowering, tile: Tile) -> None:
        weights = pack(emitter, tile.rows)
        tensors: list[Argument] = [x, ConstantImage(weights) if tile.image else weights]
        types = {"X": x, "W": weights, "Y": y}
        defines: Defines = [("ROWS", tile.rows), ("VECTORS", tile.vectors)]
        if bias is not None:
            tensors.append(bias)
            types["B"] = bias
            defines.append(("HAS_BIAS", 1))
        if table is not None:
            tensors += [table, np.int32(taps)]
            defines.append(("TAP_OFFSETS", 1))
        if tile.image:
            defines.append(("WEIGHTS_IMAGE", 1))
        if has_plane_weights:
            tensors.append(np.int32(weights.size // x.shape[0]))
            defines.append(("W_PLANE", 1))
        if is_wide:
            defines.append(("WIDE", 1))
        defines += sum_defines(x.dtype, tile.width) + vector_defines(x.dtype, tile.width, [("X", x.dtype)])
        kernel = KernelSource(
            "convolution_gemm", "convolution_gemm", tile.local, tuple(defines), types_of(**types), chain
        )
        numbers = [
            positions, channels, groups, outputs,
            images.channel, images.image, images.depth * depth_stride, depths, images.row,
            columns, grid.channel, *grid.steps, grid.first,
        ]  # fmt: skip
        emitter.step(
            kernel,
            [y, *tensors, *map(np.int32, numbers), *operands],
            (
                -(-positions // (tile.vectors * tile.width)),
                groups * -(-outputs // tile.rows),
                x.shape[0] * depths,
            ),
            flops=(2 * channels * taps + chain.cost) * x.shape[0] * groups * outputs * depths * rows * columns,
            label=label,
        )

    tiles = gemm_tiles(lowering.device, x.dtype, outputs, positions)
    if constant is not None:
        depth = channels * taps * groups * (x.shape[0] if has_plane_weights else 1)
        tiles += image_tiles(lowering.device, tiles, constant, outputs, depth)
    lowering.choose(
        problem(
            label,
            [x, y],
            planes=x.shape[0] * depths,
            groups=groups,
            outputs=outputs,
            channels=channels,
            taps=taps,
            positions=positions,
            wide=is_wide,
        ),
        tiles,
        emit,
    )
