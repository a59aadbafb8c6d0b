"""Candidate algorithms and tile sizes for convolutions.

Each function returns equivalent candidates. The first one is estimated to be fastest; :meth:`Lowering.choose` also
tries the others if a session tunes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from lite_core.ir import DType
from lite_opencl.device.devices import FoundDevice
from lite_opencl.device.images import TEXEL, fits_image

__all__ = [
    "Algorithm",
    "Tile",
    "depthwise_tiles",
    "gemm_tiles",
    "image_tiles",
    "transform_tiles",
    "winograd_algorithms",
]

#: Bytes of a vector. NOTE: some compilers fail on wider ones.
_VECTOR_BYTES = 32

#: (rows, vectors) whose sums, vectors of inputs and a weight fit into the 16 registers of a processor. The first ones
#: have the best ratio of multiplications to loads; the last ones, for few output channels, keep enough sums in flight.
_PROCESSOR_TILES = ((6, 2), (4, 3), (3, 3), (2, 5), (1, 6))
#: More candidates: tiles that waste less at the edges, and the last ones for processors with 32 registers.
_MORE_PROCESSOR_TILES = ((5, 2), (4, 2), (8, 1), (8, 3))
#: Blocks of output channels that a work group of a processor computes: it loads the same inputs again while they are
#: in the cache, and there are fewer groups to schedule (on PoCL 10 % less time for MobileNet v1 and ResNet-50). Each
#: core must keep at least this many work groups, or some cores are idle.
_PROCESSOR_GROUPS, _GROUPS_PER_CORE = (8, 3), 8
_MULTIPLY, _LOAD = 1.0, 0.5

#: A GPU's register holds one number, and neighbouring work items form the vector.
_GPU_ROWS, _GPU_VECTORS, _GPU_LOCAL = (8, 4, 2, 1), 4, (64, 1, 1)
#: (rows, vectors, width, work group): more and fewer sums; vectors, for GPUs that have them; other work groups.
_MORE_GPU_TILES = (
    (8, 2, 1, (64, 1, 1)),
    (8, 8, 1, (64, 1, 1)),
    (4, 4, 1, (64, 1, 1)),
    (4, 2, 1, (64, 1, 1)),
    (16, 2, 1, (64, 1, 1)),
    (8, 1, 4, (32, 1, 1)),
    (4, 2, 4, (32, 1, 1)),
    (8, 4, 1, (32, 1, 1)),
    (8, 4, 1, (32, 4, 1)),
)

#: Time to compute a number in Winograd's transforms, in multiplications of a product at full speed.
_TRANSFORM = 32
#: Time to load a weight that is used for only a few positions, in the same unit.
_WEIGHT = 13
#: Smaller gains than this are not worth the rounding errors and the larger weights.
_WORTHWHILE = 0.8

#: Rows of an image that a work group of a depthwise convolution computes, the usual number first.
_BANDS = (16, 8, 4, 32, 64)
_GPU_DEPTHWISE_LOCALS: tuple[int, ...] = (32, 16, 64, 128)

#: Work group sizes of Winograd's transforms on a GPU.
_GPU_TRANSFORM_LOCALS = (32, 64, 128)


class Tile(NamedTuple):
    """The results of a work item: ``rows`` output channels of ``vectors`` vectors of ``width`` pixels.

    ``image`` is True if weights are read as an image.
    """

    rows: int
    vectors: int
    width: int
    local: tuple[int, int, int] = (1, 1, 1)
    image: bool = False


class Algorithm(NamedTuple):
    """An algorithm for a convolution.

    Attributes:
        name: ``product`` over all taps, ``depthwise``, or ``winograd``.
        m: the m of Winograd's F(m x m, 3 x 3).
    """

    name: str
    m: int = 0


def gemm_tiles(device: FoundDevice, dtype: DType, outputs: int, positions: int) -> list[Tile]:
    """Return tiles for a product of ``outputs`` channels (of one group) and ``positions`` pixels."""
    if device.is_gpu:
        rows = next(n for n in _GPU_ROWS if n <= max(outputs, 1))
        others = [Tile(*tile) for tile in _MORE_GPU_TILES]
        fitting = [t for t in others if t.rows <= 2 * outputs and _fits(t, device) and _covers(t, positions)]
        return _unique([Tile(rows, _GPU_VECTORS, 1, _GPU_LOCAL), *fitting])
    width = _vector_width(dtype, positions)

    def cost(tile: tuple[int, int]) -> float:
        rows, vectors = tile
        tiles = -(-outputs // rows) * -(-positions // (vectors * width))
        return tiles * (_MULTIPLY * rows * vectors + _LOAD * (rows + vectors))

    tiles = [Tile(*tile, width) for tile in sorted(_PROCESSOR_TILES, key=cost)]
    tiles += [Tile(*tile, width) for tile in _MORE_PROCESSOR_TILES]
    usual = tiles[0]
    fitting = [t for t in tiles[1:] if t.rows < 2 * outputs and _covers(t, positions)]
    groups = [usual._replace(local=(1, n, 1)) for n in _PROCESSOR_GROUPS if n * usual.rows < 2 * outputs]
    columns, blocks = -(-positions // (usual.vectors * width)), -(-outputs // usual.rows)
    enough = _GROUPS_PER_CORE * device.compute_units
    if groups and columns * -(-blocks // groups[0].local[1]) >= enough:
        return [groups[0], usual, *fitting, *groups[1:]]
    return [usual, *fitting, *groups]


def image_tiles(device: FoundDevice, tiles: Sequence[Tile], weights: DType, outputs: int, depth: int) -> list[Tile]:
    """Return some of the tiles with weights in images, for GPUs with a texture cache that buffers do not use.

    They are never the default, since only measuring can tell if they are faster. One tile for each number of rows is
    enough for that, of those whose weights for one step along the depth are whole texels.

    Args:
        device: the device to run on.
        tiles: the tiles with weights in buffers.
        weights: the type of the packed weights, which are known before the run.
        outputs: output channels of one group.
        depth: weights of an output channel, times the groups and planes that have separate weights.
    """
    by_rows = {tile.rows: tile for tile in reversed(tiles) if tile.rows % TEXEL == 0}
    fitting = [t for t in by_rows.values() if fits_image(device, weights, -(-outputs // t.rows) * t.rows * depth)]
    return [tile._replace(image=True) for tile in reversed(fitting)]


def depthwise_tiles(device: FoundDevice, dtype: DType, rows: int, columns: int) -> list[Tile]:
    """Return tiles for a depthwise convolution with ``rows`` x ``columns`` outputs; a work group has a tile's rows."""
    if device.is_gpu:
        widths, groups = [1, _vector_width(dtype, min(columns, 4))], _GPU_DEPTHWISE_LOCALS
    else:
        width = _vector_width(dtype, columns)
        widths, groups = [width, max(width // 2, 1)], (1,)
    usual = _BANDS[0]
    bands = [usual, *(n for n in _BANDS[1:] if n < rows)]
    tiles = [Tile(band, 1, width, (n, 1, 1)) for band in bands for width in widths for n in groups]
    # Each candidate differs from the first one in one number, since all combinations would take long to measure.
    return _unique([tiles[0], *(t for t in tiles if _differences(t, tiles[0]) == 1 and _fits(t, device))])


def transform_tiles(device: FoundDevice, columns: int) -> list[Tile]:
    """Return candidates for Winograd's transforms; their width is the number of image tiles that a work item takes.

    ``columns`` is the number of image tiles in a row.
    """
    if device.is_gpu:
        tiles = [Tile(1, 1, 1, (n, 1, 1)) for n in _GPU_TRANSFORM_LOCALS]
        return [tiles[0], *(t for t in tiles[1:] if _fits(t, device))]
    width = _vector_width(DType.FLOAT32, columns)
    return [Tile(1, 1, n) for n in (width, width // 2, width // 4) if n]


def winograd_algorithms(inputs: int, outputs: int, images: int, height: int, width: int) -> list[Algorithm]:
    """Return Winograd's algorithms and a product over all taps, the one that is estimated to be fastest first.

    Args:
        inputs: input channels.
        outputs: output channels.
        images: the number of images.
        height: rows of the result.
        width: columns of the result.
    """

    def products(points: int, positions: int) -> int:
        return points * inputs * outputs * (-(-positions // 8) * 8 + _WEIGHT)

    def cost(m: int) -> int:
        points, tiles = (m + 2) ** 2, images * -(-height // m) * -(-width // m)
        return products(points, tiles) + _TRANSFORM * points * tiles * (inputs + outputs)

    product = Algorithm("product")
    filtering = [Algorithm("winograd", m) for m in sorted((4, 2), key=cost)]
    pays = cost(filtering[0].m) < _WORTHWHILE * products(9, images * height * (width + 2))
    return [*filtering, product] if pays else [product, *filtering]


def _vector_width(dtype: DType, elements: int) -> int:
    """Return the number of elements of a processor's vector, limited to ``elements``."""
    width = _VECTOR_BYTES // max(dtype.itemsize, 4)
    while width > elements:
        width //= 2
    return width


def _fits(tile: Tile, device: FoundDevice) -> bool:
    return prod(tile.local) <= device.largest_group


def _covers(tile: Tile, positions: int) -> bool:
    """Return True if ``positions`` fill a vector, and more than half of a work group."""
    return tile.width <= positions and tile.vectors * tile.width * tile.local[0] < 2 * positions


def _differences(tile: Tile, other: Tile) -> int:
    return sum(a != b for a, b in zip(tile, other))


def _unique(tiles: list[Tile]) -> list[Tile]:
    return list(dict.fromkeys(tiles))
