"""The domain ``ai.onnx.ml``, to which models of scikit-learn, LightGBM and XGBoost are exported.

Lite has no strings. If the labels of classes are strings, an output of labels contains their indices in the list of
names, which is stored as JSON in the graph's metadata under ``labels.<output>``.
"""
