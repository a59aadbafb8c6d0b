"""Greedy non-maximum suppression of the boxes of one image and class, the best score first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Params, Pointer, Pointers, Val
from lite_cpu.kernels.base import Kernel
from lite_cpu.kernels.box_overlaps import Box, BoxColumns, Corners
from lite_cpu.kernels.ranking import COUNTER_BYTES, append_scores, number_of, sort_entries

__all__ = ["BoxesOfClass", "ClassBoxes", "Suppress", "region_of", "scratch_bytes_of_class"]

F32, F64, I32, I64, U64 = DType.FLOAT32, DType.FLOAT64, DType.INT32, DType.INT64, DType.UINT64

#: Columns of boxes are this many elements longer than needed, so that whole vectors can be read.
_SPARE = 16


def scratch_bytes_of_class(boxes: int) -> int:
    """Return the scratch memory for the boxes of a class: two lists of entries, counters, boxes by columns, marks."""
    return COUNTER_BYTES + 16 * (boxes + 1) + 24 * (boxes + _SPARE) + boxes


@dataclass(frozen=True, slots=True)
class BoxesOfClass:
    """The boxes and scores that a kernel finds for a work item: an image and a class.

    Attributes:
        entries: the scores above the threshold, the best first.
        count: the number of these entries, at most the limit of the class.
        boxes: the boxes of the image, 4 numbers for each :attr:`step`.
        step: distance between boxes, in numbers.
        columns: memory for boxes by columns, with a column more than boxes need.
        marks: memory for a byte for each box.
        values: scores by number, for the results.
        kept: receives the numbers of the results, followed by :attr:`found`.
        found: receives their scores.
    """

    entries: Pointer
    count: Val
    boxes: Pointer
    step: Val
    columns: BoxColumns
    marks: Pointer
    values: Pointer
    kept: Pointer
    found: Pointer

    def box(self, k: Emitter, rank: Val, kind: Corners, offset: Val) -> Box:
        """Load the box of an entry."""
        number = number_of(self.entries[rank].load())
        return Box.read(k, self.boxes[number * self.step], kind, offset)

    def keep(self, position: Val, number: Val, score: Val | None = None) -> None:
        """Store a result, with the score of its number unless another is given."""
        self.kept[position].store(number.to(I32))
        self.found[position].store(self.values[number].load() if score is None else score)


@dataclass(frozen=True)
class ClassBoxes(Kernel):
    """Base class of kernels whose work item is the boxes of one image and class.

    Pointers: boxes, scores [images, classes, boxes] or [classes, boxes], the threshold of scores (float32), numbers of
    results (int32), their scores (float32), their counts [images, classes] (int64), the number of boxes of each image
    (int32, only if :attr:`in_regions`), then those of a subclass. Results are stored like scores, with their own
    length of a row. Parameters: number of classes, number of boxes, length of a row of results, the most boxes of a
    class, the class to leave out, offset (float32), then those of a subclass. Scratch:
    :func:`scratch_bytes_of_class`.

    Attributes:
        has_threshold: scores must be above the threshold.
        in_regions: every class has its own boxes [boxes, classes, 4], and all images share the rows of scores.
    """

    has_threshold: bool = True
    in_regions: bool = False

    #: The number of pointers and of parameters before those of a subclass.
    POINTERS, PARAMETERS = 7, 6

    def _each_class(self, k: Emitter, body: Callable[[BoxesOfClass, Pointers, Params, Val], Val]) -> None:
        """Define the kernel; ``body`` gets the boxes, pointers, parameters and the offset, and returns the count."""
        with k.kernel(self.symbol) as (pointers, params, begin, end, scratch):
            classes, boxes, row, most, left_out = (params[i] for i in range(5))
            offset = params.number(5, F32)
            with k.loop(begin, end) as item:
                image, label = item / classes, item % classes
                counts = pointers.tensor(5, I64)
                counts[item].store(0)
                with k.if_(label.ne(left_out)):
                    start, many, line = k.index(0), boxes, item
                    corners, step = pointers.tensor(0, F32)[image * boxes * 4], k.index(4)
                    if self.in_regions:
                        start, many = region_of(k, pointers.tensor(6, I32), image, boxes)
                        line, step = label, classes * 4
                        corners = pointers.tensor(0, F32)[start * step + label * 4]
                    scores = pointers.tensor(1, F32)[line * boxes + start]
                    entries = scratch[COUNTER_BYTES].cast(U64)
                    size = k.variable(k.index(0))
                    threshold = pointers.tensor(2, F32).load() if self.has_threshold else None
                    append_scores(k, scores, many, threshold, entries, size)
                    with k.if_(size.get() > 0):
                        sort_entries(entries, entries[boxes + 1], scratch, size.get())
                        columns = entries[(boxes + 1) * 2].cast(F32)
                        length = boxes + _SPARE
                        first = line * row + start
                        found = BoxesOfClass(
                            entries, k.minimum(size.get(), most), corners, step, BoxColumns(columns, length),
                            columns[length * 6].cast(DType.UINT8), scores, pointers.tensor(3, I32)[first],
                            pointers.tensor(4, F32)[first],
                        )  # fmt: skip
                        counts[item].store(body(found, pointers, params, offset))


def region_of(k: Emitter, rois_num: Pointer, image: Val, boxes: Val) -> tuple[Val, Val]:
    """Return the first of an image's boxes, and their number; both stay within ``boxes`` whatever is given."""
    start = k.variable(k.index(0))
    with k.loop(0, image) as i:
        start.set(start.get() + k.maximum(rois_num[i].load().to(I64), 0))
    first = k.minimum(start.get(), boxes)
    return first, k.minimum(k.maximum(rois_num[image].load().to(I64), 0), boxes - first)


