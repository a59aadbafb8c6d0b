"""Paddle 1's operators that change the rows of sequences, or their offsets; and masks of lengths."""

from __future__ import annotations

import numpy as np

from lite_core.ir import DType, Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.dynamic import dimension, reshape_to, shape_vector
from lite_paddle.lowering.integers import add_elements
from lite_paddle.lowering.lod import Sequences
from lite_paddle.lowering.operators.constant import filled
from lite_paddle.lowering.registry import lowers
from lite_paddle.lowering.sequences import Rows, index_tables, offsets_of_lengths, rows_of, with_row
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.source import SourceOp


@lowers("sequence_concat")
def sequence_concat(op: SourceOp, context: Context) -> None:
    """Join the first sequences of all inputs, then the second ones, and so on."""
    parts = [rows_of(op, context, "X", number) for number in range(len(op.inputs.get("X", ())))]
    whole = context.node("Concat", [p.value for p in parts], {"axis": 0})
    if all(p.sequences.is_one for p in parts):
        context.bind(op, "Out", whole)
        context.bind_sequences(op.outputs["Out"][0], parts[0].sequences)
        return
    offsets = _sum(context, [p.offsets() for p in parts])
    columns, kept, before = [], [], context.builder.ints(0)
    for part in parts:
        indices = part.tables().indices
        total = context.node("Shape", [part.value], {"start": 0, "end": 1})
        columns.append(context.node("Add", [indices, before]))
        kept.append(context.node("Less", [indices, total]))
        before = context.node("Add", [before, total])
    order, valid = (context.reshape(context.node("Concat", c, {"axis": 1}), [-1]) for c in (columns, kept))
    order = context.node("Compress", [order, valid], {"axis": 0})
    context.emit(op, "Gather", [whole, order], {"axis": 0})
    context.bind_sequences(op.outputs["Out"][0], Sequences(offsets=offsets))


def _sum(context: Context, values: list[Value]) -> Value:
    total = values[0]
    for value in values[1:]:
        total = context.node("Add", [total, value])
    return total


@lowers("sequence_reshape")
def sequence_reshape(op: SourceOp, context: Context) -> None:
    """Reshape rows to another width; the offsets change with it."""
    rows, width = rows_of(op, context, "X"), int(context.attribute(op, "new_dim"))
    context.bind(op, "Out", context.reshape(rows.value, [-1, width]))
    sequences = rows.sequences
    if sequences.offsets is not None:
        elements = context.node("Mul", [sequences.offsets, _vector(context, dimension(context, rows.value, 1))])
        sequences = Sequences(offsets=context.node("Div", [elements, context.builder.ints(width)]))
    context.bind_sequences(op.outputs["Out"][0], sequences)


def _vector(context: Context, size: int | Value) -> Value:
    return context.builder.ints(size) if isinstance(size, int) else size


@lowers("sequence_expand_as")
def sequence_expand_as(op: SourceOp, context: Context) -> None:
    """Repeat each row of X for each row of a sequence of Y."""
    x, y = context.input(op, "X"), rows_of(op, context, "Y")
    if y.sequences.is_one:
        result = _repeat_one(context, x, y.value)
    else:
        result = context.node("Gather", [x, y.tables().sequence], {"axis": 0})
    context.bind(op, "Out", result)
    context.bind_sequences(op.outputs["Out"][0], y.sequences)


def _repeat_one(context: Context, x: Value, y: Value) -> Value:
    """Repeat the only row of X for each row of Y."""
    if x.type.rank is not None and isinstance(x.shape[0], int) and x.shape[0] != 1:
        raise Unlowerable(
            f"X has {x.shape[0]} rows for one sequence",
            "read the model for several sequences, with the reader's option lod",
        )
    rank = context.rank(x, "it is repeated along axis 0")
    return context.node("Expand", [x, shape_vector(context, [dimension(context, y, 0), *[1] * (rank - 1)])])


