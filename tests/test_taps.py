"""Taps on the backends that fuse nodes: outputs stay the same bit by bit, and each value is that of its node."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import catalog
import numpy as np
import pytest
from faulty_backend import planted

import lite_core as lite
from lite_core.backend import Unavailable
from lite_core.formats import read_model
from lite_core.ir import Graph
from lite_core.ops.evaluate import evaluate_node
from lite_core.plugins import available_backends
from lite_core.session import make_ready
from lite_tools.conversion import convert

Array = np.ndarray[Any, Any]

BACKENDS = ["x86", pytest.param("opencl", marks=pytest.mark.full("opencl")), "onnxruntime"]


def usable(name: str) -> str:
    """Return the name of a backend; the test is skipped if it has no device here."""
    backend = available_backends().get(name)
    found = backend.probe() if backend else Unavailable("it is not installed")
    if isinstance(found, Unavailable):
        pytest.skip(f"{name}: {found.reason}")
    return name


@cache
def network() -> Graph:
    """A convolution with an activation and an addition, which all backends fuse, and a Softmax."""
    random = np.random.default_rng(5)
    b = lite.GraphBuilder("network")
    x = b.input("x", "float32", [1, 4, "height", 8])
    weights = b.constant(random.standard_normal((4, 4, 3, 3), np.float32))
    relu = b.add("Relu", [b.add("Conv", [x, weights], {"pads": (1, 1, 1, 1)})])
    b.output(b.add("Softmax", [b.add("Add", [relu, x])], {"axis": -1}), "y")
    return b.build()


def picture(height: int = 8) -> dict[str, Array]:
    return {"x": np.random.default_rng(height).standard_normal((1, 4, height, 8), np.float32)}


def check_nodes(graph: Graph, values: dict[str, Array], inputs: dict[str, Array], tolerance: float) -> None:
    """Check each tapped value against the reference of its node, fed with the tapped inputs."""
    known = {**{v.name: a for v, a in graph.constants.items()}, **inputs, **values}
    for node in graph.nodes:
        arrays = [None if value is None else known[value.name] for value in node.inputs]
        for value, expected in zip(node.outputs, evaluate_node(node, arrays)):
            if value is not None:
                scale = max(float(np.abs(expected).max(initial=0)), 1e-6)
                error = np.abs(known[value.name].astype(np.float64) - expected).max(initial=0)
                assert error <= tolerance * scale, node.describe()


@pytest.mark.parametrize("name", BACKENDS)
def test_every_value_can_be_seen_without_changing_the_outputs(name: str) -> None:
    session, plain = (lite.load(network(), usable(name)) for _ in range(2))
    for height in (8, 5):
        values = session.run(picture(height), outputs=["*"])
        assert [*values] == ["x", "conv", "relu", "add", "y"]
        assert values["y"].tobytes() == plain.run(picture(height))["y"].tobytes()
        check_nodes(make_ready(network()).graph, values, picture(height), 1e-5)
    assert any("conv" in note for note in session.notes)  # it is fused with the nodes after it


def test_values_of_a_prepared_model_can_be_seen(tmp_path: Path) -> None:
    path = tmp_path / "model.lite"
    convert(network(), path, targets=[usable("x86")], shapes={"x": (1, 4, 8, 8)})
    session = lite.load(path, taps=["conv"])
    found = session.run(picture())
    assert found["y"].tobytes() == lite.load(path).run(picture())["y"].tobytes()
    check_nodes(make_ready(network()).graph, session.run(picture(), outputs=["*"]), picture(), 1e-5)


def test_a_tap_shows_what_a_wrong_kernel_computed() -> None:
    usable("x86")
    session = lite.load(network(), "faulty", plugins=planted("axis", "softmax"))
    values = session.run(picture(), outputs=["add", "softmax"])
    right = np.exp(values["add"]) / np.exp(values["add"]).sum(-1, keepdims=True)
    assert np.abs(values["y"] - right).max() > 0.01


@pytest.mark.full("models")
@pytest.mark.parametrize("name", ["x86", "opencl", "onnxruntime"])
@pytest.mark.parametrize("model", ["mobilenet_v3_small-legacy", "pp_ocrv4_rec"])
def test_every_value_of_a_real_model_can_be_seen(model: str, name: str) -> None:
    try:
        files = catalog.ensure(model)
    except catalog.ModelUnavailableError as error:
        pytest.skip(str(error))
    graph, inputs = read_model(files.model, params=files.params), catalog.example_input(model)
    session, plain = (lite.load(graph, usable(name)) for _ in range(2))
    values = session.run(inputs, outputs=["*"])
    for output, array in plain.run(inputs).items():
        assert array.tobytes() == values[output].tobytes()
    # Winograd and long sums round more than the references of single nodes.
    check_nodes(make_ready(graph).graph, values, inputs, 1e-3)
