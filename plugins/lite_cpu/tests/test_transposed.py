"""ConvTranspose: strides, pads and sizes compared with the reference in float64, on each level of this processor."""

from __future__ import annotations

from dataclasses import replace

import pytest
from convolution_case import ConvolutionCase as Case
from convolution_case import difference, steps_of
from levels import machine_params, run_on

from lite_cpu.machine import X86_64_V3, Machine

LEVELS = pytest.mark.parametrize("machine", machine_params())

TWICE = Case(8, 16, (7, 5), (2, 2), (2, 2), op="ConvTranspose")
CASES = {
    "2x2-stride-2": TWICE,
    "2x2-stride-2-residual": replace(TWICE, batch=2, tail="residual"),
    "2x2-stride-2-one-channel": replace(TWICE, outputs=1, batch=2),
    "2x2-stride-2-groups": replace(TWICE, groups=2),
    "2x2-stride-2-weights-of-the-run": replace(TWICE, weights="input"),
    "4x4-stride-2": replace(TWICE, kernel=(4, 4), pads=(1, 1, 1, 1)),
    "3x3-stride-1": replace(TWICE, channels=64, size=(9, 9), kernel=(3, 3), strides=(1, 1), pads=(1, 1, 1, 1)),
    "dilation-against-stride": replace(TWICE, kernel=(3, 3), strides=(3, 1), dilations=(2, 3)),
    "dilation-shares-a-factor": replace(TWICE, kernel=(3, 3), strides=(4, 2), dilations=(2, 2)),
    "more-stride-than-kernel": replace(TWICE, strides=(3, 3), more={"output_padding": (2, 0)}),
    "pads-that-cut-off-inputs": replace(TWICE, kernel=(3, 3), pads=(3, 3, 3, 3)),
    "larger-than-covered": replace(TWICE, kernel=(3, 3), more={"output_shape": (16, 14)}),
}


@LEVELS
@pytest.mark.parametrize("name", CASES)
def test_agrees_with_the_reference(name: str, machine: Machine) -> None:
    assert difference(CASES[name], machine) < 5e-6


@LEVELS
@pytest.mark.parametrize("name", ["2x2-stride-2", "4x4-stride-2"])
def test_results_do_not_depend_on_the_number_of_threads(name: str, machine: Machine) -> None:
    graph, inputs = CASES[name].graph("float32"), CASES[name].inputs()
    one, two = (run_on(machine, graph, inputs, threads=threads)["y"] for threads in (1, 2))
    assert one.tobytes() == two.tobytes()


def test_windows_that_do_not_overlap_are_one_product_for_each_row_of_the_filter() -> None:
    assert [s.label for s in steps_of(TWICE, X86_64_V3) if s.flops] == ["gemm", "gemm"]


def test_windows_that_overlap_are_one_convolution_for_each_phase() -> None:
    assert [s.label for s in steps_of(CASES["4x4-stride-2"], X86_64_V3) if s.flops] == ["direct"] * 4
