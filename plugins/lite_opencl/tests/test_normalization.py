"""Normalisations by the input's statistics and by a norm, with the kernels of GPUs, and fusion of the tail."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from opencl_agreement import KINDS, agree, normal, single_node, steps_of
from opencl_device import run

from lite_core.builder import GraphBuilder
from lite_core.ops.evaluate import evaluate_graph

TOLERANCE = 32 * 2.0**-23


def check_layer_normalization(kind: str, shape: tuple[int, ...], axis: int) -> None:
    x, scale, bias = normal(*shape) + 3, normal(*shape[axis:], seed=1), normal(*shape[axis:], seed=2)
    agree(kind, "LayerNormalization", [x, scale, bias], {"axis": axis}, constants=2, tolerance=TOLERANCE)


@pytest.mark.full("opencl")
@pytest.mark.parametrize(
    ("shape", "axis"), [((5, 7), 1), ((3, 384), -1), ((2, 3, 4, 5), 2), ((2, 3, 4), 0), ((3, 1), 1), ((70, 3), 1)]
)
def test_layer_normalization_on_gpus(shape: tuple[int, ...], axis: int) -> None:
    check_layer_normalization("GPU", shape, axis)


@pytest.mark.full("opencl")
def test_many_short_rows_on_processors() -> None:
    check_layer_normalization("CPU", (70, 3), 1)


@pytest.mark.full("opencl")
def test_layer_normalization_statistics_on_gpus() -> None:
    arrays = [normal(2, 3, 40) + 1, normal(40, seed=1), normal(40, seed=2)]
    agree("GPU", "LayerNormalization", arrays, constants=2, outputs=3, tolerance=TOLERANCE)


@pytest.mark.full("opencl")
def test_broadcast_scales() -> None:
    arrays = [normal(2, 3, 4, 5, 6), normal(3, 1, 5, 1, seed=1), normal(4, 1, 6, seed=2)]
    agree("CPU", "LayerNormalization", arrays, {"axis": 1}, tolerance=TOLERANCE)


@pytest.mark.full("opencl")
@pytest.mark.parametrize(
    ("op", "attributes"), [("InstanceNormalization", {}), ("GroupNormalization", {"num_groups": 4})]
)
@pytest.mark.parametrize("spatial", [(5, 7), (33,), (2, 3, 4)])
def test_instance_and_group_normalization_on_gpus(
    op: str, attributes: dict[str, Any], spatial: tuple[int, ...]
) -> None:
    arrays = [normal(2, 36, *spatial) + 2, normal(36, seed=1), normal(36, seed=2)]
    agree("GPU", op, arrays, attributes, constants=2, tolerance=TOLERANCE)


@pytest.mark.full("opencl")
@pytest.mark.parametrize("axes", [(0, 2, 3), (1,), (-1, 0), (0, 1, 2, 3)])
def test_mean_variance_normalization_on_gpus(axes: tuple[int, ...]) -> None:
    agree("GPU", "MeanVarianceNormalization", [normal(3, 19, 4, 5)], {"axes": axes}, tolerance=TOLERANCE)


@pytest.mark.full("opencl")
@KINDS
def test_axes_that_are_not_neighbours_are_folded_by_copies(kind: str) -> None:
    x = normal(3, 2, 4, 3, 5, 2)
    graph = single_node("MeanVarianceNormalization", [x], {"axes": (0, 2, 4)})
    assert steps_of(kind, graph) == ["elementwise", "normalize_rows", "elementwise"]
    agree(kind, "MeanVarianceNormalization", [x], {"axes": (0, 2, 4)}, tolerance=TOLERANCE)


@pytest.mark.full("opencl")
@KINDS
@pytest.mark.parametrize("p", [1, 2])
def test_row_of_zeros_stays_zero(kind: str, p: int) -> None:
    x = normal(2, 19, 4, 5)
    x[1, :, 2, 3] = 0
    agree(kind, "LpNormalization", [x], {"axis": 1, "p": p}, tolerance=TOLERANCE)


def test_element_wise_tail_is_fused_into_batch_normalization() -> None:
    builder = GraphBuilder("pre-activation")
    x = builder.input("x", "float32", (1, 6, 3, 3))
    vectors = [builder.constant(np.abs(normal(6, seed=i))) for i in range(4)]
    y = builder.add("BatchNormalization", [x, *vectors])
    y = builder.add("Relu", [builder.add("Add", [builder.add("Mul", [y, builder.constant(normal(6, 1, 1))]), x])])
    builder.output(y, "y")
    graph, array = builder.build(), normal(1, 6, 3, 3, seed=9)
    assert steps_of("CPU", graph) == ["elementwise"]
    np.testing.assert_allclose(run(graph, [array])[0], evaluate_graph(graph, [array])[0], rtol=0, atol=1e-6)
