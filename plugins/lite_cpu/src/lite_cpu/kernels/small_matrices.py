"""The register tile of a product on machines that multiply small matrices: ARM's SMMLA of bytes, BFMMLA of bfloat16.

One instruction multiplies two rows of A by two columns of B, a *group* of eight bytes along the depth of each, and adds
the four products to a *block*: the sums of the first row and of the second row. A vector of packed B has a group for
each of two columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Number, Pointer, Val
from lite_cpu.kernels.depth_loops import Fetch, Sums

__all__ = ["MultiplyMatrices", "blocks_of_rows", "multiply_bytes", "multiply_matrices", "rows_of_blocks"]

#: ``multiply(x, weights, block)`` returns the block plus the product of the groups of two rows and of two columns.
MultiplyMatrices = Callable[[Val, Val, Val], Val]

#: Bytes of a group; columns and rows of a block.
_GROUP_BYTES, _SIDE = 8, 2
#: Groups of a row that are loaded as one vector.
_TOGETHER = 2


def blocks_of_rows(rows: Sequence[Sequence[Val]]) -> list[list[Val]]:
    """Return the blocks of a tile, given as vectors of each row; an odd row is also the second one of its blocks."""
    pairs = zip(rows[::_SIDE], [*rows[1::_SIDE], rows[-1]])
    return [
        [first.shuffle(second, [at, at + 1, 4 + at, 5 + at]) for first, second in zip(*pair) for at in (0, _SIDE)]
        for pair in pairs
    ]


def rows_of_blocks(blocks: Sequence[Sequence[Val]], rows: int) -> list[list[Val]]:
    """Return the vectors of each row, the reverse of :func:`blocks_of_rows`."""
    return [
        [left.shuffle(right, lanes) for left, right in zip(pair[::_SIDE], pair[1::_SIDE])]
        for pair in blocks
        for lanes in ([0, 1, 4, 5], [2, 3, 6, 7])
    ][:rows]


def multiply_matrices(
    k: Emitter,
    rows: Sequence[Pointer],
    panel: Pointer,
    steps: Val,
    blocks: Sums,
    fetches: Sequence[Fetch],
    multiply: MultiplyMatrices,
) -> None:
    """Emit ``blocks += rows * panel``.

    Args:
        k: the emitter.
        rows: the first element of each row of A.
        panel: the first vector of B, packed in groups, of elements of the same size.
        steps: number of groups of a row.
        blocks: the sums, by pairs of rows and pairs of columns.
        fetches: memory to prefetch.
        multiply: adds the products of two rows and two columns to a block.
    """
    elements = _GROUP_BYTES // rows[0].dtype.itemsize
    size, columns = _SIDE * elements, len(blocks[0])
    whole = steps / _TOGETHER * _TOGETHER
    # Offsets from the end of the last whole vector: that they are still negative takes no comparison.
    ends = [row[whole * elements] for row in rows]
    pairs = list(zip(ends[::_SIDE], [*ends[1::_SIDE], ends[-1]]))
    b = k.cursor(panel)
    fetched = [(k.cursor(fetch.start[fetch.at]), fetch) for fetch in fetches]

    def multiply_groups(first: Number, stop: Number, count: int) -> None:
        with k.loop(first, stop, count * elements) as at:
            loaded = [[row[at].load(count * elements) for row in pair] for pair in pairs]
            for step in range(count):
                for cursor, fetch in fetched:
                    if step % fetch.every == 0:
                        cursor.get()[k.index(fetch.step) * step].prefetch(level=fetch.level)
                group = range(step * elements, (step + 1) * elements)
                xs = [x.shuffle(y, [*group, *(count * elements + n for n in group)]) for x, y in loaded]
                for column in range(columns):
                    weights = b.get()[(step * columns + column) * size].load(size)
                    for x, sums in zip(xs, blocks):
                        sums[column].set(multiply(x, weights, sums[column].get()))
            b.advance(count * columns * size)
            for cursor, fetch in fetched:
                cursor.advance(k.index(fetch.step) * count)

    multiply_groups(-whole * elements, 0, _TOGETHER)
    multiply_groups(0, (steps - whole) * elements, 1)


def multiply_bytes(x: Val, weights: Val, block: Val) -> Val:
    """Return a block of int32 plus the products of groups of eight int8."""
    k, arguments = x.k, [block.ir, x.ir, weights.ir]
    products = k.intrinsic("llvm.aarch64.neon.smmla.v4i32.v16i8", block.ir.type, arguments)
    return Val(k, products, DType.INT32, block.lanes)
