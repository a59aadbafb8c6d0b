"""The most frequent element of each row."""

from __future__ import annotations

from dataclasses import dataclass

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Pointer, Val
from lite_cpu.kernels.base import Kernel
from lite_cpu.kernels.ranking import COUNTER_BYTES, number_of, sort_entries
from lite_cpu.kernels.rows import Elements, Row, RowLayout, computed, each_row

__all__ = ["Mode"]

I64, U32, U64 = DType.INT64, DType.UINT32, DType.UINT64


@dataclass(frozen=True)
class Mode(Kernel):
    """The most frequent element of each row, the smallest of those that are equally frequent, and its last index.

    Pointers: elements, values, indices (int64). NaN equals NaN, and is greater than any number.

    Parameters: those of the layout, and the number of elements of a row. Scratch: :meth:`scratch_bytes`.

    The elements of a row are sorted by keys that rise with them, of 32 bits or twice 32 bits; then equal ones are
    counted. Equal keys keep their order.
    """

    layout: RowLayout

    @staticmethod
    def scratch_bytes(count: int) -> int:
        """Return the size of the elements of a row, their keys and two lists of entries, and of counters."""
        return COUNTER_BYTES + 16 * count + 16 * (count + 1)

    def emit(self, k: Emitter) -> None:
        with k.kernel(self.symbol) as (pointers, params, begin, end, scratch):
            count = params[self.layout.parameters]
            each_row(k, self.layout, pointers, params, begin, end, lambda row: self._emit_row(row, scratch, count))

    def _emit_row(self, row: Row, scratch: Pointer, count: Val) -> None:
        k, dtype = row.k, computed(self.layout.dtypes[0])
        keys = scratch[COUNTER_BYTES].cast(U64)
        values, entries = keys[count].cast(dtype), keys[count * 2]
        other = entries[count + 1]

        def element(elements: Elements) -> None:
            index, value = elements.index, elements.load(0)
            key = _key(value)
            values[index].store(value)
            keys[index].store(key)
            entries[index].store((key << 32) | index.to(U64))

        row.walk(element)
        sort_entries(entries, other, scratch, count)
        if dtype.itemsize == 8:  # the entries are in the order of the lower halves
            with k.loop(0, count) as at:
                entry = entries[at].load()
                upper = (keys[number_of(entry)].load() >> 32) << 32
                entries[at].store(upper | (entry & 0xFFFFFFFF))
            sort_entries(entries, other, scratch, count)
        key, length = k.variable(k.constant(0, U64)), k.variable(k.index(0))
        best, most = k.variable(k.index(0)), k.variable(k.index(0))
        with k.loop(0, count) as at:
            number = number_of(entries[at].load())
            found = keys[number].load()
            length.set(found.eq(key.get()).select(length.get() + 1, k.index(1)))
            key.set(found)
            # A run that becomes longer than the longest takes its place; its last element has the highest index.
            with k.if_(length.get() > most.get()):
                most.set(length.get())
                best.set(number)
        row.at(1, 0).store(values[best.get()].load().to(self.layout.dtypes[1]))
        row.at(2, 0).store(best.get())


def _key(value: Val) -> Val:
    """Return a number that rises with a value, as an uint64; for types of up to 4 bytes it is below 2**32."""
    dtype = value.dtype
    if not dtype.is_floating:
        if not dtype.is_signed:
            return value.to(U64)
        wide = value.to(I64)
        return wide.bits(U64) ^ -(1 << 63) if dtype.itemsize == 8 else (wide + (1 << 31)).to(U64)
    bits, signed = (U64, I64) if dtype.itemsize == 8 else (U32, DType.INT32)
    last = 8 * dtype.itemsize - 1
    number = (value + 0.0).bits(bits)  # -0.0 becomes 0.0
    sign = (number.to(signed) >> last).to(bits)
    rising = number ^ (sign | -(1 << last))
    return value.is_nan().select(value.k.constant(-1, bits), rising).to(U64)
