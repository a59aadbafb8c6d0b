"""Suppression of boxes of which neighbours in a row are joined first (operator LocalityAwareNms)."""

from __future__ import annotations

from dataclasses import dataclass

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Params, Pointer, Pointers, Val
from lite_cpu.kernels.base import Kernel
from lite_cpu.kernels.box_overlaps import Box, Corners
from lite_cpu.kernels.polygon_overlaps import overlap_bytes, polygon_overlap
from lite_cpu.kernels.ranking import COUNTER_BYTES, entry_of, number_of, sort_entries

__all__ = ["LocalSuppress", "local_bytes"]

F32, F64, I32, I64, U64 = DType.FLOAT32, DType.FLOAT64, DType.INT32, DType.INT64, DType.UINT64

#: The numbers of a box that is given by two corners.
_CORNERS = 4


def local_bytes(boxes: int, numbers: int) -> int:
    """Return the scratch memory of :class:`LocalSuppress`: two lists of entries, the boxes that are left, polygons."""
    return COUNTER_BYTES + 16 * (boxes + 1) + 8 * boxes + overlap_bytes(numbers // 2)


@dataclass(frozen=True)
class LocalSuppress(Kernel):
    """The boxes of each class that are kept; a work item is an image.

    A box that overlaps the one before it is joined with it: coordinates are averaged by their scores, which are added.
    Boxes that are joined in a class are so in the classes behind it.

    Pointers: boxes [images, boxes, numbers], scores [images, classes, boxes], memory for the joined boxes and for their
    scores, numbers of results (int32), their scores, their counts [images, classes] (int64). Parameters: number of
    classes and boxes, the most boxes of a class, the class to leave out, offset and threshold of scores (float32),
    threshold of overlaps and its factor (float64), which is applied after each result while the threshold is above 0.5.
    Scratch: :func:`local_bytes`.

    Attributes:
        numbers: those of a box: four of its corners, or two for each point of a polygon.
    """

    numbers: int

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, params, begin, end, scratch):
            classes, many, left_out = params[0], params[1], params[3]
            with k.loop(begin, end) as image:
                size = many * self.numbers
                boxes = pointers.tensor(2, F32)[image * size]
                _copy(k, pointers.tensor(0, F32)[image * size], boxes, size)
                with k.loop(0, classes) as label:
                    item = image * classes + label
                    values = pointers.tensor(3, F32)[item * many]
                    _copy(k, pointers.tensor(1, F32)[item * many], values, many)
                    pointers.tensor(6, I64)[item].store(0)
                    with k.if_(label.ne(left_out)):
                        self._emit_class(k, pointers, params, item, boxes, values, scratch)

    def _emit_class(
        self,
        k: Emitter,
        pointers: Pointers,
        params: Params,
        item: Val,
        boxes: Pointer,
        values: Pointer,
        scratch: Pointer,
    ) -> None:
        many, most = params[1], params[2]
        least, overlap = params.number(5, F32), params.number(6, F64)
        entries = scratch[COUNTER_BYTES].cast(U64)
        other = entries[many + 1]
        left = other[many + 1].cast(I64)
        memory = left[many].cast(DType.UINT8)
        offset = params.number(4, F32)
        joined = self._join(k, boxes, values, many, left, offset, overlap, memory)
        size = k.variable(k.index(0))
        with k.loop(0, joined) as i:
            number = left[i].load()
            score = values[number].load()
            entries[size.get()].store(entry_of(score, number))
            size.set(size.get() + (score > least).to(I64))
        with k.if_(size.get() > 0):
            sort_entries(entries, other, scratch, size.get())
        kept, found = pointers.tensor(4, I32)[item * many], pointers.tensor(5, F32)[item * many]
        threshold, factor, count = k.variable(overlap), params.number(7, F64), k.variable(k.index(0))
        with k.loop(0, k.minimum(size.get(), most)) as rank:
            number = number_of(entries[rank].load())
            dropped, at = k.variable(k.constant(0, DType.BOOL)), k.variable(k.index(0))
            with k.while_(lambda: (at.get() < count.get()) & ~dropped.get()):
                better = kept[at.get()].load().to(I64)
                shared = self._overlap(k, boxes, number, better, offset, memory)
                dropped.set(~(shared <= threshold.get().to(shared.dtype)))
                at.set(at.get() + 1)
            with k.if_(~dropped.get()):
                kept[count.get()].store(number.to(I32))
                found[count.get()].store(values[number].load())
                count.set(count.get() + 1)
                with k.if_((factor < 1.0) & (threshold.get() > 0.5)):
                    threshold.set(threshold.get() * factor)
        pointers.tensor(6, I64)[item].store(count.get())

    def _join(
        self,
        k: Emitter,
        boxes: Pointer,
        values: Pointer,
        many: Val,
        left: Pointer,
        offset: Val,
        overlap: Val,
        memory: Pointer,
    ) -> Val:
        """Join boxes with the one before them; store the numbers of those that are left, and return how many."""
        size = k.variable(k.index(0))
        with k.loop(0, many) as index:
            is_joined = k.variable(k.constant(0, DType.BOOL))
            with k.if_(size.get() > 0):
                last = left[size.get() - 1].load()
                shared = self._overlap(k, boxes, index, last, offset, memory)
                is_joined.set(shared > overlap.to(shared.dtype))
                with k.if_(is_joined.get()):
                    score, before = values[index].load(), values[last].load()
                    total = score + before
                    for number in range(self.numbers):
                        place = boxes[last * self.numbers + number]
                        own = boxes[index * self.numbers + number].load()
                        place.store((own * score + place.load() * before) / total)
                    values[last].store(total)
            with k.if_(~is_joined.get()):
                left[size.get()].store(index)
                size.set(size.get() + 1)
        return size.get()

    def _overlap(self, k: Emitter, boxes: Pointer, one: Val, other: Val, offset: Val, memory: Pointer) -> Val:
        """Return the intersection over union of two boxes, in float32, or of two polygons, in float64."""
        first, second = (boxes[number * self.numbers] for number in (one, other))
        if self.numbers > _CORNERS:
            return polygon_overlap(k, first, second, self.numbers // 2, memory)
        pair = [Box.read(k, box, Corners.ORDERED, offset) for box in (first, second)]
        return pair[0].overlap(pair[1], offset)


def _copy(k: Emitter, source: Pointer, target: Pointer, count: Val) -> None:
    k.span(count, k.machine.lanes(), lambda index, lanes: target[index].store(source[index].load(lanes)))
