"""Storage of trained weights in fewer bits, and measurement of the accuracy.

Quantize the result of :func:`lite_core.passes.optimize`: the passes can fold constants into weights only while these
are plain constants. They do not change the nodes that widen stored weights.
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