@dataclass(frozen=True)
class Suppress(ClassBoxes):
    """Greedy suppression: a box is dropped if its overlap with a better one that is kept is above a threshold.

    More pointers: the threshold of overlaps (:attr:`threshold`), the most results of a class (int64). One more
    parameter: the factor of the threshold (float64), which is applied after each result while the threshold is above
    0.5.

    Attributes:
        corners: the meaning of a box.
        keeps_degenerate: an overlap that is NaN counts as 0; otherwise the box is dropped.
        threshold: element type of the threshold of overlaps.
        by_number: the results are ordered by their numbers, and not by their scores.
    """

    corners: Corners = Corners.ORDERED
    keeps_degenerate: bool = False
    threshold: DType = F64
    by_number: bool = False

    def emit(self, k: Emitter) -> None:
        self._each_class(k, lambda boxes, pointers, params, offset: self._suppress(k, boxes, pointers, params, offset))

    def _suppress(self, k: Emitter, boxes: BoxesOfClass, pointers: Pointers, params: Params, offset: Val) -> Val:
        threshold = k.variable(pointers.tensor(self.POINTERS, self.threshold).load().to(F64))
        limit, factor = pointers.tensor(self.POINTERS + 1, I64).load(), params.number(self.PARAMETERS, F64)
        rank, size = k.variable(k.index(0)), k.variable(k.index(0))
        with k.while_(lambda: (rank.get() < boxes.count) & (size.get() < limit)):
            box = boxes.box(k, rank.get(), self.corners, offset)
            largest = threshold.get().to(F32)
            with k.if_(~self._is_dropped(k, box, boxes.columns, size.get(), largest, offset)):
                boxes.columns.store(size.get(), box)
                number = number_of(boxes.entries[rank.get()].load())
                boxes.keep(size.get(), number)
                size.set(size.get() + 1)
                with k.if_((factor < 1.0) & (threshold.get() > 0.5)):
                    threshold.set(threshold.get() * factor)
            rank.set(rank.get() + 1)
        if self.by_number:
            self._order(k, boxes, size.get())
        return size.get()

    def _is_dropped(self, k: Emitter, box: Box, kept: BoxColumns, size: Val, threshold: Val, offset: Val) -> Val:
        """Return True if a box overlaps one of ``size`` kept boxes too much; stop at the first such vector."""
        lanes = k.machine.lanes()
        dropped, at = k.variable(k.constant(0, DType.BOOL)), k.variable(k.index(0))

        def test(index: Val) -> Val:
            overlap = box.overlap(kept.load(index, lanes), offset)
            if self.keeps_degenerate:
                overlap = overlap.is_nan().select(0.0, overlap)
            return ~(overlap <= threshold)

        with k.while_(lambda: (at.get() + lanes <= size) & ~dropped.get()):
            dropped.set(k.any_lane(test(at.get())))
            at.set(at.get() + lanes)
        with k.if_(~dropped.get() & (at.get() < size)):
            dropped.set(k.any_lane(test(at.get()) & k.first_lanes(size - at.get(), lanes)))
        return dropped.get()

    @staticmethod
    def _order(k: Emitter, boxes: BoxesOfClass, size: Val) -> None:
        """Order the results by their numbers."""
        last = k.variable(k.index(0))
        marks = boxes.marks
        with k.loop(0, size) as i:
            last.set(k.maximum(last.get(), boxes.kept[i].load().to(I64)))
        with k.loop(0, last.get() + 1) as number:
            marks[number].store(0)
        with k.loop(0, size) as i:
            marks[boxes.kept[i].load().to(I64)].store(1)
        position = k.variable(k.index(0))
        with k.loop(0, last.get() + 1) as number, k.if_(marks[number].load().ne(0)):
            boxes.keep(position.get(), number)
            position.set(position.get() + 1)
