"""Lowering of ConvInteger with one input channel and one output channel in each group."""

from __future__ import annotations

import numpy as np

from lite_compiler.fusion import Group
from lite_core.ir import DType
from lite_cpu.kernels.depthwise_dots import DepthwiseDots, DepthwiseDotsShape, pack_depthwise_dots
from lite_cpu.kernels.depthwise_int8 import DepthwiseInt8, DepthwiseInt8Shape, pack_depthwise_int8
from lite_cpu.kernels.int8_tiles import LeftSide
from lite_cpu.kernels.integer_dots import INT16_PAIRS, DotForm, is_x86
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.int8_operands import Array, subtract_zero_point, zero_point
from lite_cpu.lowering.int8_products import ITEM_OPERATIONS
from lite_cpu.lowering.shape import input_of, required_input
from lite_cpu.lowering.window import Window, as_image, image_strides
from lite_cpu.tensors import Tensor

__all__ = ["emit_depthwise"]

#: Maximum number of elements of a window, and of pixels between windows, that are unrolled.
_MAX_ELEMENTS, _MAX_STRIDE = 25, 2


def emit_depthwise(lowering: Lowering, group: Group, window: Window, source: Tensor, target: Tensor) -> None:
    """Emit a convolution whose weights are known, on channels-last images."""
    node = group.head
    x = required_input(node)
    w, zero = lowering.known(node.inputs[1]), lowering.known(input_of(node, 3))
    assert w is not None
    point = None if zero is None else zero.reshape((-1, *(1 for _ in w.shape[1:])))
    weights = subtract_zero_point(w, point).reshape(w.shape[0], 1, *window.kernel)
    sources = [w] if zero is None else [w, zero]
    epilogue, others = lowering.epilogue(group, group.output.shape, axis=1)
    operands = [as_image(tensor) for tensor in others]
    strides = [image_strides(t) for t in operands]
    flops = 2 * target.size * window.kernel[0] * window.kernel[1]
    points, lanes = zero_point(lowering, input_of(node, 2), x.dtype), lowering.machine.lanes()
    batch, channels, height, width = source.shape
    sizes = batch, height, width, target.shape[2], target.shape[3], channels
    form = _dot_form(lowering, window, weights)
    if form is not None:
        packed = lowering.packed(
            ("int8 depthwise dots", form, lanes), sources, lambda: pack_depthwise_dots(weights, form, lanes)
        )
        sums = lowering.packed(("int8 depthwise sums", lanes), sources, lambda: _sums(weights, lanes))
        dots = DepthwiseDotsShape(
            *sizes, *image_strides(source), *image_strides(target), *window.begin, window.strides[0],
            window.dilations[0], packed.shape[2],
        )  # fmt: skip
        lowering.step(
            DepthwiseDots(LeftSide(x.dtype, form), epilogue, window.kernel, window.strides[1]),
            [source, points, packed, sums, target, *operands],
            dots.params(strides), dots.items, _grain(dots.items, flops), flops=flops, label="depthwiseint8",
            scratch_bytes=dots.scratch_bytes,
        )  # fmt: skip
        return
    packed = lowering.packed(("int8 depthwise", lanes), sources, lambda: pack_depthwise_int8(weights, lanes))
    shape = DepthwiseInt8Shape(
        *sizes, *image_strides(source), *image_strides(target),
        *window.begin, *window.kernel, *window.strides, *window.dilations, packed.shape[1],
    )  # fmt: skip
    lowering.step(
        DepthwiseInt8(x.dtype, epilogue), [source, points, packed, target, *operands],
        shape.params(strides), shape.items, _grain(shape.items, flops), flops=flops,
    )  # fmt: skip


def _dot_form(lowering: Lowering, window: Window, weights: Array) -> DotForm | None:
    """Return the form of dot products that multiply the columns of the window; None if there is none.

    On ARM, bytes take several instructions to become the groups of a dot product.
    """
    machine = lowering.machine
    is_small = window.kernel[0] * window.kernel[1] <= _MAX_ELEMENTS and window.strides[1] <= _MAX_STRIDE
    if not is_x86(machine) or not is_small or window.dilations[1] != 1:
        return None
    fits = weights.min(initial=0) >= -128 and weights.max(initial=0) <= 127
    return DotForm(DType.UINT8, DType.INT8) if machine.dot_product and fits else INT16_PAIRS


def _sums(weights: Array, lanes: int) -> Array:
    """Return the sum of each channel's weights, padded to whole vectors."""
    channels = weights.shape[0]
    sums = np.zeros(-(-channels // lanes) * lanes, np.int32)
    sums[:channels] = weights.sum((1, 2, 3), dtype=np.int32)
    return sums


def _grain(items: int, flops: int) -> int:
    return max(1, ITEM_OPERATIONS * items // max(1, flops))
