"""The register tile of an 8-bit product, on machines that multiply matrices of bytes (ARM's SMMLA).

One instruction multiplies two rows of A by two columns of B, eight elements of the depth each, and adds the four
products to a *block*: the sums of the first row and of the second row. A vector of packed B has a group of eight
elements for each of two columns.
"""

from __future__ import annotations

from collections.abc import Sequence

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Number, Pointer, Val
from lite_cpu.kernels.depth_loops import Fetch, Sums

__all__ = ["blocks_of_rows", "multiply_matrices", "rows_of_blocks"]

#: Elements of a group; columns and rows of a block.
_GROUP, _SIDE = 8, 2
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
    k: Emitter, rows: Sequence[Pointer], panel: Pointer, steps: Val, blocks: Sums, ahead: Fetch
) -> None:
    """Emit ``blocks += rows * panel``.

    Args:
        k: the emitter.
        rows: the first element of each row of A, int8.
        panel: the first vector of B, packed in groups of eight.
        steps: number of groups of a row.
        blocks: the sums, by pairs of rows and pairs of columns.
        ahead: memory to prefetch.
    """
    size, columns = _SIDE * _GROUP, len(blocks[0])
    whole = steps / _TOGETHER * _TOGETHER
    # Offsets from the end of the last whole vector: that they are still negative takes no comparison.
    ends = [row[whole * _GROUP] for row in rows]
    pairs = list(zip(ends[::_SIDE], [*ends[1::_SIDE], ends[-1]]))
    b, fetched = k.cursor(panel), k.cursor(ahead.start[ahead.at])

    def multiply_groups(first: Number, stop: Number, count: int) -> None:
        with k.loop(first, stop, count * _GROUP) as at:
            loaded = [[row[at].load(count * _GROUP) for row in pair] for pair in pairs]
            fetched.get().prefetch(level=ahead.level)
            for step in range(count):
                group = range(step * _GROUP, (step + 1) * _GROUP)
                xs = [x.shuffle(y, [*group, *(count * _GROUP + n for n in group)]) for x, y in loaded]
                for column in range(columns):
                    weights = b.get()[(step * columns + column) * size].load(size)
                    for x, sums in zip(xs, blocks):
                        sums[column].set(_multiply(k, x, weights, sums[column].get()))
            b.advance(count * columns * size)
            fetched.advance(k.index(ahead.step) * count)

    multiply_groups(-whole * _GROUP, 0, _TOGETHER)
    multiply_groups(0, (steps - whole) * _GROUP, 1)


def _multiply(k: Emitter, x: Val, weights: Val, block: Val) -> Val:
    arguments = [block.ir, x.ir, weights.ir]
    return Val(
        k, k.intrinsic("llvm.aarch64.neon.smmla.v4i32.v16i8", block.ir.type, arguments), DType.INT32, block.lanes
    )
