"""ImageDecoder, which is an operator of this plugin."""

from __future__ import annotations

from collections.abc import Sequence

from lite_core import ops
from lite_onnx.image_decoder import DOMAIN, IMAGE_DECODER
from lite_onnx.lowering.context import Context
from lite_onnx.lowering.node import Item, SourceNode
from lite_onnx.lowering.registry import lowers


@lowers("ImageDecoder")
def image_decoder(node: SourceNode, context: Context) -> Sequence[Item]:
    """Lower to the plugin's operator."""
    ops.add(IMAGE_DECODER)  # programs may read models by lite_onnx.read, without loading plugins
    return [context.add("ImageDecoder", [context.value(node, 0)], node.attributes, domain=DOMAIN)]
