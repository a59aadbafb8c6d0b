"""Depthwise convolutions: each group has one input channel."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from lite_compiler.tournaments.choice import problem
from lite_opencl.lowering.chaining import Epilogue
from lite_opencl.lowering.context import Lowering
from lite_opencl.lowering.convolution_choice import Tile, depthwise_tiles
from lite_opencl.lowering.convolution_gemm import Images
from lite_opencl.lowering.tables import upload_table
from lite_opencl.lowering.vectors import Defines, sum_defines, vector_defines
from lite_opencl.programs.kernel_source import KernelSource
from lite_opencl.tensors import Tensor, types_of

__all__ = ["depthwise"]


def depthwise(
    lowering: Lowering,
    weights: Tensor,
    images: Images,
    target: Tensor,
    tap_offsets: Sequence[int],
    bias: Tensor | None,
    epilogue: Epilogue,
) -> None:
    """Emit a step of ``convolution_depthwise.cl``.

    Args:
        lowering: gets the step.
        weights: [output channels, 1, ...], dense.
        images: the input, padded so that it contains all taps of all outputs.
        target: the result, dense, [images, output channels, height, width] or without height.
        tap_offsets: for each tap, the elements from an output's position in ``images`` to the input of the tap.
        bias: one number for each output channel.
        epilogue: the epilogue of the group of nodes.
    """
    x, channels = images.tensor, target.shape[1]
    height, width = (1, *target.shape[2:])[-2:]
    types = {"X": x, "W": weights, "Y": target}
    defines: Defines = [("TAPS", len(tap_offsets))]
    tensors = [x, weights]
    if bias is not None:
        tensors.append(bias)
        types["B"] = bias
        defines.append(("HAS_BIAS", 1))
    table = upload_table(lowering, np.array(tap_offsets, np.int32))

    def emit(emitter: Lowering, tile: Tile) -> None:
        vectors = sum_defines(x.dtype, tile.width) + vector_defines(x.dtype, tile.width, [("X", x.dtype)])
        kernel = KernelSource(
            "convolution_depthwise",
            "convolution_depthwise",
            tile.local,
            (*defines, *vectors),
            types_of(**types),
            epilogue.chain,
        )
        sizes = [channels, channels // x.shape[1], images.image, images.channel, images.row, height, width, tile.rows]
        emitter.step(
            kernel,
            [target, *tensors, table, *map(np.int32, sizes), *epilogue.arguments],
            (-(-height // tile.rows) * tile.local[0], channels, x.shape[0]),
            flops=(2 * len(tap_offsets) + epilogue.chain.cost) * prod(target.shape),
            label="convolution_depthwise",
        )

    lowering.choose(
        problem(
            "convolution_depthwise",
            types.values(),
            images=x.shape[0],
            channels=channels,
            taps=len(tap_offsets),
            rows=height,
            columns=width,
        ),
        depthwise_tiles(lowering.device, x.dtype, height, width),
        emit,
    )
