"""Models with weights of 4 and 8 bits on x86: MatMulNBits beside ONNX Runtime, files, and conversion to int4."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import lite_core as lite
from lite_core.builder import GraphBuilder
from lite_core.container import ModelFile
from lite_core.ir import DType, Graph
from lite_tools.conversion import convert
from lite_tools.writing import write_model

Array = np.ndarray[Any, Any]

COLUMNS = 208


def n_bits_model(bits: int, block: int, *, zeros: bool = False, depth: int = 320, order: Array | None = None) -> bytes:
    """Return an ONNX model of one MatMulNBits with a bias."""
    random, blocks = np.random.default_rng(bits), -(-depth // block)
    arrays: dict[str, Array] = {"B": random.integers(0, 256, (COLUMNS, blocks, block * bits // 8), dtype=np.uint8)}
    arrays["scales"] = random.uniform(0.01, 0.03, (COLUMNS, blocks)).astype(np.float32)
    if zeros:
        arrays["zeros"] = random.integers(0, 256, (COLUMNS, -(-blocks * bits // 8)), dtype=np.uint8)
    if order is not None:
        arrays["order"] = order
    arrays["bias"] = random.standard_normal(COLUMNS).astype(np.float32)
    inputs = ["x", *(name if name in arrays else "" for name in ("B", "scales", "zeros", "order", "bias"))]
    attributes = {"K": depth, "N": COLUMNS, "bits": bits, "block_size": block}
    node = helper.make_node("MatMulNBits", inputs, ["y"], domain="com.microsoft", **attributes)
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, ["rows", s]) for n, s in (("x", depth), ("y", COLUMNS)))
    tensors = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    domains = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(helper.make_graph([node], "g", [x], [y], tensors), opset_imports=domains, ir_version=10)
    return bytes(model.SerializeToString())


def compare(content: bytes, folder: Path, depth: int = 320) -> None:
    """Assert that x86 agrees with ONNX Runtime for one row and for several."""
    path = folder / "model.onnx"
    path.write_bytes(content)
    session = lite.load(path, backend="x86", fallback="never")
    other = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    for rows in (1, 7):
        x = np.random.default_rng(rows).standard_normal((rows, depth)).astype(np.float32)
        expected = other.run(None, {"x": x})[0]
        np.testing.assert_allclose(session.run({"x": x})["y"], expected, rtol=1e-4, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("bits", [4])
def test_n_bits_agree_with_onnxruntime(bits: int, tmp_path: Path) -> None:
    compare(n_bits_model(bits, 32, zeros=True), tmp_path)


@pytest.mark.full("onnx")
@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("block", [16, 64, 128, 256])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_every_size_of_n_bits(bits: int, block: int, zeros: bool, tmp_path: Path) -> None:
    compare(n_bits_model(bits, block, zeros=zeros, depth=512), tmp_path, 512)


@pytest.mark.full("onnx")
def test_n_bits_with_reordered_columns(tmp_path: Path) -> None:
    order = np.random.default_rng(0).permutation(320) // 32
    path = tmp_path / "model.onnx"
    path.write_bytes(n_bits_model(4, 32, order=order.astype(np.int32)))
    x = np.random.default_rng(1).standard_normal((3, 320)).astype(np.float32)
    results = [lite.load(path, backend=backend).run({"x": x})["y"] for backend in ("x86", "host")]
    np.testing.assert_allclose(*results, rtol=1e-4, atol=1e-4)
    ops = lite.load(path, backend="x86").graph.op_counts()
    assert ops["Gather"] == 1
    assert ops["DequantizeLinear"] == 1


def test_weights_of_a_model_stay_in_four_bits(tmp_path: Path) -> None:
    path, content = tmp_path / "model.onnx", n_bits_model(4, 32)
    path.write_bytes(content)
    graph = lite.load(path, backend="host").graph
    assert DType.INT4 in {v.dtype for v in graph.constants}
    onnx.checker.check_model(onnx.load_from_string(content))


# **** files ****


@pytest.mark.parametrize("dtype", ["int4", "uint4"])
@pytest.mark.parametrize("shape", [(3, 5), (1,), (0, 4), (2, 8)])
def test_files_hold_two_elements_in_a_byte(dtype: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    b = GraphBuilder("nibbles")
    low = -8 if dtype == "int4" else 0
    elements = (np.arange(np.prod(shape)).reshape(shape) * 7 % 16 + low).astype(np.int8)
    b.output(b.add("DequantizeLinear", [b.constant(elements, dtype=dtype), b.constant(np.float32(0.5))]), "y")
    path = tmp_path / "model.lite"
    write_model(path, graph := b.build())
    sizes = {section.name: section.size for section in ModelFile.open(path).sections}
    assert sizes["constants/0"] == -(-elements.size // 2)
    (array,) = (a for a in ModelFile.open(path).graph().constants.values() if DType.of(a) is DType(dtype))
    np.testing.assert_array_equal(array.astype(np.int8), elements)
    np.testing.assert_array_equal(lite.load(path, backend="host").run({})["y"], elements * np.float32(0.5))
    assert graph.constants


def products() -> Graph:
    b, random = GraphBuilder("products"), np.random.default_rng(3)

    def weights(*shape: int) -> Array:
        return (random.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)

    x = b.input("x", "float32", ["n", 320])
    y = b.add("Gelu", [b.add("Gemm", [x, b.constant(weights(320, 208)), b.constant(weights(208))])])
    b.output(b.add("MatMul", [y, b.constant(weights(208, 320))]), "y")
    return b.build()


def test_converted_to_int4_runs_without_wide_weights(tmp_path: Path) -> None:
    path = tmp_path / "model.lite"
    report = convert(products(), path, ["x86"], shapes={"x": (1, 320)}, threads=1, weights="int4", prepare=True)
    assert {w.stored_as for w in report.weights} == {"int4"}
    session = lite.load(path, backend="x86", threads=1)
    x = np.random.default_rng(1).standard_normal((1, 320)).astype(np.float32)
    y = session.run({"x": x})["y"]
    assert session.file is not None
    spaces = [*session.file._mapped._unpacked.values()]
    assert len(spaces) == 2
    assert not any(space.is_filled for space in spaces), "nibbles were widened to a byte each"
    np.testing.assert_allclose(y, lite.load(path, backend="host").run({"x": x})["y"], rtol=1e-4, atol=1e-5)
