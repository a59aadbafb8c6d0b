"""The domain ``com.microsoft``: operators that ONNX Runtime's optimiser and exporters write into models.

Their meaning is in ONNX Runtime's ContribOperators.md.
"""
