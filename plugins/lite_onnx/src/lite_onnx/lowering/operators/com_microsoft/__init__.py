"""The domain ``com.microsoft``: operators that ONNX Runtime's optimizer and exporters write into models.

They are specified in ONNX Runtime's ContribOperators.md.
"""
