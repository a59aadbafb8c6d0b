"""From ONNX's messages to Lite's graph: :func:`lite_onnx.lowering.model.lower`."""
