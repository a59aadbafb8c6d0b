"""The geometry of convolutions over one to three spatial dimensions: the inputs that each tap of a filter reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lite_core.ir import Node
from lite_core.ops.helpers import windows_of

__all__ = ["Axis", "OutputPhase", "axes_of", "convolution_axes", "output_phases", "transposed_axes"]

_SPATIAL = 3


class Axis(NamedTuple):
    """One spatial dimension.

    Attributes:
        size: elements of the input.
        outputs: elements of the output.
        kernel: number of taps.
        stride: elements between two windows: of the input, or of the output for a transposed convolution.
        dilation: elements between two taps.
        begin: elements of padding before the input; a transposed convolution crops them from its output.
    """

    size: int = 1
    outputs: int = 1
    kernel: int = 1
    stride: int = 1
    dilation: int = 1
    begin: int = 0

    @property
    def reach(self) -> int:
        """The number of elements that a window spans."""
        return (self.kernel - 1) * self.dilation + 1

    @property
    def is_pointwise(self) -> bool:
        """True if each window is a single element and each element has a window."""
        return self.kernel == self.stride == 1 and self.begin == 0 and self.outputs == self.size


@dataclass(frozen=True, slots=True)
class OutputPhase:
    """Outputs ``first``, ``first + stride``, ... of a transposed convolution, which use the same taps.

    Attributes:
        first: the first output.
        count: the number of outputs.
        tap: the first tap.
        taps: the number of taps; 0 if the outputs are only the bias.
        step: the step from one tap to the next.
        shifts: for each tap, the difference from the index of an output in the phase to the index of the tap's input.
    """

    first: int
    count: int
    tap: int
    taps: int
    step: int
    shifts: tuple[int, ...]


def axes_of(sizes: Sequence[Axis]) -> tuple[Axis, Axis, Axis]:
    """Return depth, height and width; missing dimensions have one element."""
    depth, height, width = [Axis()] * (_SPATIAL - len(sizes)) + list(sizes)
    return depth, height, width


def convolution_axes(node: Node) -> tuple[Axis, Axis, Axis]:
    """Return the dimensions of a convolution with known shapes."""
    return axes_of([Axis(a.size, a.count, a.kernel, a.stride, a.dilation, a.begin) for a in windows_of(node)])


def transposed_axes(node: Node) -> tuple[Axis, Axis, Axis]:
    """Return the dimensions of a ``ConvTranspose`` with known shapes."""
    return axes_of([Axis(a.count, a.size, a.kernel, a.stride, a.dilation, a.begin) for a in windows_of(node)])


def output_phases(axis: Axis) -> list[OutputPhase]:
    """Return the phases of a dimension of a transposed convolution.

    Output ``y`` sums the taps ``k`` for which ``y + begin - k * dilation`` is a multiple of the stride. Outputs that
    differ by a multiple of the stride have the same taps.
    """
    phases = []
    for first in range(min(axis.stride, axis.outputs)):
        differences = [(first + axis.begin - k * axis.dilation, k) for k in range(axis.kernel)]
        used = [(difference // axis.stride, k) for difference, k in differences if difference % axis.stride == 0]
        taps = [k for _, k in used]
        phases.append(
            OutputPhase(
                first,
                -(-(axis.outputs - first) // axis.stride),
                taps[0] if taps else 0,
                len(taps),
                taps[1] - taps[0] if len(taps) > 1 else 1,
                tuple(shift for shift, _ in used),
            )
        )
    return phases
