"""Normalizations: by given statistics, by statistics of the input, and by a norm."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from agreement import MACHINES, agree, normal
from levels import run_on

from lite_core.builder import GraphBuilder
from lite_core.ops.evaluate import evaluate_graph
from lite_cpu.machine import Machine

TOLERANCE = 32 * 2.0**-23


@MACHINES
def test_layer_normalization(machine: Machine) -> None:
    x, scale, bias = normal(3, 5, 83) + 3, normal(83, seed=1), normal(83, seed=2)
    agree(machine, "LayerNormalization", [x, scale, bias], constants=2, tolerance=TOLERANCE, threads=2)
    agree(machine, "LayerNormalization", [x, scale], {"epsilon": 0.5}, tolerance=TOLERANCE)


@MACHINES
def test_layer_normalization_of_one_element_for_each_row(machine: Machine) -> None:
    """Vectors are across rows."""
    agree(machine, "LayerNormalization", [normal(3, 1) + 3, normal(1, seed=1)], {"epsilon": 0.5}, tolerance=TOLERANCE)


# **** channels-last images ****


@MACHINES
@pytest.mark.parametrize(
    ("op", "attributes"), [("InstanceNormalization", {}), ("GroupNormalization", {"num_groups": 4})]
)
def test_by_channels(machine: Machine, op: str, attributes: dict[str, Any]) -> None:
    arrays = [normal(2, 36, 5, 7) + 2, normal(36, seed=1), normal(36, seed=2)]
    agree(machine, op, arrays, attributes, constants=2, channels_last=True, tolerance=TOLERANCE)


@MACHINES
@pytest.mark.parametrize("axes", [(0, 2, 3), (1,), (-1, 0)])
def test_mean_variance_normalization(machine: Machine, axes: tuple[int, ...]) -> None:
    attributes = {"axes": axes}
    x = normal(3, 19, 4, 5)
    agree(machine, "MeanVarianceNormalization", [x], attributes, channels_last=True, tolerance=TOLERANCE)


@MACHINES
@pytest.mark.parametrize("p", [1, 2])
def test_norm(machine: Machine, p: int) -> None:
    x = normal(2, 19, 4, 5)
    agree(machine, "LpNormalization", [x], {"axis": 1, "p": p}, channels_last=True, tolerance=TOLERANCE)


@MACHINES
@pytest.mark.parametrize("constants", [0, 4])
def test_batch_normalization(machine: Machine, constants: int) -> None:
    statistics = [normal(19, seed=1), normal(19, seed=2), normal(19, seed=3), np.abs(normal(19, seed=4))]
    arrays = [normal(2, 19, 4, 5), *statistics]
    agree(machine, "BatchNormalization", arrays, constants=constants, channels_last=True, tolerance=TOLERANCE)


# **** fusion ****


@MACHINES
def test_batch_normalization_fuses_following_operators(machine: Machine) -> None:
    b = GraphBuilder("pre-activation")
    x = b.input("x", "float32", (1, 6, 3, 3))
    vectors = [b.constant(np.abs(normal(6, seed=i))) for i in range(4)]
    y = b.add("BatchNormalization", [x, *vectors])
    y = b.add("Relu", [b.add("Add", [b.add("Mul", [y, b.constant(normal(6, 1, 1))]), x])])
    b.output(y, "y")
    graph, array = b.build(), normal(1, 6, 3, 3, seed=9)
    (expected,) = evaluate_graph(graph, [array])
    np.testing.assert_allclose(run_on(machine, graph, {"x": array})["y"], expected, rtol=0, atol=1e-6)
