"""How a convolution is computed, and in tiles of what size: the one place to change with measurements."""

from __future__ import annotations

from typing import NamedTuple

from lite_core.ir import DType
from lite_opencl.devices import FoundDevice

__all__ = ["Tile", "choose_tile", "depthwise_tile", "winograd_tile", "winograd_width"]

#: Bytes of a vector. NOTE: some compilers fail on wider ones.
_VECTOR_BYTES = 32

#: (rows, vectors): sums, vectors of inputs and a weight fit into the 16 registers of a processor. The first are better
#: by their ratio of multiplications to loads; the last, for few output channels, keep enough sums in flight.
_PROCESSOR_TILES = ((6, 2), (4, 3), (3, 3), (2, 5), (1, 6))
_MULTIPLY, _LOAD = 1.0, 0.5

#: On a GPU a register holds one number, and neighbouring work items are the vector.
_GPU_ROWS, _GPU_VECTORS, _GPU_LOCAL = (8, 4, 2, 1), 4, (64, 1, 1)

#: Time of a number that Winograd's transforms make, in multiplications of a product at full speed.
_TRANSFORM = 32
#: Time of a weight that is fetched for a few positions only, likewise.
_WEIGHT = 13
#: Smaller gains than this are not worth the rounding errors and the larger weights.
_WORTHWHILE = 0.8

#: Rows of an image that a work group of a depthwise convolution computes.
_BAND = 16


class Tile(NamedTuple):
    """What a work item computes: ``rows`` output channels of ``vectors`` vectors of ``width`` pixels."""

    rows: int
    vectors: int
    width: int
    local: tuple[int, int, int] = (1, 1, 1)


def choose_tile(device: FoundDevice, dtype: DType, outputs: int, positions: int) -> Tile:
    """The tile for a product of ``outputs`` channels (of one group) and ``positions`` pixels."""
    if device.is_gpu:
        rows = next(n for n in _GPU_ROWS if n <= max(outputs, 1))
        return Tile(rows, _GPU_VECTORS, 1, _GPU_LOCAL)
    width = _vector_width(dtype, positions)

    def cost(tile: tuple[int, int]) -> float:
        rows, vectors = tile
        tiles = -(-outputs // rows) * -(-positions // (vectors * width))
        return tiles * (_MULTIPLY * rows * vectors + _LOAD * (rows + vectors))

    rows, vectors = min(_PROCESSOR_TILES, key=cost)
    return Tile(rows, vectors, width)


def depthwise_tile(device: FoundDevice, dtype: DType, columns: int) -> Tile:
    """What a work group of a depthwise convolution computes of images with so many columns: rows, in one vector."""
    if device.is_gpu:
        return Tile(_BAND, 1, 1, (32, 1, 1))
    return Tile(_BAND, 1, _vector_width(dtype, columns))


def winograd_width(device: FoundDevice, columns: int) -> int:
    """Neighbouring tiles of Winograd's filtering that a work item transforms, of so many in a row."""
    return 1 if device.is_gpu else _vector_width(DType.FLOAT32, columns)


def winograd_tile(inputs: int, outputs: int, images: int, height: int, width: int) -> int | None:
    """The m of F(m x m, 3 x 3) that is estimated to be fastest; None where a product over all taps is.

    Args:
        inputs: input channels.
        outputs: output channels.
        images: how many there are.
        height: rows of the result.
        width: columns of the result.
    """

    def products(points: int, positions: int) -> int:
        return points * inputs * outputs * (-(-positions // 8) * 8 + _WEIGHT)

    def cost(m: int) -> int:
        points, tiles = (m + 2) ** 2, images * -(-height // m) * -(-width // m)
        return products(points, tiles) + _TRANSFORM * points * tiles * (inputs + outputs)

    best = min((4, 2), key=cost)
    return best if cost(best) < _WORTHWHILE * products(9, images * height * (width + 2)) else None


def _vector_width(dtype: DType, elements: int) -> int:
    """The elements of a processor's vector, at most so many."""
    width = _VECTOR_BYTES // max(dtype.itemsize, 4)
    while width > elements:
        width //= 2
    return width
