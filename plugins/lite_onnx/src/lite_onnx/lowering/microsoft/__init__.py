"""The domain ``com.microsoft``: operators that ONNX Runtime's optimiser and exporters write into models.

Their meaning is in ONNX Runtime's ContribOperators.md. Importing this registers all of them.
"""

from __future__ import annotations

from importlib import import_module

#: Modules of this folder, one for each family.
FAMILIES = (
    "activations",
    "products",
    "normalizations",
    "rotary",
    "attentions",
    "group_query",
    "quantized",
    "block_quantized",
    "others",
)

for _family in FAMILIES:
    import_module(f"{__name__}.{_family}")
