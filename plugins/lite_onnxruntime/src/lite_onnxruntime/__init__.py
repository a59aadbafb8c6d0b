"""ONNX Runtime as a backend of Lite."""
