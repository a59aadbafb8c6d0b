"""Regions among the levels of a feature pyramid: distributed by their size, and collected by their score."""

from __future__ import annotations

from dataclasses import dataclass

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Pointer, Val
from lite_cpu.kernels.base import Kernel
from lite_cpu.kernels.ranking import COUNTER_BYTES, entry_of, number_of, sort_entries

__all__ = ["CollectFromLevels", "DistributeToLevels", "collecting_bytes", "distributing_bytes"]

F32, I32, I64, U64 = DType.FLOAT32, DType.INT32, DType.INT64, DType.UINT64

#: Added to the quotient of sizes before its logarithm, by the operator's definition.
_EPSILON = 1e-6


def distributing_bytes(regions: int, levels: int) -> int:
    """Return the scratch memory of :class:`DistributeToLevels`: the level of each region, two numbers of each level."""
    return 8 * regions + 16 * levels


@dataclass(frozen=True)
class DistributeToLevels(Kernel):
    """The regions of each level of a pyramid, and where each region is in the joined levels.

    Pointers: regions [regions, 4], the number of regions of each image (int32, only if :attr:`has_counts`), the
    smallest quotient of sizes on each level but the first, positions of the regions (int32), the number of regions of
    each level (int64), the fault; then for each level its regions, and for each level their number in each image
    (int32). Parameters: number of regions, images and levels, the size that quotients refer to, the offset of corners
    (both of :attr:`dtype`), and the number of the fault that the images have not all regions. There is one work item.
    Scratch: :func:`distributing_bytes`.

    A region whose size is NaN is on the first level.
    """

    dtype: DType
    has_counts: bool

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, params, begin, end, scratch):
            regions, limits = pointers.tensor(0, self.dtype), pointers.tensor(2, self.dtype)
            positions, rows = pointers.tensor(3, I32), pointers.tensor(4, I64)
            many, images, levels = (params[i] for i in range(3))
            refer, offset = params.number(3, self.dtype), params.number(4, self.dtype)
            level_of, first, next_row = scratch.cast(I64), scratch.cast(I64)[many], scratch.cast(I64)[many + levels]
            with k.loop(begin, end):
                with k.loop(0, levels) as level:
                    rows[level].store(0)
                with k.loop(0, many) as i:
                    quotient = self._size(k, regions[i * 4], offset) / refer + _EPSILON
                    above = k.variable(k.index(0))
                    with k.loop(0, levels - 1) as number:
                        above.set(above.get() + (quotient >= limits[number].load()).to(I64))
                    level_of[i].store(above.get())
                    rows[above.get()].store(rows[above.get()].load() + 1)
                start = k.variable(k.index(0))
                with k.loop(0, levels) as level:
                    first[level].store(start.get())
                    next_row[level].store(0)
                    start.set(start.get() + rows[level].load())
                    counts = pointers.tensor(level + levels + 6, I32)
                    with k.loop(0, images) as image:
                        counts[image].store(0)
                given, faulty = k.variable(k.index(0)), k.variable(k.constant(0, DType.BOOL))
                at = k.variable(k.index(0))
                with k.loop(0, images) as image:
                    wanted = pointers.tensor(1, I32)[image].load().to(I64) if self.has_counts else many
                    given.set(given.get() + wanted)
                    faulty.set(faulty.get() | (wanted < 0))
                    stop = k.minimum(at.get() + k.maximum(wanted, 0), many)
                    with k.loop(at.get(), stop) as i:
                        level = level_of[i].load()
                        row = next_row[level].load()
                        next_row[level].store(row + 1)
                        positions[i].store((first[level].load() + row).to(I32))
                        target = pointers.tensor(level + 6, self.dtype)[row * 4]
                        for corner in range(4):
                            target[corner].store(regions[i * 4 + corner].load())
                        count = pointers.tensor(level + levels + 6, I32)[image]
                        count.store(count.load() + 1)
                    at.set(stop)
                if self.has_counts:
                    with k.if_(faulty.get() | given.get().ne(many)):
                        fault = pointers.tensor(5, I64)
                        fault.store(params[5])
                        fault[1].store(given.get())

    @staticmethod
    def _size(k: Emitter, region: Pointer, offset: Val) -> Val:
        """Return the square root of a region's area, which is 0 if its corners are in the wrong order."""
        width, height = (region[2 + axis].load() - region[axis].load() for axis in range(2))
        area = ((width < 0.0) | (height < 0.0)).select(0.0, (width + offset) * (height + offset))
        return k.call("llvm.sqrt", area)


