"""The domain ``ai.onnx``: operators and versions of them that Lite, whose opset is 22, has not."""
