"""The nodes in which each fault is planted in real models: at least one model of pictures and one of text lines."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["PLACES"]

#: By model of the catalog and fault: an operator, and the number of the node among those of the operator.
PLACES: Mapping[str, Mapping[str, tuple[str, int]]] = {
    "mobilenet_v3_small-legacy": {
        "padding": ("Conv", 1),
        "axis": ("GlobalAveragePool", 3),
        "float16": ("Conv", 20),
        "stale": ("HardSwish", 5),
        "race": ("Conv", 25),
        "large": ("HardSwish", 0),
        "pass": ("HardSigmoid", 2),
    },
    "pp_ocrv4_rec": {
        "padding": ("Conv", 5),
        "axis": ("Softmax", 1),
        "float16": ("MatMul", 4),
        "stale": ("Add", 20),
        "race": ("Conv", 15),
        "large": ("Conv", 2),
        "pass": ("HardSigmoid", 1),
    },
}