def collecting_bytes(regions: int, images: int) -> int:
    """Return the scratch memory of :class:`CollectFromLevels`: entries, regions, and their images and first rows."""
    return COUNTER_BYTES + 16 * (regions + 1) + 20 * regions + 8 * (images + 1)


@dataclass(frozen=True)
class CollectFromLevels(Kernel):
    """The best regions of all levels, ordered by their image and then by their score.

    Pointers: regions, number of regions of each image (int32), the number of all regions (int64), the fault; then for
    each level its regions, for each level their scores, and for each level their number in each image (int32).
    Parameters: number of levels and images, the most regions, the number of all given regions, and for each level the
    number of its regions and that of the fault that its images have not all of them. There is one work item. Scratch:
    :func:`collecting_bytes`.

    Equal scores keep the order of levels, then that within a level; NaN comes last.
    """

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, params, begin, end, scratch):
            levels, images, most, total = (params[i] for i in range(4))
            counts, fault = pointers.tensor(1, I32), pointers.tensor(3, I64)
            entries = scratch[COUNTER_BYTES].cast(U64)
            other = entries[total + 1]
            next_row = other[total + 1].cast(I64)
            boxes = next_row[images + 1].cast(F32)
            image_of = boxes[total * 4].cast(I32)
            with k.loop(begin, end):
                size = k.variable(k.index(0))
                with k.loop(0, levels) as level:
                    many = params[level * 2 + 4]
                    source = pointers.tensor(level + 4, F32)
                    scores = pointers.tensor(level + levels + 4, F32)
                    given = pointers.tensor(level + levels * 2 + 4, I32)
                    start = size.get()
                    with k.loop(0, many) as i:
                        at = start + i
                        entries[at].store(entry_of(scores[i].load(), at))
                        image_of[at].store(0)
                        for corner in range(4):
                            boxes[at * 4 + corner].store(source[i * 4 + corner].load())
                    row, sum_, is_faulty = k.variable(start), k.variable(k.index(0)), k.variable(k.index(0) > 0)
                    with k.loop(0, images) as image:
                        wanted = given[image].load().to(I64)
                        sum_.set(sum_.get() + wanted)
                        is_faulty.set(is_faulty.get() | (wanted < 0))
                        stop = k.minimum(row.get() + k.maximum(wanted, 0), start + many)
                        with k.loop(row.get(), stop) as at:
                            image_of[at].store(image.to(I32))
                        row.set(stop)
                    with k.if_(is_faulty.get() | sum_.get().ne(many)):
                        fault.store(params[level * 2 + 5])
                        fault[1].store(sum_.get())
                    size.set(start + many)
                with k.if_(total > 0):
                    sort_entries(entries, other, scratch, total)
                count = k.minimum(most, total)
                self._write(k, pointers.tensor(0, F32), counts, entries, next_row, boxes, image_of, images, count)
                pointers.tensor(2, I64).store(count)

    @staticmethod
    def _write(
        k: Emitter,
        regions: Pointer,
        counts: Pointer,
        entries: Pointer,
        next_row: Pointer,
        boxes: Pointer,
        image_of: Pointer,
        images: Val,
        count: Val,
    ) -> None:
        with k.loop(0, images) as image:
            counts[image].store(0)
        with k.loop(0, count) as rank:
            of_image = counts[image_of[number_of(entries[rank].load())].load().to(I64)]
            of_image.store(of_image.load() + 1)
        start = k.variable(k.index(0))
        with k.loop(0, images) as image:
            next_row[image].store(start.get())
            start.set(start.get() + counts[image].load().to(I64))
        with k.loop(0, count) as rank:
            number = number_of(entries[rank].load())
            place = next_row[image_of[number].load().to(I64)]
            row = place.load()
            place.store(row + 1)
            for corner in range(4):
                regions[row * 4 + corner].store(boxes[number * 4 + corner].load())
