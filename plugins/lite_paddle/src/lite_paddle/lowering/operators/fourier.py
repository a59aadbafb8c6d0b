"""Fourier transforms, frames of signals, and their sums."""

from __future__ import annotations

import math

import numpy as np

from lite_core.ir import Value
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.integers import normalized
from lite_paddle.lowering.operators.complex_numbers import bind_complex, real_part
from lite_paddle.lowering.registry import lowers, lowers_complex
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.source import SourceOp

# **** transforms ****


def _axes(op: SourceOp, context: Context, x: Value) -> list[int]:
    rank = context.rank(x, "the axes of a transform are counted from its end") - (x in context.complex)
    return normalized([int(axis) for axis in context.attribute(op, "axes")], rank)


def _scaled(op: SourceOp, context: Context, x: Value, sizes: list[int | None], forward: bool) -> Value:
    """Apply the normalization of an operator to the result of DFT, which divides inverse transforms by their sizes."""
    # The powers of the size by which forward and inverse transforms are divided.
    exponents = {"": (0.0, 1.0), "backward": (0.0, 1.0), "ortho": (0.5, 0.5), "forward": (1.0, 0.0)}
    kind = str(op.attrs["normalization"])
    if kind not in exponents:
        raise Unlowerable(f"its normalization is {kind!r}, expected backward, ortho or forward")
    exponent = exponents[kind][0] if forward else exponents[kind][1] - 1
    if not exponent:
        return x
    if None in sizes:
        raise Unlowerable("it scales by a size that is not known before the model runs", "export it with a fixed size")
    factor = math.prod(size for size in sizes if size is not None) ** -exponent
    return context.node("Mul", [x, context.scalar(factor, x)])


def _sizes(x: Value, axes: list[int]) -> list[int | None]:
    return [size if isinstance(size := x.shape[axis], int) else None for axis in axes]


def _along(context: Context, x: Value, axis: int, *, inverse: bool = False, onesided: bool = False) -> Value:
    """Transform pairs, or real numbers [..., 1], along an axis."""
    rank = len(x.shape)
    order = [*(a for a in range(rank - 1) if a != axis), axis, rank - 1]
    attributes = {"inverse": int(inverse), "onesided": int(onesided)}
    result = context.node("DFT", [context.transpose(x, order)], attributes)
    return context.transpose(result, [order.index(a) for a in range(rank)])


def _conjugate(context: Context, pairs: Value) -> Value:
    return context.node("Mul", [pairs, context.builder.constant(np.array([1, -1], pairs.dtype.numpy))])


@lowers("fft_r2c")
def fft_of_real(op: SourceOp, context: Context) -> None:
    """Transform real numbers: the last axis first, of which half the frequencies are kept if it is one-sided."""
    x, forward = context.input(op, "X"), bool(op.attrs["forward"])
    *others, last = _axes(op, context, x)
    sizes = _sizes(x, [*others, last])
    onesided = bool(op.attrs["onesided"])
    numbers = context.node("Unsqueeze", [x, context.builder.ints(-1)])
    pairs = _along(context, numbers, last, inverse=not forward and not onesided, onesided=onesided)
    if onesided and not forward:
        # Of real numbers, the inverse transform is the conjugate of the other one, which is not divided.
        (size,) = _sizes(x, [last])
        if size is None:
            raise Unlowerable("its size is not known before the model runs", "export it with a fixed size")
        pairs = context.node("Mul", [_conjugate(context, pairs), context.scalar(1 / size, pairs)])
    for axis in others:
        pairs = _along(context, pairs, axis, inverse=not forward)
    bind_complex(op, context, _scaled(op, context, pairs, sizes, forward))


@lowers_complex("fft_c2c")
@lowers("fft_c2c")
def fft_of_complex(op: SourceOp, context: Context) -> None:
    x, forward = context.input(op, "X"), bool(op.attrs["forward"])
    axes = _axes(op, context, x)
    pairs = x if x in context.complex else context.node("Unsqueeze", [x, context.builder.ints(-1)])
    for axis in axes:
        pairs = _along(context, pairs, axis, inverse=not forward)
    bind_complex(op, context, _scaled(op, context, pairs, _sizes(x, axes), forward))


