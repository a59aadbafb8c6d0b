"""Operators of Paddle-Lite for networks that match texts: a query and a title are two sequences of each sample.

Sizes in this file: N samples, R rows, L steps of the longest sequence, D elements of a row, C channels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lite_core.ir import DType, Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.dynamic import dimension, reshape_to, static_dimension
from lite_paddle.lowering.limits import lowest_finite
from lite_paddle.lowering.lod import Sequences
from lite_paddle.lowering.registry import lowers
from lite_paddle.lowering.sequences import Rows, offsets_of_lengths, rows_of, sequence_count, with_row
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.source import SourceOp


def _bind_rows(op: SourceOp, context: Context, slot: str, value: Value, sequences: Sequences | None) -> None:
    context.bind(op, slot, value)
    for source in op.outputs.get(slot, ()):
        context.bind_sequences(source, sequences)


def _activated(op: SourceOp, context: Context, value: Value) -> Value:
    return context.node("Relu", [value]) if op.attrs.get("fuse_relu") else value


# **** rows ****


@lowers("search_fc", "search_seq_fc")
def search_fc(op: SourceOp, context: Context) -> None:
    """Multiply rows [R, D] by weights [O, D], and add a bias [O]."""
    x, weights = context.input(op, "X"), context.transpose(context.input(op, "W"), (1, 0))
    result = context.node("MatMul", [x, weights])
    bias = context.optional(op, "b")
    if bias is not None and op.attrs.get("has_bias", True):
        result = context.node("Add", [result, bias])
    sequences = context.sequences(op.inputs["X"][0]) if op.type == "search_seq_fc" else None
    _bind_rows(op, context, "Out", _activated(op, context, result), sequences)


@lowers("search_seq_softmax")
def search_softmax(op: SourceOp, context: Context) -> None:
    context.emit(op, "Softmax", [context.input(op, "X")], {"axis": -1})


_ARITHMETIC = {1: "Add", 2: "Sub", 3: "Mul"}


def _arithmetic(op: SourceOp) -> str:
    number = int(op.attrs["op_type"])
    if number not in _ARITHMETIC:
        raise Unlowerable(f"op_type is {number}, expected 1 (sum), 2 (difference) or 3 (product)")
    return _ARITHMETIC[number]


@lowers("search_seq_arithmetic")
def search_arithmetic(op: SourceOp, context: Context) -> None:
    context.emit(op, _arithmetic(op), [context.input(op, "X"), context.input(op, "Y")])


@lowers("sequence_arithmetic")
def sequence_arithmetic(op: SourceOp, context: Context) -> None:
    """Add, subtract or multiply the rows of two sequences, as many as both have; keep further rows of X."""
    x, y, type_ = rows_of(op, context, "X"), rows_of(op, context, "Y"), _arithmetic(op)
    tables, offsets = x.tables(), y.offsets()
    starts = context.node("Slice", [offsets, *(context.builder.ints(n) for n in (0, -1, 0))])
    lengths, starts = (context.node("Gather", [v, tables.sequence]) for v in (y.lengths(), starts))
    total = context.node("Shape", [y.value], {"start": 0, "end": 1})
    both = context.node("Less", [tables.step, lengths])
    indices = context.node("Where", [both, context.node("Add", [starts, tables.step]), total])
    others = context.node("Gather", [with_row(context, y.value, 1 if type_ == "Mul" else 0), indices], {"axis": 0})
    _bind_rows(op, context, "Out", context.node(type_, [x.value, others]), x.sequences)


@lowers("search_grnn")
def search_grnn(op: SourceOp, context: Context) -> None:
    """Run a GRU without bias. Weights are [3, H, D] and [3, H, H] for the candidate, the reset and the update gate."""
    rows = rows_of(op, context, "X")
    order = context.builder.ints(2, 1, 0)  # the order of ONNX
    hidden = int(context.attribute(op, "num_hidden"))
    gates = (context.node("Gather", [context.input(op, slot), order], {"axis": 0}) for slot in ("Wi", "Wh"))
    weights = [context.reshape(w, [1, 3 * hidden, -1]) for w in gates]
    lengths = None if rows.sequences.offsets is None else context.cast(rows.lengths(), DType.INT32)
    attributes = {"hidden_size": hidden, "layout": 1, "linear_before_reset": 1}
    states = context.node("GRU", [rows.padded(), *weights, None, lengths], attributes)
    _bind_rows(
        op, context, "Out", rows.joined(context.node("Squeeze", [states, context.builder.ints(2)])), rows.sequences
    )


@lowers("lookup_table_dequant")
def lookup_table_dequant(op: SourceOp, context: Context) -> None:
    """Look up rows of a table whose numbers have 8 bits: a row is its least number, its greatest one, and bytes."""
    ids, table = context.input(op, "Ids"), context.known(context.input(op, "W"))
    if table is None or table.dtype != np.float32 or table.ndim != 2 or table.shape[1] < 3:
        raise Unlowerable("its table W is not a parameter of float32 [rows, 2 + numbers / 4]")
    ids = context.node("Squeeze", [ids, context.builder.ints(-1)])
    low, high = table[:, :1], table[:, 1:2]
    numbers = np.ascontiguousarray(table[:, 2:]).view(np.uint8).reshape(len(table), -1)
    columns = (numbers, (high - low) / np.float32(256), low)
    found, scale, least = (context.node("Gather", [context.builder.constant(c), ids]) for c in columns)
    result = context.node("Add", [context.node("Mul", [context.cast(found, DType.FLOAT32), scale]), least])
    padding = int(op.attrs.get("padding_idx", -1))
    if padding >= 0:
        is_padding = context.node("Equal", [ids, context.scalar(padding, ids)])
        is_padding = context.node("Unsqueeze", [is_padding, context.builder.ints(-1)])
        result = context.node("Where", [is_padding, context.scalar(0, result), result])
    context.bind(op, "Out", result)


# **** padding ****


@lowers("search_group_padding")
def search_group_padding(op: SourceOp, context: Context) -> None:
    """Pad rows to the longest sequence [N * L, D]; return zeros [R, 1], and ``pad_id`` where padding is [N * L, 1]."""
    rows = rows_of(op, context, "X")
    padded = rows.padded()
    width = context.rank(rows.value, "its rows are sequences")
    equal = Sequences(sequence_count(context, rows.sequences))
    flat = reshape_to(context, padded, [-1, *(dimension(context, padded, axis) for axis in range(2, width + 1))])
    _bind_rows(op, context, "Out_emb_padding", flat, equal)
    count = context.node("Shape", [rows.value], {"start": 0, "end": 1})
    column = context.node("Concat", [count, context.builder.ints(1)], {"axis": 0})
    zeros = context.node("Expand", [context.scalar(0, rows.value), column])
    _bind_rows(op, context, "Out_new", zeros, rows.sequences)
    marks = Rows(context, zeros, rows.sequences).padded(float(op.attrs["pad_id"]))
    _bind_rows(op, context, "Out_padding", context.reshape(marks, [-1, 1]), equal)


@lowers("search_seq_depadding")
def search_depadding(op: SourceOp, context: Context) -> None:
    """Take as many rows of each sequence of Pad as the same sequence of Src has."""
    padded, rows = rows_of(op, context, "Pad"), rows_of(op, context, "Src")
    tables = rows.tables()
    starts = context.node("Gather", [padded.offsets(), tables.sequence])
    indices = context.node("Add", [starts, tables.step])
    _bind_rows(op, context, "Out", context.node("Gather", [padded.value, indices], {"axis": 0}), rows.sequences)


@lowers("search_attention_padding_mask")
def search_attention_mask(op: SourceOp, context: Context) -> None:
    """Set scores [K * N * L, L] to ``mask`` where the words Y [N * L, 1] end with ``pad_id``."""
    rows, words = rows_of(op, context, "X"), rows_of(op, context, "Y")
    samples, ints = sequence_count(context, words.sequences), context.builder.ints
    y = reshape_to(context, words.value, [samples, -1])
    is_word = context.node("Not", [context.node("Equal", [y, context.scalar(int(op.attrs["pad_id"]), y)])])
    following = context.node(
        "CumSum", [context.cast(is_word, DType.INT64), context.scalar(1, DType.INT64)], {"reverse": 1}
    )
    inside = context.node("Greater", [following, context.scalar(0, DType.INT64)])
    length = dimension(context, rows.value, 1)
    count = sequence_count(context, rows.sequences)
    scores = reshape_to(context, rows.value, [count, -1, length])
    steps = dimension(context, scores, 1)
    grouped = reshape_to(context, scores, [-1, samples, steps, length])
    kept = context.node("Unsqueeze", [inside, ints(1)])
    masked = context.node("Where", [kept, grouped, context.scalar(float(op.attrs["mask"]), grouped)])
    _bind_rows(op, context, "Out", reshape_to(context, masked, [-1, length]), rows.sequences)
    begins = context.node("ReduceSum", [context.cast(inside, DType.INT32), ints(1)], {"keepdims": 0})
    _bind_rows(op, context, "pad_begin", begins, None)


@lowers("search_aligned_mat_mul")
def search_matmul(op: SourceOp, context: Context) -> None:
    """Multiply the matrices of each sample: the sequences of X have the same length, and those of Y."""
    x, y = rows_of(op, context, "X"), rows_of(op, context, "Y")
    count = sequence_count(context, x.sequences)
    matrices = []
    for rows, name in ((x, "transpose_X"), (y, "transpose_Y")):
        matrix = reshape_to(context, rows.value, [count, -1, dimension(context, rows.value, 1)])
        matrices.append(context.transpose(matrix, (0, 2, 1)) if op.attrs.get(name) else matrix)
    product = context.node("MatMul", matrices)
    alpha = float(op.attrs.get("alpha", 1.0))
    if alpha != 1:
        product = context.node("Mul", [product, context.scalar(alpha, product)])
    _bind_rows(op, context, "Out", reshape_to(context, product, [-1, dimension(context, product, 2)]), Sequences(count))


# **** pictures: a query's steps times a title's steps ****


class _Pictures:
    """Pictures [C, height, width] of each sample, whose elements follow each other.

    Args:
        context: the context.
        heights: the height of each picture [N].
        widths: the width of each picture [N].
        least: the smallest width that padding may give.
    """

    def __init__(self, context: Context, heights: Value, widths: Value, least: int = 1) -> None:
        self.context, self.heights, self.widths = context, heights, widths
        self.rows, self.columns = self._numbers(heights, [-1, 1], 1), self._numbers(widths, [-1], least)
        inside = [
            context.node("Less", [numbers, context.reshape(sizes, [-1, 1, 1, 1])])
            for numbers, sizes in ((self.rows, heights), (self.columns, widths))
        ]
        #: True [N, 1, H, W] inside a picture that is padded.
        self.inside: Value = context.node("And", inside)

    def _numbers(self, sizes: Value, shape: Sequence[int], least: int) -> Value:
        context = self.context
        zero, one = (context.scalar(n, DType.INT64) for n in (0, 1))
        most = context.node(
            "Max", [context.node("ReduceMax", [sizes], {"keepdims": 0}), context.scalar(least, DType.INT64)]
        )
        return context.reshape(context.node("Range", [zero, most, one]), shape)

    def offsets(self, channels: int) -> Value:
        """Return the offsets [N + 1] of each sample's elements."""
        context = self.context
        areas = context.node("Mul", [self.heights, self.widths])
        return offsets_of_lengths(context, context.node("Mul", [areas, context.builder.ints(channels)]))

    def padded(self, elements: Value, channels: int, number: float) -> Value:
        """Return the pictures [N, C, H, W] of elements [E], with ``number`` around them."""
        context = self.context
        starts = context.node("Slice", [self.offsets(channels), *(context.builder.ints(n) for n in (0, -1, 0))])
        starts, heights, widths = (context.reshape(v, [-1, 1, 1, 1]) for v in (starts, self.heights, self.widths))
        channel = context.builder.constant(np.arange(channels).reshape(channels, 1, 1))
        row = context.node("Add", [context.node("Mul", [channel, heights]), self.rows])
        place = context.node("Add", [context.node("Add", [context.node("Mul", [row, widths]), self.columns]), starts])
        indices = context.node("Where", [self.inside, place, context.node("Shape", [elements])])
        return context.node("Gather", [with_row(context, elements, number), indices], {"axis": 0})

    def joined(self, padded: Value) -> Value:
        """Return the elements [E, 1] of padded pictures [N, C, H, W]."""
        context = self.context
        inside = context.node("Expand", [self.inside, context.node("Shape", [padded])])
        elements = [context.reshape(v, [-1]) for v in (padded, inside)]
        return context.reshape(context.node("Compress", elements, {"axis": 0}), [-1, 1])


