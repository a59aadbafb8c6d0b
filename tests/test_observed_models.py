"""Whole models observed on the backends that compile: every value that is shown is right, and can be replaced."""

from __future__ import annotations

import platform
from functools import cache

import catalog
import numpy as np
import pytest
from observers import Recorder, assert_close, check_observed

import lite_core as lite
from lite_core.backend import Unavailable
from lite_core.formats import read_model
from lite_core.ir import Graph
from lite_core.plugins import available_backends, default_plugins

pytestmark = pytest.mark.full("models")

#: The largest difference of a value from the references in float32, as a share of the largest element.
TOLERANCE = 1e-4

#: PIR programs contain the same networks.
NAMES = [name for name in catalog.NAMES if not name.endswith("-pir")]


@cache
def model(name: str) -> Graph:
    """Return a model of the catalog; the test is skipped if it cannot be made here."""
    try:
        path = catalog.ensure(name)
    except catalog.ModelUnavailableError as error:
        pytest.skip(str(error))
    return read_model(path.model, params=path.params)


def session_on(backend: str, graph: Graph, **options: bool) -> lite.Session:
    """Return a session on a backend; the test is skipped if it has no device."""
    if backend == "x86" and platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip("this is not an x86 processor")
    found = available_backends(default_plugins())[backend].probe()
    if isinstance(found, Unavailable):
        pytest.skip(f"{found.reason}. {found.remedy}")
    return lite.load(graph, backend=backend, threads=2, **options)


@pytest.mark.parametrize("backend", ["x86", "opencl"])
@pytest.mark.parametrize("name", NAMES)
def test_values_are_those_of_the_references_and_can_be_replaced(name: str, backend: str) -> None:
    session, inputs = session_on(backend, model(name)), catalog.example_input(name)
    arrays = [inputs[value.name] for value in session.graph.inputs]
    random = np.random.default_rng(1)
    others = [random.permutation(array.reshape(-1)).reshape(array.shape) for array in arrays]
    recorder = check_observed(session, arrays, others, TOLERANCE)
    assert len(recorder.values) >= 20


@pytest.mark.parametrize("backend", ["x86", "opencl"])
@pytest.mark.parametrize("name", NAMES)
def test_values_are_what_they_would_be_as_outputs(name: str, backend: str) -> None:
    """As outputs, values are written elsewhere: a layout may differ, and with it the order of a sum from there on."""
    session, inputs = session_on(backend, model(name)), catalog.example_input(name)
    shapes = {value: array.shape for value, array in inputs.items()}
    recorder = Recorder()
    session.plan(shapes).run([inputs[value.name] for value in session.graph.inputs], observer=recorder)
    graph = session.graph.copy()
    shown = [v for v in graph.defined() if v.name in recorder.values and v not in graph.outputs]
    graph.outputs += shown
    outputs = session_on(backend, graph, optimize=False).run(inputs)
    for value in shown:
        assert_close(recorder.values[value.name], outputs[value.name], value.name, TOLERANCE)
