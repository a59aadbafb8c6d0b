"""Random graphs compared with the reference on every level: fusion, memory and layouts must not change results."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from levels import machine_params, run_on
from random_graphs import Example, elementwise_graphs, image_graphs

from lite_core.ops.evaluate import evaluate_graph
from lite_cpu.machine import Machine

#: Number of random examples, different in each run, if set; otherwise few and reproducible ones.
_EXAMPLES = int(os.environ.get("LITE_RANDOM_GRAPHS", "0"))

_RANDOM = settings(
    max_examples=_EXAMPLES or 15,
    derandomize=not _EXAMPLES,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

machines = pytest.mark.parametrize("machine", machine_params())
choices = {"threads": st.sampled_from([1, 2]), "optimize": st.booleans()}


def check(machine: Machine, example: Example, threads: int, optimize: bool) -> None:
    """Run an example and compare each output with the reference."""
    arrays = [example.inputs[v.name] for v in example.graph.inputs]
    with np.errstate(over="ignore", invalid="ignore"):
        expected = evaluate_graph(example.graph, arrays)
    found = run_on(machine, example.graph, example.inputs, threads=threads, optimize=optimize)
    for value, truth in zip(example.graph.outputs, expected):
        result = found[value.name]
        assert result.dtype == truth.dtype
        assert result.shape == truth.shape
        if truth.dtype.kind == "f":
            largest = float(np.abs(truth).max(initial=1.0))
            np.testing.assert_allclose(result, truth, rtol=0, atol=2e-5 * largest, err_msg=value.name)
        else:
            np.testing.assert_array_equal(result, truth, err_msg=value.name)


@machines
def test_elementwise_graphs(machine: Machine) -> None:
    @_RANDOM
    @given(example=elementwise_graphs(), **choices)
    def run(example: Example, threads: int, optimize: bool) -> None:
        check(machine, example, threads, optimize)

    run()


@machines
def test_image_graphs(machine: Machine) -> None:
    @_RANDOM
    @given(example=image_graphs(), **choices)
    def run(example: Example, threads: int, optimize: bool) -> None:
        check(machine, example, threads, optimize)

    run()
