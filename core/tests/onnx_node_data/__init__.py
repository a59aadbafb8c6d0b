"""The ONNX project's node test data, run against the references."""
