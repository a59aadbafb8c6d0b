"""Measurement of a processor: what is timed computes what it should, and noise changes no number."""

from __future__ import annotations

import numpy as np
import pytest
from levels import runnable_machines

from lite_cpu.aligned import aligned_empty
from lite_cpu.emitter import Emitter
from lite_cpu.kernels.reading import Read
from lite_cpu.machine import ARM_V8, X86_64_V3, X86_64_V4, Machine
from lite_cpu.machine_code.cache import KernelCache
from lite_cpu.machine_code.library import KernelLibrary
from lite_cpu.machine_code.objects import compile_ir
from lite_cpu.measuring.bandwidth import cold_memory, measure_bandwidth
from lite_cpu.measuring.measure import _unless_noise
from lite_cpu.measuring.products import measure_tile, tile_candidates
from lite_cpu.measuring.steps import measure_steps
from lite_cpu.measuring.stopwatch import Seconds, seconds_in_turns
from lite_cpu.runtime import Program, Step
from lite_cpu.tuning import Tuning

BEST = pytest.mark.parametrize("machine", runnable_machines()[-1:], ids=lambda machine: machine.name)


def library_of(machine: Machine) -> KernelLibrary:
    return KernelLibrary(machine, KernelCache(None))


@BEST
@pytest.mark.parametrize("ahead", [0, 2048])
def test_reading_adds_up_all_of_the_memory(ahead: int, machine: Machine) -> None:
    library, kernel = library_of(machine), Read(ahead)
    memory, result = aligned_empty((3 * 256,), np.float32), aligned_empty((machine.lanes(),), np.float32)
    memory[:] = np.arange(3 * 256)
    for stride, expected in ((1024, memory.sum()), (0, 3 * memory[:256].sum())):
        step = Step(library.addresses([kernel])[kernel], [(1, 0), (2, 0)], [1024, stride], 3, 3)
        Program([step], 0, 0, owners=[library]).run([0, memory.ctypes.data, result.ctypes.data])
        assert result.sum() == expected


def test_reading_compiles_for_arm() -> None:
    k = Emitter(ARM_V8)
    Read().emit(k)
    assert compile_ir(k.text(), ARM_V8).entries


@BEST
def test_bandwidth_of_memory_is_a_speed(machine: Machine) -> None:
    memory = aligned_empty((8 << 18,), np.float32)
    memory.fill(0.5)
    assert measure_bandwidth(library_of(machine), memory) > 0


def test_cold_memory_is_larger_than_the_caches() -> None:
    assert cold_memory({3: 40 << 20}).nbytes == 80 << 20
    assert cold_memory({}).nbytes == 64 << 20


@pytest.mark.parametrize(
    ("machine", "rows"),
    [
        (X86_64_V3, [0]),
        (X86_64_V4, [0, 14]),
        (X86_64_V4.with_tuning(Tuning(tile_rows=14)), [14, 0]),
        (ARM_V8, [0]),
    ],
)
def test_candidates_begin_with_what_is_known(machine: Machine, rows: list[int]) -> None:
    assert [tuning.tile_rows for tuning in tile_candidates(machine)] == rows


@BEST
def test_single_candidate_needs_no_measurement(machine: Machine) -> None:
    known = Tuning(source="known")
    assert measure_tile([(known, library_of(machine))], np.empty(0, np.float32)) is known


@BEST
def test_one_thread_has_no_barrier(machine: Machine) -> None:
    steps = measure_steps(library_of(machine), 1)
    assert steps.launch > 0
    assert steps.barrier is None


def test_turns_alternate() -> None:
    calls: list[str] = []
    found = seconds_in_turns({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, turns=3)
    assert calls == ["a", "b"] * 4
    assert all(seconds > 0 for seconds in found.values())


def test_disturbed_turns_do_not_count() -> None:
    seconds = Seconds([2.0, 2.0, 9.0, 9.0, 2.0, 2.0, 9.0, 9.0])
    assert (seconds, seconds.shortest, seconds.spread) == (2.0, 2.0, 0.0)
    assert Seconds([2.0, 3.0] * 4).spread == pytest.approx(0.5)


@pytest.mark.parametrize(("measured", "used"), [(13.0, 13.0), (25.0, 13.0), (7.0, 13.0), (50.0, 50.0), (3.0, 3.0)])
def test_noise_changes_no_number(measured: float, used: float) -> None:
    assert _unless_noise(measured, 13.0) == used
