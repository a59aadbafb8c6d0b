"""The ONNX project's node test data as operator cases.

ONNX 1.17 contains about 1,300 models of one or a few nodes, each with inputs and expected outputs, which are
independent of Lite's references. Reading them needs the package ``onnx`` (``lite-conformance[onnx]``).
"""
