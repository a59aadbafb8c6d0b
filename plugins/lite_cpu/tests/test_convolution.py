"""Dense convolution: every algorithm and its edges compared with the reference in float64, on each level."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from convolution_case import ConvolutionCase as Case
from convolution_case import difference, steps_of
from guard_page import before_a_guard_page
from levels import machine_params, run_on

from lite_core import load
from lite_core.builder import GraphBuilder
from lite_cpu.kernels.direct import Direct
from lite_cpu.lowering.registry import find_lowering
from lite_cpu.machine import X86_64_V3, Machine

Array = np.ndarray[Any, Any]

LEVELS = pytest.mark.parametrize("machine", machine_params())

CASES = {
    "pointwise": Case(5, 20, (9, 8), (1, 1), batch=2),
    "pointwise-stride-2": Case(16, 40, (9, 7), (1, 1), (2, 2), batch=2, tail="residual"),
    "pointwise-groups": Case(12, 36, (9, 7), (1, 1), (2, 2), groups=3, batch=2),
    "pointwise-stride-over-columns": Case(8, 8, (6, 9), (1, 1), (1, 3), tail="scale"),
    "picture-3x3-stride-2": Case(3, 16, (17, 19), (3, 3), (2, 2), (1, 1, 1, 1)),
    "picture-7x7-stride-2": Case(3, 24, (37, 41), (7, 7), (2, 2), (3, 3, 3, 3), batch=2),
    "two-planes": Case(2, 9, (8, 40), (3, 5), (2, 1), (1, 2, 0, 1), (1, 2)),
    "one-channel": Case(1, 7, (10, 10), (5, 5), (1, 1), (2, 2, 2, 2)),
    "groups": Case(6, 10, (9, 11), (3, 3), (1, 1), (1, 1, 1, 1), groups=2, batch=2, tail="residual"),
    "dilation-by-row": Case(8, 24, (12, 12), (3, 3), (1, 1), (2, 1, 2, 1), (2, 1)),
    "pads-beyond-the-kernel": Case(4, 6, (5, 5), (3, 3), (1, 1), (5, 5, 5, 5)),
    "more-stride-than-kernel": Case(9, 8, (11, 11), (2, 2), (3, 3), tail="scale"),
    "whole-picture": Case(5, 17, (6, 6), (6, 6)),
    "short-rows": Case(8, 72, (13, 14), (3, 3), (2, 2), (1, 1, 1, 1), batch=2, tail="residual"),
    "short-rows-dilated": Case(8, 130, (9, 9), (3, 3), (1, 1), (2, 2, 2, 2), (2, 2), groups=2),
    "short-rows-of-pixels": Case(24, 16, (9, 13), (1, 1), (2, 2), batch=2),
    "weights-of-the-run": Case(6, 40, (9, 9), (3, 3), (1, 1), (1, 1, 1, 1), weights="input"),
    "weights-of-the-run-in-groups": Case(6, 10, (7, 7), (3, 3), (2, 2), (1, 1, 1, 1), groups=2, weights="input"),
    "pointwise-weights-of-the-run": Case(6, 10, (7, 7), (1, 1), weights="input"),
}
PICTURE = CASES["picture-7x7-stride-2"]


@LEVELS
@pytest.mark.parametrize("name", CASES)
def test_agrees_with_the_reference(name: str, machine: Machine) -> None:
    assert difference(CASES[name], machine) < 3e-6


@LEVELS
@pytest.mark.parametrize("name", ["pointwise-stride-2", "picture-7x7-stride-2", "groups"])
def test_results_do_not_depend_on_the_number_of_threads(name: str, machine: Machine) -> None:
    graph, inputs = CASES[name].graph("float32"), CASES[name].inputs()
    one, two = (run_on(machine, graph, inputs, threads=threads)["y"] for threads in (1, 2))
    assert one.tobytes() == two.tobytes()


@LEVELS
def test_non_finite_inputs_affect_only_their_windows(machine: Machine) -> None:
    case = CASES["dilation-by-row"]
    inputs = case.inputs()
    inputs["x"][0, 3, 4, 5], inputs["x"][0, 0, 11, 11] = np.inf, np.nan
    found = run_on(machine, case.graph("float32"), inputs)["y"]
    expected = load(case.graph("float32"), backend="host").run(inputs)["y"]
    assert np.array_equal(np.isnan(found), np.isnan(expected))
    assert np.array_equal(np.isinf(found), np.isinf(expected))


@pytest.mark.skipif(sys.platform != "linux", reason="protects memory by Linux' mprotect")
@LEVELS
@pytest.mark.parametrize("name", ["pointwise", "picture-7x7-stride-2", "two-planes", "pads-beyond-the-kernel"])
def test_no_read_beyond_the_input(name: str, machine: Machine) -> None:
    inputs = CASES[name].inputs()
    expected = run_on(machine, CASES[name].graph("float32"), inputs)["y"]
    found = run_on(machine, CASES[name].graph("float32"), {"x": before_a_guard_page(inputs["x"])})["y"]
    assert found.tobytes() == expected.tobytes()


def test_a_picture_is_read_from_its_planes() -> None:
    first = steps_of(PICTURE, X86_64_V3)[0]
    assert first.label == "direct"


def test_more_than_two_dimensions_are_refused_with_a_reason() -> None:
    b = GraphBuilder("volume")
    x = b.input("x", "float32", (1, 2, 4, 4, 4))
    b.output(b.add("Conv", [x, b.constant(np.zeros((3, 2, 1, 1, 1), "float32"))], {}), "y")
    function, reason = find_lowering(b.build().nodes[0])
    assert function is None
    assert "one or two spatial dimensions" in reason


def test_short_rows_become_one_product() -> None:
    case = Case(32, 256, (14, 14), (3, 3), (2, 2), (1, 1, 1, 1))
    (step,) = (s for s in steps_of(case, X86_64_V3) if s.label == "direct")
    assert isinstance(step.kernel, Direct)
    assert step.kernel.gathered
