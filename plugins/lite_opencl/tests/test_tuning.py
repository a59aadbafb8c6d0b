"""Tuning: measurements are stored, all candidates agree, and failures of candidates do not fail a run."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from opencl_agreement import normal, runtime_of_kind, single_node
from opencl_convolution_case import ConvolutionCase as Case
from opencl_device import first_device, first_runtime, run_executable, saved_pieces

import lite_core as lite
from lite_compiler.tournaments.choice import Choice
from lite_compiler.tournaments.chooser import Chooser
from lite_core.backend import Options, Partition, Stale
from lite_core.ir import DType, Graph
from lite_core.ops.evaluate import evaluate_graph
from lite_opencl.compiled.executable import OpenClExecutable
from lite_opencl.device.devices import FoundDevice
from lite_opencl.device.runtime import DeviceRuntime
from lite_opencl.lowering import convolution, convolution_gemm, products, winograd
from lite_opencl.lowering.compile import compile_graph, lower_graph
from lite_opencl.lowering.convolution_choice import Algorithm, gemm_tiles
from lite_opencl.programs.library import ProgramLibrary
from lite_opencl.tuning.stopwatch import Stopwatch
from lite_opencl.tuning.table import TuningTable
from lite_tools.cli.convert import command as convert_command
from lite_tools.cli.run import command as run_command

SAME = {"pads": (1, 1, 1, 1)}

#: Graphs with candidates, large enough for all of them and small enough for the reference.
GRAPHS: dict[str, Callable[[], Graph]] = {
    "dense": lambda: Case(6, 20, (13, 19), (3, 3), SAME, batch=2).graph("float32"),
    "winograd": lambda: Case(48, 40, (17, 34), (3, 3), SAME, tail="residual").graph("float32"),
    "depthwise": lambda: Case(12, 12, (37, 21), (3, 3), SAME, groups=12).graph("float32"),
    "weights of the run": lambda: Case(9, 20, (9, 12), (1, 1), weights="input").graph("float32"),
    "product": lambda: single_node("MatMul", [normal(19, 33), normal(33, 70, seed=1)], {}, constants=1),
    "product of inputs": lambda: single_node("MatMul", [normal(2, 19, 33), normal(2, 33, 70, seed=1)], {}),
    "few rows": lambda: single_node("Gemm", [normal(3, 300), normal(70, 300, seed=1)], {"transB": 1}),
}


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TuningTable:
    """Replace the device's table by an empty one in a separate folder."""
    table = TuningTable(first_runtime().found, tmp_path)
    monkeypatch.setattr(first_runtime(), "tuning", table)
    return table


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit the candidates of each kind to the first and the last, since building all of them takes long."""
    for module, name in (
        (convolution, "winograd_algorithms"),
        (convolution_gemm, "gemm_tiles"),
        (winograd, "transform_tiles"),
        (products, "product_forms"),
    ):
        every = getattr(module, name)
        monkeypatch.setattr(module, name, partial(first_and_last, every))


def first_and_last(every: Callable[..., list[Any]], *given: Any, **named: Any) -> list[Any]:
    candidates = every(*given, **named)
    return candidates[:1] + candidates[1:][-1:]


def agree(graph: Graph, runtime: DeviceRuntime, options: Options) -> None:
    inputs = [normal(*v.shape, seed=i) for i, v in enumerate(graph.inputs)]
    (expected,) = evaluate_graph(graph, inputs)
    (found,) = run_executable(compile_graph(graph, options, runtime), graph, inputs)
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5 * np.abs(expected).max())


# **** candidates ****


class Forced(Chooser[Any]):
    """Choose a given algorithm, and otherwise the candidate with a given number, or the last one; record them."""

    def __init__(self, number: int, algorithm: Algorithm | None = None) -> None:
        super().__init__()
        self._number = number
        self._algorithm = algorithm
        self.candidates: set[str] = set()
        self.chosen: set[str] = set()

    def choose(self, problem: str, candidates: Sequence[Any], steps: object) -> Any:
        if self._algorithm in candidates:
            return self._algorithm
        chosen = candidates[min(self._number, len(candidates) - 1)]
        self.candidates |= {f"{problem} {candidate}" for candidate in candidates}
        self.chosen.add(f"{problem} {chosen}")
        return chosen


def force(monkeypatch: pytest.MonkeyPatch, number: int, algorithm: Algorithm | None = None) -> Forced:
    forced = Forced(number, algorithm)
    monkeypatch.setattr("lite_opencl.lowering.compile.Chooser", lambda *_: forced)
    return forced


@pytest.mark.full("opencl")
@pytest.mark.parametrize(
    ("kind", "name", "algorithm"),
    [
        *((kind, "dense", Algorithm("product")) for kind in ("CPU", "GPU")),
        *((kind, "winograd", Algorithm("winograd", 4)) for kind in ("CPU", "GPU")),
        *((kind, "depthwise", Algorithm("depthwise")) for kind in ("CPU", "GPU")),
        ("CPU", "depthwise", Algorithm("product")),
        ("CPU", "weights of the run", None),
        *((kind, "product", None) for kind in ("CPU", "GPU")),
        ("CPU", "product of inputs", None),
        *((kind, "few rows", None) for kind in ("CPU", "GPU")),
    ],
)
def test_every_candidate_agrees_with_the_reference(
    kind: str, name: str, algorithm: Algorithm | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, runtime = GRAPHS[name](), runtime_of_kind(kind)
    chosen: set[str] = set()
    number = 0
    while True:
        forced = force(monkeypatch, number, algorithm)
        agree(graph, runtime, Options())
        chosen, number = chosen | forced.chosen, number + 1
        if chosen == forced.candidates:
            break
    assert number > 1 or algorithm == Algorithm("product")


@pytest.mark.parametrize("outputs", [1, 2, 5, 6, 64])
@pytest.mark.parametrize("positions", [1, 3, 8, 49, 12544])
@pytest.mark.parametrize("gpu", [True, False])
def test_candidates_fit_and_differ(outputs: int, positions: int, gpu: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FoundDevice, "is_gpu", gpu)
    found = first_runtime().found
    tiles = gemm_tiles(found, DType.FLOAT32, outputs, positions)
    assert len({str(tile) for tile in tiles}) == len(tiles)
    for tile in tiles:
        assert tile.width <= positions
        assert math.prod(tile.local) <= found.largest_group


@pytest.mark.parametrize(
    ("cores", "outputs", "positions", "blocks"), [(2, 64, 12544, 8), (64, 64, 49, 1), (2, 16, 784, 3)]
)
def test_processor_work_groups_compute_several_blocks_if_enough_groups_are_left(
    cores: int, outputs: int, positions: int, blocks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FoundDevice, "is_gpu", False)
    found = replace(first_runtime().found, compute_units=cores)
    assert gemm_tiles(found, DType.FLOAT32, outputs, positions)[0].local == (1, blocks, 1)


def test_exact_sessions_have_no_winograd_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    forced = force(monkeypatch, 0)
    lower_graph(GRAPHS["winograd"](), Options(exact=True), first_runtime())
    assert forced.candidates
    assert not any("winograd" in name for name in forced.candidates)


# **** measuring ****


@pytest.mark.full("opencl")
def test_tuned_session_agrees_and_stores_its_choices(table: TuningTable, tmp_path: Path, few: None) -> None:
    graph = GRAPHS["winograd"]()
    agree(graph, first_runtime(), Options(tune=True))
    stored = stored_choices(tmp_path)
    assert {problem.partition(" ")[0] for problem in stored} >= {"convolution", "winograd_product", "winograd_input"}
    executable = compile_graph(graph, Options(), first_runtime())
    assert executable.compiled.choices
    assert executable.compiled.choices.items() <= stored.items()


def stored_choices(folder: Path) -> dict[str, Choice]:
    """Return the choices in the only table of a folder."""
    (file,) = folder.glob("tuning-*.json")
    return {problem: Choice(**item) for problem, item in json.loads(file.read_text())["choices"].items()}


@pytest.mark.full("opencl")
def test_failing_candidate_has_infinite_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The candidates are one that cannot be built, and one that cannot be launched."""
    (good,) = lower_graph(GRAPHS["product"](), Options(), first_runtime()).steps
    unbuildable = replace(good, kernel=good.kernel._replace(defines=()))
    unlaunchable = replace(good, global_size=(7, 7, 7), kernel=good.kernel._replace(local=(2, 1, 1)))
    for bad in (unbuildable, unlaunchable):
        with caplog.at_level(logging.INFO, "lite.opencl.tuning"):
            seconds, infinite = Stopwatch(first_runtime())([good], [bad])
        assert 0 < seconds < math.inf
        assert infinite == math.inf
        assert caplog.records
        caplog.clear()


