"""The geometry of convolutions over one to three spatial dimensions: which inputs the taps of a filter meet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lite_core import ops
from lite_core.ir import Node
from lite_core.ops.spatial import WindowAttributes, split_padding

__all__ = ["Axis", "OutputPhase", "axes_of", "convolution_axes", "output_phases", "transposed_axes"]

_SPATIAL = 3


class Axis(NamedTuple):
    """One spatial dimension.

    Attributes:
        size: elements of the input.
        outputs: elements of the output.
        kernel: taps.
        stride: elements between two windows: of the input, or for a transposed convolution of the output.
        dilation: elements between two taps.
        begin: elements of padding before the first; a transposed convolution cuts them off its output.
    """

    size: int = 1
    outputs: int = 1
    kernel: int = 1
    stride: int = 1
    dilation: int = 1
    begin: int = 0

    @property
    def reach(self) -> int:
        """Elements that a window spans."""
        return (self.kernel - 1) * self.dilation + 1

    @property
    def is_plain(self) -> bool:
        """Every element is a window."""
        return self.kernel == self.stride == 1 and self.begin == 0 and self.outputs == self.size


@dataclass(frozen=True, slots=True)
class OutputPhase:
    """Outputs ``first``, ``first + stride``, ... of a transposed convolution, which the same taps reach.

    Attributes:
        first: the first output.
        count: how many there are.
        tap: the first of the taps; they are ``step`` apart.
        taps: how many; 0 where the outputs are all bias.
        step: from one tap to the next.
        shifts: for each tap, from the number of an output in the phase to the input that the tap meets.
    """

    first: int
    count: int
    tap: int
    taps: int
    step: int
    shifts: tuple[int, ...]


def axes_of(sizes: Sequence[Axis]) -> tuple[Axis, Axis, Axis]:
    """Depth, height and width; dimensions that are not there have one element."""
    depth, height, width = [Axis()] * (_SPATIAL - len(sizes)) + list(sizes)
    return depth, height, width


def convolution_axes(node: Node, weights: int = 1) -> tuple[Axis, Axis, Axis]:
    """The dimensions of a convolution whose shapes are known; ``weights`` is their position among its inputs."""
    sizes, outputs, kernel, window = _read(node, weights)
    axes = []
    for i, (size, count, taps) in enumerate(zip(sizes, outputs, kernel)):
        axis = Axis(size, count, taps, window.strides[i], window.dilations[i], window.pads[i][0])
        if window.auto_pad.startswith("SAME"):
            begin, _ = split_padding((count - 1) * axis.stride + axis.reach - size, window.auto_pad)
            axis = axis._replace(begin=begin)
        axes.append(axis)
    return axes_of(axes)


def transposed_axes(node: Node) -> tuple[Axis, Axis, Axis]:
    """The dimensions of a ``ConvTranspose`` whose shapes are known."""
    attributes = ops.get(node).attributes_of(node)
    sizes, outputs, kernel, window = _read(node)
    extra = attributes["output_padding"] or (0,) * len(kernel)
    axes = []
    for i, (size, count, taps) in enumerate(zip(sizes, outputs, kernel)):
        axis = Axis(size, count, taps, window.strides[i], window.dilations[i], window.pads[i][0])
        if attributes["output_shape"] is not None or window.auto_pad.startswith("SAME"):
            full = (size - 1) * axis.stride + axis.reach + extra[i]
            begin, _ = split_padding(full - count, attributes["auto_pad"])
            axis = axis._replace(begin=begin)
        axes.append(axis)
    return axes_of(axes)


def output_phases(axis: Axis) -> list[OutputPhase]:
    """The phases of a dimension of a transposed convolution.

    Output ``y`` is made of the taps ``k`` for which ``y + begin - k * dilation`` is a multiple of the stride: those
    that differ by a multiple of the stride have them in common.
    """
    phases = []
    for first in range(min(axis.stride, axis.outputs)):
        distances = [(first + axis.begin - k * axis.dilation, k) for k in range(axis.kernel)]
        met = [(distance // axis.stride, k) for distance, k in distances if distance % axis.stride == 0]
        taps = [k for _, k in met]
        phases.append(
            OutputPhase(
                first,
                -(-(axis.outputs - first) // axis.stride),
                taps[0] if taps else 0,
                len(taps),
                taps[1] - taps[0] if len(taps) > 1 else 1,
                tuple(shift for shift, _ in met),
            )
        )
    return phases


def _read(node: Node, weights: int = 1) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], WindowAttributes]:
    """Sizes of the input, the output and the filter, and the window."""
    x, w, y = node.inputs[0], node.inputs[weights], node.outputs[0]
    assert x is not None
    assert w is not None
    assert y is not None
    kernel = tuple(w.shape[2:])
    window = WindowAttributes.read(ops.get(node).attributes_of(node), len(kernel))
    return tuple(x.shape[2:]), tuple(y.shape[2:]), kernel, window
