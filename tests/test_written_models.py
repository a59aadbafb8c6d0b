"""Graphs of real Paddle models written as ONNX: ONNX Runtime agrees with Lite's references."""

from __future__ import annotations

from pathlib import Path

import catalog
import numpy as np
import object_detector
import pytest

import lite_core as lite
import lite_onnx

pytestmark = pytest.mark.full("onnx")

#: Largest difference of an output, as a share of that output's range.
TOLERANCE = 1e-4


def answers(file: Path, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    onnxruntime = pytest.importorskip("onnxruntime", reason="ONNX Runtime runs the written models")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    found: list[np.ndarray] = session.run(None, inputs)
    return found


def compare(graph: lite.Graph, inputs: dict[str, np.ndarray], file: Path) -> None:
    lite_onnx.write(graph, file)  # runs onnx.checker
    expected = lite.load(graph, backend="host").run(inputs)
    for found, truth in zip(answers(file, inputs), expected.values(), strict=True):
        assert (found.dtype, found.shape) == (truth.dtype, truth.shape)
        spread = float(truth.max()) - float(truth.min())
        assert spread > 1e-3, "the expected output is almost constant, which makes the comparison useless"
        assert float(np.abs(found.astype(np.float64) - truth).max()) / spread <= TOLERANCE


@pytest.mark.parametrize("name", catalog.NAMES)
def test_a_paddle_model(name: str, tmp_path: Path) -> None:
    try:
        files = catalog.ensure(name)
    except catalog.ModelUnavailableError as error:
        pytest.skip(str(error))
    compare(lite.read_model(files.model), catalog.example_input(name), tmp_path / "model.onnx")


def test_a_detector_with_suppression(tmp_path: Path) -> None:
    compare(object_detector.object_detector(suppress=True), object_detector.pictures(), tmp_path / "model.onnx")


def test_a_converted_file(tmp_path: Path) -> None:
    """A ``.lite`` file contains a graph after the passes, with Lite's own operators."""
    graph = object_detector.object_detector()
    lite.convert(graph, tmp_path / "model.lite", ["host"], verify=False)
    converted = lite.read_model(tmp_path / "model.lite")
    assert "lite.Swish" in converted.op_counts()
    compare(converted, object_detector.pictures(), tmp_path / "model.onnx")
