"""Lowering of Paddle programs to Lite's opset, one module per family of operators."""

from __future__ import annotations

from importlib import import_module

from lite_paddle.lowering.context import supported_ops
from lite_paddle.lowering.program import lower

__all__ = ["lower", "supported_ops"]

_FAMILIES = (
    "activation",
    "assignment",
    "channels",
    "constant",
    "control_flow",
    "convolution",
    "detection",
    "diagonals",
    "elementwise",
    "fake_quantization",
    "gather",
    "indexed_pooling",
    "lod_recurrent",
    "matmul",
    "normalization",
    "padding",
    "pooling",
    "quantization",
    "rearrangement",
    "recurrent",
    "reduction",
    "repetition",
    "resize",
    "running",
    "sampling",
    "search",
    "sequence",
    "shape",
    "slicing",
    "tensor_arrays",
    "transposed_convolution",
    "unary",
)

for _family in _FAMILIES:
    import_module(f"lite_paddle.lowering.{_family}")
