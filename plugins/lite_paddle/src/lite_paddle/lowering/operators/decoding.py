"""Finding the best path: decoding of conditional random fields, and of the trees of beam searches."""

from __future__ import annotations

from typing import Any

from lite_core.ir import Attribute, DType, Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.registry import lowers
from lite_paddle.lowering.sequences import rows_of
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.source import SourceOp


@lowers("crf_decoding")
def crf_decoding(op: SourceOp, context: Context) -> None:
    """Find the best tags through a linear-chain CRF: [R, 1] for sequences of emissions [R, C], [N, L] for [N, L, C].

    Transition [C + 2, C] holds the weights of the first tag, of the last one, and from tag to tag. With labels, the
    result says which tags are equal to them.
    """
    transition, ints = context.input(op, "Transition"), context.builder.ints
    first, last = (context.node("Gather", [transition, context.scalar(i, DType.INT64)]) for i in (0, 1))
    moves = context.node("Slice", [transition, ints(2), ints(2**31 - 1), ints(0)])
    emission, length = context.input(op, "Emission"), context.optional(op, "Length")
    rank = context.rank(emission, "it must be [R, C], or [N, L, C] with lengths")
    if rank != (2 if length is None else 3):
        raise Unlowerable(f"Emission must be [R, C], or [N, L, C] with lengths, has rank {rank}")
    if length is None:
        rows = rows_of(op, context, "Emission")
        lengths = None if rows.sequences.offsets is None else rows.lengths()
        tags = rows.joined(_decoded(context, rows.padded(), moves, first, last, lengths)[1])
        path, sequences = context.reshape(tags, [-1, 1]), context.sequences(op.inputs["Emission"][0])
    else:
        lengths = context.cast(context.reshape(length, [-1]), DType.INT64)
        path, sequences = _decoded(context, emission, moves, first, last, lengths)[1], None
    label = context.optional(op, "Label")
    if label is not None:
        equal = context.node("Equal", [path, context.cast(label, DType.INT64)])
        path = context.cast(equal, DType.INT64)
    context.bind(op, "ViterbiPath", path)
    context.bind_sequences(op.outputs["ViterbiPath"][0], sequences)


@lowers("viterbi_decode")
def viterbi_decode(op: SourceOp, context: Context) -> None:
    """Find the best tags [N, L] for emissions [N, L, C], and their scores [N]; L is the greatest of the lengths.

    With ``include_bos_eos_tag``, the last row of the transitions [C, C] holds the weights of the first tag, and the row
    before it those of the last one.
    """
    emission, moves = context.any_input(op, "Input", "0"), context.any_input(op, "Transition", "1")
    lengths = context.cast(context.any_input(op, "Length", "2"), DType.INT64)
    first = last = None
    if op.attrs.get("include_bos_eos_tag", True):
        first, last = (context.node("Gather", [moves, context.scalar(i, DType.INT64)]) for i in (-1, -2))
    scores, path = _decoded(context, emission, moves, first, last, lengths)
    ints, longest = context.builder.ints, context.node("ReduceMax", [lengths])
    path = context.node("Slice", [path, ints(0), context.reshape(longest, [1]), ints(1)])
    for slot, value in zip(("Scores", "Path", "0", "1"), (scores, path) * 2):
        context.bind(op, slot, value)


def _decoded(
    context: Context, emission: Value, moves: Value, first: Value | None, last: Value | None, lengths: Value | None
) -> tuple[Value, Value]:
    inputs = [emission, moves, first, last, lengths]
    scores, path = context.nodes("ViterbiDecode", inputs, outputs=2, domain="lite")
    return scores, path


@lowers("gather_tree")
def gather_tree(op: SourceOp, context: Context) -> None:
    """Follow each beam of the last step back to the first one: ids and parents are [T, N, beams]."""
    ids, parents = context.any_input(op, "Ids", "0"), context.any_input(op, "Parents", "1")
    context.rank(ids, "its axes are steps, batch and beams")
    step_shape = ids.shape[1:]
    body = context.inner("ancestors")
    beams = body.block_input("beams", DType.INT64, step_shape)
    step_ids = body.block_input("ids", ids.dtype, step_shape)
    step_parents = body.block_input("parents", parents.dtype, step_shape)
    body.builder.output(body.node("GatherElements", [body.cast(step_parents, DType.INT64), beams], {"axis": 1}))
    body.builder.output(body.node("GatherElements", [step_ids, beams], {"axis": 1}))
    shape = context.node("Shape", [ids], {"start": 1})
    ones = context.node("Expand", [context.scalar(1, DType.INT64), shape])
    first = context.node("CumSum", [ones, context.scalar(1, DType.INT64)], {"exclusive": 1})
    attributes: dict[str, Attribute | list[Any]] = {
        "body": body.builder.build(),
        "num_scan_inputs": 2,
        "scan_input_directions": [1, 1],
        "scan_output_directions": [1],
    }
    found = context.nodes("Scan", [first, ids, parents], attributes, outputs=2)[1]
    for slot in ("Out", "0"):
        context.bind(op, slot, found)
