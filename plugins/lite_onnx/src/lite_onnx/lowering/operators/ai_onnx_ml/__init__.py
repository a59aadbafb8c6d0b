"""The domain ``ai.onnx.ml``: what scikit-learn, LightGBM and XGBoost are exported to.

Lite has no texts. Where classes are named by texts, an output of labels holds their positions among the names, which
are in the graph's metadata as JSON under ``labels.<output>``.
"""
