"""ConvInteger and QLinearConv: bytes minus their zero points, convolved exactly in 32 bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lite_compiler.fusion import Group
from lite_compiler.tensors import dense_strides
from lite_core.ir import DType, Value
from lite_opencl.lowering.chain_building import ChainBuilder
from lite_opencl.lowering.chaining import Epilogue
from lite_opencl.lowering.context import Lowering
from lite_opencl.lowering.convolution import bias_of, refuse_convolution, window_images
from lite_opencl.lowering.convolution_gemm import OutputGrid, emit_gemm
from lite_opencl.lowering.filters import Filters, pack_panels
from lite_opencl.lowering.quantization import round_to, single
from lite_opencl.lowering.registry import lowers
from lite_opencl.lowering.spatial_axes import convolution_axes
from lite_opencl.tensors import Tensor

__all__ = ["convolution_integer", "qlinear_convolution"]

Array = np.ndarray[Any, Any]
I32 = DType.INT32


@lowers("ConvInteger", refuse=refuse_convolution, epilogue=True)
def convolution_integer(lowering: Lowering, group: Group) -> None:
    """Lower ConvInteger: ``conv(x - x_zero_point, w - w_zero_point)``; padding is zero after the subtraction."""
    epilogue = lowering.epilogue(group, split=2)
    _emit(lowering, group, group.optional(2), 1, group.optional(3), None, epilogue)


@lowers("QLinearConv", refuse=refuse_convolution)
def qlinear_convolution(lowering: Lowering, group: Group) -> None:
    """Lower QLinearConv: the integer convolution with a bias, scaled and quantized again before it is stored."""
    x_scale, x_zero, w_scale, w_zero, y_scale, y_zero = (group.input(i) for i in (1, 2, 4, 5, 6, 7))
    spatial = len(group.output.shape) - 2
    # NOTE: sums of more than 24 bits are rounded where the device has no float64.
    real = DType.FLOAT64 if lowering.device.double else DType.FLOAT32
    chain = ChainBuilder(I32)
    scales = [
        chain.cast(chain.operand(_per_channel(lowering, value, spatial), value.dtype), real)
        for value in (x_scale, w_scale, y_scale)
    ]
    factor = chain.apply("Div", [chain.apply("Mul", scales[:2], real), scales[2]], real)
    scaled = chain.apply("Mul", [chain.cast(chain.start, real), factor], real)
    point = chain.operand(_per_channel(lowering, y_zero, spatial), y_zero.dtype)
    round_to(chain, scaled, point, group.output.dtype)
    epilogue = lowering.epilogue_of(*chain.built(), tuple(group.output.shape), split=2)
    _emit(lowering, group, x_zero, 3, w_zero, bias_of(lowering, group, 8), epilogue)


def _emit(
    lowering: Lowering,
    group: Group,
    x_zero: Value | None,
    weights: int,
    w_zero: Value | None,
    bias: Tensor | None,
    epilogue: Epilogue,
) -> None:
    """Emit the product over channels and taps; ``weights`` is the position of the weights among the inputs."""
    target = lowering.target(group.output)
    if not target.size:
        return
    axes = convolution_axes(group.head)
    images, tap_offsets = window_images(lowering, _without_zero_point(lowering, group.input(0), x_zero, 0), axes)
    w, groups = group.input(weights), int(group.attributes["group"])
    outputs, channels, *kernel = w.shape
    shape = (groups, outputs // groups, channels, *[1] * (3 - len(kernel)), *kernel)
    emit_gemm(
        lowering,
        _panels(lowering, w, w_zero, shape),
        images,
        OutputGrid.all_of(target),
        tap_offsets,
        groups=groups,
        channels=channels,
        outputs=outputs // groups,
        bias=bias,
        epilogue=epilogue,
        depth_stride=axes[0].stride,
    )


def _panels(
    lowering: Lowering, w: Value, zero: Value | None, shape: tuple[int, ...]
) -> Callable[[Lowering, int], Tensor]:
    """Return a function that packs the weights in blocks of output channels, before the run if everything is known."""
    array, point = lowering.known(w), lowering.known(zero)
    if array is None or (zero is not None and point is None):
        tensor = lowering.dense(_without_zero_point(lowering, w, zero, len(w.shape) - 1))
        filters = Filters(shape, None, None, tensor.view(shape, dense_strides(shape)))
        return lambda emitter, rows: filters.panels(emitter, rows, I32)
    known_weights, offset = array, b"" if point is None else point.tobytes()

    def pack(emitter: Lowering, rows: int) -> Tensor:
        def make() -> Array:
            wide = known_weights.astype(I32.numpy)
            if point is not None:
                wide -= point.astype(I32.numpy).reshape(-1, *[1] * (wide.ndim - 1))
            return pack_panels(wide.reshape(shape), rows, I32)

        return emitter.constant(("integer panels", rows, shape, offset), [known_weights], make)

    return pack


def _without_zero_point(lowering: Lowering, value: Value, zero: Value | None, spatial: int) -> Tensor:
    """Return an operand as 32-bit integers minus its zero point, which may be a vector over the channels."""
    chain = ChainBuilder(value.dtype)
    number = chain.cast(chain.start, I32)
    if zero is not None:
        point = chain.operand(_per_channel(lowering, zero, spatial), zero.dtype)
        chain.apply("Sub", [number, chain.cast(point, I32)])
    result = lowering.allocate(tuple(value.shape), I32)
    built, operands = chain.built()
    lowering.elementwise(built, lowering.tensor(value), operands, result)
    return result


def _per_channel(lowering: Lowering, parameter: Value, spatial: int) -> Tensor:
    """Return a scale or zero point that can be broadcast over the ``spatial`` dimensions after the channels."""
    tensor = lowering.tensor(parameter)
    if tensor.size == 1:
        return single(tensor)
    return tensor.view((*tensor.shape, *[1] * spatial), (*tensor.strides, *[0] * spatial))
