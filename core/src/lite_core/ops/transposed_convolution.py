"""ConvTranspose: the gradient of a convolution with respect to its input, used to upsample images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lite_core.ir import Dim, Shape, fresh_dim
from lite_core.ops.convolution import (
    CONVOLUTION_ATTRIBUTES,
    convolution_kernel,
    count_elements,
    per_channel,
)
from lite_core.ops.dtypes import FLOATS
from lite_core.ops.inference import Inference, fail
from lite_core.ops.registry import op, optional
from lite_core.ops.shape_checks import check_vector, differ, format_shape
from lite_core.ops.spatial import WindowAttributes, WindowAxis, after, split_padding, taps

__all__ = ["transposed_windows"]

Array = np.ndarray[Any, Any]


def _full_size(window: WindowAttributes, axis: int, size: Dim, kernel: Dim, extra: int) -> Dim:
    """Return the number of elements that the windows of one axis cover before padding is cut off."""
    return (size - 1) * window.strides[axis] + (kernel - 1) * window.dilations[axis] + 1 + extra


def _output_padding(attributes: Mapping[str, Any], rank: int) -> tuple[int, ...]:
    given: tuple[int, ...] | None = attributes["output_padding"]
    if given is None:
        return (0,) * rank
    if len(given) != rank or any(g < 0 for g in given):
        raise fail(f"output_padding {list(given)} must have one element of at least 0 for {rank} spatial axes")
    return given


def _output_sizes(attributes: Mapping[str, Any], kernel: Sequence[Dim], sizes: Sequence[Dim]) -> Shape:
    """Return the output's spatial shape, which may be symbolic.

    Raises:
        GraphError: ``output_shape`` does not fit, or the pads cut everything off.
    """
    rank = len(kernel)
    window = WindowAttributes.read(attributes, rank)
    extra = _output_padding(attributes, rank)
    wanted: tuple[int, ...] | None = attributes["output_shape"]
    if wanted is not None:
        if len(wanted) != rank or any(w < 0 for w in wanted):
            raise fail(f"output_shape {list(wanted)} must have one size of at least 0 for {rank} spatial axes")
        return wanted
    results: list[Dim] = []
    for axis in range(rank):
        if window.auto_pad.startswith("SAME"):
            results.append(sizes[axis] * window.strides[axis])
            continue
        begin, end = window.pads[axis]
        full = _full_size(window, axis, sizes[axis], kernel[axis], extra[axis])
        result = full - begin - end
        if isinstance(result, int) and result < 0:
            raise fail(f"pads {begin} and {end} cut more off than the {full} elements of spatial axis {axis}")
        results.append(result)
    return tuple(results)


def _infer_conv_transpose(inference: Inference) -> list[Shape | None]:
    x, w, attributes = inference.shape(0), inference.shape(1), inference.attributes
    group = attributes["group"]
    kernel = convolution_kernel(x, w, attributes["kernel_shape"])
    if group < 1:
        raise fail(f"group must be at least 1, is {group}")
    if kernel is None:
        return [None]
    for shape, what in ((x and x[1], "the input"), (w and w[0], "the weights")):
        if isinstance(shape, int) and shape % group:
            raise fail(f"group {group} does not divide the {shape} channels of {what}")
    if x is not None and w is not None and differ(x[1], w[0]):
        raise fail(f"the input {format_shape(x)} has {x[1]} channels, the weights {format_shape(w)} need {w[0]}")
    channels = fresh_dim("channels") if w is None else w[1] * group
    check_vector(inference, 2, channels, "the bias", "output channel")
    batch: Dim = fresh_dim("batch") if x is None else x[0]
    sizes = tuple(fresh_dim("size") for _ in kernel) if x is None else x[2:]
    return [(batch, channels, *_output_sizes(attributes, kernel, sizes))]


def transposed_windows(
    attributes: Mapping[str, Any], kernel: Sequence[int], sizes: Sequence[int]
) -> tuple[WindowAxis, ...]:
    """Return the windows of the convolution that is transposed; they slide over the *output*.

    Args:
        attributes: those of ConvTranspose, defaults included.
        kernel: taps along each axis.
        sizes: the input's spatial shape.
    """
    rank = len(kernel)
    window = WindowAttributes.read(attributes, rank)
    extra = _output_padding(attributes, rank)
    axes = []
    for axis, output in enumerate(_output_sizes(attributes, kernel, sizes)):
        assert isinstance(output, int)
        begin, end = window.pads[axis]
        if attributes["output_shape"] is not None or window.auto_pad.startswith("SAME"):
            full = _full_size(window, axis, sizes[axis], kernel[axis], extra[axis])
            assert isinstance(full, int)
            begin, end = split_padding(full - output, attributes["auto_pad"])
        axes.append(
            WindowAxis(kernel[axis], window.strides[axis], window.dilations[axis], begin, end, output, sizes[axis])
        )
    return tuple(axes)


@op(
    "ConvTranspose",
    "X: T, W: T, B: T? -> Y: T",
    types={"T": FLOATS},
    attributes={
        **CONVOLUTION_ATTRIBUTES,
        "output_padding": optional("ints"),
        "output_shape": optional("ints"),
    },
    infer=_infer_conv_transpose,
)
def conv_transpose(x: Array, w: Array, b: Array | None, *, group: int, **attributes: Any) -> Array:
    """Transposed convolution: every input element adds a scaled copy of the kernel to the output.

    ``X`` is [batch, channels, *spatial], ``W`` [channels, output channels / group, *kernel]. Along each
    axis the output has ``stride * (size - 1) + output_padding + dilation * (kernel - 1) + 1 - pads``
    elements, ``size * stride`` with ``auto_pad`` SAME, or ``output_shape``; for the last two the pads
    follow from the size. Output elements beyond those the kernels cover are at the end and hold only the bias.
    """
    axes = transposed_windows(attributes, w.shape[2:], x.shape[2:])
    rank = len(axes)
    batch, inputs, outputs = x.shape[0], w.shape[0] // group, w.shape[1]
    y = np.zeros((batch, group, outputs, *(a.size for a in axes)), dtype=x.dtype)
    columns = x.reshape(batch, group, inputs, count_elements(x.shape[2:]))
    # [*kernel, group, outputs, inputs], so that the weights of a tap are matrices
    matrices = np.moveaxis(w.reshape(group, inputs, outputs, *w.shape[2:]), (0, 2, 1), (rank, rank + 1, rank + 2))
    matrices = np.ascontiguousarray(matrices)
    # With one input channel per group the matrix product is an outer product, and needs no BLAS calls.
    multiply = np.multiply if inputs == 1 else np.matmul
    for tap, sources, targets in taps(axes):
        contribution = multiply(matrices[tap], columns).reshape(batch, group, outputs, *x.shape[2:])
        y[after(3, *targets)] += contribution[after(3, *sources)]
    y = y.reshape(batch, group * outputs, *y.shape[3:])
    if b is not None:
        y += per_channel(b, x.ndim)
    return y
