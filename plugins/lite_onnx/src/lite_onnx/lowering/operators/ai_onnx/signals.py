"""Signal processing: DFT along the last axis but one, STFT as DFT of frames, MelWeightMatrix as a constant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lite_core.ir import Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import Item, SourceNode
from lite_onnx.lowering.registry import lowers
from lite_onnx.lowering.unlowerable import Unlowerable
from lite_onnx.reader.element_types import element_type

Array = np.ndarray[Any, Any]

#: Longer transforms are a sign of a damaged file.
_MAX_LENGTH = 1 << 24
#: The maximum number of elements of a mel matrix.
_MAX_ELEMENTS = 1 << 24


@lowers("DFT")
def dft(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower the discrete Fourier transform along an axis of [..., 1] (real) or [..., 2] (complex numbers)."""
    x = context.value(node, 0)
    rank = context.rank(x)
    axis = int(context.must_know(node, 2, "axis").item()) if node.has(2) else -2
    axis += rank if axis < 0 else 0
    order = [*(a for a in range(rank) if a not in (axis, rank - 1)), axis, rank - 1]
    moved = context.add("Transpose", [x], {"perm": tuple(order)})
    if node.has(1):
        moved = _of_length(moved, int(context.must_know(node, 1, "dft_length").item()), context)
    result = context.add("DFT", [moved], {name: node.attributes.get(name) for name in ("inverse", "onesided")})
    return [context.add("Transpose", [result], {"perm": tuple(order.index(a) for a in range(rank))})]


def _of_length(x: Value, length: int, context: Context) -> Value:
    """Cut the last axis but one to a length, or pad it with zeros."""
    rank = context.rank(x)
    size = context.size(x, rank - 2)
    if not 0 < length <= _MAX_LENGTH:
        raise Unlowerable(f"its dft_length is {length}, expected 1 to {_MAX_LENGTH}")
    if size > length:
        return context.add("Slice", [x, *(context.ints(n) for n in (0, length, rank - 2))])
    if size < length:
        return context.add("Pad", [x, context.ints(*([0] * (2 * rank - 2)), length - size, 0)])
    return x


@lowers("STFT")
def stft(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower Fourier transforms of overlapping frames of a signal [batch, length] or [batch, length, 1 or 2]."""
    signal, window = context.value(node, 0), context.optional(node, 2)
    if context.rank(signal) == 2:  # not in ONNX's text, but ONNX Runtime takes it as real numbers
        signal = context.add("Unsqueeze", [signal, context.ints(-1)])
    step = int(context.must_know(node, 1, "frame_step").item())
    if node.has(3):
        length = int(context.must_know(node, 3, "frame_length").item())
    elif window is not None:
        length = context.size(window, 0)
    else:
        raise Unlowerable("it has neither a window nor a frame_length")
    if step < 1 or not 0 < length <= _MAX_LENGTH:
        raise Unlowerable(f"it has frames of {length} elements, {step} apart, expected 1 to {_MAX_LENGTH} elements")
    zero, one, many = (context.constant(np.array(n, np.int64)) for n in (0, 1, length))
    total = context.add("Squeeze", [context.add("Shape", [signal], {"start": 1, "end": 2})])
    # Frames begin at multiples of the step, up to the last position where a whole frame fits.
    end = context.add("Add", [context.add("Sub", [total, many]), one])
    starts = context.add("Range", [zero, end, context.constant(np.array(step, np.int64))])
    offsets = context.constant(np.arange(length, dtype=np.int64))
    positions = context.add("Add", [context.add("Unsqueeze", [starts, context.ints(1)]), offsets])
    frames = context.add("Gather", [signal, positions], {"axis": 1})
    if window is not None:
        frames = context.add("Mul", [frames, context.add("Unsqueeze", [window, context.ints(1)])])
    return [context.add("DFT", [frames], {"onesided": node.attributes.get("onesided", 1)})]


@lowers("MelWeightMatrix")
def mel_weight_matrix(node: SourceNode, context: Context) -> Sequence[Item]:
    """Compute the matrix [spectrogram bins, mel bins] that maps a linear to a mel spectrogram, as ONNX defines it."""
    names = ("num_mel_bins", "dft_length", "sample_rate", "lower_edge_hertz", "upper_edge_hertz")
    bins, length, rate, lower, upper = (context.must_know(node, i, name).item() for i, name in enumerate(names))
    if bins < 1 or length < 1 or rate <= 0:
        raise Unlowerable(f"it has {bins} mel bins of a transform of length {length} at {rate} Hz")
    if bins * (length // 2 + 1) > _MAX_ELEMENTS:
        raise Unlowerable(f"its matrix for {bins} mel bins of a transform of length {length} is too large for Lite")
    low, high = (2595 * np.log10(1 + hertz / 700) for hertz in (lower, upper))
    mels = np.arange(bins + 2) * ((high - low) / (bins + 2)) + low
    edges = ((length + 1) * (700 * (10 ** (mels / 2595) - 1)) // rate).astype(np.int64)
    if edges[0] < 0 or edges[-1] > length // 2 + 1:
        raise Unlowerable(f"its edges {lower} and {upper} Hz are outside the range of a sample rate of {rate} Hz")
    matrix = np.zeros((length // 2 + 1, bins), np.float32)
    for column, (left, center, right) in enumerate(zip(edges, edges[1:], edges[2:])):
        if left == center:
            matrix[center, column] = 1
        else:
            matrix[left : center + 1, column] = np.arange(center - left + 1) / (center - left)
        if right > center:
            matrix[center:right, column] = np.arange(right - center, 0, -1) / (right - center)
    number = node.attributes.get("output_datatype", 1)
    return [context.constant(matrix, element_type(number if isinstance(number, int) else 1))]
