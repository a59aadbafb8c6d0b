"""What there is to do in a convolution, whichever algorithm does it."""

from __future__ import annotations

from dataclasses import dataclass

from lite_cpu.chains import Chain
from lite_cpu.lowering.window import Window
from lite_cpu.tensors import Tensor

__all__ = ["Convolution"]


@dataclass(frozen=True, slots=True)
class Convolution:
    """A convolution of images [batch, channels, height, width], and what is done to its result.

    Attributes:
        window: the geometry.
        source: the input, with any strides.
        target: the output; the channels of a pixel are neighbours.
        bias: one element for each channel of the output.
        epilogue: what is done to each output element.
        operands: what the epilogue reads, broadcast to the shape of the target.
    """

    window: Window
    source: Tensor
    target: Tensor
    bias: Tensor
    epilogue: Chain
    operands: tuple[Tensor, ...] = ()
