"""The domain ``ai.onnx.ml``: what scikit-learn, LightGBM and XGBoost are exported to.

Lite has no texts. Where classes are named by texts, an output of labels holds their positions among the names, which
are in the graph's metadata as JSON under ``labels.<output>``. Importing this registers all operators.
"""

from __future__ import annotations

from importlib import import_module

#: Modules of this folder, one for each family.
FAMILIES = ("preparing", "labels", "linear", "support_vectors", "tree_ensembles", "tree_ensembles_v5")

for _family in FAMILIES:
    import_module(f"{__name__}.{_family}")
