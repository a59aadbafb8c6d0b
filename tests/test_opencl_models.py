"""Whole models on the backend ``opencl``: correct in float32, read from a ``.lite`` file and without one.

The expected outputs are those of lite_core's references in float64, on the original model.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import catalog
import numpy as np
import pytest
from line_recogniser import line_recogniser, lines
from object_detector import object_detector, pictures
from sentence_encoder import sentence_encoder, sentences

import lite_core as lite
from lite_conformance.judge.oracle import in_float64
from lite_core.backend import Unavailable
from lite_core.formats import read_model
from lite_core.ir import Graph
from lite_core.ops.evaluate import evaluate_graph
from lite_core.plugins import available_backends, default_plugins

pytestmark = pytest.mark.full("models")

Array = np.ndarray[Any, Any]

#: The largest difference of an output from the expected one, as a share of that output's range.
TOLERANCE = 1e-3

#: Graphs shaped like well-known networks that are not in the catalog: their builders and inputs.
GRAPHS: dict[str, tuple[Callable[[], Graph], Callable[..., dict[str, Array]]]] = {
    "sentence_encoder": (sentence_encoder, sentences),
    "object_detector": (object_detector, pictures),
    "line_recogniser": (line_recogniser, lines),
}

#: PIR programs contain the same networks; reading them needs no device.
NAMES = (*(name for name in catalog.NAMES if not name.endswith("-pir")), *GRAPHS)

#: Models that run on the device as a single partition.
ONE_PARTITION = [name for name in NAMES if name in GRAPHS or name.partition("-")[0] in catalog.VISION]


@pytest.fixture(autouse=True)
def device() -> None:
    """Skip the tests if there is no device."""
    found = available_backends(default_plugins())["opencl"].probe()
    if isinstance(found, Unavailable):
        pytest.skip(f"{found.reason}. {found.remedy}")


@cache
def model(name: str) -> Graph:
    """Return a model of the catalog or of :data:`GRAPHS`; the test is skipped if it cannot be made here."""
    if name in GRAPHS:
        return GRAPHS[name][0]()
    try:
        path = catalog.ensure(name)
    except catalog.ModelUnavailableError as error:
        pytest.skip(str(error))
    return read_model(path.model, params=path.params)


def example(name: str) -> dict[str, Array]:
    """Return inputs for a model."""
    return GRAPHS[name][1]() if name in GRAPHS else catalog.example_input(name)


@cache
def truth(name: str) -> dict[str, Array]:
    """Return the expected outputs of a model."""
    return in_float64_outputs(model(name), example(name))


def in_float64_outputs(graph: Graph, inputs: dict[str, Array]) -> dict[str, Array]:
    """Return the outputs of a graph, computed by its references in float64."""
    wide = in_float64(graph)
    arrays = [inputs[v.name].astype(v.dtype.numpy) for v in wide.inputs]
    return dict(zip((v.name for v in graph.outputs), evaluate_graph(wide, arrays)))


def assert_close(outputs: dict[str, Array], expected: dict[str, Array]) -> None:
    """Assert that every output is within :data:`TOLERANCE`."""
    assert list(outputs) == list(expected)
    for name, array in expected.items():
        assert outputs[name].shape == array.shape
        spread = float(array.max()) - float(array.min())
        assert spread > 1e-3, f"{name} is almost constant, which makes the comparison useless"
        assert float(np.abs(outputs[name] - array).max()) <= TOLERANCE * spread, name


@pytest.mark.parametrize("name", NAMES)
def test_model_is_exact_and_repeatable(name: str) -> None:
    session = lite.load(model(name), "opencl")
    first = session.run(example(name))
    assert_close(first, truth(name))
    again = session.run(example(name))
    assert all(np.array_equal(array, again[output]) for output, array in first.items())


@pytest.mark.parametrize("name", ONE_PARTITION)
def test_model_is_one_partition(name: str) -> None:
    session = lite.load(model(name), "opencl", fallback="never")
    profile = lite.RunProfile()
    session.run(example(name), profile=profile)
    assert len(profile.partitions) == 1
    assert len(profile.copies) == len(session.inputs) + len(session.outputs)


SIZES: dict[str, list[dict[str, int]]] = {
    "sentence_encoder": [{"batch": 1, "length": 1}, {"batch": 3, "length": 40}, {"batch": 1, "length": 64}],
    "object_detector": [{"batch": 2, "height": 32, "width": 32}, {"batch": 1, "height": 96, "width": 224}],
    "line_recogniser": [{"batch": 3, "width": 8}, {"batch": 1, "width": 61}, {"batch": 2, "width": 300}],
}


@pytest.mark.parametrize("name", SIZES)
def test_one_session_takes_inputs_of_every_size(name: str) -> None:
    session = lite.load(model(name), "opencl")
    for sizes in SIZES[name]:
        inputs = GRAPHS[name][1](**sizes)
        assert_close(session.run(inputs), in_float64_outputs(model(name), inputs))


def test_file_for_several_targets_uses_the_available_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs on OpenCL if there is a device, else on the processor's backend; the assignment shows which."""
    name, file = "line_recogniser", tmp_path / "model.lite"
    inputs = example(name)
    shapes = {key: array.shape for key, array in inputs.items()}
    backends = available_backends(default_plugins())
    others = [b for b in ("x86",) if not isinstance(backends[b].probe(), Unavailable)]
    lite.convert(model(name), file, ["opencl", *others], shapes=[shapes])
    session = lite.load(file, "opencl", fallback="never")
    assert_close(session.run(inputs), truth(name))
    assert {a.device for a in session.assignment()} == {"opencl"}
    assert not session.notes
    if others:
        monkeypatch.setenv("LITE_OPENCL_DEVICE", "no such device")
        monkeypatch.setattr(backends["opencl"], "_found", None)
        session = lite.load(file)
        assert_close(session.run(inputs), truth(name))
        assert {a.device for a in session.assignment()} == set(others)
        assert any("opencl" in line and "no such device" in line for line in session.selection_log)
