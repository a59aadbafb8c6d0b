"""3 x 3 convolutions of stride 1 by Winograd's minimal filtering F(m x m, 3 x 3), m 2 or 4.

Three steps: transform tiles of the input, compute one product over channels for each point of the transformed tiles,
and transform the products back. It needs (m + 2)^2 / (9 m^2) of the multiplications: 0.44 and 0.25 of them.
(A. Lavin and S. Gray, "Fast Algorithms for Convolutional Neural Networks", 2015.)

NOTE: an infinity or NaN in the input spreads to all outputs of the tiles that read it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_compiler.tournaments.choice import problem
from lite_core.ir import DType
from lite_opencl.lowering.chaining import Epilogue
from lite_opencl.lowering.context import Lowering
from lite_opencl.lowering.convolution_choice import Tile, transform_tiles
from lite_opencl.lowering.convolution_gemm import Images, OutputGrid, emit_gemm, pad_images
from lite_opencl.lowering.filters import Filters, pack_panels
from lite_opencl.lowering.spatial_axes import Axis
from lite_opencl.lowering.vectors import Defines, sum_defines, vector_defines
from lite_opencl.programs.kernel_source import KernelSource
from lite_opencl.tensors import Tensor, types_of

__all__ = ["TAPS", "transform_weights", "winograd"]

Array = np.ndarray[Any, Any]

TAPS = 3

#: The transforms of filters for each m, at the points 0, 1, -1, 2, -2 and infinity.
_FILTERS = {
    2: ((1, 0, 0), (1 / 2, 1 / 2, 1 / 2), (1 / 2, -1 / 2, 1 / 2), (0, 0, 1)),
    4: (
        (1 / 4, 0, 0),
        (-1 / 6, -1 / 6, -1 / 6),
        (-1 / 6, 1 / 6, -1 / 6),
        (1 / 24, 1 / 12, 1 / 6),
        (1 / 24, -1 / 12, 1 / 6),
        (0, 0, 1),
    ),
}


def winograd(
    lowering: Lowering,
    m: int,
    filters: Filters,
    source: Tensor,
    target: Tensor,
    axes: tuple[Axis, Axis, Axis],
    bias: Tensor | None,
    epilogue: Epilogue,
) -> None:
    """Emit the steps of a convolution with known weights; a tile has ``m`` rows and columns of results."""
    _, height, width = axes
    batch, inputs = source.shape[:2]
    outputs = filters.shape[1]
    rows, columns = -(-height.outputs // m), -(-width.outputs // m)
    tiles = batch * rows * columns
    points = (m + TAPS - 1) ** 2
    begin = (0, height.begin, width.begin)
    size = (1, rows * m + TAPS - 1, columns * m + TAPS - 1)
    images = pad_images(lowering, source, [(0, 0)], (1, 1), begin, size)
    transformed = lowering.allocate((points, inputs, tiles), DType.FLOAT32)
    products = lowering.allocate((points, outputs, tiles), DType.FLOAT32)
    _transform_input(lowering, m, images, transformed, (batch, rows, columns))

    def pack(emitter: Lowering, block: int) -> Tensor:
        assert filters.array is not None
        array = filters.array
        return filters.uploaded(
            emitter, ("winograd", m, block), lambda: pack_panels(transform_weights(m, array), block, DType.FLOAT32)
        )

    # The product of a point treats all tiles as one row.
    operand = Images(transformed, inputs * tiles, tiles, 0, tiles)
    emit_gemm(
        lowering,
        pack,
        operand,
        OutputGrid(products, (1, 1, tiles), (0, tiles, 1)),
        None,
        channels=inputs,
        outputs=outputs,
        constant=DType.FLOAT32,
        has_plane_weights=True,
        label="winograd_product",
    )
    _transform_output(lowering, m, products, target, (batch, rows, columns), bias, epilogue)


def transform_weights(m: int, weights: Array) -> Array:
    """Transform weights [1, outputs, inputs, 1, 3, 3] to [points, outputs, inputs, 1]."""
    matrix = np.array(_FILTERS[m])
    _, outputs, inputs = weights.shape[:3]
    # One product for all filters is many times as fast as one for each dimension of the transform.
    points: Array = np.kron(matrix, matrix) @ weights.reshape(outputs * inputs, TAPS * TAPS).T.astype(np.float64)
    return points.reshape(-1, outputs, inputs, 1)


def _defines(m: int, width: int) -> Defines:
    return [("M", m), *sum_defines(DType.FLOAT32, width)]


def _transform_input(lowering: Lowering, m: int, images: Images, result: Tensor, counts: tuple[int, int, int]) -> None:
    batch, rows, columns = counts
    channels, tiles = result.shape[1:]
    x = images.tensor

    def emit(emitter: Lowering, tile: Tile) -> None:
        width = tile.width
        lanes = ", ".join(f"LOAD_X(pointer, (index) + {lane * m})" for lane in range(width))
        store = f"STORE_VECTOR(float, {width}, vector, pointer)" if width > 1 else "*(pointer) = (vector)"
        kernel = KernelSource(
            "winograd_input",
            "winograd_input",
            tile.local,
            (
                *_defines(m, width),
                ("LOAD_TILES(pointer, index)", f"((SUM_VECTOR)({lanes}))"),
                ("STORE_TILES(vector, pointer)", store),
            ),
            types_of(X=x, Y=result),
        )
        numbers = [channels, rows, columns, images.image, images.channel, images.row, tiles]
        emitter.step(
            kernel,
            [result, x, *map(np.int32, numbers)],
            (rows * -(-columns // width), channels, batch),
            flops=4 * (m + 2) * result.size,
        )

    sizes = {"m": m, "images": batch, "channels": channels, "rows": rows, "columns": columns}
    lowering.choose(problem("winograd_input", [x, result], **sizes), transform_tiles(lowering.device, columns), emit)


def _transform_output(
    lowering: Lowering,
    m: int,
    products: Tensor,
    target: Tensor,
    counts: tuple[int, int, int],
    bias: Tensor | None,
    epilogue: Epilogue,
) -> None:
    batch, rows, columns = counts
    channels, tiles = products.shape[1:]
    types = {"X": products, "Y": target}
    tensors = [products]
    bias_defines: Defines = []
    if bias is not None:
        tensors.append(bias)
        types["B"] = bias
        bias_defines.append(("HAS_BIAS", 1))

    def emit(emitter: Lowering, tile: Tile) -> None:
        vectors = vector_defines(DType.FLOAT32, tile.width, [("X", DType.FLOAT32)])
        kernel = KernelSource(
            "winograd_output",
            "winograd_output",
            tile.local,
            (*_defines(m, tile.width), *vectors, *bias_defines),
            types_of(**types),
            epilogue.chain,
        )
        numbers = [channels, rows, columns, tiles, *target.shape[2:]]
        emitter.step(
            kernel,
            [target, *tensors, *map(np.int32, numbers), *epilogue.arguments],
            (rows * -(-columns // tile.width), channels, batch),
            flops=4 * (m + 2) * products.size + epilogue.chain.cost * target.size,
        )

    sizes = {"m": m, "images": batch, "channels": channels, "rows": rows, "columns": columns}
    lowering.choose(
        problem("winograd_output", types.values(), **sizes), transform_tiles(lowering.device, columns), emit
    )