@lowers("sequence_expand")
def sequence_expand(op: SourceOp, context: Context) -> None:
    """Repeat each sequence of X for each row of a sequence of Y; each row, if X has no sequences.

    ``ref_level`` is the level of the sequences of Y, the outermost being 0.
    """
    x, y = context.input(op, "X"), rows_of(op, context, "Y")
    level, found = int(op.attrs["ref_level"]), context.sequences(op.inputs["X"][0])
    levels = [*y.sequences.outer, y.offsets()]
    if not -1 <= level < len(levels):
        raise Unlowerable(f"ref_level is {level}, but Y has {len(levels)} levels of sequences")
    out = op.outputs["Out"][0]
    if found is None:
        if y.sequences.is_one and not y.sequences.outer:
            result = _repeat_one(context, x, y.value)
        else:
            result = context.node("Gather", [x, index_tables(context, levels[level]).sequence], {"axis": 0})
        context.bind(op, "Out", result)
        context.bind_sequences(out, None)
        return
    rows = Rows(context, x, found)
    copies = index_tables(context, levels[level]).sequence
    indices = context.node("Gather", [rows.tables().indices, copies], {"axis": 0})
    valid = context.node("Less", [indices, context.node("Shape", [x], {"start": 0, "end": 1})])
    order = context.node("Compress", [context.reshape(n, [-1]) for n in (indices, valid)], {"axis": 0})
    context.bind(op, "Out", context.node("Gather", [x, order], {"axis": 0}))
    lengths = context.node("Gather", [rows.lengths(), copies], {"axis": 0})
    context.bind_sequences(out, Sequences(offsets=offsets_of_lengths(context, lengths)))


@lowers("sequence_pad")
def sequence_pad(op: SourceOp, context: Context) -> None:
    """Return the sequences as [N, L, ...] with ``PadValue`` behind their ends, and their lengths."""
    rows, number = rows_of(op, context, "X"), context.input(op, "PadValue")
    length = max(int(op.attrs.get("padded_length", -1)), 0)
    rank = context.rank(number, "it is a number or a row")
    number = context.reshape(number, []) if number.shape == (1,) * rank else number
    context.bind(op, "Out", rows.padded(number, length=length))
    context.bind(op, "Length", rows.lengths())
    for slot in ("Out", "Length"):
        for source in op.outputs.get(slot, ()):
            context.bind_sequences(source, None)


@lowers("sequence_unpad")
def sequence_unpad(op: SourceOp, context: Context) -> None:
    """Join the first steps of each row [N, L, ...], as many as ``Length`` says."""
    x, lengths = context.input(op, "X"), context.reshape(context.input(op, "Length"), [-1])
    offsets = offsets_of_lengths(context, lengths)
    tables = index_tables(context, offsets)
    steps = _vector(context, dimension(context, x, 1))
    positions = context.node("Add", [context.node("Mul", [tables.sequence, steps]), tables.step])
    rank = context.rank(x, "its rows are sequences")
    flat = reshape_to(context, x, [-1, *(dimension(context, x, axis) for axis in range(2, rank))])
    context.emit(op, "Gather", [flat, positions], {"axis": 0})
    context.bind_sequences(op.outputs["Out"][0], Sequences(offsets=offsets))


@lowers("sequence_slice")
def sequence_slice(op: SourceOp, context: Context) -> None:
    """Take ``Length`` rows of each sequence from ``Offset`` on."""
    rows = rows_of(op, context, "X")
    first, lengths = (
        context.cast(context.reshape(context.input(op, slot), [-1]), DType.INT64) for slot in ("Offset", "Length")
    )
    offsets = offsets_of_lengths(context, lengths)
    tables = index_tables(context, offsets)
    starts = context.node("Slice", [rows.offsets(), *(context.builder.ints(n) for n in (0, -1, 0))])
    starts = context.node("Gather", [context.node("Add", [starts, first]), tables.sequence], {"axis": 0})
    context.emit(op, "Gather", [rows.value, context.node("Add", [starts, tables.step])], {"axis": 0})
    context.bind_sequences(op.outputs["Out"][0], Sequences(offsets=offsets))


@lowers("sequence_erase")
def sequence_erase(op: SourceOp, context: Context) -> None:
    """Drop the rows [R, 1] that are one of the numbers ``tokens``."""
    rows, tokens = rows_of(op, context, "X"), [int(n) for n in op.attrs.get("tokens") or ()]
    x = context.reshape(rows.value, [-1, 1])
    listed = context.builder.constant(np.array(tokens).astype(x.dtype.numpy))
    is_token = context.cast(context.node("Equal", [x, listed]), DType.INT64)
    count = context.node("ReduceSum", [is_token, context.builder.ints(1)], {"keepdims": 0})
    keep = context.node("Equal", [count, context.scalar(0, DType.INT64)])
    _bind_kept(op, rows, keep, "Out")


