"""The beam search of Paddle 1.x: beam_search, a step of it, and beam_search_decode, which returns the sentences.

The hypotheses of all sources are the rows of one tensor. Its LoD has two levels: the offsets of each source's
hypotheses of the step before, and those of the continuations of each of these hypotheses.
"""

from __future__ import annotations

from lite_core.ir import DType, Value
from lite_paddle.lowering.arrays import TensorArray, TensorList
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.dynamic import dimension, reshape_to
from lite_paddle.lowering.lists import list_of
from lite_paddle.lowering.lod import Sequences
from lite_paddle.lowering.registry import lowers
from lite_paddle.lowering.sequences import Rows, rows_of
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.source import SourceOp


@lowers("beam_search")
def beam_search(op: SourceOp, context: Context) -> None:
    """Choose the best continuations of the hypotheses of each source."""
    scores = rows_of(op, context, "scores")
    sources = _offsets_of_rows(scores, int(context.attribute(op, "level")))
    ids, dtype = context.optional(op, "ids"), scores.value.dtype
    inputs = [
        _matrix(context, scores.value),
        None if ids is None else _matrix(context, context.cast(ids, DType.INT64)),
        context.reshape(context.cast(context.input(op, "pre_scores"), dtype), [-1]),
        context.reshape(context.cast(context.input(op, "pre_ids"), DType.INT64), [-1]),
        sources,
    ]
    attributes = {
        "beam_size": int(context.attribute(op, "beam_size")),
        "end_id": int(context.attribute(op, "end_id")),
        "accumulated": int(context.attribute(op, "is_accumulated")),
    }
    *chosen, parents, children = context.nodes("BeamSearch", inputs, attributes, outputs=4, domain="lite")
    for slot, value in zip(("selected_scores", "selected_ids"), chosen):
        context.bind(op, slot, context.reshape(value, [-1, 1]))
        for source in op.outputs.get(slot, ()):
            context.bind_sequences(source, Sequences(offsets=children, outer=(sources,)))
    context.bind(op, "parent_idx", context.cast(parents, DType.INT32))
    for source in op.outputs.get("parent_idx", ()):
        context.bind_sequences(source, None)


def _matrix(context: Context, value: Value) -> Value:
    """Return the candidates of each hypothesis [R, C]."""
    rank = context.rank(value, "it has candidates for each hypothesis")
    if rank == 1:
        return context.node("Unsqueeze", [value, context.builder.ints(1)])
    return value if rank == 2 else context.node("Flatten", [value], {"axis": 1})


def _offsets_of_rows(rows: Rows, level: int) -> Value:
    """Return the offsets of the rows of the sequences of a level, the outermost being 0."""
    if rows.sequences.is_one:
        return rows.offsets()
    levels = [*rows.sequences.outer, rows.offsets()]
    if not 0 <= level < len(levels):
        raise Unlowerable(f"level is {level}, but its scores have {len(levels)} levels of sequences")
    found = levels[-1]
    for outer in reversed(levels[level:-1]):
        found = rows.context.node("Gather", [found, outer])
    return found


@lowers("beam_search_decode")
def beam_search_decode(op: SourceOp, context: Context) -> None:
    """Follow the hypotheses of the last step back to the first one; sentences have their words as rows [L]."""
    ids, scores = (_steps(op, context, slot) for slot in ("Ids", "Scores"))
    sources, children = ids.levels
    count = dimension(context, sources.shapes, 0)
    inputs = [scores.elements, ids.elements, reshape_to(context, sources.elements, [count, -1]), children.elements]
    attributes = {"end_id": int(context.attribute(op, "end_id"))}
    *found, outer, inner = context.nodes("BeamSearchDecode", inputs, attributes, outputs=4, domain="lite")
    for slot, value in zip(("SentenceScores", "SentenceIds"), found):
        context.bind(op, slot, value)
        for source in op.outputs.get(slot, ()):
            context.bind_sequences(source, Sequences(offsets=inner, outer=(outer,)))


def _steps(op: SourceOp, context: Context, slot: str) -> TensorList:
    """Return the results of each step as a list with two levels of sequences."""
    sources = op.inputs.get(slot)
    array = context.array(sources[0]) if sources else None
    if not isinstance(array, TensorArray) or array.appended is not None:
        raise Unlowerable(f"its input {slot} is not a list of the results of beam_search")
    if array.listed is None:
        if not array.elements:
            raise Unlowerable(f"its input {slot} is an empty list")
        return list_of(context, array.elements, 2, array.elements[0].value)
    if len(array.listed.levels) != 2:
        raise Unlowerable(f"the tensors of its input {slot} have {len(array.listed.levels)} levels of sequences, not 2")
    return array.listed
