"""The cases of every operator, one file per family."""

from __future__ import annotations

from importlib import import_module

__all__ = ["load"]

_FAMILIES = (
    "activation",
    "comparison",
    "control",
    "convolution",
    "cumulative",
    "detection",
    "elementwise_binary",
    "elementwise_unary",
    "gather",
    "generate",
    "lite_boxes",
    "lite_detection",
    "lite_priors",
    "lite_regions",
    "movement",
    "padding",
    "reduction",
    "scatter",
    "search",
    "shape",
    "slicing",
    "deformable_convolution",
    "determinant",
    "einsum",
    "grid_sample",
    "matmul",
    "normalization",
    "pooling",
    "quantization",
    "recurrent",
    "resize",
    "softmax",
    "transposed_convolution",
    "window",
    # Adds to the tables of the others.
    "large",
)


def load() -> None:
    """Import every family, which fills the tables."""
    for family in _FAMILIES:
        import_module(f"lite_conformance.cases.operators.{family}")
