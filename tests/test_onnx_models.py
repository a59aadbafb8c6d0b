"""Real ONNX models of five exporters, compared with ONNX Runtime on the same inputs.

A difference is measured as a share of the output's range, or of 1 for probabilities. The outputs of models that round
activations to 8 bits are only defined up to that rounding, see :func:`rounding_noise`.
"""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx_catalog
import pytest

import lite_core as lite

onnxruntime = pytest.importorskip("onnxruntime", reason="ONNX Runtime computes the expected outputs")

pytestmark = pytest.mark.full("onnx")

Array = np.ndarray[Any, Any]

#: The largest difference of an output in float32, as a share of its range.
TOLERANCE = 1e-4
#: Greatest multiple of :func:`rounding_noise` that an 8-bit model may differ by. Two outputs that each differ from the
#: exact one by the noise are at most twice as far from each other.
MAX_NOISE = 2.0
#: The sampling rate, an input, selects a branch: the other branch is never planned.
BRANCHES = {"silero_vad", "silero_vad_no_if"}
#: Models that NumPy's references run in reasonable time.
ON_HOST = sorted(set(onnx_catalog.MODELS) - {"rapidocr_det", "ppocr_v3_det", "ddddocr_det", "opennsfw"})

needs_x86 = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="this is not an x86 processor")
every_model = pytest.mark.parametrize("name", onnx_catalog.MODELS)


def file_of(name: str) -> Path:
    """Return the file of a model; the test is skipped if its wheel is not installed."""
    try:
        return onnx_catalog.ensure(name)
    except onnx_catalog.ModelUnavailableError as error:
        pytest.skip(str(error))


@cache
def reference(name: str) -> Any:
    """Return a session of ONNX Runtime with the model."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(file_of(name)), options, providers=["CPUExecutionProvider"])


def onnxruntime_outputs(name: str, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return the outputs of ONNX Runtime."""
    session = reference(name)
    return dict(zip((output.name for output in session.get_outputs()), session.run(None, dict(inputs))))


def rounding_noise(name: str, inputs: Mapping[str, Array], output: str) -> float:
    """Return the change of ONNX Runtime's own output when the inputs change by a few parts in a million.

    Such a change is within the precision of float32, but it moves some activations to the next of 256 steps. The effect
    of one step on the output depends on all the weights that follow, so it is measured.
    """
    exact = onnxruntime_outputs(name, inputs)[output]
    changed = [{key: array * np.float32(1 + share) for key, array in inputs.items()} for share in (1e-6, -1e-6, 3e-6)]
    return max(float(np.abs(onnxruntime_outputs(name, other)[output] - exact).max()) for other in changed)


def assert_agrees(name: str, inputs: Mapping[str, Array], outputs: Mapping[str, Array]) -> None:
    """Assert that every output agrees with ONNX Runtime's."""
    model, expected = onnx_catalog.MODELS[name], onnxruntime_outputs(name, inputs)
    assert list(outputs) == list(expected)
    for output, wanted in expected.items():
        found = outputs[output]
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        difference = float(np.abs(found.astype(np.float64) - wanted).max())
        if model.quantized:
            assert difference <= MAX_NOISE * rounding_noise(name, inputs, output), output
            assert np.array_equal(found.argmax(-1), wanted.argmax(-1)), f"{output}: another text is read"
            continue
        extent = 1.0 if model.probabilities else float(np.ptp(wanted))
        assert extent > 1e-3, f"{output} is almost constant, which makes the comparison useless"
        assert difference <= TOLERANCE * extent, output


@needs_x86
@pytest.mark.parametrize("threads", [1, 2])
@every_model
def test_model_matches_onnx_runtime(name: str, threads: int) -> None:
    session = lite.load(file_of(name), backend="x86", threads=threads)
    for sizes in onnx_catalog.MODELS[name].sizes:
        inputs = onnx_catalog.MODELS[name].inputs(**sizes)
        assert_agrees(name, inputs, session.run(inputs))


@needs_x86
@every_model
def test_model_is_one_native_program(name: str) -> None:
    model = onnx_catalog.MODELS[name]
    session = lite.load(file_of(name), backend="x86", threads=1)
    inputs = model.inputs(**model.sizes[0])
    profile = lite.RunProfile()
    session.run(inputs, profile=profile)
    assert profile.kernels
    if name in BRANCHES:
        assert [p.device for p in profile.partitions].count("host") == 1, "host runs more than the choice of the branch"
    else:
        assert {a.device for a in session.assignment()} == {"x86"}
        assert len(profile.partitions) == 1


@pytest.mark.parametrize("name", ON_HOST)
def test_references_match_onnx_runtime(name: str) -> None:
    model = onnx_catalog.MODELS[name]
    inputs = model.inputs(**model.sizes[-1])
    assert_agrees(name, inputs, lite.load(file_of(name), backend="host").run(inputs))


@needs_x86
@every_model
def test_converted_model_gives_the_same_bits(name: str, tmp_path: Path) -> None:
    model, converted = onnx_catalog.MODELS[name], tmp_path / "model.lite"
    inputs = model.inputs(**model.sizes[-1])
    shapes = [f"{key}={'x'.join(map(str, array.shape))}" for key, array in inputs.items() if array.ndim]
    options = [option for shape in shapes for option in ("-s", shape)]
    if name in BRANCHES:
        options.append("--allow-fallback")
    command = ["convert", file_of(name), "-o", converted, "--targets", "x86", "--no-verify", *options]
    done = subprocess.run([sys.executable, "-m", "lite_core", *map(str, command)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    expected = lite.load(file_of(name), backend="x86", threads=1).run(inputs)
    found = lite.load(converted, backend="x86", threads=1).run(inputs)
    assert list(found) == list(expected)
    for output, array in expected.items():
        np.testing.assert_array_equal(found[output], array, strict=True)
