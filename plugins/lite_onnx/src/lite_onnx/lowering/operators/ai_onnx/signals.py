"""Signal processing: DFT and STFT as products with a constant matrix, MelWeightMatrix as a constant.

Speech models use Fourier transforms of a few hundred elements. At these lengths a matrix product is fastest on most
devices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lite_core.ir import DType, Value
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import Item, SourceNode
from lite_onnx.lowering.registry import lowers
from lite_onnx.lowering.unlowerable import Unlowerable
from lite_onnx.reader.element_types import element_type

Array = np.ndarray[Any, Any]

#: Longer transforms would need a matrix of hundreds of megabytes.
_MAX_LENGTH = 4096
#: The maximum number of elements of a mel matrix.
_MAX_ELEMENTS = 1 << 24


@lowers("DFT")
def dft(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower the discrete Fourier transform along an axis of [..., 1] (real) or [..., 2] (complex numbers)."""
    x = context.value(node, 0)
    rank = context.rank(x)
    axis = int(context.must_know(node, 2, "axis").item()) if node.has(2) else -2
    axis += rank if axis < 0 else 0
    size = context.size(x, axis)
    length = int(context.must_know(node, 1, "dft_length").item()) if node.has(1) else size
    inverse, onesided = bool(node.attributes.get("inverse", 0)), bool(node.attributes.get("onesided", 0))
    if inverse and onesided:
        raise Unlowerable("it is inverse and one-sided, which ONNX does not define")
    order = [*(a for a in range(rank) if a not in (axis, rank - 1)), axis, rank - 1]
    moved = context.add("Transpose", [x], {"perm": tuple(order)})
    if size > length:
        bounds = (context.ints(n) for n in (0, length, rank - 2))
        moved = context.add("Slice", [moved, *bounds])
    result = _transform(moved, min(size, length), length, inverse, onesided, context)
    return [context.add("Transpose", [result], {"perm": tuple(order.index(a) for a in range(rank))})]


@lowers("STFT")
def stft(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower Fourier transforms of overlapping frames of a signal [batch, length, 1 or 2]."""
    signal, window = context.value(node, 0), context.optional(node, 2)
    step = int(context.must_know(node, 1, "frame_step").item())
    if node.has(3):
        length = int(context.must_know(node, 3, "frame_length").item())
    elif window is not None:
        length = context.size(window, 0)
    else:
        raise Unlowerable("it has neither a window nor a frame_length")
    if step < 1 or not 0 < length <= _MAX_LENGTH:
        raise Unlowerable(
            f"it has frames of {length} elements, {step} apart; Lite transforms 1 to {_MAX_LENGTH} elements"
        )
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
    onesided = bool(node.attributes.get("onesided", 1))
    return [_transform(frames, length, length, False, onesided, context)]


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


def _transform(x: Value, size: int, length: int, inverse: bool, onesided: bool, context: Context) -> Value:
    """Transform [..., size, parts] to [..., frequencies, 2]; missing elements up to ``length`` count as zeros."""
    rank = context.rank(x)
    parts = context.size(x, rank - 1)
    if parts not in (1, 2):
        raise Unlowerable(f"its last axis has {parts} elements: 1 for real numbers, 2 for complex ones")
    if onesided and parts == 2:
        raise Unlowerable("it is one-sided, and its input is complex")
    if not 0 < length <= _MAX_LENGTH:
        raise Unlowerable(f"its length is {length}; Lite transforms 1 to {_MAX_LENGTH} elements")
    matrix = _matrix(size, length, length // 2 + 1 if onesided else length, parts, inverse)
    dtype = x.dtype if x.dtype in (DType.FLOAT32, DType.FLOAT64) else DType.FLOAT32
    kept = [0] * (rank - 2)
    rows = context.add("Reshape", [x, context.ints(*kept, size * parts)])
    product = context.add("MatMul", [rows, context.constant(matrix, dtype)])
    return context.add("Reshape", [product, context.ints(*kept, matrix.shape[1] // 2, 2)])


def _matrix(size: int, length: int, frequencies: int, parts: int, inverse: bool) -> Array:
    """Compute the matrix [size * parts, frequencies * 2] from real and imaginary parts to those of each frequency."""
    # NOTE: the product of position and frequency is reduced modulo the length, so that large angles stay exact.
    turns = np.outer(np.arange(size), np.arange(frequencies)) % length
    angles = (2 if inverse else -2) * np.pi / length * turns
    cosine, sine = np.cos(angles), np.sin(angles)
    pieces = [np.stack([cosine, sine], axis=-1), np.stack([-sine, cosine], axis=-1)][:parts]
    matrix = np.stack(pieces, axis=1).reshape(size * parts, frequencies * 2)
    return matrix / length if inverse else matrix
