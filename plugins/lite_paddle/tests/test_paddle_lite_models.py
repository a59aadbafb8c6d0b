"""Whole networks, converted by Paddle-Lite for its targets: results of its predictor and of the original model."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from paddle_lite_wheel import convert, predict

from lite_core import load
from lite_paddle.paddle_lite.container import encode, read_model
from lite_paddle.reader.program_proto import message_class

#: Networks that Paddle-Lite's converter does not end on, once XShape of flatten is added to the first of them.
NAMES = ("mobilenet_v3_small-legacy", "squeezenet1_1-legacy", "pp_ocrv4_cls", "pp_ocrv4_det", "pp_ocrv4_rec")
TARGETS = {
    "x86": ["--valid_targets=x86"],
    "arm": ["--valid_targets=arm"],
    "arm_float16": ["--valid_targets=arm", "--enable_fp16=true"],
    "arm_weights_16": ["--valid_targets=arm", "--quant_model=true", "--quant_type=QUANT_INT16"],
    "opencl": ["--valid_targets=opencl,arm"],
}


@pytest.mark.full("paddle-lite")
@pytest.mark.parametrize("name", NAMES)
def test_networks_for_every_target(name: str, paddle_lite_python: Path, tmp_path: Path) -> None:
    catalog = _catalog()
    try:
        files = catalog.ensure(name)
        inputs = catalog.example_input(name)
    except catalog.ModelUnavailableError as error:
        pytest.skip(str(error))
    model = tmp_path / "model.pdmodel"
    model.write_bytes(_with_shapes(files.model.read_bytes()))
    (expected,) = load(str(files.model), backend="x86").run(inputs).values()
    scale = float(np.abs(expected).max())
    for target, options in TARGETS.items():
        convert(paddle_lite_python, model, files.params, tmp_path / target, options, {})
        file = tmp_path / f"{target}.nb"
        (y,) = load(str(file), backend="x86").run(inputs).values()
        # Weights of 16 bits are rounded to 1 / 32767 of the largest.
        tolerance = 1e-2 if "16" in target and "weights" in target else 1e-4
        np.testing.assert_allclose(y, expected, rtol=0, atol=tolerance * scale, err_msg=target)
    again = tmp_path / "again.nb"
    again.write_bytes(encode(read_model(tmp_path / "x86.nb")))
    for file in (tmp_path / "x86.nb", again):
        (theirs,) = predict(paddle_lite_python, file, inputs, tmp_path)
        np.testing.assert_allclose(expected, theirs, rtol=0, atol=1e-4 * scale)


def _with_shapes(program: bytes) -> bytes:
    """Return a program whose flatten_contiguous_range have the output XShape; Paddle-Lite writes to it unasked."""
    message = message_class("ProgramDesc").FromString(program)
    for block in message.blocks:
        for op in (op for op in block.ops if op.type == "flatten_contiguous_range"):
            (result,) = next(slot.arguments for slot in op.outputs if slot.parameter == "Out")
            kept = [slot for slot in op.outputs if slot.parameter != "XShape"]
            del op.outputs[:]
            op.outputs.extend(kept)
            op.outputs.add(parameter="XShape", arguments=[f"{result}.shape"])
            shape = block.vars.add()
            shape.CopyFrom(next(variable for variable in block.vars if variable.name == result))
            shape.name = f"{result}.shape"
    content: bytes = message.SerializeToString()
    return content


def _catalog() -> ModuleType:
    """Import the catalog of real models, which is no package."""
    path = Path(__file__).parents[3] / "tests/models/catalog.py"
    spec = importlib.util.spec_from_file_location("paddle_lite_catalog", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
