"""The geometry of convolutions."""

from __future__ import annotations

from dataclasses import dataclass

from lite_core import ops
from lite_core.ir import Node
from lite_cpu.lowering.context import Lowering
from lite_cpu.tensors import Tensor

__all__ = ["Window", "as_image", "image_strides", "kept_window", "window_of", "with_close_channels"]


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
        """One tap, at any stride: every output pixel is made of one input pixel."""
        return self.kernel == (1, 1) and self.is_unpadded


def window_of(node: Node) -> Window:
    """The geometry of a Conv whose input shape is known; automatic padding resolved."""
    attributes = ops.get(node).attributes_of(node)
    x, w, y = node.inputs[0], node.inputs[1], node.outputs[0]
    assert x is not None
    assert w is not None
    assert y is not None
    kernel = tuple(w.shape[2:])
    strides = tuple(attributes["strides"] or (1,) * len(kernel))
    dilations = tuple(attributes["dilations"] or (1,) * len(kernel))
    pads = attributes["pads"] or (0,) * (2 * len(kernel))
    auto = attributes["auto_pad"]
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        begin, end = [], []
        for n, m, k, s, d in zip(x.shape[2:], y.shape[2:], kernel, strides, dilations):
            total = max(0, (m - 1) * s + (k - 1) * d + 1 - n)
            small = total // 2
            begin.append(small if auto == "SAME_UPPER" else total - small)
            end.append(total - begin[-1])
    elif auto == "VALID":
        begin, end = [0] * len(kernel), [0] * len(kernel)
    else:
        begin, end = list(pads[: len(kernel)]), list(pads[len(kernel) :])
    if len(kernel) == 1:
        kernel, strides, dilations, begin, end = (1, *kernel), (1, *strides), (1, *dilations), [0, *begin], [0, *end]
    return Window(kernel, strides, dilations, tuple(begin), tuple(end), attributes["group"])


def kept_window(lowering: Lowering, node: Node) -> Window:
    """As :func:`window_of`, found out once for all sizes where none of them has a say in it."""
    if node.attributes.get("auto_pad", "NOTSET") in ("SAME_UPPER", "SAME_LOWER"):
        return window_of(node)
    return lowering.once(node, "window", lambda: window_of(node))


def as_image(tensor: Tensor) -> Tensor:
    """[batch, channels, width] as [batch, channels, 1, width]; images stay as they are."""
    if tensor.rank == 4:
        return tensor
    (n, c, width), (sn, sc, sw) = tensor.shape, tensor.strides
    return Tensor(tensor.storage, tensor.dtype, (n, c, 1, width), (sn, sc, width * sw, sw), tensor.offset)


def image_strides(tensor: Tensor) -> tuple[int, int, int]:
    """Elements from one image, row and pixel to the next."""
    return tensor.strides[0], tensor.strides[2], tensor.strides[3]


def with_close_channels(lowering: Lowering, source: Tensor) -> Tensor:
    """The tensor [batch, channels, ...], copied if need be so that the channels of a pixel are neighbours."""
    return source if source.strides[1] == 1 or source.shape[1] == 1 else lowering.channels_last(source)
