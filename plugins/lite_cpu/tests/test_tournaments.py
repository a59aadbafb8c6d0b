"""Tournaments of kernels on this processor: held on request, recorded, used again, and kept in saved programs."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from convolution_case import ConvolutionCase
from levels import LevelBackend, runnable_machines
from saving import DEVICE, buffers, content, refusal, restored, saved

from lite_compiler.tournaments.choice import Choice
from lite_core.backend import Options, Partition
from lite_core.ir import Graph
from lite_cpu import choices
from lite_cpu.comparison import ColdComparison
from lite_cpu.executable import CpuExecutable
from lite_cpu.lowering.compile import lower_graph
from lite_cpu.lowering.weights import WeightCache
from lite_cpu.machine_code.library import KernelLibrary
from lite_cpu.saved.frame import read_frame, write_frame

pytestmark = pytest.mark.skipif(not runnable_machines(), reason="the levels are those of x86-64")

CASE = ConvolutionCase(16, 16, (14, 14), (3, 3), pads=(1, 1, 1, 1))
OTHER_SIZE = ConvolutionCase(16, 16, (9, 20), (3, 3), pads=(1, 1, 1, 1))
ALGORITHMS = ("direct", "winograd f2x2", "winograd f4x4")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the records of tournaments in a separate folder; compiled kernels stay where they are."""
    monkeypatch.setattr(choices, "cache_folder", lambda kind: tmp_path / "records")
    return tmp_path / "records"


@pytest.fixture
def no_measuring(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any) -> tuple[float, float]:
        raise AssertionError("candidates are measured")

    monkeypatch.setattr(ColdComparison, "__call__", refuse)


def compiled(graph: Graph, **options: Any) -> CpuExecutable:
    """Compile with a new backend, which has read no records."""
    executable = LevelBackend(runnable_machines()[-1]).compile(Partition("part", graph), DEVICE, Options(**options))
    assert isinstance(executable, CpuExecutable)
    return executable


def algorithm(executable: CpuExecutable, case: ConvolutionCase = CASE) -> str:
    """Return the algorithm of the convolution, by the label in a profile."""
    inputs, outputs, scratch = buffers(executable, case.graph("float32"), case.inputs())
    (label,) = {time.name for time in executable.run_profiled(inputs, outputs, scratch)} & {*ALGORITHMS}
    return label


def record(name: str, case: ConvolutionCase = CASE, **options: Any) -> None:
    """Record that an algorithm has won the tournament of a convolution."""
    table = LevelBackend(runnable_machines()[-1])._share().choices()
    options = {"threads": 1, **options}
    size = "x".join(map(str, case.size))
    table.add(
        f"convolution of float32 float32: images 1, groups 1, channels 16>16, image {size}, kernel 3x3, strides 1x1, "
        f"dilations 1x1, begin 1x1, end 1x1, threads {options['threads']}",
        Choice(name, 1e-6, "winograd f4x4", 2e-6),
    )


def test_tournament_is_held_on_request_and_recorded(folder: Path) -> None:
    graph = CASE.graph("float32")
    assert not compiled(graph, threads=1).notes
    assert not folder.exists()
    tuned = compiled(graph, threads=1, tune=True)
    (file,) = folder.glob("tuning-*.json")
    assert "convolution of float32" in file.read_text()
    again = compiled(graph, threads=1)
    assert algorithm(again) == algorithm(tuned)
    assert "tuned now" in tuned.notes[0]
    assert "tuned before" in again.notes[0]


@pytest.mark.parametrize("name", ALGORITHMS)
def test_recorded_choice_is_used_without_measuring(folder: Path, no_measuring: None, name: str) -> None:
    record(name)
    assert algorithm(compiled(CASE.graph("float32"), threads=1)) == name


def test_choice_holds_for_its_sizes_and_threads_only(folder: Path) -> None:
    usual = algorithm(compiled(CASE.graph("float32"), threads=1))
    other = next(name for name in ALGORITHMS if name != usual)
    record(other, threads=2)
    record(other, OTHER_SIZE)
    assert algorithm(compiled(CASE.graph("float32"), threads=1)) == usual


