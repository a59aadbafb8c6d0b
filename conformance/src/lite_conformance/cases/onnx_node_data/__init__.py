"""The ONNX project's own node test data as operator cases.

ONNX 1.17 carries about 1,300 models of a node or a few, each with inputs and the outputs that they must give:
answers that nobody here has computed. Reading them needs the package ``onnx`` (``lite-conformance[onnx]``).
"""
