"""Convolution: Conv and its integer variants. ConvTranspose and DeformConv have their own modules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lite_core.ir import Dim, DType, Shape, fresh_dim
from lite_core.ops.dtypes import FLOATS
from lite_core.ops.inference import Inference, fail
from lite_core.ops.registry import op, optional
from lite_core.ops.rounding import round_to, wrap_to_int32
from lite_core.ops.shape_checks import check_vector, differ, format_shape
from lite_core.ops.spatial import (
    WINDOW_ATTRIBUTES,
    WindowAttributes,
    WindowAxis,
    after,
    check_kernel,
    taps,
    window_axes,
    window_counts,
)

__all__ = [
    "CONVOLUTION_ATTRIBUTES",
    "check_channels",
    "convolution_kernel",
    "convolve",
    "count_elements",
    "per_channel",
]

Array = np.ndarray[Any, Any]

CONVOLUTION_ATTRIBUTES: dict[str, Any] = {
    **WINDOW_ATTRIBUTES,
    "group": 1,
    "kernel_shape": optional("ints"),
}

_BYTES = (DType.INT8, DType.UINT8)

# Number of elements of the unfolded input that are multiplied at a time; they fit into the caches of a core.
_UNFOLDED_ELEMENTS = 1 << 20


# **** inference ****


def convolution_kernel(x: Shape | None, w: Shape | None, kernel_shape: tuple[int, ...] | None) -> Shape | None:
    """Return the kernel sizes along the spatial axes, from the weights or the attribute.

    Returns:
        One size per spatial axis, a fresh symbol if it is unknown; None if the rank is unknown too.

    Raises:
        GraphError: input, weights and attribute contradict each other.
    """
    for shape, what in ((x, "the input"), (w, "the weights")):
        if shape is not None and len(shape) < 3:
            raise fail(f"{what} must have rank 3 or more (two axes and the spatial ones), is {format_shape(shape)}")
    if x is not None and w is not None and len(x) != len(w):
        raise fail(f"the input {format_shape(x)} and the weights {format_shape(w)} must have the same rank")
    known = w if w is not None else x
    if kernel_shape is not None:
        if known is not None and len(kernel_shape) != len(known) - 2:
            raise fail(f"kernel_shape {list(kernel_shape)} must have {len(known) - 2} elements, one per spatial axis")
        if w is not None and any(differ(a, b) for a, b in zip(kernel_shape, w[2:])):
            raise fail(f"kernel_shape {list(kernel_shape)} differs from the weights {format_shape(w)}")
        kernel: Shape = kernel_shape
    elif w is not None:
        kernel = w[2:]
    elif x is not None:
        kernel = tuple(fresh_dim("kernel") for _ in x[2:])
    else:
        return None
    check_kernel(kernel)
    return kernel


def check_channels(x: Shape | None, w: Shape | None, group: int) -> None:
    """Raise GraphError if the groups do not divide the channels, or input and weights do not match."""
    if group < 1:
        raise fail(f"group must be at least 1, is {group}")
    if w is not None and isinstance(w[0], int) and w[0] % group:
        raise fail(f"group {group} does not divide the {w[0]} output channels of the weights {format_shape(w)}")
    if x is None:
        return
    if isinstance(x[1], int) and x[1] % group:
        raise fail(f"group {group} does not divide the {x[1]} channels of the input {format_shape(x)}")
    if w is not None and differ(x[1], w[1] * group):
        raise fail(
            f"the input {format_shape(x)} has {x[1]} channels, the weights {format_shape(w)} with group {group} "
            f"need {w[1] * group}"
        )


def _infer_convolution(inference: Inference, w_index: int, bias_index: int | None) -> list[Shape | None]:
    x, w = inference.shape(0), inference.shape(w_index)
    kernel = convolution_kernel(x, w, inference.attributes["kernel_shape"])
    if kernel is None:
        return [None]
    check_channels(x, w, inference.attributes["group"])
    channels = fresh_dim("channels") if w is None else w[0]
    if bias_index is not None:
        check_vector(inference, bias_index, channels, "the bias", "output channel")
    window = WindowAttributes.read(inference.attributes, len(kernel))
    batch: Dim = fresh_dim("batch") if x is None else x[0]
    sizes = tuple(fresh_dim("size") for _ in kernel) if x is None else x[2:]
    return [(batch, channels, *window_counts(window, kernel, sizes))]


# **** the arithmetic ****


def convolve(x: Array, w: Array, group: int, window: WindowAttributes) -> Array:
    """Compute a convolution without bias.

    Args:
        x: [batch, channels, *spatial].
        w: [output channels, channels / group, *kernel].
        group: number of groups of channels.
        window: strides, dilations and pads.

    Returns:
        [batch, output channels, *windows], of the element type of ``x``.
    """
    axes = window_axes(window, w.shape[2:], x.shape[2:])
    if group > 1 and w.shape[1] == 1:
        return _convolve_depthwise(x, w, axes)
    pointwise = all(a.kernel == 1 and a.begin == 0 and a.end == 0 for a in axes)
    weights = np.ascontiguousarray(w).reshape(group, w.shape[0] // group, w.shape[1] * count_elements(w.shape[2:]))
    if pointwise:
        strided = x[after(2, *(slice(None, None, a.stride) for a in axes))]
        columns = strided.reshape(x.shape[0], group, w.shape[1], count_elements(strided.shape[2:]))
        y: Array = np.matmul(weights, columns)
    else:
        y = _convolve_unfolded(x, weights, axes)
    return y.reshape(x.shape[0], w.shape[0], *(a.count for a in axes))


def count_elements(sizes: Sequence[int]) -> int:
    """Return the product of sizes."""
    total = 1
    for size in sizes:
        total *= size
    return total


def _convolve_depthwise(x: Array, w: Array, axes: Sequence[WindowAxis]) -> Array:
    """Convolve with one input channel per group: every tap scales a shifted slice of all channels at once."""
    batch, channels = x.shape[:2]
    weights = w.reshape(channels, w.shape[0] // channels, *w.shape[2:])
    result_shape = (batch, channels, weights.shape[1], *(a.count for a in axes))
    y = np.zeros(result_shape, dtype=x.dtype)
    products = np.empty(result_shape, dtype=x.dtype)
    spread = after(2, *(None for _ in axes))
    for tap, windows, elements in taps(axes):
        part = after(3, *windows)
        shifted = x[after(2, None, *elements)]
        np.multiply(shifted, weights[after(2, *tap)][spread], out=products[part])
        y[part] += products[part]
    return y.reshape(batch, w.shape[0], *(a.count for a in axes))


def _convolve_unfolded(x: Array, weights: Array, axes: Sequence[WindowAxis]) -> Array:
    """Convolve by unfolding the input into columns (im2col), block by block, and one matrix product per group.

    Args:
        x: [batch, channels, *spatial].
        weights: [group, output channels of a group, channels of a group * taps].
        axes: the windows.

    Returns:
        [batch, group, output channels of a group, windows].
    """
    batch, channels = x.shape[:2]
    group = weights.shape[0]
    per_row = count_elements([a.count for a in axes[1:]])
    rows = axes[0].count
    y = np.empty((batch, group, weights.shape[1], rows * per_row), dtype=x.dtype)
    row_elements = max(1, channels * count_elements([a.kernel for a in axes]) * per_row)
    row_step = min(rows, max(1, _UNFOLDED_ELEMENTS // row_elements))
    batch_step = max(1, _UNFOLDED_ELEMENTS // (row_elements * max(1, row_step)))
    for sample in range(0, batch, batch_step):
        samples = slice(sample, sample + batch_step)
        for row in range(0, rows, max(1, row_step)):
            stop = min(rows, row + row_step)
            columns = _unfold(x[samples], (axes[0].part(row, stop), *axes[1:]))
            columns = columns.reshape(columns.shape[0], group, weights.shape[2], (stop - row) * per_row)
            np.matmul(weights, columns, out=y[samples, :, :, row * per_row : stop * per_row])
    return y


def _unfold(x: Array, axes: Sequence[WindowAxis]) -> Array:
    """Return the input elements under each window: [batch, channels, *kernel, *windows], zero in the padding."""
    shape = (*x.shape[:2], *(a.kernel for a in axes), *(a.count for a in axes))
    columns = np.zeros(shape, dtype=x.dtype)
    for tap, windows, elements in taps(axes):
        columns[after(2, *tap, *windows)] = x[after(2, *elements)]
    return columns


def per_channel(vector: Array, rank: int) -> Array:
    """Reshape a vector over channels (or a scalar) to broadcast against [batch, channels, *spatial]."""
    return vector.reshape(-1, *(1 for _ in range(rank - 2)))


# **** the operators ****


@op(
    "Conv",
    "X: T, W: T, B: T? -> Y: T",
    types={"T": FLOATS},
    attributes=CONVOLUTION_ATTRIBUTES,
    infer=lambda inference: _infer_convolution(inference, 1, 2),
)
def conv(x: Array, w: Array, b: Array | None, *, group: int, **attributes: Any) -> Array:
    """Convolution (cross-correlation) over any number of spatial axes, in groups of channels, plus bias.

    ``X`` is [batch, channels, *spatial], ``W`` [output channels, channels / group, *kernel], ``B``
    [output channels]. All windows lie inside the padded input; along each axis there are
    ``(size + pads - dilation * (kernel - 1) - 1) // stride + 1`` windows.
    """
    y = convolve(x, w, group, WindowAttributes.read(attributes, x.ndim - 2))
    if b is not None:
        y += per_channel(b, x.ndim)
    return y


def _exact(x: Array, zero_point: Array | None) -> Array:
    # Products of bytes and their sums are exact in float64 for any tensor that fits into memory, and BLAS
    # supports float64.
    return x.astype(np.float64) - (0.0 if zero_point is None else zero_point.astype(np.float64))


def _convolve_integers(
    x: Array,
    x_zero_point: Array | None,
    w: Array,
    w_zero_point: Array | None,
    group: int,
    attributes: dict[str, Any],
) -> Array:
    """Compute the exact convolution in float64. Padding has the value of the zero point: it is 0 after subtraction."""
    x_offset = None if x_zero_point is None else x_zero_point.reshape(())
    w_offset = None if w_zero_point is None else w_zero_point.reshape(-1, *(1 for _ in w.shape[1:]))
    window = WindowAttributes.read(attributes, x.ndim - 2)
    return convolve(_exact(x, x_offset), _exact(w, w_offset), group, window)


def _check_quantization(
    inference: Inference, index: int, channels: Dim | None, what: str, per: str = "output channel"
) -> None:
    """Raise GraphError unless a scale or zero point is one element or, given ``channels``, a vector over them."""
    if not inference.has(index):
        return
    shape = inference.shape(index)
    if shape is None or shape in ((), (1,)):
        return
    if channels is None:
        if len(shape) > 1 or isinstance(shape[0], int):
            raise fail(f"{what} must be a scalar, is {format_shape(shape)}")
    else:
        check_vector(inference, index, channels, what, per)


def _infer_conv_integer(inference: Inference) -> list[Shape | None]:
    w = inference.shape(1)
    _check_quantization(inference, 2, None, "x_zero_point")
    _check_quantization(inference, 3, fresh_dim() if w is None else w[0], "w_zero_point")
    return _infer_convolution(inference, 1, None)


@op(
    "ConvInteger",
    "x: T1, w: T2, x_zero_point: T1?, w_zero_point: T2? -> y: int32",
    types={"T1": _BYTES, "T2": _BYTES},
    attributes=CONVOLUTION_ATTRIBUTES,
    infer=_infer_conv_integer,
)
def conv_integer(
    x: Array,
    w: Array,
    x_zero_point: Array | None,
    w_zero_point: Array | None,
    *,
    group: int,
    **attributes: Any,
) -> Array:
    """Convolution of ``x - x_zero_point`` and ``w - w_zero_point`` with 32-bit sums, which wrap around."""
    return wrap_to_int32(_convolve_integers(x, x_zero_point, w, w_zero_point, group, attributes))


def _infer_qlinear_conv(inference: Inference) -> list[Shape | None]:
    w = inference.shape(3)
    channels = fresh_dim() if w is None else w[0]
    for index, what in ((1, "x_scale"), (2, "x_zero_point"), (6, "y_scale"), (7, "y_zero_point")):
        _check_quantization(inference, index, None, what)
    for index, what in ((4, "w_scale"), (5, "w_zero_point")):
        _check_quantization(inference, index, channels, what)
    return _infer_convolution(inference, 3, 8)


@op(
    "QLinearConv",
    "x: T1, x_scale: float32, x_zero_point: T1, w: T2, w_scale: float32, w_zero_point: T2, "
    "y_scale: float32, y_zero_point: T3, B: int32? -> y: T3",
    types={"T1": _BYTES, "T2": _BYTES, "T3": _BYTES},
    attributes=CONVOLUTION_ATTRIBUTES,
    infer=_infer_qlinear_conv,
)
def qlinear_conv(
    x: Array,
    x_scale: Array,
    x_zero_point: Array,
    w: Array,
    w_scale: Array,
    w_zero_point: Array,
    y_scale: Array,
    y_zero_point: Array,
    b: Array | None,
    *,
    group: int,
    **attributes: Any,
) -> Array:
    """Convolution of quantized tensors with a quantized result.

    ``y = saturate(round((conv(x - x_zero_point, w - w_zero_point) + B) * x_scale * w_scale / y_scale)
    + y_zero_point)``; the weights' scale and zero point may have one element per output channel.
    """
    sums = _convolve_integers(x, x_zero_point, w, w_zero_point, group, attributes)
    if b is not None:
        sums += per_channel(b, x.ndim)
    scale = x_scale.astype(np.float64).reshape(()) * w_scale.astype(np.float64) / y_scale.reshape(())
    return round_to(sums * per_channel(scale, x.ndim), y_zero_point.reshape(()), y_zero_point.dtype)