@lowers("match_matrix_tensor")
def match_matrix_tensor(op: SourceOp, context: Context) -> None:
    """Compare each step of X with each step of Y by ``dim_t`` bilinear forms, W [D, T, D]: pictures with T channels."""
    x, y, forms = rows_of(op, context, "X"), rows_of(op, context, "Y"), int(context.attribute(op, "dim_t"))
    weights = context.input(op, "W")
    width, other = (static_dimension(weights, axis, "its forms need it") for axis in (0, 2))
    products = context.node("MatMul", [x.value, context.reshape(weights, [width, forms * other])])
    _bind_rows(op, context, "Tmp", context.reshape(products, [-1, 1]), None)
    left = Rows(context, products, x.sequences).padded()
    left = reshape_to(context, left, [dimension(context, left, 0), -1, forms, other])
    right = context.node("Unsqueeze", [context.transpose(y.padded(), (0, 2, 1)), context.builder.ints(1)])
    matrix = _activated(op, context, context.node("MatMul", [context.transpose(left, (0, 2, 1, 3)), right]))
    pictures = _Pictures(context, x.lengths(), y.lengths())
    _bind_rows(op, context, "Out", pictures.joined(matrix), Sequences(offsets=pictures.offsets(forms)))


@lowers("var_conv_2d")
def var_conv_2d(op: SourceOp, context: Context) -> None:
    """Convolve pictures of different sizes, with zeros around each."""
    heights, widths = (rows_of(op, context, slot).lengths() for slot in ("ROW", "COLUMN"))
    kernel = [int(context.attribute(op, name)) for name in ("KernelH", "KernelW")]
    strides = [int(context.attribute(op, name)) for name in ("StrideH", "StrideW")]
    channels, results = (int(context.attribute(op, name)) for name in ("InputChannel", "OutputChannel"))
    images = _Pictures(context, heights, widths).padded(context.reshape(context.input(op, "X"), [-1]), channels, 0)
    weights = context.reshape(context.input(op, "W"), [results, channels, *kernel])
    pads = (*(k // 2 for k in kernel), *((k - 1) // 2 for k in kernel))
    found = context.node("Conv", [images, weights], {"strides": tuple(strides), "pads": pads})
    ints = context.builder.ints
    heights, widths = (
        context.node("Div", [context.node("Add", [size, ints(stride - 1)]), ints(stride)])
        for size, stride in zip((heights, widths), strides)
    )
    pictures = _Pictures(context, heights, widths)
    result = pictures.joined(_activated(op, context, found))
    _bind_rows(op, context, "Out", result, Sequences(offsets=pictures.offsets(results)))


@lowers("sequence_topk_avg_pooling")
def topk_average(op: SourceOp, context: Context) -> None:
    """Average the greatest elements of each line of pictures, for each of the numbers ``topks``: [R, C * K]."""
    rows, columns = rows_of(op, context, "ROW"), rows_of(op, context, "COLUMN")
    channels, numbers = int(context.attribute(op, "channel_num")), [int(n) for n in context.attribute(op, "topks")]
    pictures = _Pictures(context, rows.lengths(), columns.lengths(), least=max(numbers))
    elements = context.reshape(context.input(op, "X"), [-1])
    images = pictures.padded(elements, channels, lowest_finite(elements.dtype))
    best = context.nodes("TopK", [images, context.builder.ints(max(numbers))], {"axis": -1}, outputs=2)[0]
    order = context.builder.constant(np.arange(max(numbers)))
    widths = context.reshape(columns.lengths(), [-1, 1, 1, 1])
    best = context.node("Where", [context.node("Less", [order, widths]), best, context.scalar(0, best)])
    sums = context.node("CumSum", [best, context.scalar(-1, DType.INT64)])
    chosen = context.node("Gather", [sums, context.builder.ints(*(n - 1 for n in numbers))], {"axis": -1})
    divisors = context.builder.constant(np.array(numbers).astype(chosen.dtype.numpy))
    means = context.transpose(context.node("Div", [chosen, divisors]), (0, 2, 1, 3))
    width = channels * len(numbers)
    flat = reshape_to(context, means, [dimension(context, means, 0), dimension(context, means, 1), width])
    _bind_rows(op, context, "Out", rows.joined(flat), rows.sequences)