def _bind_kept(op: SourceOp, rows: Rows, keep: Value, slot: str) -> None:
    """Bind the rows for which ``keep`` [R] is true."""
    context = rows.context
    context.emit(op, "Compress", [rows.value, keep], {"axis": 0}, slot=slot)
    if rows.sequences.is_one:
        context.bind_sequences(op.outputs[slot][0], rows.sequences)
        return
    kept = offsets_of_lengths(context, context.cast(keep, DType.INT64))
    offsets = context.node("Gather", [kept, rows.offsets()], {"axis": 0})
    context.bind_sequences(op.outputs[slot][0], Sequences(offsets=offsets))


@lowers("sequence_scatter")
def sequence_scatter(op: SourceOp, context: Context) -> None:
    """Add the updates of sequence ``n`` to the elements of row ``n`` that its indices name."""
    ids, updates = rows_of(op, context, "Ids"), context.input(op, "Updates")
    columns = context.cast(context.reshape(ids.value, [-1, 1]), DType.INT64)
    at = context.node("Concat", [context.reshape(ids.tables().sequence, [-1, 1]), columns], {"axis": 1})
    inputs = [context.input(op, "X"), at, context.reshape(updates, [-1])]
    context.emit(op, "ScatterND", inputs, {"reduction": "add"})


@lowers("lod_reset")
def lod_reset(op: SourceOp, context: Context) -> None:
    """Divide the rows into other sequences: those of Y, or those whose offsets Y or an attribute has.

    With ``append``, these offsets are a further level, whose sequences the levels of X count.
    """
    given = op.inputs.get("Y")
    sequences = context.sequences(given[0]) if given else None
    if sequences is None:
        if given:
            offsets = context.cast(context.reshape(context.value(given[0]), [-1]), DType.INT64)
        else:
            target = [int(n) for n in op.attrs["target_lod"]]
            offsets = context.builder.ints(*target)
        sequences = Sequences() if not given and len(target) == 2 else Sequences(offsets=offsets)
        if op.attrs["append"]:
            sequences = Sequences(offsets=offsets, outer=_levels_above(op, context, offsets))
    context.bind(op, "Out", context.input(op, "X"))
    context.bind_sequences(op.outputs["Out"][0], sequences)


def _levels_above(op: SourceOp, context: Context, offsets: Value) -> tuple[Value, ...]:
    """Return the levels of the sequences of X, which count the sequences of a further level."""
    found = context.sequences(op.inputs["X"][0])
    if found is None:
        return ()
    if found.is_one:
        count = context.node("Sub", [context.node("Shape", [offsets]), context.builder.ints(1)])
        return (context.node("Concat", [context.builder.ints(0), count], {"axis": 0}),)
    return (*found.outer, Rows(context, context.input(op, "X"), found).offsets())


# **** lengths as a tensor, and alignments ****


@lowers("sequence_mask")
def sequence_mask(op: SourceOp, context: Context) -> None:
    """Return ones up to each length, then zeros up to ``maxlen`` or the greatest length."""
    lengths = context.cast(context.any_input(op, "X", "0"), DType.INT64)
    given = context.any_optional(op, "MaxLenTensor", "1")
    limit = int(op.attrs.get("maxlen", op.attrs.get("max_len", -1)))
    known = context.known_ints(given)
    if known:
        given, limit = None, known[0]
    if given is not None:
        most = context.reshape(context.cast(given, DType.INT64), [])
    elif limit > 0:
        most = context.scalar(limit, DType.INT64)
    else:
        most = context.node("ReduceMax", [lengths], {"keepdims": 0})
    zero, one = (context.scalar(n, DType.INT64) for n in (0, 1))
    indices = context.node("Range", [zero, most, one])
    mask = context.node("Less", [indices, context.node("Unsqueeze", [lengths, context.builder.ints(-1)])])
    result = context.cast(mask, op.attrs.get("out_dtype") or DType.INT64)
    for slot in ("Y", "0"):
        context.bind(op, slot, result)


