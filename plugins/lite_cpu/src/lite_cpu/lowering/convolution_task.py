"""Description of a convolution, independent of the algorithm that computes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lite_cpu.chains import Chain
from lite_cpu.kernels.bfloat16_pairs import group_of_pairs
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.filters import Filters
from lite_cpu.lowering.window import Window
from lite_cpu.machine import Machine
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
        pairs: it is computed in pairs of bfloat16; the input is bfloat16, or float32 if it has separate planes.
        halves: it is computed in float16, and so is the input.
        unit: the number that multiplies the weights of float16.
    """

    window: Window
    source: Tensor
    target: Tensor
    bias: Tensor
    epilogue: Chain
    operands: tuple[Tensor, ...] = ()
    pairs: bool = False
    halves: bool = False
    unit: float = 1.0

    @property
    def panels(self) -> Callable[[Filters, Lowering], Tensor]:
        """The function that packs weights for the products of this convolution."""
        return Filters.pairs if self.pairs else Filters.halves if self.halves else Filters.panels

    def multiplies_matrices(self, machine: Machine) -> bool:
        """Return True if its weights are packed in groups of four along the depth."""
        return self.pairs and group_of_pairs(machine, self.source.shape[1] // self.window.groups) == 4