def test_exact_sessions_do_not_use_a_recorded_winograd(folder: Path, no_measuring: None) -> None:
    record("winograd f4x4")
    assert algorithm(compiled(CASE.graph("float32"), threads=1, exact=True, tune=True)) == "direct"


def test_damaged_record_is_ignored_with_a_log_line(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    graph = CASE.graph("float32")
    usual = algorithm(compiled(graph, threads=1))
    record(next(name for name in ALGORITHMS if name != usual))
    (file,) = folder.glob("tuning-*.json")
    file.write_text(file.read_text()[:-20])
    with caplog.at_level(logging.INFO, "lite.cpu.tuning"):
        assert algorithm(compiled(graph, threads=1)) == usual
    assert str(file) in caplog.text


# **** saved programs ****


def test_saved_choices_are_used_without_records_and_when_compiling_again(
    folder: Path, no_measuring: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine, graph = runnable_machines()[-1], CASE.graph("float32")
    record("direct")
    pieces = saved(compiled(graph, threads=1, tune=True))
    monkeypatch.setattr(choices, "cache_folder", lambda kind: None)
    for tune in (False, True):
        executable = restored(machine, pieces, graph, threads=1, tune=tune)
        assert algorithm(executable) == "direct"
        assert "file" in executable.notes[0]
    backend, part = LevelBackend(machine), Partition("part", graph)
    backend.restore(pieces, part, DEVICE, Options(threads=1))
    again = backend.compile(part, DEVICE, Options(threads=1))
    assert isinstance(again, CpuExecutable)
    assert algorithm(again) == "direct"


def test_tuning_sessions_refuse_programs_that_were_saved_without_tournaments(folder: Path) -> None:
    machine, graph = runnable_machines()[-1], CASE.graph("float32")
    pieces = saved(compiled(graph, threads=1))
    assert "measuring" in refusal(machine, pieces, graph, threads=1, tune=True)
    restored(machine, pieces, graph, threads=1)


def test_tuning_sessions_refuse_choices_of_another_processor(folder: Path, no_measuring: None) -> None:
    machine, graph = runnable_machines()[-1], CASE.graph("float32")
    record("direct")
    pieces = _changed(saved(compiled(graph, threads=1, tune=True)), tuned="another processor")
    assert "this processor" in refusal(machine, pieces, graph, threads=1, tune=True)
    assert algorithm(restored(machine, pieces, graph, threads=1)) == "direct"


@pytest.mark.parametrize("damaged", [["direct"], {"convolution": {"name": "direct"}}, {"convolution": 1}])
def test_damaged_choices_in_a_saved_program_are_ignored_with_a_log_line(
    folder: Path, damaged: object, caplog: pytest.LogCaptureFixture
) -> None:
    graph = CASE.graph("float32")
    pieces = _changed(saved(compiled(graph, threads=1)), choices=damaged)
    with caplog.at_level(logging.INFO, "lite.cpu.tuning"):
        executable = restored(runnable_machines()[-1], pieces, graph, threads=1)
    assert algorithm(executable) in ALGORITHMS
    assert not executable.notes
    assert "damaged" in caplog.text


def _changed(pieces: Sequence[memoryview], **entries: object) -> list[memoryview]:
    """Return pieces with other entries in the program's description."""
    frame = read_frame(memoryview(content(pieces[0])))
    return [memoryview(write_frame({**frame.description, **entries}, [bytes(frame.body)])), *pieces[1:]]


# **** measuring ****


def test_both_candidates_are_timed() -> None:
    library = KernelLibrary(runnable_machines()[-1])
    fast, slow = (
        lower_graph(case.graph("float32"), Options(threads=1), library, WeightCache()) for case in (CASE, OTHER_SIZE)
    )
    assert all(0 < seconds < 1 for seconds in ColdComparison(library, 1)(fast.steps, slow.steps))
