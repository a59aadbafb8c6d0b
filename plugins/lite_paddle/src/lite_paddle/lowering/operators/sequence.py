"""Paddle 1's operators on sequences, for one sequence, and related operators on ordinary tensors.

NOTE: Paddle 1 stores the offsets of a batch's sequences beside the tensor (LoD). Lite does not, so each tensor
is one sequence here: axis 0 is time. Operators without a meaning for one sequence have no lowering.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_core.ir import Attribute, DType, Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.dynamic import dimension, shape_vector
from lite_paddle.lowering.integers import add_elements
from lite_paddle.lowering.limits import check_parts
from lite_paddle.lowering.operators.constant import filled
from lite_paddle.lowering.operators.rearrangement import flipped
from lite_paddle.lowering.registry import lowers
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.source import SourceOp

# **** one sequence ****


@lowers("sequence_pool")
def sequence_pool(op: SourceOp, context: Context) -> None:
    x, pooling, first = context.input(op, "X"), str(op.attrs["pooltype"]).upper(), context.builder.ints(0)
    if pooling in ("FIRST", "LAST"):
        result = context.node("Gather", [x, context.builder.ints(0 if pooling == "FIRST" else -1)], {"axis": 0})
    elif pooling in ("AVERAGE", "SUM", "MAX", "SQRT"):
        type_ = {"AVERAGE": "ReduceMean", "MAX": "ReduceMax"}.get(pooling, "ReduceSum")
        result = context.node(type_, [x, first])
        if pooling == "SQRT":
            length = context.node("Shape", [x], {"start": 0, "end": 1})
            result = context.node("Div", [result, context.node("Sqrt", [context.cast(length, x.dtype)])])
    else:
        raise Unlowerable(f"pooltype is {pooling!r}, expected AVERAGE, SUM, SQRT, MAX, FIRST or LAST")
    context.bind(op, "Out", result)


@lowers("sequence_softmax")
def sequence_softmax(op: SourceOp, context: Context) -> None:
    context.emit(op, "Softmax", [context.input(op, "X")], {"axis": 0})


@lowers("sequence_reverse")
def sequence_reverse(op: SourceOp, context: Context) -> None:
    context.bind(op, "Y", flipped(context, context.input(op, "X"), [0]))


@lowers("sequence_concat")
def sequence_concat(op: SourceOp, context: Context) -> None:
    context.emit(op, "Concat", context.inputs(op, "X"), {"axis": 0})


@lowers("sequence_reshape")
def sequence_reshape(op: SourceOp, context: Context) -> None:
    context.bind(op, "Out", context.reshape(context.input(op, "X"), [-1, int(context.attribute(op, "new_dim"))]))


@lowers("sequence_expand_as")
def sequence_expand_as(op: SourceOp, context: Context) -> None:
    """Repeat the only row of X for each row of Y."""
    x, y = context.input(op, "X"), context.input(op, "Y")
    if x.type.rank is not None and isinstance(x.shape[0], int) and x.shape[0] != 1:
        raise Unlowerable(f"X has {x.shape[0]} rows for {x.shape[0]} sequences; Lite has only one sequence")
    rank = context.rank(x, "it is repeated along axis 0")
    times = shape_vector(context, [dimension(context, y, 0), *[1] * (rank - 1)])
    context.emit(op, "Expand", [x, times])


@lowers("sequence_conv")
def sequence_conv(op: SourceOp, context: Context) -> None:
    """Multiply each step, joined with its neighbours (zeros outside the sequence), by the filter."""
    x, filter_ = context.input(op, "X"), context.input(op, "Filter")
    length, start = int(context.attribute(op, "contextLength")), int(op.attrs["contextStart"])
    if op.attrs["paddingTrainable"] or int(op.attrs["contextStride"]) != 1:
        raise Unlowerable("trained padding and context strides other than 1 are not supported")
    check_parts(length)
    before, after = max(-start, 0), max(start + length - 1, 0)
    ints = context.builder.ints
    padded = context.node("Pad", [x, ints(before, 0, after, 0), context.scalar(0, x)])
    steps = dimension(context, x, 0)
    windows = []
    for tap in range(length):
        first = before + start + tap
        if isinstance(steps, int):
            end: Value = ints(first + steps)
        else:
            end = context.node("Add", [steps, ints(first)])
        windows.append(context.node("Slice", [padded, ints(first), end, ints(0)]))
    table = windows[0] if length == 1 else context.node("Concat", windows, {"axis": 1})
    context.emit(op, "MatMul", [table, filter_])


@lowers("lod_reset")
def lod_reset(op: SourceOp, context: Context) -> None:
    offsets = list(op.attrs["target_lod"])
    if len(offsets) > 2 or op.attrs["append"]:
        raise Unlowerable(f"it divides its input into {len(offsets) - 1} sequences; Lite has only one sequence")
    context.bind(op, "Out", context.input(op, "X"))


@lowers("crf_decoding")
def crf_decoding(op: SourceOp, context: Context) -> None:
    """Find the best path through a linear-chain CRF (Viterbi): tags [T, 1] for emissions [T, C].

    Transition [C + 2, C] holds the weights of the first tag, of the last one, and from tag to tag.
    """
    if op.inputs.get("Label") or op.inputs.get("Length"):
        raise Unlowerable("it compares with labels, or decodes a padded batch; only one sequence is supported")
    emission, transition, ints = context.input(op, "Emission"), context.input(op, "Transition"), context.builder.ints
    if context.rank(emission, "it must be [T, C]") != 2:
        raise Unlowerable(f"Emission must be [T, C], has rank {emission.type.rank}")
    tags = emission.shape[1]
    first, last = (context.node("Gather", [transition, context.scalar(i, DType.INT64)]) for i in (0, 1))
    moves = context.node("Slice", [transition, ints(2), ints(2**31 - 1), ints(0)])
    start = context.node("Add", [first, context.node("Gather", [emission, context.scalar(0, DType.INT64)])])
    rest = context.node("Slice", [emission, ints(1), ints(2**31 - 1), ints(0)])

    forward = context.inner("viterbi")
    best = forward.block_input("best", emission.dtype, [tags])
    step = forward.block_input("emission", emission.dtype, [tags])
    arrivals = forward.node("Add", [forward.node("Unsqueeze", [best, ints(1)]), moves])
    top = forward.node("ReduceMax", [arrivals, ints(0)], {"keepdims": 0})
    forward.builder.output(forward.node("Add", [top, step]))
    forward.builder.output(forward.node("ArgMax", [arrivals], {"axis": 0, "keepdims": 0}))
    scores, origins = context.nodes(
        "Scan", [start, rest], {"body": forward.builder.build(), "num_scan_inputs": 1}, outputs=2
    )
    final = context.node("ArgMax", [context.node("Add", [scores, last])], {"axis": 0, "keepdims": 0})

    backward = context.inner("backtrack")
    tag = backward.block_input("tag", DType.INT64, [])
    origin = backward.block_input("origin", DType.INT64, [tags])
    came_from = backward.node("Gather", [origin, tag])
    backward.builder.output(came_from)
    backward.builder.output(backward.node("Identity", [came_from]))
    attributes: dict[str, Attribute | list[Any]] = {
        "body": backward.builder.build(),
        "num_scan_inputs": 1,
        "scan_input_directions": [1],
        "scan_output_directions": [1],
    }
    earlier = context.nodes("Scan", [final, origins], attributes, outputs=2)[1]
    path = context.node("Concat", [earlier, context.reshape(final, [1])], {"axis": 0})
    context.bind(op, "ViterbiPath", context.reshape(path, [-1, 1]))


# **** lengths as a tensor ****


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
    """Drop blanks and (``merge_repeated``) repetitions from rows of labels, and move the rest to the front."""
    if not op.inputs.get("InputLength"):
        raise Unlowerable(
            "its sequences are separated by offsets (LoD), which Lite does not have",
            "export the model with padded rows and their lengths (InputLength)",
        )
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
