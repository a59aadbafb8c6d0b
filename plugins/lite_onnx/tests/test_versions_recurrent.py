"""Old versions of RNN, GRU, LSTM and Scan, and old nodes in bodies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from versions_models import Array, OldModels, named, numbers, run_by_onnxruntime

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
SEQUENCE = numbers(3, 2, 4) / 4


@pytest.mark.parametrize("version", [1, 3, 6])
@pytest.mark.parametrize("op", GATES)
def test_recurrent_layers(op: str, version: int, tmp_path: Path) -> None:
    gates = GATES[op]
    inputs: list[Array | None] = [SEQUENCE, numbers(1, gates * 3, 4) / 16, numbers(1, gates * 3, 3) / 16]
    models = OldModels(tmp_path)
    expected = models.onnxruntime(op, 7, inputs, 2, hidden_size=3)
    found = models.lite(op, version, inputs, 2, hidden_size=3, output_sequence=1)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("spelled", "direction"), [("foward", "forward"), *((d, d) for d in ("forward", "reverse", "bidirectional"))]
)
def test_directions_of_the_first_gru(spelled: str, direction: str, tmp_path: Path) -> None:
    count = 2 if direction == "bidirectional" else 1
    inputs: list[Array | None] = [SEQUENCE, numbers(count, 9, 4) / 16, numbers(count, 9, 3) / 16]
    models = OldModels(tmp_path)
    expected = models.onnxruntime("GRU", 7, inputs, 2, hidden_size=3, direction=direction)
    found = models.lite("GRU", 1, inputs, 2, hidden_size=3, direction=spelled)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def _scan_model(is_long: bool, directions: list[int] | None) -> Any:
    """Build a Scan of running sums and clipped elements, on a batch of two sequences of up to four vectors of three."""
    vector = [3]
    body = helper.make_graph(
        [
            helper.make_node("Add", ["state", "element"], ["sum"]),
            helper.make_node("Identity", ["sum"], ["running"]),
            helper.make_node("Clip", ["element"], ["clipped"], min=-1.0, max=1.0),
        ],
        "body",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, vector) for name in ("state", "element")],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, vector) for name in ("sum", "running", "clipped")],
    )
    attributes = {} if directions is None else {"directions": directions}
    inputs = ["" if is_long else "input_0", "input_1", "input_2"]
    outputs = ["output_0", "output_1", "output_2"]
    node = helper.make_node("Scan", inputs, outputs, body=body, num_scan_inputs=1, **attributes)
    values = [
        *([] if is_long else [helper.make_tensor_value_info("input_0", TensorProto.INT64, [2])]),
        helper.make_tensor_value_info("input_1", TensorProto.FLOAT, [2, 3]),
        helper.make_tensor_value_info("input_2", TensorProto.FLOAT, [2, 4, 3]),
    ]
    shapes = [[2, 3], [2, 4, 3], [2, 4, 3]]
    results = [helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n, shape in zip(outputs, shapes)]
    graph = helper.make_graph([node], "scan", values, results)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 8)], ir_version=4)


@pytest.mark.parametrize("directions", [None, [0], [1]])
def test_scan_over_a_batch(directions: list[int] | None, tmp_path: Path) -> None:
    model, inputs = _scan_model(True, directions), named([None, numbers(2, 3), numbers(2, 4, 3)])
    for ours, theirs in zip(OldModels(tmp_path).run(model, inputs), run_by_onnxruntime(model, inputs), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


@pytest.mark.parametrize("directions", [None, [1]])
def test_scan_over_sequences_of_different_lengths(directions: list[int] | None, tmp_path: Path) -> None:
    lengths = np.array([4, 2])
    model, inputs = _scan_model(False, directions), named([lengths, numbers(2, 3), numbers(2, 4, 3)])
    found, expected = OldModels(tmp_path).run(model, inputs), run_by_onnxruntime(model, inputs)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-6)
    for ours, theirs in zip(found[1:], expected[1:], strict=True):
        assert ours.shape == theirs.shape
        for sample, length in enumerate(lengths):
            np.testing.assert_allclose(ours[sample, :length], theirs[sample, :length], rtol=1e-6)


def test_nodes_in_branches_have_the_opset_of_the_model(tmp_path: Path) -> None:
    def branch(name: str, limit: float) -> onnx.GraphProto:
        node = helper.make_node("Clip", ["input_1"], [name], max=limit)
        return helper.make_graph([node], name, [], [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3])])

    choice = helper.make_node("If", ["input_0"], ["y"], then_branch=branch("a", 0.5), else_branch=branch("b", -0.5))
    values = [
        helper.make_tensor_value_info("input_0", TensorProto.BOOL, []),
        helper.make_tensor_value_info("input_1", TensorProto.FLOAT, [2, 3]),
    ]
    graph = helper.make_graph(
        [choice], "choice", values, [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 6)], ir_version=3)
    x = numbers(2, 3)
    for condition, limit in ((True, 0.5), (False, -0.5)):
        (found,) = OldModels(tmp_path).run(model, named([np.array(condition), x]))
        np.testing.assert_array_equal(found, np.minimum(x, limit))
