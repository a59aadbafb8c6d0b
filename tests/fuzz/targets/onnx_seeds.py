"""Small models of ONNX, in ONNX's own text form, that together use every part of the format."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, parser

__all__ = ["seed_models"]

_HEAD = '<ir_version: 10, opset_import: ["" : 21, "own" : 1, "ai.onnx.ml" : 3, "com.microsoft" : 1]>'

_TEXTS = [
    # A convolution with dimensions that the model leaves open.
    """net (float[n,3,h,w] x) => (float y) <float[2,3,1,1] k = {1,2,3,4,5,6}> {
      c = Conv <pads = [0,0,0,0], strides = [1,1]> (x, k)
      r = Relu (c)
      p = MaxPool <kernel_shape = [2,2]> (r)
      s = Shape (p)
      f = Reshape (p, t)
      y = Softmax <axis = 1> (f)
    }""".replace("> {", ", int64[2] t = {0,-1}> {", 1),
    # Branches and a loop, whose bodies use values outside them.
    """net (bool c, float[2] x) => (float[2] y) {
      y = If (c) <then_branch = a () => (float[2] t) { t = Add (x, x) },
                  else_branch = b () => (float[2] e) { e = Neg (x) }>
    }""",
    """net (int64 n, float[2] x) => (float[2] y, float[m,2] all) <bool on = {1}> {
      y, all = Loop (n, on, x) <body = b (int64 i, bool c, float[2] s) => (bool d, float[2] t, float[2] o) {
        d = Identity (c)  t = Add (s, x)  o = Identity (t) }>
    }""",
    # A scan.
    """net (float[2] x, float[3,2] rows) => (float[2] y, float[3,2] z) {
      y, z = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] r) => (float[2] t, float[2] o) {
        t = Add (s, r)  o = Identity (t) }> (x, rows)
    }""",
    # A sequence.
    """net (float[2] x, float[3] w) => (float[5] y) {
      s = SequenceConstruct (x, w)
      y = ConcatFromSequence <axis = 0> (s)
    }""",
    # Functions that call each other, with attributes of the caller.
    """net (float[2] x) => (float[2] y) { y = own.twice <alpha = 0.5> (x) }
    <domain: "own", opset_import: ["" : 21, "own" : 1]>
    twice <alpha> (a) => (b) { c = own.leaky <alpha: float = @alpha> (a)  b = own.leaky <alpha: float = @alpha> (c) }
    <domain: "own", opset_import: ["" : 21]>
    leaky <alpha> (a) => (b) { b = LeakyRelu <alpha: float = @alpha> (a) }""",
    # Quantization and other domains.
    """net (float[2,4] x) => (float[2,4] y) <float s = {0.5}, uint8 z = {3}> {
      q = QuantizeLinear (x, s, z)
      d = DequantizeLinear (q, s, z)
      g = com.microsoft.Gelu (d)
      y = ai.onnx.ml.Normalizer <norm = "L2"> (g)
    }""",
    # Recurrent networks, resizing, einsum.
    """net (float[4,1,3] x, float[1,8,3] w, float[1,8,2] r) => (float y, float h) {
      y, h, c = LSTM <hidden_size = 2> (x, w, r)
    }""",
    """net (float[1,1,2,2] x) => (float y) <float[4] s = {1,1,2,2}> {
      u = Resize <mode = "cubic"> (x, , s)
      y = Einsum <equation = "nchw->nhwc"> (u)
    }""",
    # Shapes that are computed.
    """net (float[n,4] x) => (float y) <int64[1] two = {2}, int64 zero = {0}, int64[1] minus = {-1}> {
      s = Shape (x)
      n = Gather (s, zero)
      o = Unsqueeze (n, two_axes)
      d = Concat <axis = 0> (o, two, minus)
      r = Reshape (x, d)
      k = ConstantOfShape (d)
      y = Expand (r, s3)
    }""".replace("int64 zero", "int64[1] two_axes = {0}, int64[3] s3 = {1,2,2}, int64 zero"),
]


def seed_models() -> Iterator[tuple[onnx.ModelProto, bytes]]:
    """Yield models, each with the content of its file of tensors, and then the models that onnx brings as test data."""
    for text in _TEXTS:
        yield parser.parse_model(f"{_HEAD}\n{text}"), b""
    yield _stored_in_all_ways()
    data = Path(onnx.__file__).parent / "backend/test/data"
    for file in sorted(data.glob("*/*/model.onnx")):
        if file.stat().st_size < 4000:
            yield onnx.load(file), b""


def _stored_in_all_ways() -> tuple[onnx.ModelProto, bytes]:
    """Return a model with external, raw, sparse, packed and listed tensors."""
    elements = np.array([1, 2], np.float32)
    external = numpy_helper.from_array(elements, "external")
    external.ClearField("raw_data")
    external.data_location = TensorProto.EXTERNAL
    for key, value in (("location", "weights.bin"), ("offset", "4"), ("length", "8")):
        external.external_data.add(key=key, value=value)
    sparse = onnx.SparseTensorProto(dims=[2])
    sparse.values.CopyFrom(helper.make_tensor("sparse", TensorProto.FLOAT, [1], [3.0]))
    sparse.indices.CopyFrom(helper.make_tensor("", TensorProto.INT64, [1], [1]))
    kinds = (TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE, TensorProto.INT4, TensorProto.FLOAT8E4M3FN)
    tensors = [helper.make_tensor(f"t{kind}", kind, [2], [1, 2]) for kind in kinds]
    nodes = [helper.make_node("Cast", [tensor.name], [f"{tensor.name}_f"], to=TensorProto.FLOAT) for tensor in tensors]
    names = ["x", "external", "sparse", *(f"{tensor.name}_f" for tensor in tensors)]
    graph = helper.make_graph(
        [*nodes, helper.make_node("Sum", names, ["y"])],
        "stored",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])],
        [external, *tensors],
        sparse_initializer=[sparse],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)]), b"head" + elements.tobytes() + b"tail"
