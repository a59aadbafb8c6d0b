"""Expansions of SequenceIndices and ViterbiDecode. Sizes: R rows, N sequences, L steps, C tags."""

from __future__ import annotations

from lite_core.builder import GraphBuilder
from lite_core.ir import DType, Graph, Value
from lite_onnx.writer.expansions.formula import Formula, expands

_END = 2**62


@expands("SequenceIndices")
def sequence_indices(f: Formula, offsets: Value, rows: Value | None, *, length: int, reverse: int) -> list[Value]:
    """Compare the number of each step with the lengths; offsets that do not fit are no errors in ONNX."""
    starts, ends = f.part(offsets, 0, -1, 0), f.part(offsets, 1, _END, 0)
    lengths = f("Unsqueeze", f("Sub", ends, starts), [1])
    longest = f("ReduceMax", f("Concat", f("Squeeze", lengths, [1]), f.builder.ints(1), axis=0), keepdims=1)
    steps = f.count_up(f.builder.ints(length) if length else longest, DType.INT64)
    inside = f("Less", steps, lengths)
    if reverse:
        found = f("Sub", f("Sub", f("Unsqueeze", ends, [1]), f.scalar(1)), steps)
    else:
        found = f("Add", f("Unsqueeze", starts, [1]), steps)
    indices = f("Where", inside, found, f.item(offsets, -1, 0))
    where = f("NonZero", inside)  # [2, R] in the order of rows
    return [indices, f.item(where, 0, 0), f.item(where, 1, 0)]


@expands("ViterbiDecode")
def viterbi_decode(
    f: Formula, emissions: Value, transitions: Value, start: Value | None, stop: Value | None, lengths: Value | None
) -> list[Value]:
    """Scan the steps forward for the scores and the origin of each tag, then backward along the best path.

    Two steps behind the last one are added, which are part of no sequence: ONNX Runtime refuses a Scan without steps.
    """
    size = f("Shape", emissions)
    batch, steps, tags = (f.part(size, i, i + 1, 0) for i in range(3))
    added = f("Expand", f.cast(f.scalar(0), emissions.dtype), f("Concat", batch, f.builder.ints(2), tags, axis=0))
    by_step = f("Transpose", f("Concat", emissions, added, axis=1), perm=(1, 0, 2))
    numbers = f("Unsqueeze", f.count_up(f("Add", steps, [2]), DType.INT64), [1])
    inside = f("Less", numbers, f("Expand", steps, batch) if lengths is None else lengths)  # [L + 2, N]
    first = f.item(by_step, 0, 0)
    first = first if start is None else f("Add", first, start)
    later, later_inside = f.part(by_step, 1, _END, 0), f.part(inside, 1, _END, 0)
    best, origins = f.several(
        "Scan", 2, first, later, later_inside, body=_forward(f, first.dtype, transitions), num_scan_inputs=2
    )
    final = best if stop is None else f("Add", best, stop)
    last = f("ArgMax", final, axis=1, keepdims=0)
    backwards = {"scan_input_directions": (1, 1), "scan_output_directions": (1,), "num_scan_inputs": 2}
    tag, path = f.several("Scan", 2, last, origins, later_inside, body=_backward(f), **backwards)
    whole = f("Concat", f("Unsqueeze", f("Where", f.item(inside, 0, 0), tag, f.scalar(0)), [0]), path, axis=0)
    scores = f("ReduceMax", final, [1], keepdims=0)
    scores = f("Where", f.item(inside, 0, 0), scores, f.cast(f.scalar(0), scores.dtype))
    return [scores, f("Slice", f("Transpose", whole, perm=(1, 0)), [0], steps, [1])]


def _forward(f: Formula, dtype: DType, transitions: Value) -> Graph:
    """Return the body for a step: the new scores and the best origins of each tag."""
    body = Formula(GraphBuilder("forward", outer=f.builder))
    name = body.builder.unique_name
    best = body.builder.input(name("best"), dtype, [None, None])
    emission = body.builder.input(name("emission"), dtype, [None, None])
    inside = body.builder.input(name("inside"), DType.BOOL, [None])
    arrivals = body("Add", body("Unsqueeze", best, [2]), transitions)
    found = body("Add", body("ReduceMax", arrivals, [1], keepdims=0), emission)
    body.builder.output(body("Where", body("Unsqueeze", inside, [1]), found, best))
    body.builder.output(body("ArgMax", arrivals, axis=1, keepdims=0))
    return body.builder.build()


def _backward(f: Formula) -> Graph:
    """Return the body for a step: the tag before it, and the tag of the step."""
    body = Formula(GraphBuilder("backward", outer=f.builder))
    name = body.builder.unique_name
    tag = body.builder.input(name("tag"), DType.INT64, [None])
    origin = body.builder.input(name("origin"), DType.INT64, [None, None])
    inside = body.builder.input(name("inside"), DType.BOOL, [None])
    before = body("Squeeze", body("GatherElements", origin, body("Unsqueeze", tag, [1]), axis=1), [1])
    body.builder.output(body("Where", inside, before, tag))
    body.builder.output(body("Where", inside, tag, body.scalar(0)))
    return body.builder.build()
