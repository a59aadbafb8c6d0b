"""Storage of trained weights in fewer bits, quantization of whole layers, and measurement of the accuracy.

Quantize the result of :func:`lite_core.passes.optimize`: the passes can fold constants into weights only while these
are plain constants. They do not change the nodes that widen stored weights, nor those around quantized layers.
"""

from __future__ import annotations

from lite_tools.quantization.accuracy import OutputAccuracy, compare_outputs
from lite_tools.quantization.post_training import (
    MIN_SNR,
    LayerRecord,
    QuantizationReport,
    QuantizedModel,
    quantize_model,
)
from lite_tools.quantization.ranges import METHODS
from lite_tools.quantization.schemes import SCHEMES
from lite_tools.quantization.weights import QuantizationResult, WeightRecord, quantize_weights

__all__ = [
    "METHODS",
    "MIN_SNR",
    "SCHEMES",
    "LayerRecord",
    "OutputAccuracy",
    "QuantizationReport",
    "QuantizationResult",
    "QuantizedModel",
    "WeightRecord",
    "compare_outputs",
    "quantize_model",
    "quantize_weights",
]
