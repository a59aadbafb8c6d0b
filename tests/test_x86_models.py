"""Whole models on the backend ``x86``: one partition each, within the required tolerance.

The expected outputs are those of lite_core's references in float64, on the original model.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from functools import cache
from typing import Any

import catalog
import numpy as np
import pytest
from line_recogniser import line_recogniser, lines
from object_detector import object_detector, pictures
from sentence_encoder import sentence_encoder, sentences
from tiers import in_part

import lite_core as lite
from lite_conformance.judge.oracle import in_float64
from lite_core.formats import read_model
from lite_core.ir import Graph
from lite_core.ops.evaluate import evaluate_graph

pytestmark = pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="this is not an x86 processor")

Array = np.ndarray[Any, Any]

#: The largest difference of an output from the expected one, as a share of that output's range.
TOLERANCE = 1e-4

#: Graphs shaped like well-known networks that are not in the catalog: their builders and inputs.
GRAPHS: dict[str, tuple[Callable[[], Graph], Callable[..., dict[str, Array]]]] = {
    "sentence_encoder": (sentence_encoder, sentences),
    "object_detector": (object_detector, pictures),
    "line_recogniser": (line_recogniser, lines),
}
NAMES = (*catalog.NAMES, *GRAPHS)
#: The models that `make test` runs; the others belong to the full tier.
QUICK = ["mobilenet_v3_small-legacy", "pp_ocrv4_rec", *GRAPHS]


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


def load(graph: Graph, threads: int = 1, **options: Any) -> lite.Session:
    """Return a session on x86 alone."""
    return lite.load(graph, backend="x86", threads=threads, fallback="never", **options)


def assert_close(outputs: dict[str, Array], expected: dict[str, Array]) -> None:
    """Assert that every output is within :data:`TOLERANCE`."""
    assert list(outputs) == list(expected)
    for name, array in expected.items():
        assert outputs[name].shape == array.shape
        spread = float(array.max()) - float(array.min())
        assert spread > 1e-3, f"{name} is almost constant, which makes the comparison useless"
        assert float(np.abs(outputs[name] - array).max()) <= TOLERANCE * spread, name


@pytest.mark.parametrize("name", in_part("models", NAMES, QUICK))
def test_model_is_one_partition(name: str) -> None:
    session = load(model(name))
    assert {a.device for a in session.assignment()} == {"x86"}
    profile = lite.RunProfile()
    session.run(example(name), profile=profile)
    assert len(profile.partitions) == 1
    assert profile.kernels, "the partition is not one native program"


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", in_part("models", NAMES, QUICK))
def test_model_is_exact_and_repeatable(name: str, threads: int) -> None:
    session = load(model(name), threads)
    first = session.run(example(name))
    assert_close(first, truth(name))
    for _ in range(3):
        again = session.run(example(name))
        assert all(np.array_equal(array, again[output]) for output, array in first.items())


SIZES: dict[str, list[dict[str, int]]] = {
    "sentence_encoder": [{"batch": 1, "length": 1}, {"batch": 3, "length": 40}, {"batch": 1, "length": 64}],
    "object_detector": [{"batch": 2, "height": 32, "width": 32}, {"batch": 1, "height": 96, "width": 224}],
    "line_recogniser": [{"batch": 3, "width": 8}, {"batch": 1, "width": 61}, {"batch": 2, "width": 300}],
}


@pytest.mark.parametrize("name", SIZES)
def test_one_session_takes_inputs_of_every_size(name: str) -> None:
    session = load(model(name), threads=2)
    for sizes in SIZES[name]:
        inputs = GRAPHS[name][1](**sizes)
        assert_close(session.run(inputs), in_float64_outputs(model(name), inputs))


def test_suppressed_boxes_match_the_reference() -> None:
    """The number of kept boxes depends on data: only non-maximum suppression may run on another device."""
    graph, inputs = object_detector(suppress=True), pictures(batch=2)
    session = lite.load(graph, backend="x86", threads=1)
    assert {a.op for a in session.assignment() if a.device != "x86"} <= {"NonMaxSuppression"}
    kept = session.run(inputs)["kept"]
    expected = dict(zip((v.name for v in graph.outputs), evaluate_graph(graph, [inputs["picture"]])))["kept"]
    assert len(expected) > 5
    np.testing.assert_array_equal(kept, expected)
