"""Winograd's filtering: both tile sizes compared with the reference in float64, and the choice of the algorithm."""

from __future__ import annotations

from dataclasses import replace

import pytest
from convolution_case import ConvolutionCase as Case
from convolution_case import difference, steps_of
from levels import machine_params, run_on, runnable_machines

from lite_cpu.lowering import algorithms
from lite_cpu.machine import X86_64_V3, Machine

LEVELS = pytest.mark.parametrize("machine", machine_params())
TILES = pytest.mark.parametrize("outputs", [2, 4])

CASES = {
    "whole-tiles": Case(16, 32, (8, 8), (3, 3), pads=(1, 1, 1, 1)),
    "odd-sizes": Case(5, 7, (9, 11), (3, 3), pads=(1, 1, 1, 1), batch=2),
    "odd-channels-residual": Case(33, 65, (13, 7), (3, 3), pads=(1, 1, 1, 1), tail="residual"),
    "no-padding": Case(20, 40, (7, 10), (3, 3)),
    "uneven-padding": Case(8, 9, (6, 6), (3, 3), pads=(0, 2, 3, 1)),
    "padding-beyond-a-tile": Case(4, 4, (3, 3), (3, 3), pads=(6, 6, 6, 6)),
    "one-output": Case(19, 18, (3, 3), (3, 3)),
}
# Lowering a convolution to Winograd's filtering transforms its weights by a native kernel.
NEEDS_AVX2 = pytest.mark.skipif(X86_64_V3 not in runnable_machines(), reason="the processor lacks AVX2")

LAYER = Case(64, 64, (28, 28), (3, 3), pads=(1, 1, 1, 1))


@LEVELS
@TILES
@pytest.mark.parametrize("name", CASES)
def test_agrees_with_the_reference(name: str, outputs: int, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(algorithms, "best_tile", lambda *_: outputs)
    assert difference(CASES[name], machine) < 5e-6


@LEVELS
@TILES
def test_results_do_not_depend_on_the_number_of_threads(
    outputs: int, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(algorithms, "best_tile", lambda *_: outputs)
    case = replace(LAYER, size=(19, 23), tail="residual")
    one, two = (run_on(machine, case.graph("float32"), case.inputs(), threads=n)["y"] for n in (1, 2))
    assert one.tobytes() == two.tobytes()


def test_errors_stay_small_over_many_channels() -> None:
    for machine in runnable_machines()[-1:]:
        assert difference(replace(LAYER, channels=512, size=(14, 14)), machine) < 1e-5


@pytest.mark.parametrize(
    ("case", "label"),
    [
        (LAYER, "winograd f4x4"),
        (replace(LAYER, size=(7, 7), channels=512, outputs=512), "winograd f2x2"),
        (replace(LAYER, channels=3), "direct"),
        (replace(LAYER, strides=(2, 2)), "direct"),
        (replace(LAYER, dilations=(2, 2)), "direct"),
        (replace(LAYER, groups=2), "direct"),
        (replace(LAYER, kernel=(3, 1)), "direct"),
        (replace(LAYER, kernel=(1, 1), strides=(2, 2), pads=(0, 0, 0, 0)), "gemm"),
        (replace(LAYER, weights="input"), "direct"),
    ],
)
@NEEDS_AVX2
def test_algorithm_is_chosen_by_the_geometry(case: Case, label: str) -> None:
    assert [s.label for s in steps_of(case, X86_64_V3) if s.flops] == [label]


def test_exact_sessions_do_not_use_winograd() -> None:
    assert [s.label for s in steps_of(LAYER, X86_64_V3, exact=True) if s.flops] == ["direct"]