# **** the model file ****


@pytest.mark.full("opencl")
def test_restored_partition_offers_its_choices(table: TuningTable, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second of two candidates is chosen everywhere, and chosen again for another partition after restoring."""
    backend, device = first_device()
    runtime, graph = first_runtime(), GRAPHS["dense"]()
    monkeypatch.setattr(Chooser, "_tournament", second_of_two)
    tuned = compile_graph(graph, Options(tune=True), runtime)
    empty = TuningTable(runtime.found, None)
    monkeypatch.setattr(runtime, "tuning", empty)
    restored = backend.restore(saved_pieces(tuned), Partition("tuned", graph), device, Options(tune=True))
    assert isinstance(restored, OpenClExecutable)
    again = compile_graph(graph, Options(), runtime)
    assert again.compiled.choices
    assert all(choice.name != choice.usual for choice in again.compiled.choices.values())
    assert restored.compiled.choices == tuned.compiled.choices
    agree(graph, runtime, Options())


def second_of_two(self: Chooser[Any], compare: object, by_name: dict[str, Any], steps: object) -> Choice:
    usual, second, *_ = by_name
    return Choice(second, 1.0, usual, 2.0)


@pytest.mark.full("opencl")
def test_tuning_session_rejects_untuned_saved_state(table: TuningTable) -> None:
    backend, device = first_device()
    part = Partition("plain", GRAPHS["product"]())
    pieces = saved_pieces(compile_graph(part.graph, Options(), first_runtime()))
    assert isinstance(backend.restore(pieces, part, device, Options(tune=True)), Stale)
    assert not isinstance(backend.restore(pieces, part, device, Options()), Stale)


@pytest.mark.full("opencl")
def test_session_tunes_on_request(table: TuningTable, few: None, tmp_path: Path) -> None:
    graph = GRAPHS["product"]()
    x = {v.name: normal(*v.shape) for v in graph.inputs}
    lite.load(graph, "opencl").run(x)
    assert not list(tmp_path.iterdir())
    lite.load(graph, "opencl", tune=True).run(x)
    assert stored_choices(tmp_path)


@pytest.mark.full("opencl")
def test_tuned_model_file_is_not_measured_again(
    table: TuningTable, few: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file made by `lite convert --tune` serves a session that tunes on a machine with an empty table."""
    plain, tuned = tmp_path / "plain.lite", tmp_path / "tuned.lite"
    runtime, measured = first_runtime(), []
    tournament = Chooser._tournament

    def recorded_tournament(self: Chooser[Any], *arguments: Any) -> Choice:
        measured.append(self)
        return tournament(self, *arguments)

    def has_measured(command: Any, *words: str) -> bool:
        monkeypatch.setattr(runtime, "tuning", TuningTable(runtime.found, None))
        measured.clear()
        result = CliRunner().invoke(command, words)
        assert result.exit_code == 0, result.output
        return bool(measured)

    monkeypatch.setattr(Chooser, "_tournament", recorded_tournament)
    lite.convert(GRAPHS["product"](), plain, "opencl")
    assert not measured
    assert has_measured(convert_command, str(plain), "-o", str(tuned), "--targets", "opencl", "--tune")
    assert not has_measured(run_command, str(tuned), "--backend", "opencl", "--tune")
    assert has_measured(run_command, str(plain), "--backend", "opencl", "--tune")


@pytest.mark.full("opencl")
def test_programs_of_rejected_candidates_are_not_cached(
    table: TuningTable, few: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = first_runtime()
    monkeypatch.setattr(runtime, "programs", ProgramLibrary(runtime.context, runtime.found, tmp_path))
    compile_graph(GRAPHS["product"](), Options(tune=True), runtime)
    assert runtime.programs.statistics.misses == 2
    assert len(list(tmp_path.glob("*.bin"))) == 1
