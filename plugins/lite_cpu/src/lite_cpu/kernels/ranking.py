"""Scores in descending order: entries of 64 bits, each a key that falls as the score rises, then a number, sorted.

Equal scores have equal keys, whatever the sign of zero, and their entries keep their order. NaN comes last.
"""

from __future__ import annotations

from lite_core.ir import DType
from lite_cpu.emitter import Emitter, Pointer, Val, Variable

__all__ = ["COUNTER_BYTES", "append_scores", "entry_of", "number_of", "sort_entries"]

I64, U32, U64 = DType.INT64, DType.UINT32, DType.UINT64

#: A digit of the keys has 8 bits, so a key has four.
_DIGIT_BITS, _DIGITS = 8, 4
_VALUES = 1 << _DIGIT_BITS

#: Size of the memory that :func:`sort_entries` needs besides that of the entries.
COUNTER_BYTES = 8 * _DIGITS * _VALUES

#: Up to so many entries are sorted by insertion: counting digits has a fixed cost.
_FEW = 40


def entry_of(score: Val, number: Val) -> Val:
    """Return the entry of a float32 score; ``number`` is below 2**32."""
    bits = (score + 0.0).bits(U32)  # -0.0 becomes 0.0
    sign = (bits.to(DType.INT32) >> 31).to(U32)
    rising = bits ^ (sign | -(1 << 31))
    key = score.is_nan().select(score.k.constant(-1, U32), ~rising)
    return (key.to(U64) << 32) | number.to(U64)


def number_of(entry: Val) -> Val:
    """Return the number of an entry, as an int64."""
    return (entry & 0xFFFFFFFF).to(I64)


def append_scores(
    k: Emitter, scores: Pointer, count: Val, threshold: Val | None, entries: Pointer, size: Variable
) -> None:
    """Append the entries of the scores above a threshold (of all if it is None), numbered from 0; add to ``size``.

    Vectors without such a score, in detectors almost all, are skipped.
    """

    def append(index: Val) -> None:
        score = scores[index].load()
        entries[size.get()].store(entry_of(score, index))
        size.set(size.get() + (1 if threshold is None else (score > threshold).to(I64)))

    if threshold is None:
        with k.loop(0, count) as index:
            append(index)
        return
    lanes = k.machine.lanes()

    def body(index: Val, width: int) -> None:
        if width == 1:
            append(index)
            return
        with k.if_(k.any_lane(scores[index].load(width) > threshold.splat(width))), k.loop(index, index + width) as i:
            append(i)

    k.span(count, lanes, body)


def sort_entries(entries: Pointer, other: Pointer, counters: Pointer, count: Val, shift: int = 32) -> None:
    """Emit a call that sorts entries by the 32 bits from bit ``shift`` on; equal ones keep their order.

    Args:
        entries: the entries, at least one element more than ``count``.
        other: memory for as many entries.
        counters: :data:`COUNTER_BYTES` bytes.
        count: the number of entries.
        shift: 32 for the key, 0 for the number.
    """
    k = count.k
    k.function("sort_entries", _sort, entries, other, counters.cast(I64), count, k.constant(shift, U64))


def _sort(entries: Pointer, other: Pointer, counters: Pointer, count: Val, shift: Val) -> None:
    k = count.k
    k.if_else(
        count <= _FEW,
        lambda: _insert(entries, count, shift),
        lambda: _sort_by_digits(entries, other, counters, count, shift),
    )


def _insert(entries: Pointer, count: Val, shift: Val) -> None:
    k = count.k
    above = 32 - shift  # bits that do not count
    with k.loop(1, count) as number:
        entry = entries[number].load()
        key = (entry << above) >> 32
        at = k.variable(number)
        goes_down = k.variable(k.constant(1, DType.BOOL))
        with k.while_(lambda: goes_down.get()):
            before = entries[at.get() - 1].load()
            goes_down.set(((before << above) >> 32) > key)
            with k.if_(goes_down.get()):
                entries[at.get()].store(before)
                at.set(at.get() - 1)
                goes_down.set(at.get() > 0)
        entries[at.get()].store(entry)


def _sort_by_digits(entries: Pointer, other: Pointer, counters: Pointer, count: Val, shift: Val) -> None:
    """Sort by one digit after the other, the lowest first; a digit that all entries share takes no time."""
    k = count.k

    def digit_of(entry: Val, digit: int) -> Val:
        return ((entry >> (shift + digit * _DIGIT_BITS)) & (_VALUES - 1)).to(I64)

    with k.loop(0, _DIGITS * _VALUES) as at:
        counters[at].store(0)
    with k.loop(0, count) as i:
        entry = entries[i].load()
        for digit in range(_DIGITS):
            counter = counters[digit_of(entry, digit) + digit * _VALUES]
            counter.store(counter.load() + 1)
    turned = k.variable(k.constant(0, DType.BOOL))
    for digit in range(_DIGITS):
        starts = counters[digit * _VALUES]
        source, target = k.choose(turned.get(), other, entries), k.choose(turned.get(), entries, other)
        with k.if_(starts[digit_of(source.load(), digit)].load().ne(count)):
            start = k.variable(k.index(0))
            with k.loop(0, _VALUES) as value:
                found = starts[value].load()
                starts[value].store(start.get())
                start.set(start.get() + found)
            with k.loop(0, count) as i:
                entry = source[i].load()
                place = starts[digit_of(entry, digit)]
                at = place.load()
                target[at].store(entry)
                place.store(at + 1)
            turned.set(~turned.get())
    with k.if_(turned.get()), k.loop(0, count) as i:
        entries[i].store(other[i].load())
