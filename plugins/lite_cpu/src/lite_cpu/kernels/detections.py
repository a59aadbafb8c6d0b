"""The results of suppression in all classes, collected into rows."""

from __future__ import annotations

from dataclasses import dataclass

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Params, Pointers, Val, Variable
from lite_cpu.kernels.base import Kernel
from lite_cpu.kernels.ranking import entry_of, number_of, sort_entries
from lite_cpu.kernels.suppression import region_of

__all__ = ["CollectDetections", "CollectSelected"]

F32, I32, I64, U64 = DType.FLOAT32, DType.INT32, DType.INT64, DType.UINT64


@dataclass(frozen=True)
class CollectSelected(Kernel):
    """Rows (image, class, box) of NonMaxSuppression.

    Pointers: numbers of results (int32), their counts (int64), rows (int64), the number of rows (int64). Parameters:
    number of images and classes, and results of a class in memory. There is one work item.
    """

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, params, begin, end, _):
            kept, counts = pointers.tensor(0, I32), pointers.tensor(1, I64)
            rows, total = pointers.tensor(2, I64), pointers.tensor(3, I64)
            size = k.variable(k.index(0))
            with k.loop(begin, end):
                with k.loop(0, params[0]) as image, k.loop(0, params[1]) as label:
                    item = image * params[1] + label
                    with k.loop(0, counts[item].load()) as i:
                        row = rows[size.get() * 3]
                        for column, number in enumerate((image, label, kept[item * params[2] + i].load().to(I64))):
                            row[column].store(number)
                        size.set(size.get() + 1)
                total.store(size.get())


@dataclass(frozen=True)
class CollectDetections(Kernel):
    """Rows (class, score, box) of each image: the best of all classes.

    Pointers: boxes, numbers of results (int32), their scores, their counts (int64), memory for two lists of entries,
    rows, their index among all boxes (int32), number of rows of each image (int32), number of all rows (int64,
    :attr:`totals` times), and with :attr:`in_regions` the number of boxes of each image (int32) and the fault.
    Parameters: number of images, classes and boxes, results of a class in memory, the most rows of an image, length of
    a list of entries, and with :attr:`in_regions` the number of the fault that the images have not all boxes. There is
    one work item.
    Scratch: :data:`~lite_cpu.kernels.ranking.COUNTER_BYTES`.

    Attributes:
        best_first: the rows of an image are ordered by their scores; otherwise as in the memory of results.
        in_regions: see :class:`~lite_cpu.kernels.suppression.ClassBoxes`.
        numbers: those of a box.
        totals: how often the number of all rows is stored.
    """

    best_first: bool = False
    in_regions: bool = False
    numbers: int = 4
    totals: int = 2

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, params, begin, end, scratch):
            most, entries = params[4], pointers.tensor(4, U64)
            rows, given = k.variable(k.index(0)), k.variable(k.index(0))
            with k.loop(begin, end):
                with k.loop(0, params[0]) as image:
                    size, start = k.variable(k.index(0)), k.index(0)
                    if self.in_regions:
                        start, _ = region_of(k, pointers.tensor(9, I32), image, params[2])
                        given.set(given.get() + pointers.tensor(9, I32)[image].load().to(I64))
                    self._append(k, pointers, params, image, start, size)
                    is_cut = size.get() > most
                    count = k.minimum(size.get(), most)
                    needs_order = (size.get() > 1) if self.best_first else is_cut
                    with k.if_(needs_order & (count > 0)):
                        sort_entries(entries, entries[params[5]], scratch, size.get())
                        if not self.best_first:
                            sort_entries(entries, entries[params[5]], scratch, count, shift=0)
                    self._write(k, pointers, params, image, start, rows.get(), count)
                    pointers.tensor(7, I32)[image].store(count.to(I32))
                    rows.set(rows.get() + count)
                for i in range(self.totals):
                    pointers.tensor(8, I64)[i].store(rows.get())
                if self.in_regions:
                    fault = pointers.tensor(10, I64)
                    with k.if_(given.get().ne(params[2])):
                        fault.store(params[6])
                        fault[1].store(given.get())

    def _first(self, params: Params, image: Val, label: Val, start: Val) -> Val:
        """Return the position of the first result of an image and class in memory."""
        if self.in_regions:
            return label * params[3] + start
        return (image * params[1] + label) * params[3]

    def _append(self, k: Emitter, pointers: Pointers, params: Params, image: Val, start: Val, size: Variable) -> None:
        """Append the entries of an image; their numbers are positions in the memory of results."""
        scores, counts, entries = pointers.tensor(2, F32), pointers.tensor(3, I64), pointers.tensor(4, U64)
        with k.loop(0, params[1]) as label:
            first = self._first(params, image, label, start)
            with k.loop(0, counts[image * params[1] + label].load()) as i:
                entries[size.get()].store(entry_of(scores[first + i].load(), first + i))
                size.set(size.get() + 1)

    def _write(
        self, k: Emitter, pointers: Pointers, params: Params, image: Val, start: Val, row: Val, count: Val
    ) -> None:
        boxes, kept, scores = pointers.tensor(0, F32), pointers.tensor(1, I32), pointers.tensor(2, F32)
        entries, rows, indices = pointers.tensor(4, U64), pointers.tensor(5, F32), pointers.tensor(6, I32)
        classes, many, length = params[1], params[2], params[3]
        with k.loop(0, count) as i:
            at = number_of(entries[i].load())
            box, label = kept[at].load().to(I64), at / length
            if self.in_regions:
                index = (start + box) * classes + label
                box = index
            else:
                label = label - image * classes
                box = index = image * many + box
            target = rows[(row + i) * (2 + self.numbers)]
            target.store(label.to(F32))
            target[1].store(scores[at].load())
            for number in range(self.numbers):
                target[2 + number].store(boxes[box * self.numbers + number].load())
            indices[row + i].store(index.to(I32))