@lowers_complex("fft_c2r")
def fft_to_real(op: SourceOp, context: Context) -> None:
    """Transform half of the frequencies of real numbers back to these; the other half is their conjugate.

    The sum over all frequencies is the real part of one in which those with a conjugate count twice.
    """
    x, forward = context.input(op, "X"), bool(op.attrs["forward"])
    *others, last = _axes(op, context, x)
    half = x.shape[last]
    size = int(op.attrs.get("last_dim_size") or 0) or (2 * (half - 1) if isinstance(half, int) else 0)
    if size < 1 or not isinstance(half, int):
        raise Unlowerable("its number of frequencies is not known before the model runs, or too small")
    pairs = x
    for axis in others:
        pairs = _along(context, pairs, axis, inverse=not forward)
    used = min(half, size // 2 + 1)
    pairs = context.node("Slice", [pairs, *(context.builder.ints(n) for n in (0, used, last))])
    twice = np.array([1 if k in (0, size - k) else 2 for k in range(used)], x.dtype.numpy)
    weights = twice.reshape([-1] + [1] * (len(x.shape) - 1 - last))
    pairs = context.node("Mul", [pairs, context.builder.constant(weights)])
    missing = [size - used if axis == last else 0 for axis in range(len(x.shape))]
    pads = context.builder.ints(*([0] * len(missing)), *missing)
    pairs = _along(context, context.node("Pad", [pairs, pads]), last, inverse=not forward)
    result = real_part(context, pairs)
    context.bind(op, "Out", _scaled(op, context, result, [*_sizes(x, others), size], forward))


@lowers("fft_c2r")
def fft_of_real_to_real(op: SourceOp, context: Context) -> None:
    raise Unlowerable("it reads real numbers, expected complex ones")


@lowers("stft")
def short_time_fourier_transform(op: SourceOp, context: Context) -> None:
    """Transform frames of signals [batch, length], to [batch, frequencies, frames]."""
    x, window = context.input(op, "X"), context.input(op, "Window")
    length = int(op.attrs["n_fft"])
    frames = context.node("Mul", [_frames(context, x, length, int(op.attrs["hop_length"]), 1), window])
    numbers = context.node("Unsqueeze", [frames, context.builder.ints(-1)])
    pairs = context.node("DFT", [numbers], {"onesided": int(bool(op.attrs["onesided"]))})
    if op.attrs["normalized"]:
        pairs = context.node("Mul", [pairs, context.scalar(length**-0.5, pairs)])
    bind_complex(op, context, context.transpose(pairs, (0, 2, 1, 3)))


# **** frames ****


def _frames(context: Context, x: Value, length: int, step: int, axis: int) -> Value:
    """Return the whole frames that begin at multiples of ``step``: ``axis`` becomes [frames, length]."""
    if length < 1 or step < 1:
        raise Unlowerable(f"it has frames of {length} elements, {step} apart, expected at least 1")
    zero, beyond, hop = (context.builder.constant(np.array(n, np.int64)) for n in (0, length - 1, step))
    total = context.node("Squeeze", [context.node("Shape", [x], {"start": axis, "end": axis + 1})])
    starts = context.node("Range", [zero, context.node("Sub", [total, beyond]), hop])
    offsets = context.builder.constant(np.arange(length, dtype=np.int64))
    positions = context.node("Add", [context.node("Unsqueeze", [starts, context.builder.ints(1)]), offsets])
    return context.node("Gather", [x, positions], {"axis": axis})


@lowers("frame")
def frame(op: SourceOp, context: Context) -> None:
    """Cut signals [..., length] to [..., frame, frames] or, along axis 0, [length, ...] to [frames, frame, ...]."""
    x = context.input(op, "X")
    rank = context.rank(x, "its axis may be the last one")
    axis = _first_or_last(op, rank)
    frames = _frames(context, x, int(op.attrs["frame_length"]), int(op.attrs["hop_length"]), axis)
    if int(op.attrs["axis"]) != 0:
        frames = context.transpose(frames, [*range(rank - 1), rank, rank - 1])
    context.bind(op, "Out", frames)


@lowers("overlap_add")
def overlap_add(op: SourceOp, context: Context) -> None:
    """Add frames at multiples of a step: a transposed convolution of each position of a frame with one element."""
    x, step = context.input(op, "X"), int(op.attrs["hop_length"])
    rank = context.rank(x, "its axis may be the last one")
    is_first = _first_or_last(op, rank) == 0 and int(op.attrs["axis"]) == 0
    if is_first:  # [frames, frame, ...] becomes [..., frame, frames]
        x = context.transpose(x, [*range(2, rank), 1, 0])
    length = x.shape[-2]
    if not isinstance(length, int) or step < 1:
        raise Unlowerable("the length of its frames is not known before the model runs, or its step is below 1")
    others = context.node("Shape", [x], {"end": rank - 2})
    rows = _in_batch(context, x)
    diagonal = context.builder.constant(np.eye(length, dtype=x.dtype.numpy)[:, None])
    added = context.node("ConvTranspose", [rows, diagonal], {"strides": (step,)})
    shape = context.node("Concat", [others, context.node("Shape", [added], {"start": 2})], {"axis": 0})
    result = context.node("Reshape", [added, shape])
    context.bind(op, "Out", context.transpose(result, [rank - 2, *range(rank - 2)]) if is_first else result)


def _in_batch(context: Context, x: Value) -> Value:
    """Return [..., frame, frames] with all axes before these as one."""
    sizes = context.node("Shape", [x], {"start": -2})
    shape = context.node("Concat", [context.builder.ints(-1), sizes], {"axis": 0})
    return context.node("Reshape", [x, shape])


def _first_or_last(op: SourceOp, rank: int) -> int:
    axis = int(op.attrs["axis"])
    if axis not in (0, -1, rank - 1):
        raise Unlowerable(f"its axis is {axis}, expected 0 or -1")
    return 0 if axis == 0 else rank - 1
