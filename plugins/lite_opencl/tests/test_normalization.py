"""Normalisations: by given statistics, by those of the input, by a norm; as for both kinds of devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from opencl_agreement import KINDS, agree, normal, single_node, steps_of
from opencl_device import run

from lite_core.builder import GraphBuilder
from lite_core.ops.evaluate import evaluate_graph

TOLERANCE = 32 * 2.0**-23


@KINDS
@pytest.mark.parametrize(
    ("shape", "axis"), [((5, 7), 1), ((3, 384), -1), ((2, 3, 4, 5), 2), ((2, 3, 4), 0), ((3, 1), 1), ((70, 3), 1)]
)
def test_layer_normalization(kind: str, shape: tuple[int, ...], axis: int) -> None:
    x, scale, bias = normal(*shape) + 3, normal(*shape[axis:], seed=1), normal(*shape[axis:], seed=2)
    agree(kind, "LayerNormalization", [x, scale, bias], {"axis": axis}, constants=2, tolerance=TOLERANCE)
    agree(kind, "LayerNormalization", [x, scale], {"axis": axis, "epsilon": 0.5}, tolerance=TOLERANCE)


@KINDS
def test_layer_normalization_gives_its_statistics(kind: str) -> None:
    arrays = [normal(2, 3, 40) + 1, normal(40, seed=1), normal(40, seed=2)]
    agree(kind, "LayerNormalization", arrays, constants=2, outputs=3, tolerance=TOLERANCE)


@KINDS
def test_scales_that_repeat(kind: str) -> None:
    arrays = [normal(2, 3, 4, 5, 6), normal(3, 1, 5, 1, seed=1), normal(4, 1, 6, seed=2)]
    agree(kind, "LayerNormalization", arrays, {"axis": 1}, tolerance=TOLERANCE)


@KINDS
@pytest.mark.parametrize(
    ("op", "attributes"), [("InstanceNormalization", {}), ("GroupNormalization", {"num_groups": 4})]
)
@pytest.mark.parametrize("spatial", [(5, 7), (33,), (2, 3, 4)])
def test_by_channels(kind: str, op: str, attributes: dict[str, Any], spatial: tuple[int, ...]) -> None:
    arrays = [normal(2, 36, *spatial) + 2, normal(36, seed=1), normal(36, seed=2)]
    agree(kind, op, arrays, attributes, constants=2, tolerance=TOLERANCE)


@KINDS
@pytest.mark.parametrize("axes", [(0, 2, 3), (1,), (-1, 0), (0, 1, 2, 3)])
def test_mean_variance_normalization(kind: str, axes: tuple[int, ...]) -> None:
    agree(kind, "MeanVarianceNormalization", [normal(3, 19, 4, 5)], {"axes": axes}, tolerance=TOLERANCE)


@KINDS
def test_axes_that_are_no_neighbours_are_copied_together(kind: str) -> None:
    x = normal(3, 2, 4, 3, 5, 2)
    graph = single_node("MeanVarianceNormalization", [x], {"axes": (0, 2, 4)})
    assert steps_of(kind, graph) == ["elementwise", "normalize_rows", "elementwise"]
    agree(kind, "MeanVarianceNormalization", [x], {"axes": (0, 2, 4)}, tolerance=TOLERANCE)


@KINDS
@pytest.mark.parametrize("p", [1, 2])
def test_norm(kind: str, p: int) -> None:
    x = normal(2, 19, 4, 5)
    x[1, :, 2, 3] = 0  # stays zero
    agree(kind, "LpNormalization", [x], {"axis": 1, "p": p}, tolerance=TOLERANCE)


@KINDS
@pytest.mark.parametrize("beta", [0.75, 0.6])
@pytest.mark.parametrize("size", [1, 4, 5, 40])
def test_response_normalization(kind: str, size: int, beta: float) -> None:
    agree(kind, "LRN", [normal(2, 19, 4, 5)], {"size": size, "alpha": 2.0, "beta": beta}, tolerance=TOLERANCE)


@KINDS
@pytest.mark.parametrize("constants", [0, 2, 4])
@pytest.mark.parametrize("shape", [(2, 19, 4, 5), (3, 19)])
def test_batch_normalization(kind: str, constants: int, shape: tuple[int, ...]) -> None:
    arrays = [normal(*shape), *(normal(19, seed=i) for i in (1, 2, 3)), np.abs(normal(19, seed=4))]
    agree(kind, "BatchNormalization", arrays, constants=constants, tolerance=TOLERANCE)


def test_batch_normalization_takes_what_follows() -> None:
    builder = GraphBuilder("pre-activation")
    x = builder.input("x", "float32", (1, 6, 3, 3))
    vectors = [builder.constant(np.abs(normal(6, seed=i))) for i in range(4)]
    y = builder.add("BatchNormalization", [x, *vectors])
    y = builder.add("Relu", [builder.add("Add", [builder.add("Mul", [y, builder.constant(normal(6, 1, 1))]), x])])
    builder.output(y, "y")
    graph, array = builder.build(), normal(1, 6, 3, 3, seed=9)
    assert steps_of("CPU", graph) == ["elementwise"]
    np.testing.assert_allclose(run(graph, [array])[0], evaluate_graph(graph, [array])[0], rtol=0, atol=1e-6)
