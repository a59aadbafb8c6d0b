"""Models that Paddle quantized, in both formats: the same outputs as Paddle's predictor, computed with int8."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from paddle_cases import paddle_is_installed

from lite_core.errors import ModelFormatError
from lite_core.ops.evaluate import evaluate_graph
from lite_paddle.lowering import lower
from lite_paddle.reader import read
from lite_paddle.reader.parameters import load_combined
from lite_paddle.source import SourceType

FIXTURES = Path(__file__).parent / "fixtures"
MODELS = sorted((FIXTURES / "quantized").iterdir())


def check(model: Path) -> None:
    """Compare with Paddle's answer: no element of these models is half way between two integers."""
    graph = lower(read(model))
    with np.load(model / "answer.npz") as stored:
        (y,) = evaluate_graph(graph, [stored["x"]])
        np.testing.assert_allclose(y, stored["y"], rtol=1e-5, atol=1e-6)
    producers = {value: node for node in graph.nodes for value in node.outputs}
    products = [node for node in graph.nodes if node.op in ("Conv", "MatMul")]
    assert len(products) == 4
    for node in products:
        for operand in node.inputs[:2]:
            dequantize = producers[operand]
            assert dequantize.op == "DequantizeLinear", f"{node} reads {operand}"
            assert dequantize.inputs[0] is not None
            assert dequantize.inputs[0].dtype == "int8"


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_quantized_model_has_paddles_outputs(model: Path) -> None:
    check(model)


@pytest.mark.full("models")
def test_quantized_models_made_now(tmp_path: Path) -> None:
    if not paddle_is_installed():
        pytest.skip("PaddlePaddle is not installed; it quantizes the models")
    script = FIXTURES / "make_quantized.py"
    subprocess.run([sys.executable, str(script), str(tmp_path)], check=True, capture_output=True, timeout=600)
    for model in sorted((tmp_path / "quantized").iterdir()):
        check(model)


def test_other_types_of_quantized_weights_are_refused() -> None:
    """int8 is accepted for declared floats only where dequantize_linear reads them; vectors keep their length."""
    model = FIXTURES / "quantized" / "qat_onnx_format"
    program = read(model)
    names = sorted(program.parameters, key=str.encode)
    types = {name: SourceType(a.dtype.name, a.shape) for name, a in program.parameters.items()}
    weights = "conv2d_0.w_0"
    declared = {**types, weights: SourceType("float32", types[weights].shape)}
    file = model / "inference.pdiparams"
    assert load_combined(file, declared, [names], {weights})[weights].dtype == np.int8
    with pytest.raises(ModelFormatError, match=f"{weights}.*float32.*int8"):
        load_combined(file, declared, [names])
    scale = "conv2d_0.w_0.scale_0"
    for shape in ((7,), (8, 1)):
        with pytest.raises(ModelFormatError, match=scale):
            load_combined(file, {**types, scale: SourceType("float32", shape)}, [names])
