"""Description of a convolution, independent of the algorithm that computes it."""

from __future__ import annotations

from dataclasses import dataclass

from lite_cpu.chains import Chain
from lite_cpu.lowering.window import Window
from lite_cpu.tensors import Tensor

__all__ = ["Convolution"]


@dataclass(frozen=True, slots=True)
class Convolution:
    """A convolution of images [batch, channels, height, width] with an epilogue.

    Attributes:
        window: the geometry.
        source: the input, with any strides.
        target: the output; the channels of a pixel are contiguous.
        bias: one element for each channel of the output.
        epilogue: the chain that is applied to each output element.
        operands: the operands of the epilogue, broadcast to the shape of the target.
    """

    window: Window
    source: Tensor
    target: Tensor
    bias: Tensor
    epilogue: Chain
    operands: tuple[Tensor, ...] = ()
