"""Numbers that choices depend on: what they change, and what they must not change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from convolution_case import ConvolutionCase as Case
from convolution_case import steps_of
from levels import LevelBackend, runnable_machines
from random_graphs import Example
from saving import DEVICE, Sketch, compiled, convolutions, recurrent, restored, run, saved, transformer

from lite_core.backend import Options, Partition
from lite_cpu.executable import CpuExecutable
from lite_cpu.kernels.gemm import Gemm, GemmShape
from lite_cpu.kernels.tiles import gemm_tile
from lite_cpu.lowering.chaining import Chain
from lite_cpu.machine import X86_64_V3, X86_64_V4, Machine
from lite_cpu.tuning import Tuning, tuning_of_json, tuning_to_json

KERNEL = Gemm(Chain((), (), ()))


def tuned(machine: Machine, **numbers: Any) -> Machine:
    return machine.with_tuning(Tuning(**numbers))


def test_only_what_changes_code_is_in_the_key_of_a_kernel() -> None:
    key = KERNEL.key(X86_64_V4)
    numbers = {"winograd_weight": 50.0, "bandwidth": 1e9, "barrier_seconds": 1e-5, "source": "x"}
    assert KERNEL.key(tuned(X86_64_V4, **numbers)) == key
    others = {KERNEL.key(tuned(X86_64_V4, tile_rows=rows)) for rows in (8, 14)}
    assert len({key, *others}) == 3


@pytest.mark.parametrize(("machine", "rows"), [(X86_64_V4, 14), (X86_64_V3, 4)])
def test_tile_has_the_rows_of_the_tuning_and_panels_stay_as_wide(machine: Machine, rows: int) -> None:
    assert gemm_tile(tuned(machine, tile_rows=rows)) == (rows, gemm_tile(machine)[1])
    assert gemm_tile(tuned(machine)) == gemm_tile(machine)


LAYER = Case(512, 512, (7, 7), (3, 3), pads=(1, 1, 1, 1))


@pytest.mark.skipif(X86_64_V3 not in runnable_machines(), reason="the processor lacks AVX2")
@pytest.mark.parametrize(("price", "label"), [(1.0, "winograd f4x4"), (13.0, "winograd f2x2"), (200.0, "direct")])
def test_weights_that_cost_more_are_read_fewer_times(price: float, label: str) -> None:
    machine = tuned(X86_64_V3, winograd_weight=price)
    assert [step.label for step in steps_of(LAYER, machine) if step.flops] == [label]


def test_small_products_are_divided_only_if_threads_gain_from_it() -> None:
    shape = GemmShape(rows=64, depth=64, columns=64, a_row=64, c_row=64)
    for barrier, is_divided in ((1e-8, True), (1e-4, False)):
        machine = tuned(X86_64_V4, barrier_seconds=barrier)
        assert (shape.items(*shape.blocks(machine, 2)) > 1) == is_divided


def product() -> Example:
    """Return a product whose rows leave tiles of every height at the end."""
    g = Sketch()
    return g.done(g.add("MatMul", g.input(27, 24), g.constant(24, 75)))


@pytest.mark.skipif(X86_64_V4 not in runnable_machines(), reason="only AVX-512 has registers for several tiles")
@pytest.mark.parametrize(
    "make",
    [
        product,
        *(pytest.param(graph, marks=pytest.mark.full("cpu")) for graph in (convolutions, transformer, recurrent)),
    ],
)
def test_results_keep_every_bit(make: Callable[[], Example]) -> None:
    example = make()
    expected = run(compiled(X86_64_V4, example.graph), example.graph, example.inputs)
    other = tuned(X86_64_V4, tile_rows=14)
    found = run(compiled(other, example.graph), example.graph, example.inputs)
    assert [one.tobytes() for one in found] == [one.tobytes() for one in expected]


def test_saved_programs_and_weights_serve_every_tuning() -> None:
    """A program is restored as it was saved; weights that were packed for it serve one that is compiled here."""
    machine, example = runnable_machines()[-1], convolutions()
    other = tuned(machine, winograd_weight=200.0, barrier_seconds=1e-5, source="measured 2026-01-31")
    executable = compiled(machine, example.graph)
    pieces = saved(executable)
    expected = [array.tobytes() for array in run(executable, example.graph, example.inputs)]
    again = restored(other, pieces, example.graph)
    assert [array.tobytes() for array in run(again, example.graph, example.inputs)] == expected
    backend = LevelBackend(other)
    backend.restore(pieces, Partition("part", example.graph), DEVICE, Options())
    here = backend.compile(Partition("part", example.graph), DEVICE, Options())
    assert isinstance(here, CpuExecutable)
    for one, two in zip(run(here, example.graph, example.inputs), run(executable, example.graph, example.inputs)):
        np.testing.assert_allclose(one, two, atol=1e-5)  # Winograd's filtering may be chosen for other layers


def test_json() -> None:
    tuning = Tuning(14, 50.0, 2e10, 2e11, 1e-8, 1e-6, 16, True, "measured 2026-01-31")
    assert tuning_of_json(tuning_to_json(tuning)) == tuning
    assert tuning_of_json({**tuning_to_json(tuning), "flops": 1}) == replace(tuning, flops=1.0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tile_rows", 15),
        ("tile_rows", 1.0),
        ("flops", -1.0),
        ("bandwidth", {"l1": 1.0}),
        ("is_measured", 1),
    ],
)
def test_impossible_values_are_refused(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=name):
        tuning_of_json({**tuning_to_json(Tuning()), name: value})


@pytest.mark.parametrize("values", [None, [], {}, {"tile_rows": 0}])
def test_values_that_are_no_tuning_are_refused(values: Any) -> None:
    with pytest.raises(ValueError, match="Tuning"):
        tuning_of_json(values)


def test_descriptions() -> None:
    known = Tuning(14, 50.0, 14e9, threads=2)
    text = "\n".join(known.lines())
    for part in ("14 rows", "50 operations", "14 GB/s", "threads of use: 2"):
        assert part in text
    assert "unknown" in "\n".join(Tuning().lines())
