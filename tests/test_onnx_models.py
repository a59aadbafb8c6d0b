"""Real ONNX models, by five exporters, against ONNX Runtime on the same inputs.

A difference counts as a share of the output's range, or of 1 where the output is a probability. What a model that
rounds activations to 8 bits answers is only defined up to that rounding, see :func:`rounding_noise`.
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

onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime gives the answers: requirements-test.txt has it")

Array = np.ndarray[Any, Any]

#: The largest difference of an output in float32, as a share of its range.
TOLERANCE = 1e-4
#: As many times :func:`rounding_noise` may a model that rounds to 8 bits be away. Two answers that are each one such
#: change away from the exact one are at most twice as far from each other.
MOST_NOISE = 2.0
#: The sampling rate, an input, says which branch is taken: what is not taken is planned nowhere.
BRANCHES = {"silero_vad", "silero_vad_no_if"}
#: References of NumPy: the large ones take their time.
ON_HOST = sorted(set(onnx_catalog.MODELS) - {"rapidocr_det", "ppocr_v3_det", "ddddocr_det", "opennsfw"})

needs_x86 = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="this is not an x86 processor")
every_model = pytest.mark.parametrize("name", onnx_catalog.MODELS)


def file_of(name: str) -> Path:
    """The file of a model; the test is skipped where its wheel is not installed."""
    try:
        return onnx_catalog.ensure(name)
    except onnx_catalog.ModelUnavailableError as error:
        pytest.skip(str(error))


@cache
def reference(name: str) -> Any:
    """ONNX Runtime with the model."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(file_of(name)), options, providers=["CPUExecutionProvider"])


def answer(name: str, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """What ONNX Runtime gives."""
    session = reference(name)
    return dict(zip((output.name for output in session.get_outputs()), session.run(None, dict(inputs))))


def rounding_noise(name: str, inputs: Mapping[str, Array], output: str) -> float:
    """How far ONNX Runtime's own answer moves when the inputs change by a few parts in a million.

    Such a change is within what float32 leaves open, but it takes some activations to the next of 256 steps. How much
    one step is worth in the output depends on all the weights that follow, so it is measured.
    """
    exact = answer(name, inputs)[output]
    changed = [{key: array * np.float32(1 + share) for key, array in inputs.items()} for share in (1e-6, -1e-6, 3e-6)]
    return max(float(np.abs(answer(name, other)[output] - exact).max()) for other in changed)


def assert_agrees(name: str, inputs: Mapping[str, Array], outputs: Mapping[str, Array]) -> None:
    """Hold every output to ONNX Runtime's."""
    model, expected = onnx_catalog.MODELS[name], answer(name, inputs)
    assert list(outputs) == list(expected)
    for output, right in expected.items():
        found = outputs[output]
        assert (found.shape, found.dtype) == (right.shape, right.dtype)
        away = float(np.abs(found.astype(np.float64) - right).max())
        if model.quantized:
            assert away <= MOST_NOISE * rounding_noise(name, inputs, output), output
            assert np.array_equal(found.argmax(-1), right.argmax(-1)), f"{output}: another text is read"
            continue
        extent = 1.0 if model.probabilities else float(np.ptp(right))
        assert extent > 1e-3, f"{output} is almost constant: comparing with it proves nothing"
        assert away <= TOLERANCE * extent, output


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
        assert [p.device for p in profile.partitions].count("host") == 1, "only the choice of the branch is left to it"
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
