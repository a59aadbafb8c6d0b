"""Finding operators by their names. The modules of families are imported when the first look-up needs them."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from lite_core.ops.registry import REGISTRY, OpDef

__all__ = ["all_ops", "find"]

#: The modules that define operators, those with the most common operators first.
_FAMILIES = (
    "convolution",
    "activation",
    "elementwise_binary",
    "elementwise_unary",
    "normalization",
    "pooling",
    "matmul",
    "shape",
    "movement",
    "reduction",
    "softmax",
    "slicing",
    "gather",
    "resize",
    "quantization",
    "comparison",
    "control",
    "detection",
    "lite_beams",
    "lite_boxes",
    "lite_detection",
    "lite_forest",
    "lite_locality",
    "lite_priors",
    "lite_regions",
    "lite_sequences",
    "lite_statistics",
    "cumulative",
    "determinant",
    "scatter",
    "generate",
    "grid_sample",
    "einsum",
    "transposed_convolution",
    "deformable_convolution",
    "padding",
    "recurrent",
    "quantized_recurrent",
    "search",
    "window",
    "rms_normalization",
    "rotary",
    "attention",
    "cache_update",
    "fourier",
    "random_numbers",
    "ngrams",
    "strings",
    "tensor_lists",
)


def find(op_type: str, domain: str = "") -> OpDef | None:
    """Return the operator, or None if the opset does not have it.

    Families are imported in order until one defines the operator, so rare families cost no import time. They define no
    operators of other domains, which are those of plugins.
    """
    key = (domain, op_type)
    for family in _FAMILIES if domain in ("", "lite") else ():
        if key in REGISTRY:
            break
        import_module(f"lite_core.ops.{family}")
    return REGISTRY.get(key)


def all_ops() -> Iterator[OpDef]:
    """Iterate over all operators, sorted by domain and name."""
    for family in _FAMILIES:
        import_module(f"lite_core.ops.{family}")
    return iter(sorted(REGISTRY.values(), key=lambda d: (d.domain, d.name)))
