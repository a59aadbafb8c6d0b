"""The domain ``ai.onnx``: operators, and versions of operators, that are not in Lite's opset 22."""
