"""``lite convert --quantize int8 --calibrate FOLDER``, and real models whose layers compute with 8-bit integers."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import catalog
import numpy as np
import pytest

import lite_core as lite_api
from lite_core.container import ModelFile
from lite_core.formats import read_model
from lite_core.ir import Graph
from lite_core.passes import optimize
from lite_onnx.writer import write
from lite_tools.quantization import METHODS, compare_outputs, quantize_model

Array = np.ndarray[Any, Any]

ROOT = Path(__file__).parents[1]
TINY = ROOT / "tests/models/goldens/tiny_conv/legacy"
INPUTS = TINY.parent / "inputs.npz"


def convert(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Convert the tiny model with the references, so that nothing is compiled."""
    command = [sys.executable, "-m", "lite_core", "convert", str(TINY), *map(str, arguments)]
    environment = {**os.environ, "LITE_BACKENDS": "host", "COLUMNS": "80"}
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder of nine samples for the tiny model."""
    with np.load(INPUTS) as given:
        inputs = {name: given[name] for name in given.files}
    (tmp_path / "samples").mkdir()
    for number in range(9):
        np.savez(tmp_path / f"samples/{number}.npz", **{n: np.roll(a, number, axis=-1) for n, a in inputs.items()})
    return tmp_path / "samples"


def test_an_onnx_file_with_quantized_layers_runs_in_onnx_runtime(folder: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    output = folder.parent / "model.onnx"
    completed = convert("-o", output, "--quantize", "int8", "--calibrate", folder, "--calibration-method", "entropy")
    assert completed.returncode == 0, completed.stderr
    lines = completed.stdout.splitlines()
    assert "layers compute with 8-bit integers" in lines[0]
    assert [line for line in lines if len(line.rstrip()) > 80 and str(output) not in line] == []
    with np.load(INPUTS) as given, np.load(TINY / "outputs.npz") as expected:
        session = onnxruntime.InferenceSession(str(output), providers=["CPUExecutionProvider"])
        names = [value.name for value in session.get_inputs()]
        found = session.run(None, {name: given[name] for name in names})
        for result, name in zip(found, expected.files, strict=True):
            error = np.abs(result - expected[name]).max() / np.abs(expected[name]).max()
            assert 0 < error < 0.05


# **** real models ****

_IS_X86 = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="this is not an x86 processor")


@cache
def plain(name: str) -> Graph:
    try:
        path = catalog.ensure(name)
    except catalog.ModelUnavailableError as error:
        pytest.skip(str(error))
    return optimize(read_model(path.model, params=path.params))[0]


@cache
def pictures(name: str, count: int) -> list[dict[str, Array]]:
    """Return variations of the example: moved, brighter or darker, mirrored, with noise."""
    (input, example), *_ = catalog.example_input(name).items()
    found = []
    for number in range(count):
        random = np.random.default_rng([7, number])
        picture = np.roll(example[:1], random.integers(0, 64, 2), axis=(2, 3)) * random.uniform(0.6, 1.2)
        picture = picture[..., ::-1] if number % 3 == 0 else picture
        noisy = picture + random.normal(0, 0.05, picture.shape) + random.uniform(-0.3, 0.3)
        found.append({input: np.ascontiguousarray(noisy, np.float32)})
    return found


def on_x86(graph: Graph) -> lite_api.Session:
    return lite_api.load(graph, backend="x86", threads=1, fallback="never")


def snr_db(graph: Graph, changed: Graph, data: Sequence[dict[str, Array]]) -> float:
    return min(each.snr_db for each in compare_outputs(graph, changed, data, make_run=lambda g: on_x86(g).run))


@pytest.mark.full("models")
def test_a_file_with_quantized_layers(folder: Path) -> None:
    output = folder.parent / "model.lite"
    completed = convert("-o", output, "--quantize", "int8", "--calibrate", folder, "--json")
    assert completed.returncode == 0, completed.stderr
    report = json.loads(completed.stdout)["quantization"]
    assert (report["method"], report["samples"], report["measured"]) == ("minmax", 9, 8)
    assert all(layer["snr_db"] > 30 for layer in report["layers"] if not layer["kept"])
    stored = json.loads(ModelFile.open(output).metadata["quantization"])
    assert stored["quantized"] == len(report["layers"]) - 1
    assert stored["kept"] == {"matmul": "its first input is a constant"}
    assert [*stored["snr_db"].values()] == [round(each["snr_db"], 2) for each in report["outputs"]]


@pytest.mark.full("models")
@_IS_X86
def test_every_layer_of_a_network_is_an_integer_kernel() -> None:
    graph = plain("mobilenet_v1-legacy")
    session = on_x86(quantize_model(graph, pictures("mobilenet_v1-legacy", 4), min_snr=-np.inf).graph)
    session.run(pictures("mobilenet_v1-legacy", 1)[0], profile=True)
    assert session.last_profile is not None
    kernels = [kernel.kernel for kernel in session.last_profile.kernels]
    assert len([name for name in kernels if "int8" in name]) == 28


@pytest.mark.full("models")
@_IS_X86
def test_the_search_brings_a_detector_above_the_limit() -> None:
    graph, data = plain("pp_ocrv4_det"), pictures("pp_ocrv4_det", 12)
    whole, searched = (quantize_model(graph, data, min_snr=limit).report for limit in (-np.inf, 25.0))
    kept = [layer for layer in searched.kept if layer.without_db is not None]
    assert whole.outputs[0].snr_db < 25 - 1
    assert searched.outputs[0].snr_db > 25 - 1  # the search runs other kernels, which round differently
    assert 0 < len(kept) < len(searched.layers) / 3


@pytest.mark.full("models")
@_IS_X86
@pytest.mark.parametrize("method", METHODS)
def test_accuracy_is_not_below_that_of_onnx_runtime(method: str, tmp_path: Path) -> None:
    quantization = pytest.importorskip("onnxruntime.quantization")
    name = "mobilenet_v3_small-legacy"
    graph, data = plain(name), pictures(name, 24)
    used, others = data[:16], data[16:]

    class Reader(quantization.CalibrationDataReader):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            self.samples = iter(used)

        def get_next(self) -> dict[str, Array] | None:
            return next(self.samples, None)

    write(graph, tmp_path / "model.onnx", opset=20)
    quantization.quantize_static(
        tmp_path / "model.onnx",
        tmp_path / "theirs.onnx",
        Reader(),
        quant_format=quantization.QuantFormat.QDQ,
        per_channel=True,
        activation_type=quantization.QuantType.QUInt8,
        weight_type=quantization.QuantType.QInt8,
        calibrate_method=getattr(quantization.CalibrationMethod, {"minmax": "MinMax"}.get(method, method.title())),
        extra_options={"CalibPercentile": 99.99},
    )
    theirs = lite_api.read_model(tmp_path / "theirs.onnx")
    ours = quantize_model(graph, used, method=method, min_snr=-np.inf).graph
    # Kernels that round differently change these figures by up to a decibel.
    assert snr_db(graph, ours, others) > snr_db(graph, theirs, others) - 1


@pytest.mark.full("models")
@_IS_X86
@pytest.mark.parametrize("backend", ["host", "onnxruntime", "opencl"])
def test_other_backends_run_quantized_models(backend: str) -> None:
    graph, data = plain("pp_ocrv4_cls"), pictures("pp_ocrv4_cls", 4)
    changed = quantize_model(graph, data, min_snr=-np.inf).graph
    try:
        session = lite_api.load(changed, backend=backend)
    except lite_api.BackendUnavailableError as error:
        pytest.skip(str(error))
    for sample in data:
        ((expected,), (found,)) = (each.run(sample).values() for each in (on_x86(changed), session))
        np.testing.assert_allclose(found, expected, atol=0.05)  # probabilities; roundings to other steps add up
