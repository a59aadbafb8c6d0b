"""The k most extreme elements of each row, sorted."""

from __future__ import annotations

from dataclasses import dataclass

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Pointer, Val
from lite_cpu.kernels.arg import beats
from lite_cpu.kernels.base import Kernel
from lite_cpu.kernels.rows import Elements, Row, RowLayout, computed, each_row

__all__ = ["TopK"]

I64 = DType.INT64


@dataclass(frozen=True, slots=True)
class _Heap:
    """A heap of the best elements so far, with the worst of them at the root: no child is worse than its parent."""

    values: Pointer
    indices: Pointer
    size: Val


@dataclass(frozen=True)
class TopK(Kernel):
    """The k most extreme elements of each row, sorted.

    Pointers: elements, values, indices (int64). Equal elements keep their order, and NaN is the largest.

    Parameters: those of the layout, k, and the number of levels of a heap of k elements. The strides of values and
    indices are those of the results, in which a row has only k elements. Scratch: :meth:`scratch_bytes`.

    The k best elements so far are kept in a heap. Most elements are only compared with its root, the worst of the best.
    """

    layout: RowLayout
    largest: bool

    @staticmethod
    def scratch_bytes(k: int) -> int:
        """Return the size of a heap of values and one of indices, with 8 bytes per element each."""
        return 16 * k

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, params, begin, end, scratch):
            wanted, levels = params[self.layout.parameters], params[self.layout.parameters + 1]
            values = scratch.cast(computed(self.layout.dtypes[0]))
            heap = _Heap(values, scratch[wanted * 8].cast(I64), wanted)
            with k.if_(wanted > 0):
                each_row(k, self.layout, pointers, params, begin, end, lambda row: self._emit_row(row, heap, levels))

    def _emit_row(self, row: Row, heap: _Heap, levels: Val) -> None:
        k = row.k

        def element(elements: Elements) -> None:
            value = elements.load(0)

            def append() -> None:
                heap.values[elements.index].store(value)
                heap.indices[elements.index].store(elements.index)
                with k.if_(elements.index.eq(heap.size - 1)):
                    half = heap.size / 2
                    with k.loop(0, half) as n:
                        self._sift_down(k, heap, half - 1 - n, levels)

            def replace_worst() -> None:
                # An equal element comes later, so it is not better.
                with k.if_(beats(value, heap.values.load(), largest=self.largest, nan_wins=self.largest)):
                    heap.values.store(value)
                    heap.indices.store(elements.index)
                    self._sift_down(k, heap, k.index(0), levels)

            k.if_else(elements.index < heap.size, append, replace_worst)

        row.walk(element)
        with k.loop(0, heap.size) as taken:
            last = heap.size - 1 - taken
            row.at(1, last).store(heap.values.load().to(self.layout.dtypes[1]))
            row.at(2, last).store(heap.indices.load())
            heap.values.store(heap.values[last].load())
            heap.indices.store(heap.indices[last].load())
            self._sift_down(k, _Heap(heap.values, heap.indices, last), k.index(0), levels)

    def _sift_down(self, k: Emitter, heap: _Heap, root: Val, levels: Val) -> None:
        """Restore the heap by moving the element at ``root`` down; everything below it is a heap already."""
        k.function("sift_down", self._sift_down_body, heap.values, heap.indices, heap.size, root, levels)

    def _sift_down_body(self, values: Pointer, indices: Pointer, size: Val, root: Val, levels: Val) -> None:
        k = size.k
        parent = k.variable(root)
        value, index = values[root].load(), indices[root].load()

        def worse(a: Val, b: Val) -> Val:
            return self._is_worse(values[a].load(), indices[a].load(), values[b].load(), indices[b].load())

        with k.loop(0, levels):
            left = parent.get() * 2 + 1
            with k.if_(left < size):
                right = k.minimum(left + 1, size - 1)
                child = k.variable(left)
                with k.if_(worse(right, left)):
                    child.set(right)
                at = child.get()
                child_value, child_index = values[at].load(), indices[at].load()

                def move_up() -> None:
                    values[parent.get()].store(child_value)
                    indices[parent.get()].store(child_index)
                    parent.set(at)

                def settle() -> None:
                    values[parent.get()].store(value)
                    indices[parent.get()].store(index)
                    parent.set(size)  # nothing is below it

                k.if_else(self._is_worse(child_value, child_index, value, index), move_up, settle)
        with k.if_(parent.get() < size):
            values[parent.get()].store(value)
            indices[parent.get()].store(index)

    def _is_worse(self, value: Val, index: Val, other: Val, other_index: Val) -> Val:
        """Emit the comparison "the first element comes after the second in the result"."""
        loses = beats(other, value, largest=self.largest, nan_wins=self.largest)
        wins = beats(value, other, largest=self.largest, nan_wins=self.largest)
        return loses | (~wins & (index > other_index))
