"""Stages after sizes that depend on data: those for further sizes are made from templates, and nothing is compiled."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
from agreement import MACHINES
from levels import backend_for

from lite_core import GraphBuilder, Session, load
from lite_core.errors import ExecutionError
from lite_core.ir import Graph, Value
from lite_core.ops.evaluate import evaluate_graph
from lite_core.plugins.backends import plugins_with
from lite_cpu.machine import Machine

Array = np.ndarray[Any, Any]

#: Every group of nodes that is lowered, to be compiled or to be recorded, is a line of this logger.
_LOWERED = "lite.cpu.kernels"
_LEVELS = (2, 3)


def numbers(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def region_network() -> Graph:
    """Return a network of two images that pools proposals from the levels of a pyramid and refines them."""
    b = GraphBuilder("regions")
    found = []
    for level in _LEVELS:
        size = 64 >> level
        scores, deltas = b.input(f"scores{level}", "float32", (2, 1, size, size)), numbers(2, 4, size, size) / 8
        low = np.stack(np.meshgrid(*[np.arange(size) * (64 / size)] * 2), axis=-1)[:, :, None]
        anchors = np.concatenate([low, low + 2.0 ** (level + 1)], axis=-1).astype(np.float32)
        given = [deltas, np.full((2, 2), 64, np.float32), anchors, np.ones_like(anchors)]
        attributes = {"pre_nms_top_n": 30, "post_nms_top_n": 40, "nms_thresh": 0.3, "min_size": 4.0}
        values = [scores, *map(b.constant, given)]
        found.append(b.add_node("GenerateProposals", values, attributes, outputs=3, domain="lite"))
    joined = [value for group in zip(*found) for value in group]
    regions, counts = b.add_node("CollectFpnProposals", joined, {"post_nms_top_n": 500}, outputs=2, domain="lite")
    levels = {"min_level": 2, "max_level": 3, "refer_level": 3, "refer_scale": 12}
    restore, *of_levels = b.add_node("DistributeFpnProposals", [regions, counts], levels, outputs=5, domain="lite")
    pooled = [pool(b, level, of_levels[i], of_levels[2 + i]) for i, level in enumerate(_LEVELS)]
    x = b.add("Gather", [b.add("Concat", pooled, {"axis": 0}), b.add("Squeeze", [restore, b.constant(np.array([1]))])])
    x = b.add("Relu", [b.add("MatMul", [b.add("Flatten", [x]), b.constant(numbers(4 * 9, 24))])])
    b.output(b.add("Softmax", [b.add("MatMul", [x, b.constant(numbers(24, 5))])]), "labels")
    b.output(regions, "regions")
    b.output(counts, "counts")
    return b.build()


def pool(b: GraphBuilder, level: int, regions: Value, counts: Value) -> Value:
    """Return the regions of a level, pooled from a map of features."""
    features = b.input(f"features{level}", "float32", (2, 4, 64 >> level, 64 >> level))
    zero, one = b.constant(np.int64(0)), b.constant(np.int64(1))
    many = b.add("Squeeze", [b.add("Shape", [regions], {"start": 0, "end": 1})])
    positions = b.add("Unsqueeze", [b.add("Range", [zero, many, one]), b.constant(np.array([1]))])
    ends = b.add("CumSum", [b.add("Cast", [counts], {"to": many.dtype}), zero])
    behind = b.add("Cast", [b.add("GreaterOrEqual", [positions, ends])], {"to": many.dtype})
    images = b.add("ReduceSum", [behind, b.constant(np.array([1]))], {"keepdims": 0})
    sizes = {"output_height": 3, "output_width": 3, "sampling_ratio": 2, "spatial_scale": 0.5**level}
    return b.add("RoiAlign", [features, regions, images], sizes)


def inputs_of(seed: int) -> dict[str, Array]:
    random = np.random.default_rng(seed)
    made = {}
    for level in _LEVELS:
        size = 64 >> level
        made[f"scores{level}"] = random.uniform(0, 1, (2, 1, size, size)).astype(np.float32)
        made[f"features{level}"] = random.standard_normal((2, 4, size, size)).astype(np.float32)
    return made


def session_of(machine: Machine, graph: Graph) -> Session:
    return load(graph, backend="level", plugins=plugins_with(backend_for(machine)), threads=1, fallback="never")


def assert_right(session: Session, graph: Graph, inputs: dict[str, Array]) -> dict[str, Array]:
    found = session.run(inputs)
    expected = evaluate_graph(graph, [inputs[v.name] for v in graph.inputs])
    for value, array in zip(graph.outputs, expected):
        np.testing.assert_allclose(found[value.name], array, rtol=1e-4, atol=1e-5, err_msg=value.name)
    return found


@MACHINES
def test_other_numbers_of_regions_compile_nothing(machine: Machine, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, _LOWERED)
    graph = region_network()
    session = session_of(machine, graph)
    for seed in range(2):  # the first is compiled, the second recorded
        assert_right(session, graph, inputs_of(seed))
    caplog.clear()
    numbers_of_regions = {len(assert_right(session, graph, inputs_of(seed))["regions"]) for seed in range(2, 10)}
    assert len(numbers_of_regions) > 3
    assert not caplog.records


@MACHINES
def test_profiles_and_observers_see_the_kernels_of_other_sizes(machine: Machine) -> None:
    graph = region_network()
    session, new = session_of(machine, graph), session_of(machine, graph)
    for seed in range(2):
        session.run(inputs_of(seed))
    inputs, kernels = inputs_of(2), []
    for each in (session, new):
        each.run(inputs, profile=True)
        assert each.last_profile is not None
        kernels.append([(k.kernel, k.nodes, k.flops, k.bytes) for k in each.last_profile.kernels])
    assert kernels[0] == kernels[1]
    assert {"collectfromlevels", "distributetolevels"} <= {kernel for kernel, *_ in kernels[0]}
    assert session.computes == new.computes
    shown = [each.run(inputs, outputs=["*"]) for each in (session, new)]
    assert shown[0].keys() == shown[1].keys()
    for name, array in shown[0].items():
        np.testing.assert_array_equal(array, shown[1][name], err_msg=name)


def counted_regions() -> Graph:
    """Return a network that distributes the regions that a mask chooses, with given counts."""
    b = GraphBuilder("counted")
    regions, mask = b.input("regions", "float32", ("n", 4)), b.input("mask", "bool", ("n",))
    chosen = b.add("Compress", [regions, mask], {"axis": 0})
    levels = {"min_level": 2, "max_level": 3, "refer_level": 3, "refer_scale": 12}
    given = [b.add("Abs", [chosen]), b.input("counts", "int32", (2,))]
    for number, value in enumerate(b.add_node("DistributeFpnProposals", given, levels, outputs=5, domain="lite")):
        b.output(value, f"y{number}")
    return b.build()


@MACHINES
def test_an_error_names_the_sizes_of_its_run(machine: Machine) -> None:
    graph = counted_regions()
    session = load(graph, backend="level", plugins=plugins_with(backend_for(machine)), threads=1)
    regions = np.abs(numbers(20, 4)).cumsum(axis=1) * 5
    for many in (9, 7, 8, 0):
        counts = np.array([many // 2, many - many // 2], np.int32)
        inputs = {"regions": regions, "mask": np.arange(20) < many, "counts": counts}
        assert_right(session, graph, inputs)
        with pytest.raises(ExecutionError, match=rf"rois_num counts {many + 1} regions, there are {many}"):
            session.run({**inputs, "counts": counts + np.array([1, 0], np.int32)})
        with pytest.raises(ExecutionError, match="rois_num counts"):
            session.run({**inputs, "counts": np.array([-1, many + 1], np.int32)})
