"""The log of chosen kernels: one line for each group of nodes, with the reasons against other candidates."""

from __future__ import annotations

import logging

import pytest
from agreement import MACHINES
from saving import Sketch, compiled, convolutions

from lite_compiler.kernel_log import KernelLog
from lite_compiler.tournaments.choice import Choice
from lite_core.builder import GraphBuilder
from lite_cpu.machine import Machine


@MACHINES
def test_each_group_is_logged_with_its_kernels_and_reasons(machine: Machine, caplog: pytest.LogCaptureFixture) -> None:
    graph = convolutions().graph
    with caplog.at_level(logging.DEBUG, "lite.cpu.kernels"):
        compiled(machine, graph)
        compiled(machine, graph, exact=True)
    lines = [record.getMessage() for record in caplog.records if record.name == "lite.cpu.kernels"]
    half = len(lines) // 2
    described = [" ".join(lines[:half]), " ".join(lines[half:])]
    for node in graph.nodes:
        assert all(f"{node.name} ({node.op})" in text for text in described)
    assert "winograd f" in described[0]
    assert "estimated to be fastest), not " in described[0]
    assert "direct, not winograd: the session asks for exact results" in described[1]


@MACHINES
def test_nothing_is_logged_at_other_levels(machine: Machine, caplog: pytest.LogCaptureFixture) -> None:
    g = Sketch()
    graph = g.done(g.add("MatMul", g.input(4, 8), g.constant(8, 16))).graph
    with caplog.at_level(logging.INFO, "lite.cpu.kernels"):
        compiled(machine, graph)
    assert not [record for record in caplog.records if record.name == "lite.cpu.kernels"]


def test_measured_times_are_a_reason_and_long_lists_are_cut(caplog: pytest.LogCaptureFixture) -> None:
    b = GraphBuilder("logged")
    b.output(b.add("Relu", [b.input("x", "float32", (2,))], name="first"), "y")
    graph, logger = b.build(), logging.getLogger("lite.test.kernels")
    with caplog.at_level(logging.DEBUG, "lite.test.kernels"):
        log = KernelLog(logger)
        log.choice("tiles of float32: rows 3", ["a", "b", "c", "d", "e"], "b", Choice("b", 2e-6, "a", 3e-6))
        log.choice("tiles of float32: rows 3", ["a"], "a", None)
        log.group(graph.nodes, ["step", "step", "other"])
        log.group(graph.nodes, [])
    assert [record.getMessage() for record in caplog.records] == [
        "first (Relu): step + other; tiles: b (measured: b takes 2.0 us, a 3.0 us), not a, c, d and 1 more",
        "first (Relu): no step: a view, or written elsewhere",
    ]
