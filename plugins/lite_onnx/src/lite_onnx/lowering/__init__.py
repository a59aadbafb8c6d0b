"""Lowering of ONNX's protobuf messages to Lite's graph: :func:`lite_onnx.lowering.model.lower`."""