@lowers("ctc_align")
def ctc_align(op: SourceOp, context: Context) -> None:
    """Drop blanks and (``merge_repeated``) repetitions from sequences of labels.

    With lengths (InputLength), each row is a sequence, and the labels that are kept move to the front.
    """
    if not op.inputs.get("InputLength"):
        _align_rows(op, context)
        return
    x, attrs, ints = context.input(op, "Input"), op.attrs, context.builder.ints
    if context.rank(x, "its rows are sequences") != 2:
        raise Unlowerable(f"its input has rank {x.type.rank}, expected 2: batch and time")
    batch, steps = dimension(context, x, 0), dimension(context, x, 1)
    zero, one = (context.scalar(n, DType.INT64) for n in (0, 1))
    end = context.scalar(steps, DType.INT64) if isinstance(steps, int) else context.reshape(steps, [])
    lengths = context.reshape(context.cast(context.input(op, "InputLength"), DType.INT64), [-1, 1])
    inside = context.node("Less", [context.node("Range", [zero, end, one]), lengths])
    dropped = context.node("Equal", [x, context.scalar(int(attrs["blank"]), x)])
    if attrs["merge_repeated"]:
        # The label before the first step is -1, which no label equals.
        shifted = context.node("Pad", [x, ints(0, 1, 0, 0), context.scalar(-1, x)])
        before = context.node("Slice", [shifted, ints(0), ints(-1), ints(1)])
        dropped = context.node("Or", [dropped, context.node("Equal", [x, before])])
    keep = context.node("And", [inside, context.node("Not", [dropped])])
    kept = context.cast(keep, DType.INT64)
    indices = context.node("Sub", [context.node("CumSum", [kept, one]), one])
    # Dropped labels are written to an extra column, which is cut off.
    indices = context.node("Where", [keep, indices, end])
    number = np.full(1, int(attrs["padding_value"])).astype(x.dtype.numpy)
    empty = filled(context, shape_vector(context, [batch, add_elements(context, steps, 1)]), number)
    moved = context.node("ScatterElements", [empty, indices, x], {"axis": 1})
    context.bind(op, "Output", context.node("Slice", [moved, ints(0), ints(-1), ints(1)]))
    count = context.node("ReduceSum", [kept, ints(1)], {"keepdims": 1})
    context.bind(op, "OutputLength", context.cast(count, x.dtype))


def _align_rows(op: SourceOp, context: Context) -> None:
    """Align sequences of rows [R, 1]. If no label is left of all, the result is a single -1, without sequences."""
    rows, ints = rows_of(op, context, "Input"), context.builder.ints
    labels = context.reshape(rows.value, [-1])
    keep = context.node("Not", [context.node("Equal", [labels, context.scalar(int(op.attrs["blank"]), labels)])])
    if op.attrs["merge_repeated"]:
        shifted = context.node("Pad", [labels, ints(1, 0), context.scalar(-1, labels)])
        before = context.node("Slice", [shifted, ints(0), ints(-1), ints(0)])
        repeats = context.node("Equal", [labels, before])
        if not rows.sequences.is_one:
            inner = context.node("Greater", [rows.tables().step, context.scalar(0, DType.INT64)])
            repeats = context.node("And", [repeats, inner])
        keep = context.node("And", [keep, context.node("Not", [repeats])])
    kept = context.node("Compress", [context.reshape(labels, [-1, 1]), keep], {"axis": 0})
    # One row of -1 behind the others is kept if there are no others.
    count = context.node("Max", [context.node("Shape", [kept], {"start": 0, "end": 1}), ints(1)])
    context.emit(op, "Slice", [with_row(context, kept, -1), ints(0), count, ints(0)], slot="Output")
    if rows.sequences.is_one:
        context.bind_sequences(op.outputs["Output"][0], rows.sequences)
        return
    sums = offsets_of_lengths(context, context.cast(keep, DType.INT64))
    offsets = context.node("Gather", [sums, rows.offsets()], {"axis": 0})
    context.bind_sequences(op.outputs["Output"][0], Sequences(offsets=offsets))
