"""The geometry of convolutions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lite_core import ops
from lite_core.ir import Node
from lite_core.ops.spatial import WindowAttributes, split_padding
from lite_cpu.lowering.context import Lowering
from lite_cpu.tensors import Tensor

__all__ = ["Window", "as_image", "cached_window", "image_strides", "window_of", "with_contiguous_channels"]


@dataclass(frozen=True, slots=True)
class Window:
    """The geometry of a two-dimensional convolution; pairs are (height, width)."""

    kernel: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    begin: tuple[int, int]
    end: tuple[int, int]
    groups: int

    @property
    def is_unpadded(self) -> bool:
        return self.begin == (0, 0) == self.end

    @property
    def is_pointwise(self) -> bool:
        """True for a 1 x 1 window without padding, of any stride: each output pixel depends on one input pixel."""
        return self.kernel == (1, 1) and self.is_unpadded


def window_of(node: Node) -> Window:
    """Return the geometry of a Conv whose shapes are known, with automatic padding resolved."""
    attributes = ops.attributes_of(node)
    x, w, y = node.inputs[0], node.inputs[1], node.outputs[0]
    assert x is not None
    assert w is not None
    assert y is not None
    kernel = tuple(w.shape[2:])
    window = WindowAttributes.read(attributes, len(kernel))
    strides, dilations, pads = window.strides, window.dilations, window.pads
    if window.auto_pad.startswith("SAME"):
        totals = [
            (m - 1) * s + (k - 1) * d + 1 - n
            for n, m, k, s, d in zip(x.shape[2:], y.shape[2:], kernel, strides, dilations)
        ]
        pads = tuple(split_padding(total, window.auto_pad) for total in totals)
    geometry: list[Any] = [kernel, strides, dilations, *zip(*pads)]
    if len(kernel) == 1:
        geometry = [(missing, *one) for missing, one in zip((1, 1, 1, 0, 0), geometry)]
    kernel, strides, dilations, begin, end = geometry
    return Window(kernel, strides, dilations, begin, end, attributes["group"])


def cached_window(lowering: Lowering, node: Node) -> Window:
    """Return :func:`window_of`, computed once for all sizes unless the padding depends on sizes."""
    if node.attributes.get("auto_pad", "NOTSET") in ("SAME_UPPER", "SAME_LOWER"):
        return window_of(node)
    return lowering.cached(node, "window", lambda: window_of(node))


def as_image(tensor: Tensor) -> Tensor:
    """Return [batch, channels, width] as [batch, channels, 1, width]; images are returned unchanged."""
    if tensor.rank == 4:
        return tensor
    (n, c, width), (sn, sc, sw) = tensor.shape, tensor.strides
    return Tensor(tensor.storage, tensor.dtype, (n, c, 1, width), (sn, sc, width * sw, sw), tensor.offset)


def image_strides(tensor: Tensor) -> tuple[int, int, int]:
    """Return the strides of images, rows and pixels, in elements."""
    return tensor.strides[0], tensor.strides[2], tensor.strides[3]


def with_contiguous_channels(lowering: Lowering, source: Tensor) -> Tensor:
    """Return the tensor [batch, channels, ...], copied if necessary to make the channels of a pixel contiguous."""
    return source if source.strides[1] == 1 or source.shape[1] == 1 else lowering.channels_last(source)
