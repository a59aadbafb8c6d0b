"""QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear.

Their formulas are chains of operators of the opset: one element-wise kernel each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lite_compiler.fusion import Group
from lite_core.ir import DType, Value
from lite_opencl.lowering.chain_building import ChainBuilder, Ref
from lite_opencl.lowering.context import Lowering
from lite_opencl.lowering.registry import lowers
from lite_opencl.programs.kernel_source import KernelSource
from lite_opencl.tensors import Tensor, types_of

__all__ = ["Granularity", "dequantize", "quantize", "round_to", "rounded", "single"]

_LIMITS = {
    DType.INT8: (-128, 127),
    DType.UINT8: (0, 255),
    DType.INT16: (-32768, 32767),
    DType.UINT16: (0, 65535),
}
#: The work group that finds the extremes of a tensor.
_RANGE_LOCAL = (256, 1, 1)


# **** parts of chains ****


def rounded(chain: ChainBuilder, ref: Ref, dtype: DType) -> Ref:
    """Round a number computed in float32 to a 16-bit ``dtype``, as the reference does after each operator."""
    return chain.apply("Cast", [ref], dtype) if dtype.is_half else ref


def round_to(chain: ChainBuilder, scaled: Ref, zero_point: Ref | None, dtype: DType) -> Ref:
    """Apply ``saturate(round(scaled) + zero_point)``: ties round to even, NaN becomes the zero point."""
    real = scaled.dtype
    wide = DType.FLOAT32 if real.is_half else real
    whole = chain.apply("Round", [scaled], wide)
    number = chain.apply("Where", [chain.apply("IsNaN", [whole], DType.BOOL), chain.number(0, wide), whole], wide)
    if zero_point is not None:
        number = chain.apply("Add", [number, chain.cast(zero_point, wide)], wide)
        number = chain.cast(rounded(chain, number, real), wide)
    low, high = _LIMITS[dtype]
    return chain.cast(chain.apply("Clip", [number, chain.number(low, wide), chain.number(high, wide)], wide), dtype)


def single(tensor: Tensor) -> Tensor:
    """Return a tensor of one element as a scalar."""
    return tensor.view((), ())


class Granularity(NamedTuple):
    """The elements that share a scale and a zero point: all, those with the same index on ``axis``, or a block."""

    axis: int
    block_size: int

    @staticmethod
    def of(group: Group) -> Granularity:
        rank = len(group.input(0).shape)
        axis = int(group.attributes["axis"])
        # The default axis is 1, which a vector does not have: its only axis is 0.
        return Granularity(0 if rank == 1 and axis == 1 else axis % max(rank, 1), int(group.attributes["block_size"]))

    def spread(self, lowering: Lowering, parameter: Value, shape: Sequence[int]) -> Tensor:
        """Return a scale or zero point in a shape that can be broadcast to the tensor's shape."""
        tensor = lowering.tensor(parameter)
        if tensor.rank < 2 and tensor.size == 1:
            return single(tensor)
        if not self.block_size:
            ones = [1] * (len(shape) - self.axis - 1)
            return tensor.view((*tensor.shape, *ones), (*tensor.strides, *(0 for _ in ones)))
        return self._repeated(lowering, tensor, shape)

    def _repeated(self, lowering: Lowering, tensor: Tensor, shape: Sequence[int]) -> Tensor:
        """Copy each element to its whole block; the last block may be shorter, which strides cannot express."""
        repeated = lowering.allocate(shape, tensor.dtype)
        for block in range(tensor.shape[self.axis]):
            first = block * self.block_size
            part = repeated.slice(self.axis, first, min(self.block_size, shape[self.axis] - first))
            lowering.copy(tensor.slice(self.axis, block, 1).expand(part.shape), part)
        return repeated


# **** the operators ****


@lowers("QuantizeLinear")
def quantize(lowering: Lowering, group: Group) -> None:
    """Lower QuantizeLinear: ``saturate(round(x / scale) + zero_point)``."""
    x, scale, zero_point = group.input(0), group.input(1), group.optional(2)
    granularity, shape = Granularity.of(group), x.shape
    # The quotient of integers is a real number.
    real = x.dtype if x.dtype.is_floating else DType.FLOAT64 if lowering.device.double else DType.FLOAT32
    if x.dtype.is_floating and scale.dtype is not x.dtype:
        real = DType.FLOAT32
    chain = ChainBuilder(lowering.tensor(x).dtype)
    divisor = chain.operand(granularity.spread(lowering, scale, shape), scale.dtype)
    wide = DType.FLOAT32 if real.is_half else real
    quotient = chain.apply("Div", [chain.cast(chain.start, wide), chain.cast(divisor, wide)], wide)
    point = None
    if zero_point is not None:
        point = chain.operand(granularity.spread(lowering, zero_point, shape), zero_point.dtype)
    round_to(chain, rounded(chain, quotient, real), point, group.output.dtype)
    built, operands = chain.built()
    lowering.elementwise(built, lowering.tensor(x), operands, lowering.target(group.output))


@lowers("DequantizeLinear")
def dequantize(lowering: Lowering, group: Group) -> None:
    """Lower DequantizeLinear: ``(x - zero_point) * scale``."""
    x, scale, zero_point = group.input(0), group.input(1), group.optional(2)
    granularity, shape = Granularity.of(group), x.shape
    chain = ChainBuilder(x.dtype)
    difference = chain.start
    if zero_point is not None:
        # Differences of 16-bit integers fit in 32 bits, those of 32-bit integers do not.
        wide = DType.INT64 if x.dtype is DType.INT32 else DType.INT32
        point = chain.operand(granularity.spread(lowering, zero_point, shape), zero_point.dtype)
        difference = chain.apply("Sub", [chain.cast(difference, wide), chain.cast(point, wide)])
    factor = chain.operand(granularity.spread(lowering, scale, shape), scale.dtype)
    real = chain.cast(rounded(chain, chain.apply("Cast", [difference], DType.FLOAT32), scale.dtype), DType.FLOAT32)
    chain.apply("Mul", [real, factor], DType.FLOAT32)
    built, operands = chain.built()
    lowering.elementwise(built, lowering.tensor(x), operands, lowering.target(group.output))


@lowers("DynamicQuantizeLinear")
def dynamic_quantize(lowering: Lowering, group: Group) -> None:
    """Lower DynamicQuantizeLinear: compute scale and zero point from the extremes, then quantize."""
    x = lowering.dense(lowering.tensor(group.input(0)))
    targets = [None if v is None else lowering.target(v) for v in (*group.head.outputs, None, None)[:3]]
    y = targets[0]
    scale = targets[1] or lowering.allocate((), DType.FLOAT32)
    zero_point = targets[2] or lowering.allocate((), DType.UINT8)
    kernel = KernelSource("quantization", "quantization_range", _RANGE_LOCAL, (), types_of(X=x, S=scale))
    lowering.step(
        kernel, [scale, zero_point, x, np.int32(x.size)], _RANGE_LOCAL, results=(0, 1), flops=2 * x.size, label="range"
    )
    if y is None:
        return
    chain = ChainBuilder(x.dtype)
    divisor, point = chain.operand(scale, scale.dtype), chain.operand(zero_point, DType.UINT8)
    round_to(chain, chain.apply("Div", [chain.start, divisor], DType.FLOAT32), point, DType.UINT8)
    built, operands = chain.built()
    lowering.elementwise(built, x, operands, y)
