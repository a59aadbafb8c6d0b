"""Contents of written ONNX models: names, types, dimensions, constants, bodies, metadata; and refused graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper
from written_models import open_written, run_written

import lite_core as lite
import lite_onnx
from lite_core.builder import GraphBuilder
from lite_core.errors import GraphError, InputError, ModelFormatError, UnsupportedOperatorError
from lite_core.ir import DType, Graph, Origin, SymbolicDim
from lite_core.ops.evaluate import evaluate_graph
from lite_onnx.reader.tensors import read_tensor
from lite_onnx.writer import to_model

Array = np.ndarray[Any, Any]


def run(graph: Graph, *inputs: Array) -> list[Array]:
    """Run the written graph with ONNX Runtime, and compare with the references."""
    model = to_model(graph)
    onnx.checker.check_model(model, full_check=True)
    found = run_written(open_written(model.SerializeToString()), list(inputs))
    for result, expected in zip(found, evaluate_graph(graph, list(inputs)), strict=True):
        assert result.dtype == expected.dtype
        np.testing.assert_allclose(result.astype(np.float64), expected.astype(np.float64), rtol=1e-5, atol=1e-6)
    return found


def classifier() -> Graph:
    b = GraphBuilder("classifier")
    x = b.input("picture", "float32", ["batch", 3, "height", 8])
    weights = np.linspace(-1, 1, 4 * 3 * 3 * 3, dtype=np.float32).reshape(4, 3, 3, 3)
    y = b.add(
        "Conv",
        [x, b.constant(weights, "weights")],
        {"strides": (2, 2), "pads": (1, 1, 1, 1)},
        name="first",
        origin=Origin("conv2d", "conv_0"),
    )
    b.output(b.add("Relu", [y], output="features"), "features")
    return b.build()


# **** contents ****


def test_names_types_and_dimensions() -> None:
    model = to_model(classifier())
    (conv, relu) = model.graph.node
    assert (conv.name, conv.doc_string, relu.output[0]) == ("first", "from conv2d 'conv_0'", "features")
    assert [t.name for t in model.graph.initializer] == ["weights"]
    assert model.graph.initializer[0].raw_data
    (info,) = model.graph.value_info
    assert info.name == conv.output[0]
    dims = [d.dim_param or d.dim_value for d in model.graph.output[0].type.tensor_type.shape.dim]
    assert dims == ["batch", 4, "height_plus_1_over_2", 4]
    assert (model.ir_version, model.producer_name, model.opset_import[0].version) == (10, "lite", 22)


def test_round_trip(tmp_path: Path) -> None:
    graph = classifier()
    lite_onnx.write(graph, tmp_path / "model.onnx")
    again = lite_onnx.read(tmp_path / "model.onnx")
    x = np.random.default_rng(0).normal(size=(2, 3, 7, 8)).astype(np.float32)
    np.testing.assert_array_equal(evaluate_graph(again, [x])[0], evaluate_graph(graph, [x])[0])
    assert [n.origin.name for n in again.nodes if n.origin] == [n.name for n in graph.nodes]
    run(graph, x)


def test_different_dimensions_have_different_names() -> None:
    b = GraphBuilder("sizes")
    n = SymbolicDim.named("n")
    x, y = b.input("x", "float32", [n + 1, n, None]), b.input("y", "float32", ["n_plus_1", n + 1, None])
    b.output(b.add("Relu", [x]), "z")
    b.output(b.add("Relu", [y]), "w")
    written = [[d.dim_param for d in v.type.tensor_type.shape.dim] for v in to_model(b.build()).graph.input]
    assert written == [["n_plus_1_1", "n", "unknown"], ["n_plus_1", "n_plus_1_1", "unknown_1"]]


def test_same_graph_results_in_the_same_bytes() -> None:
    contents = []
    for _ in range(2):  # the unnamed dimension is a new symbol each time
        b = GraphBuilder("open")
        b.output(b.add("Relu", [b.input("x", "float32", [None, 3])]), "y")
        contents.append(to_model(b.build()).SerializeToString(deterministic=True))
    assert contents[0] == contents[1]


@pytest.mark.parametrize("dtype", [dtype for dtype in DType if dtype is not DType.STRING])
def test_constants_of_every_type(dtype: DType) -> None:
    elements = np.array([1, 0, 3, 2, 1]).astype(dtype.numpy)
    b = GraphBuilder("constants")
    b.output(b.constant(elements, "five"), "five")
    b.output(b.constant(elements[:0].reshape(0, 3), "none"), "none")
    model = to_model(b.build())
    onnx.checker.check_model(model, full_check=True)
    five, none = map(read_tensor, model.graph.initializer)
    np.testing.assert_array_equal(five.view(np.uint8), elements.view(np.uint8))
    assert none.shape == (0, 3)
    if not dtype.is_narrow and dtype is not DType.BFLOAT16:
        np.testing.assert_array_equal(numpy_helper.to_array(model.graph.initializer[0]), elements)


def test_outputs_that_are_inputs_constants_or_duplicates() -> None:
    b = GraphBuilder("direct")
    x = b.input("x", "float32", [3])
    graph = b.graph
    graph.outputs = [x, b.constant(np.arange(2.0), "two"), b.add("Neg", [x], output="minus")]
    graph.outputs.append(graph.outputs[-1])
    names = [output.name for output in to_model(graph).graph.output]
    assert names == ["x", "two", "minus", "minus_output"]
    run(graph, np.ones(3, np.float32))


def test_omitted_inputs_and_outputs() -> None:
    b = GraphBuilder("holes")
    x = b.input("x", "float32", [4])
    maximum = b.constant(np.float32(1))
    b.output(b.add("Clip", [x, None, maximum]), "y")
    values = b.add_node("Unique", [x], outputs=3)
    node = b.graph.nodes[-1]
    node.outputs = (values[0], None, values[2])
    b.output(values[2], "inverse")
    graph = b.build()
    clip, unique = to_model(graph).graph.node
    assert clip.input[1] == ""
    assert (unique.output[1], len(unique.output)) == ("", 3)
    run(graph, np.array([3, 1, 3, 0], np.float32))


def test_bodies_that_use_and_return_outer_values() -> None:
    b = GraphBuilder("control")
    x, flag = b.input("x", "float32", [3]), b.input("flag", "bool", [])
    branches = []
    for doubled in (True, False):
        inner = GraphBuilder("branch", outer=b)
        inner.output(inner.add("Add", [x, x]) if doubled else x)
        branches.append(inner.graph)
    y = b.add("If", [flag], {"then_branch": branches[0], "else_branch": branches[1]})
    body = GraphBuilder("body", outer=b)
    body.input("i", "int64", [])
    go_on = body.input("go_on", "bool", [])
    total = body.input("total", "float32", [3])
    body.output(go_on)
    body.output(body.add("Mul", [body.add("Add", [total, y]), body.constant(np.float32(0.5))]))
    b.output(b.add("Loop", [b.constant(np.int64(4)), None, x], {"body": body.graph}), "z")
    graph = b.build()
    for condition in (True, False):
        run(graph, np.array([1, -2, 3], np.float32), np.array(condition))


def test_attributes_of_element_types_and_empty_lists() -> None:
    b = GraphBuilder("attributes")
    x = b.input("x", "float32", [2, 2])
    b.output(b.add("Cast", [x], {"to": DType.FLOAT16}), "half")
    b.output(b.add("LeakyRelu", [x], {"alpha": 1}), "same")
    cast, leaky = to_model(b.build()).graph.node
    assert cast.attribute[0].i == TensorProto.FLOAT16
    assert leaky.attribute[0].f == 1.0
    run(b.graph, np.array([[1, -1], [0, 7]], np.float32))


def test_missing_half_types_are_computed_in_float32() -> None:
    b = GraphBuilder("halves")
    x = b.input("x", "bfloat16", [2, 5])
    b.output(b.add("Einsum", [x, x], {"equation": "ij,kj->ik"}), "y")
    model = to_model(b.build())
    assert [n.op_type for n in model.graph.node] == ["Cast", "Cast", "Einsum", "Cast"]
    run(b.graph, np.arange(10).reshape(2, 5).astype(DType.BFLOAT16.numpy))


def test_metadata_is_kept(tmp_path: Path) -> None:
    graph = classifier()
    graph.metadata.update(format="paddle", file="inference.pdmodel")
    lite_onnx.write(graph, tmp_path / "one.onnx")
    again = lite_onnx.read(tmp_path / "one.onnx")
    assert again.metadata["format"] == "onnx"
    assert again.metadata["onnx.source.format"] == "paddle"
    lite_onnx.write(again, tmp_path / "two.onnx")
    props = {p.key: p.value for p in onnx.load(tmp_path / "two.onnx").metadata_props}
    assert props == {"source.format": "paddle", "source.file": "inference.pdmodel"}


# **** files ****


def test_external_constants(tmp_path: Path) -> None:
    b = GraphBuilder("large")
    x = b.input("x", "float32", [1, 700])
    weights = np.random.default_rng(0).normal(size=(700, 30)).astype(np.float32)
    y = b.add("MatMul", [x, b.constant(weights, "first")])
    y = b.add("MatMul", [y, b.constant(np.ascontiguousarray(weights.T), "second")])
    b.output(b.add("Add", [y, b.constant(np.float32(1), "small")]), "y")
    graph = b.build()
    file = tmp_path / "model.onnx"
    lite_onnx.write(graph, file, external_data=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.onnx", "model.onnx.data"]
    entries = {
        t.name: {e.key: e.value for e in t.external_data}
        for t in onnx.load(file, load_external_data=False).graph.initializer
    }
    assert entries["small"] == {}
    assert [int(entries[name]["offset"]) % 4096 for name in ("first", "second")] == [0, 0]
    assert entries["first"]["location"] == "model.onnx.data"
    array = np.ones((1, 700), np.float32)
    expected = evaluate_graph(graph, [array])[0]
    np.testing.assert_array_equal(evaluate_graph(lite_onnx.read(file), [array])[0], expected)
    np.testing.assert_allclose(run_written(open_written(file), [array])[0], expected, rtol=1e-4, atol=1e-3)


def test_existing_file_is_kept_until_the_new_one_is_complete(tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    file.write_bytes(b"old content")
    b = GraphBuilder("plugin's")
    b.output(b.add("BipartiteMatch", [b.input("x", "float32", [3, 3])], domain="lite"), "y")
    with pytest.raises(UnsupportedOperatorError):
        lite_onnx.write(b.build(), file)
    assert file.read_bytes() == b"old content"
    lite_onnx.write(classifier(), file)
    assert lite_onnx.read(file).name == "classifier"
    assert list(tmp_path.iterdir()) == [file]


def test_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(ModelFormatError, match=r"model\.onnx"):
        lite_onnx.write(classifier(), tmp_path / "nowhere/model.onnx")


def test_rejection_by_the_checker_is_an_error() -> None:
    graph = classifier()
    graph.outputs[0].type = graph.outputs[0].type.with_shape((1, 2, 3, 4))  # the correct number of channels is 4
    with pytest.raises(GraphError, match=r"onnx\.checker(.|\n)*check=False"):
        lite_onnx.write(graph, Path("model.onnx"))
    assert not Path("model.onnx").exists()


def test_unknown_rank_is_written_unchecked(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    b = GraphBuilder("ranks")
    x, axes = b.input("x", "float32", [1, 3, 1]), b.input("axes", "int64", ["count"])
    b.output(b.add("Squeeze", [x, axes]), "y")
    lite_onnx.write(b.build(), tmp_path / "model.onnx")
    assert "not checked: the rank of y is not known" in caplog.text
    session = open_written(tmp_path / "model.onnx")
    (y,) = run_written(session, [np.ones((1, 3, 1), np.float32), np.array([0])])
    assert y.shape == (3, 1)


def test_writing_by_the_format_of_the_plugin(tmp_path: Path) -> None:
    from lite_onnx.format import OnnxFormat

    OnnxFormat().write(classifier(), tmp_path / "model.onnx", check=False)
    assert lite.read_model(tmp_path / "model.onnx").op_counts() == {"Conv": 1, "Relu": 1}


# **** older opsets ****


@pytest.mark.parametrize("opset", range(17, 22))
def test_older_opsets(opset: int) -> None:
    model = to_model(classifier(), opset=opset)
    onnx.checker.check_model(model, full_check=True)
    x = np.ones((1, 3, 4, 8), np.float32)
    (found,) = run_written(open_written(model.SerializeToString()), [x])
    np.testing.assert_allclose(found, evaluate_graph(classifier(), [x])[0], rtol=1e-5)


def test_nodes_that_an_older_opset_lacks() -> None:
    b = GraphBuilder("newer")
    x = b.input("x", "float32", [2, 4, 5])
    scale = b.constant(np.ones(4, np.float32))
    b.output(b.add("Gelu", [x], name="gelu"), "a")
    b.output(b.add("GroupNormalization", [x, scale, scale], {"num_groups": 2}, name="groups"), "b")
    b.output(b.add("ReduceMax", [x, b.ints(1)], name="maximum"), "c")
    b.output(b.add("Relu", [x], name="fine"), "d")
    graph = b.build()
    with pytest.raises(UnsupportedOperatorError) as caught:
        to_model(graph, opset=17)
    assert {problem.nodes for problem in caught.value.problems} == {("gelu",), ("groups",), ("maximum",)}
    with pytest.raises(UnsupportedOperatorError, match="groups"):
        to_model(graph, opset=20)
    to_model(graph, opset=21)


@pytest.mark.parametrize("opset", [16, 23])
def test_opsets_that_cannot_be_written(opset: int) -> None:
    with pytest.raises(InputError, match=f"{opset}"):
        to_model(classifier(), opset=opset)
