"""Trained weights stored in fewer bits, and what that costs in accuracy.

Quantize what :func:`lite_core.passes.optimize` returns: the passes fold what they can into the weights while these are
plain constants, and leave the nodes that widen stored weights alone.
"""

from __future__ import annotations

from lite_tools.quantization.accuracy import OutputAccuracy, compare_outputs
from lite_tools.quantization.schemes import SCHEMES
from lite_tools.quantization.weights import QuantizationResult, WeightRecord, quantize_weights

__all__ = [
    "SCHEMES",
    "OutputAccuracy",
    "QuantizationResult",
    "WeightRecord",
    "compare_outputs",
    "quantize_weights",
]
