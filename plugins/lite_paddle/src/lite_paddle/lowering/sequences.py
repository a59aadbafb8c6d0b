"""Padding the sequences of a tensor to [N, L, ...], N sequences of L steps, and joining them again.

Sequences of equal length need a Reshape for that, others index tables, which SequenceIndices makes of their offsets.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from lite_core.ir import DType, Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.dynamic import dimensions, reshape_to, shape_vector
from lite_paddle.lowering.lod import Sequences
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.source import SourceOp

__all__ = [
    "Rows",
    "Tables",
    "differences",
    "index_tables",
    "offsets_of_lengths",
    "rows_of",
    "sequence_count",
    "with_row",
]


@dataclass(frozen=True, eq=False)
class Tables:
    """The outputs of SequenceIndices: ``indices`` [N, L], and ``sequence`` and ``step`` of each row [R]."""

    indices: Value
    sequence: Value
    step: Value


@dataclass(frozen=True, eq=False)
class Rows:
    """A tensor whose rows are sequences."""

    context: Context
    value: Value
    sequences: Sequences

    @property
    def row_shape(self) -> list[int | Value]:
        """The sizes behind axis 0."""
        return _sizes_behind(self.context, self.value, 0)

    @property
    def _key(self) -> tuple[Hashable, ...]:
        """The key of values that all tensors with these sequences and this number of rows share."""
        rows = self.value.shape[0] if self.value.type.rank else self.value
        offsets = self.sequences.offsets
        return (self.sequences if offsets is None else offsets, rows)

    def offsets(self) -> Value:
        """Return the offsets [N + 1] of the sequences."""
        if self.sequences.offsets is not None:
            return self.sequences.offsets
        context, count = self.context, self.sequences.count
        total = context.node("Shape", [self.value], {"start": 0, "end": 1})
        if self.sequences.is_one:
            return context.node("Concat", [context.builder.ints(0), total], {"axis": 0})
        count = context.builder.ints(count) if isinstance(count, int) else count
        zero, one = (context.scalar(n, DType.INT64) for n in (0, 1))
        end = context.node("Add", [context.reshape(count, []), one])
        numbers = context.node("Range", [zero, end, one])
        return context.node("Mul", [numbers, context.node("Div", [total, count])])

    def levels(self, count: int) -> list[Value]:
        """Return the offsets of ``count`` levels of sequences, the outermost first.

        If the model is read for one sequence at a time, that is one sequence on each level.

        Raises:
            Unlowerable: there are more levels, or fewer.
        """
        found = [*self.sequences.outer, self.offsets()]
        if self.sequences.is_one and not self.context.reads_offsets:
            found = [*[self.context.builder.ints(0, 1)] * (count - len(found)), *found]
        if len(found) != count:
            raise Unlowerable(
                f"the rows of {self.value.name!r} have {len(found)} levels of sequences, expected {count}"
            )
        return found

    def lengths(self) -> Value:
        """Return the length of each sequence [N]."""
        (made,) = self.context.made_once((*self._key, "lengths"), lambda: [differences(self.context, self.offsets())])
        return made

    def tables(self, *, length: int = 0, reverse: bool = False) -> Tables:
        """Return index tables; see the operator SequenceIndices."""

        def make() -> list[Value]:
            total = self.context.node("Shape", [self.value], {"start": 0, "end": 1})
            tables = index_tables(self.context, self.offsets(), total, length=length, reverse=reverse)
            return [tables.indices, tables.sequence, tables.step]

        return Tables(*self.context.made_once((*self._key, length, reverse), make))

    def padded(self, number: float | Value = 0, *, length: int = 0) -> Value:
        """Return [N, L, ...], with ``number``, or a row of such numbers, behind the end of a sequence.

        ``length`` is L, or 0 for the length of the longest sequence.
        """
        context = self.context
        if self.sequences.offsets is None and not length:
            return reshape_to(context, self.value, [self.sequences.count, -1, *self.row_shape])
        indices = self.tables(length=length).indices
        return context.node("Gather", [with_row(context, self.value, number), indices], {"axis": 0})

    def joined(self, padded: Value) -> Value:
        """Return [N, L, ...] as rows, without padding."""
        context = self.context
        flat = reshape_to(context, padded, [-1, *_sizes_behind(context, padded, 1)])
        if self.sequences.offsets is None:
            return flat
        tables = self.tables()
        steps = context.node("Shape", [padded], {"start": 1, "end": 2})
        positions = context.node("Add", [context.node("Mul", [tables.sequence, steps]), tables.step])
        return context.node("Gather", [flat, positions], {"axis": 0})

    def ends(self, number: float, *, last: bool) -> Value:
        """Return the first or last row of each sequence, and ``number`` for a sequence without rows."""
        context, first = self.context, self.context.scalar(0, DType.INT64)
        if self.sequences.offsets is None:
            return context.node(
                "Gather", [self.padded(), context.scalar(-1, DType.INT64) if last else first], {"axis": 1}
            )
        indices = context.node("Gather", [self.tables(reverse=last).indices, first], {"axis": 1})
        return context.node("Gather", [with_row(context, self.value, number), indices], {"axis": 0})


def rows_of(op: SourceOp, context: Context, slot: str, number: int = 0) -> Rows:
    """Return an input, the one with a number of a slot, and its sequences.

    Rows are one sequence if the model is read for one sequence at a time.

    Raises:
        Unlowerable: the model is read for several sequences, and those of this input are not known.
    """
    if number >= len(op.inputs.get(slot, ())):
        raise Unlowerable(f"its input {slot} is missing")
    source = op.inputs[slot][number]
    value, found = context.value(source), context.sequences(source)
    if found is None and context.reads_offsets:
        raise Unlowerable(
            f"the sequence offsets of its input {slot} are not known",
            "read the model for one sequence at a time, without the reader's option lod",
        )
    return Rows(context, value, found or Sequences())


def sequence_count(context: Context, sequences: Sequences) -> int | Value:
    """Return the number of sequences: an integer if it is known, else an int64 vector of one element."""
    if sequences.offsets is None:
        return sequences.count
    return context.node("Sub", [context.node("Shape", [sequences.offsets]), context.builder.ints(1)])


def index_tables(
    context: Context, offsets: Value, rows: Value | None = None, *, length: int = 0, reverse: bool = False
) -> Tables:
    """Return index tables for offsets; ``rows`` is the number that they must end with."""
    attributes = {"length": length, "reverse": int(reverse)}
    return Tables(*context.nodes("SequenceIndices", [offsets, rows], attributes, outputs=3, domain="lite"))


def offsets_of_lengths(context: Context, lengths: Value) -> Value:
    """Return the offsets [N + 1] of sequences with the lengths [N]."""
    sums = context.node("CumSum", [context.cast(lengths, DType.INT64), context.scalar(0, DType.INT64)])
    return context.node("Concat", [context.builder.ints(0), sums], {"axis": 0})


def differences(context: Context, offsets: Value) -> Value:
    """Return the lengths [N] of sequences with the offsets [N + 1]."""
    ints = context.builder.ints
    ends = context.node("Slice", [offsets, ints(1), ints(2**31 - 1), ints(0)])
    starts = context.node("Slice", [offsets, ints(0), ints(-1), ints(0)])
    return context.node("Sub", [ends, starts])


def with_row(context: Context, value: Value, number: float | Value) -> Value:
    """Append a row of a number, or of numbers with the shape of a row."""
    shape = shape_vector(context, [1, *_sizes_behind(context, value, 0)])
    scalar = number if isinstance(number, Value) else context.scalar(number, value)
    return context.node("Concat", [value, context.node("Expand", [scalar, shape])], {"axis": 0})


def _sizes_behind(context: Context, value: Value, axis: int) -> list[int | Value]:
    return dimensions(context, value, axis + 1, context.rank(value, "its rows are sequences"))
