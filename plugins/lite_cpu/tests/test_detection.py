"""Operators of detectors: results whose number depends on data, layouts, and sizes beyond those of the suite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from agreement import MACHINES, agree, normal
from levels import backend_for, run_on
from saving import HOST, buffers, compiled, restored, saved

from lite_core import GraphBuilder, load
from lite_core.backend import Buffer
from lite_core.errors import ExecutionError
from lite_core.ir import DType, Graph
from lite_core.observing import Observed
from lite_core.ops.evaluate import evaluate_graph
from lite_core.plugins.backends import plugins_with
from lite_cpu.machine import Machine

Array = np.ndarray[Any, Any]

EVERY: dict[str, Any] = {"score_threshold": 0.1, "nms_top_k": -1, "keep_top_k": -1, "background_label": -1}
DECODE: dict[str, Any] = {"anchors": (10, 13, 16, 30), "class_num": 19, "conf_thresh": 0.3}


def candidates(boxes: int, classes: int) -> tuple[Array, Array]:
    """Return the boxes of two images, many of them overlapping, and scores of which many are equal."""
    random = np.random.default_rng(boxes)
    center, size = random.uniform(0, 300, (2, boxes, 2)), random.uniform(5, 90, (2, boxes, 2))
    corners = np.concatenate([center - size / 2, center + size / 2], axis=-1)
    return corners.astype(np.float32), (random.integers(0, 64, (2, classes, boxes)) / 64).astype(np.float32)


def node(op: str, arrays: Sequence[Array], attributes: dict[str, Any], outputs: int, domain: str = "lite") -> Graph:
    builder = GraphBuilder(op)
    values = [builder.input(f"x{i}", str(array.dtype), array.shape) for i, array in enumerate(arrays)]
    for i, value in enumerate(builder.add_node(op, values, attributes, outputs=outputs, domain=domain)):
        builder.output(value, f"y{i}")
    return builder.build()


def named(arrays: Sequence[Array]) -> dict[str, Array]:
    return {f"x{i}": array for i, array in enumerate(arrays)}


def assert_equal(machine: Machine, graph: Graph, arrays: Sequence[Array], threads: int = 2) -> None:
    found = run_on(machine, graph, named(arrays), threads=threads)
    for number, expected in enumerate(evaluate_graph(graph, list(arrays))):
        np.testing.assert_array_equal(found[f"y{number}"], expected)
        assert found[f"y{number}"].dtype == expected.dtype


@MACHINES
@pytest.mark.parametrize("cut", [{"nms_top_k": 60, "keep_top_k": 50}, {"nms_eta": 0.9, "nms_threshold": 0.8}])
def test_suppression_of_classes_is_that_of_the_reference(machine: Machine, cut: dict[str, Any]) -> None:
    boxes, scores = candidates(400, 3)
    assert_equal(machine, node("MulticlassNms", [boxes, scores], {**EVERY, **cut}, 3), [boxes, scores])
    per_class = np.ascontiguousarray(np.stack([boxes[0], boxes[1], boxes[0] + 5], axis=1))
    arrays = [per_class, np.ascontiguousarray(scores[0].T), np.array([150, 0, 250], np.int32)]
    assert_equal(machine, node("MulticlassNms", arrays, {**EVERY, **cut}, 3), arrays)
    if "nms_eta" not in cut:
        assert_equal(machine, node("MatrixNms", [boxes, scores], {**EVERY, **cut}, 3), [boxes, scores])


@MACHINES
@pytest.mark.parametrize("center", [0, 1])
def test_selection_is_that_of_the_reference(machine: Machine, center: int) -> None:
    arrays = [*candidates(400, 3), np.array([90]), np.array([0.4], np.float32), np.array([0.2], np.float32)]
    assert_equal(machine, node("NonMaxSuppression", arrays, {"center_point_box": center}, 1, ""), arrays)


@MACHINES
@pytest.mark.parametrize("limits", [(0, 0), (150, 40)])
def test_proposals_are_those_of_the_reference(machine: Machine, limits: tuple[int, int]) -> None:
    random = np.random.default_rng(5)
    scores = (random.integers(0, 40, (2, 3, 9, 11)) / 64).astype(np.float32)
    scores[0, 1, 3, 4] = np.nan
    low = random.integers(-20, 200, (9, 11, 3, 2))
    anchors = np.concatenate([low, low + random.integers(4, 60, low.shape)], axis=-1).astype(np.float32)
    deltas = np.zeros((2, 12, 9, 11), np.float32)  # exp(0) is exact, as are sums of integers
    arrays = [scores, deltas, np.array([[190, 210], [1, 1]], np.float32), anchors, np.full_like(anchors, 0.5)]
    attributes = {"pre_nms_top_n": limits[0], "post_nms_top_n": limits[1], "nms_thresh": 0.5, "min_size": 5.0}
    assert_equal(machine, node("GenerateProposals", arrays, attributes, 3), arrays)


@MACHINES
@pytest.mark.parametrize("numbers", [4, 8])
def test_joined_neighbours_are_those_of_the_reference(machine: Machine, numbers: int) -> None:
    random = np.random.default_rng(numbers)
    low = np.arange(60)[:, None] * 3 + random.uniform(0, 5, (2, 60, 2))
    corners = np.concatenate([low, low + random.uniform(4, 20, (2, 60, 2))], axis=-1)
    boxes = corners if numbers == 4 else corners[..., [0, 1, 2, 1, 2, 3, 0, 3]] + random.uniform(-2, 2, (2, 60, 8))
    arrays = [boxes.astype(np.float32), (random.integers(1, 64, (2, 2, 60)) / 64).astype(np.float32)]
    cut = {"score_threshold": 0.2, "nms_top_k": 30, "keep_top_k": 25, "nms_threshold": 0.4}
    assert_equal(machine, node("LocalityAwareNms", arrays, cut, 2), arrays)


@MACHINES
def test_regions_at_the_limits_of_levels_are_those_of_the_reference(machine: Machine) -> None:
    sizes = np.nextafter(np.exp2(np.linspace(0, 9, 37)).repeat(2).astype(np.float32), np.float32([0, 999] * 37))
    for dtype in (np.float32, np.float64):
        arrays = [np.stack([0 * sizes, 0 * sizes, sizes, sizes], axis=1).astype(dtype), np.array([30, 44], np.int32)]
        arrays[0][5] = np.nan
        levels = {"min_level": 2, "max_level": 6, "refer_level": 4, "refer_scale": 56, "pixel_offset": 0}
        assert_equal(machine, node("DistributeFpnProposals", arrays, levels, 11), arrays)


@MACHINES
def test_counts_of_levels_are_checked(machine: Machine) -> None:
    arrays = [np.ones((3, 4), np.float32), np.ones((3, 1), np.float32), np.array([1, 1], np.int32)]
    graph = node("CollectFpnProposals", arrays, {"post_nms_top_n": 5}, 2)
    with pytest.raises(ExecutionError, match="rois_num of level 0 counts 2 regions, there are 3"):
        run_on(machine, graph, named(arrays))


@MACHINES
@pytest.mark.parametrize("counts", [[3, 4], [9, 3], [-2, 12]])
def test_counts_of_other_boxes_are_an_error(machine: Machine, counts: list[int]) -> None:
    arrays = [np.ones((10, 2, 4), np.float32), np.ones((10, 2), np.float32), np.array(counts, np.int32)]
    graph = node("MulticlassNms", arrays, EVERY, 3)
    if sum(counts) == 10:
        run_on(machine, graph, named(arrays))
        return
    with pytest.raises(ExecutionError, match=rf"rois_num counts {sum(counts)} boxes, there are 10"):
        run_on(machine, graph, named(arrays))


@MACHINES
def test_suppression_after_sizes_that_depend_on_data(machine: Machine) -> None:
    """Boxes that a Compress on host has chosen are suppressed by kernels, and the nodes after are compiled."""
    boxes, scores = candidates(50, 2)
    builder = GraphBuilder("chosen")
    given = [builder.input("boxes", "float32", (2, 50, 4)), builder.input("scores", "float32", (2, 2, 50))]
    chosen = builder.input("chosen", "bool", (50,))
    kept = [builder.add("Compress", [x, chosen], {"axis": axis}) for x, axis in zip(given, (1, 2))]
    limits = [builder.constant(np.array(n, t)) for n, t in ((20, np.int64), (0.5, np.float32), (0.3, np.float32))]
    selected = builder.add("NonMaxSuppression", [*kept, *limits])
    builder.output(builder.add("Add", [selected, builder.constant(np.array(1))]), "y")
    graph = builder.build()
    session = load(graph, backend="level", plugins=plugins_with(backend_for(machine)))
    for many in (30, 7, 0):
        arrays = [boxes, scores, np.arange(50) < many]
        inputs = dict(zip(("boxes", "scores", "chosen"), arrays))
        np.testing.assert_array_equal(session.run(inputs, profile=True)["y"], evaluate_graph(graph, arrays)[0])
        assert session.last_profile is not None
        assert {"collectselected"} <= {kernel.kernel.split()[0] for kernel in session.last_profile.kernels}


@MACHINES
def test_what_is_before_a_suppression_is_a_partition_that_can_be_saved(machine: Machine) -> None:
    boxes, scores = candidates(30, 2)
    builder = GraphBuilder("head")
    given = [builder.input("x0", "float32", boxes.shape), builder.input("x1", "float32", scores.shape)]
    sure = builder.add("Sigmoid", [given[1]])
    limit = builder.constant(np.array(9))
    selected = builder.add("NonMaxSuppression", [given[0], sure, limit])
    builder.output(builder.add("Cast", [selected], {"to": DType.FLOAT32}), "y0")
    session = load(builder.build(), backend="level", plugins=plugins_with(backend_for(machine)))
    plan = session.plan({"x0": boxes.shape, "x1": scores.shape})
    assert [[n.op for n in part.graph.nodes] for part, _ in plan.partitions] == [
        ["Sigmoid"], ["NonMaxSuppression"], ["Cast"],
    ]  # fmt: skip


@MACHINES
def test_a_restored_suppression_finds_the_same(machine: Machine) -> None:
    arrays = candidates(80, 2)
    graph = node("MulticlassNms", arrays, EVERY, 3)
    executable = compiled(machine, graph)
    again = restored(machine, saved(executable), graph)
    for expected, found in zip(evaluate_graph(graph, list(arrays)), run_bounded(again, graph, arrays)):
        np.testing.assert_array_equal(found, expected)


def run_bounded(executable: Any, graph: Graph, arrays: Sequence[Array]) -> list[Array]:
    """Run an executable, whose outputs arrive without memory where their number of rows depends on data."""
    inputs, outputs, scratch = unsized(executable, graph, arrays)
    executable.run(inputs, outputs, scratch)
    return [buffer.data for buffer in outputs]


def unsized(executable: Any, graph: Graph, arrays: Sequence[Array]) -> tuple[list[Buffer], list[Buffer], Buffer]:
    sized = Graph(graph.name, inputs=graph.inputs, outputs=[], nodes=[])
    inputs, _, scratch = buffers(executable, sized, named(arrays))
    return (
        inputs,
        [Buffer(v.type, HOST, None if not v.type.is_static else HOST.allocate(v.type)) for v in graph.outputs],
        scratch,
    )


@MACHINES
def test_an_observer_sees_the_rows_that_were_found(machine: Machine) -> None:
    arrays = candidates(40, 2)
    graph = node("MulticlassNms", arrays, EVERY, 3)
    executable = compiled(machine, graph)
    shapes: list[dict[str, tuple[int, ...]]] = []

    class Shapes:
        def starts(self, kernel: str, nodes: Sequence[str]) -> None:
            shapes.append({})

        def computed(self, results: Observed) -> None:
            shapes[-1].update({name: results.read(name).shape for name in results.values})

    inputs, outputs, scratch = unsized(executable, graph, arrays)
    executable.run_observed(inputs, outputs, scratch, Shapes())
    assert shapes == [{v.name: b.data.shape for v, b in zip(graph.outputs, outputs)}]
    assert shapes[0][graph.outputs[0].name] == evaluate_graph(graph, list(arrays))[0].shape


@MACHINES
@pytest.mark.parametrize("mode", ["avg", "max"])
def test_regions_of_channels_last_images(machine: Machine, mode: str) -> None:
    random = np.random.default_rng(3)
    low = random.uniform(-2, 20, (9, 2))
    rois = np.concatenate([low, low + random.uniform(1, 15, (9, 2))], axis=1).astype(np.float32)
    arrays = [np.abs(normal(2, 13, 24, 70)), rois, random.integers(0, 2, 9)]
    shape = {"output_height": 4, "output_width": 3, "sampling_ratio": 2, "mode": mode, "spatial_scale": 0.5}
    agree(machine, "RoiAlign", arrays, shape, channels_last=True, tolerance=1e-6, threads=2)


@MACHINES
def test_a_deformed_convolution_of_constant_images(machine: Machine) -> None:
    arrays = [normal(1, 20, 9, 7), normal(6, 10, 3, 3, seed=1), normal(1, 36, 9, 7, seed=2), normal(6, seed=3)]
    attributes = {"pads": (1, 1, 1, 1), "group": 2, "offset_group": 2}
    for constants in (0, 1, 3):
        agree(machine, "DeformConv", arrays, attributes, constants=constants, tolerance=1e-6)


@MACHINES
def test_heads_in_both_layouts(machine: Machine) -> None:
    x, images = normal(2, 48, 5, 7), np.array([[320, 300], [96, 200]], np.int32)
    graph = node("YoloBox", [x, images], DECODE, 2)
    found = run_on(machine, graph, named([x, images]), threads=2)
    for number, expected in enumerate(evaluate_graph(graph, [x, images])):
        np.testing.assert_allclose(found[f"y{number}"], expected, rtol=1e-5, atol=1e-4)
