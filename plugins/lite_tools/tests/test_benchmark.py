"""Statistics, memory, agreement, origins of options, and comparisons of measurements, on made-up numbers."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner

from lite_core.builder import GraphBuilder
from lite_core.errors import InputError
from lite_core.session import load
from lite_tools.benchmark import (
    Budget,
    Change,
    change_of_median,
    check_agreement,
    compare_documents,
    measure,
    summarize,
)
from lite_tools.benchmark.environment import model_digest
from lite_tools.benchmark.kernel_counts import KernelCounts, kernel_counts
from lite_tools.benchmark.memory import PeakMemory, resident_bytes
from lite_tools.benchmark.noise import SMALLEST_CHANGE
from lite_tools.benchmark.origins import environment_options, given_options, session_options
from lite_tools.benchmark.other_load import OtherLoad, OtherLoadMeter
from lite_tools.benchmark.saved import read_saved
from lite_tools.benchmark.turns import run_concurrently, run_in_turn

Turns = list[list[float]]

# **** statistics ****


def test_statistics() -> None:
    found = summarize([0.004, 0.001, 0.002, 0.003])
    assert (found.runs, found.min, found.max, found.p50) == (4, 0.001, 0.004, 0.0025)
    assert found.mean == pytest.approx(0.0025)
    assert found.std == pytest.approx(np.std([1, 2, 3, 4], ddof=1) * 1e-3)
    assert found.p50 <= found.p90 <= found.p95 <= found.p99 <= found.max
    assert found.in_milliseconds()["latency_p90_ms"] == pytest.approx(3.7)
    names = ["mean", "std", "min", "p50", "p90", "p95", "p99", "max"]
    assert [*found.in_milliseconds()] == [f"latency_{name}_ms" for name in names]
    assert summarize([0.5]).std == 0


# **** noise ****


def noisy(seed: int, median: float = 0.010, turns: int = 20) -> Turns:
    """Turns as a real machine has them: single runs with a long tail, and turns that differ by some percent."""
    rng = np.random.default_rng(seed)
    levels = median * np.exp(rng.normal(0, 0.03, turns))
    return [(level * np.exp(rng.gamma(1.0, 0.02, 9))).tolist() for level in levels]


def change(before: Turns, after: Turns) -> Change:
    return change_of_median(*([time for turn in turns for time in turn] for turns in (before, after)))


def test_pure_noise_is_called_noise() -> None:
    verdicts = [change(noisy(2 * seed), noisy(2 * seed + 1)).verdict for seed in range(100)]
    assert verdicts.count("no difference") >= 95


@pytest.mark.parametrize(("factor", "verdict"), [(1.1, "slower"), (0.9, "faster")])
def test_a_planted_change_is_found(factor: float, verdict: str) -> None:
    changes = [change(noisy(seed), noisy(seed + 1, 0.010 * factor)) for seed in range(10)]
    assert {change.verdict for change in changes} == {verdict}
    assert sum(change.low <= factor - 1 <= change.high for change in changes) >= 9
    assert str(changes[0]).startswith(f"{verdict} by ")


def test_changes_too_small_to_mean_anything_are_not_reported() -> None:
    quiet = [0.010, 0.010001, 0.009999] * 10
    found = change_of_median(quiet, [time * (1 + SMALLEST_CHANGE / 2) for time in quiet])
    assert found.low > 0
    assert found.verdict == "no difference"
    assert "no difference above 3.0 % seen" in str(found)
    assert change_of_median(quiet, quiet).verdict == "no difference"


def test_few_runs_tell_nothing() -> None:
    found = change_of_median([0.01, 0.01], [0.02] * 50)
    assert found.verdict == "too few runs"
    assert found.as_dict()["change_percent"] is None
    assert "at least 5" in str(found)
    few = change_of_median([0.01, 0.011, 0.01, 0.012, 0.01], [0.02, 0.022, 0.02, 0.023, 0.02])
    assert few.verdict == "slower"


def test_a_machine_that_drifts_raises_no_alarm() -> None:
    """Other load that comes and goes within a measurement shifts its median; the spread of long batches shows it."""
    rng = np.random.default_rng(0)
    verdicts = []
    for _ in range(40):
        measured = []
        for _ in range(2):
            slow = np.repeat(rng.choice([1.0, 1.5], 10), 20)
            measured.append((0.01 * slow * np.exp(rng.gamma(1.0, 0.05, slow.size))).tolist())
        verdicts.append(change_of_median(*measured).verdict)
    assert verdicts.count("no difference") >= 38


# **** two measurements ****


def document(turns: Turns, **changes: Any) -> dict[str, Any]:
    option = {"name": "threads", "value": "2", "origin": "default"}
    in_ms = [[1e3 * seconds for seconds in turn] for turn in turns]
    result = {"name": "x86", "devices": ["x86"], "options": [option], "load_ms": 3.0, "compile_ms": 4.0}
    result |= {"first_run_ms": 5.0, "latencies_ms": in_ms, "latencies_under_load_ms": []}
    found = {"schema_version": 1, "model": "m.onnx", "model_sha256": "aa", "options": []}
    found["input_types"] = {"x": "float32[1]"}
    return {**found, "environment": {"processor": "A"}, "results": [result], **changes}


def test_a_planted_slowdown_is_named() -> None:
    found = compare_documents(document(noisy(1)), document(noisy(2, 0.0115)))
    assert found.unlike == []
    (row,) = found.rows
    assert (row.name, row.figure, row.change.verdict) == ("x86", "median latency", "slower")
    data = found.as_dict("a.json")
    assert data["changes"][0]["change_low_percent"] < 15 < data["changes"][0]["change_high_percent"]
    assert [each["figure"] for each in data["measured_once"]] == ["load", "compile", "first_run"]


def test_other_machines_models_and_options_are_said() -> None:
    before = document(noisy(1), model_sha256="bb", environment={"processor": "B"}, input_types={"x": "float32[2]"})
    before["options"] = [{"name": "--seed", "value": "7", "origin": "command line"}]
    before["other_load"] = {"busy": 2.0, "processors": 4}
    before["results"][0]["options"] = [{"name": "threads", "value": "1", "origin": "command line"}]
    before["results"].append({**before["results"][0], "name": "host"})
    lines = compare_documents(before, document(noisy(2))).unlike
    assert len(lines) == 7
    parts = (
        "models differ",
        "processor: B then, A now",
        "2.0 of 4 processors",
        "inputs",
        "--seed was 7",
        "threads was 1",
    )
    assert all(part in line for line, part in zip(lines, parts))


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("", "not JSON"),
        ("[1]", "list"),
        ('{"schema_version": 2}', "schema_version is 2"),
        (json.dumps({**document([]), "results": [{"name": 3}]}), "result 0 has no name"),
        (json.dumps(document([[-1.0]])), "latencies_ms"),
        (json.dumps(document([[1.0]], other_load={"busy": "much"})), "other_load"),
        (json.dumps(document([[float("nan")]])), "latencies_ms"),
    ],
)
def test_other_files_are_refused(content: str, named: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(InputError, match=named) as raised:
        read_saved(str(tmp_path / "a.json"))
    assert "--save FILE" in str(raised.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    for name, problem in (("nowhere.json", r"nowhere\.json' cannot be read"), ("", "is not a file of at most")):
        with pytest.raises(InputError, match=problem):
            read_saved(str(tmp_path / name))


def test_digest_of_a_model_covers_its_weights_but_no_results(tmp_path: Path) -> None:
    model = tmp_path / "net.onnx"
    for name in ("net.onnx", "net.onnx_data", "net.bin", "other.bin", "net.json"):
        (tmp_path / name).write_text(name)
    digests = [model_digest(str(model), {})]
    for name in ("other.bin", "net.json", "net.onnx_data", "net.bin", "net.onnx"):
        (tmp_path / name).write_text("changed")
        digests.append(model_digest(str(model), {}))
    assert [a == b for a, b in pairwise(digests)] == [True, True, False, False, False]
    assert len(model_digest(str(tmp_path), {})) == 64
    assert model_digest(str(tmp_path / "no/where"), {}) == ""


# **** memory ****


def test_peak_of_a_phase() -> None:
    memory = PeakMemory()
    if memory.peak_bytes() is None:
        pytest.skip("this system resets no peak of resident memory")
    before = resident_bytes()
    assert before is not None
    np.ones(1 << 26, np.uint8).sum()  # so large that the C library always returns it to the system
    assert (memory.peak_bytes() or 0) >= before + (1 << 25)
    memory.reset()
    assert (memory.peak_bytes() or 0) < before + (1 << 25)


def test_peak_is_not_known_where_it_cannot_be_reset(tmp_path: Path) -> None:
    (tmp_path / "status").write_text("VmHWM:\t  1024 kB\nVmRSS:\t 512 kB\n")
    (tmp_path / "clear_refs").mkdir()
    assert resident_bytes(tmp_path) == 512 * 1024
    memory = PeakMemory(tmp_path)
    assert (memory.peak_bytes() or 1 << 20) >= 1 << 20  # known only if this process has just grown
    assert resident_bytes(tmp_path / "nowhere") is None


# **** other processes ****


def test_load_of_other_processes(tmp_path: Path) -> None:
    file = tmp_path / "stat"
    file.write_text("cpu  100 0 50 900 5 1 1 2 0 0\ncpu0 1 2 3\n")
    meter = OtherLoadMeter(file)
    file.write_text("cpu  100000000 0 50 900 5 1 1 2 0 0\ncpu0 1 2 3\n")
    found = meter.read()
    if found is None:
        pytest.skip("this system has no clock ticks")
    assert not found.is_quiet
    assert "processors busy" in str(found)
    assert OtherLoad(0.05, 2).is_quiet
    assert OtherLoadMeter(tmp_path / "nowhere").read() is None


# **** runs ****


def test_runs_in_turns() -> None:
    calls: list[int] = []
    assert len(run_in_turn(lambda: calls.append(1), 60.0, most=7, warm=True)) == 7
    assert len(run_in_turn(lambda: calls.append(1), 0.0, most=7, warm=False)) == 1
    assert len(calls) == 9


def test_concurrent_runs_overlap() -> None:
    together = threading.Barrier(3)
    load_turn = run_concurrently(lambda: together.wait(30), 3, 60.0, most=2, warm=True)
    assert len(load_turn.latencies) == 6
    assert load_turn.rate > 0


def test_failure_of_a_concurrent_run_is_raised() -> None:
    calls: list[int] = []

    def fails_later() -> None:
        calls.append(1)
        if len(calls) == 2:
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        run_concurrently(fails_later, 2, 0.0, most=1, warm=True)


def relu() -> Any:
    builder = GraphBuilder("relu")
    builder.output(builder.add("Relu", [builder.input("x", "float32", [2])]), "y")
    return builder.build()


def test_a_measurement_counts_as_many_runs_as_asked() -> None:
    makers: dict[str, Callable[[], Any]] = {name: lambda: load(relu(), backend="host") for name in ("a", "b")}
    inputs = {"x": np.array([-1, 2], np.float32)}
    found = measure(makers, lambda session: inputs, Budget(warmup=0, iterations=6, seconds=0.0, concurrent=2))
    assert [(each.name, len(each.runs)) for each in found] == [("a", 6), ("b", 6)]
    assert found[0].under_load is not None
    assert found[0].under_load.runs == 6
    assert found[0].throughput > 0
    assert [*found[0].phases] == ["before", "load", "compile", "first_run", "runs", "concurrent_runs"]
    np.testing.assert_array_equal(found[1].outputs["y"], [0, 2])


def test_nothing_to_measure() -> None:
    with pytest.raises(InputError, match="0 sessions"):
        measure({}, lambda session: {})
    with pytest.raises(InputError, match="0 s"):
        Budget(seconds=0)


class Counting:
    name = "counting"
    counts = (3, 2, 0.5)

    def kernel_counts(self) -> tuple[int, int, float]:
        return self.counts


def test_kernels_found_and_compiled() -> None:
    before = kernel_counts([Counting(), object()])["counting"]  # type: ignore[list-item]
    assert KernelCounts(5, 2, 0.5) - before == KernelCounts(2, 0, 0.0)


# **** agreement ****


def test_outputs_that_differ_are_named() -> None:
    expected = {"y": np.array([0, 1, 2], np.float32)}
    near, far = {"y": expected["y"] + np.float32(1e-6)}, {"y": expected["y"] + np.float32(0.5)}
    assert check_agreement([("a", expected), ("b", near)], 1e-3).ok
    found = check_agreement([("a", expected), ("b", near), ("c", far)], 1e-3)
    assert found.exceeding() == [("c", "y", pytest.approx(0.25))]
    assert "c differs from a in 'y' by 0.25" in found.sentences()[0]
    for wrong in ({}, {"y": np.zeros(2, np.float32)}, {"y": np.array([0, 1, np.nan], np.float32)}):
        assert check_agreement([("a", expected), ("b", wrong)], 1e-3).exceeding()[0][2] == float("inf")
    alone = check_agreement([("a", expected)], 1e-3)
    assert (alone.ok, alone.sentences()) == (True, [])


# **** options ****


def test_origins_of_options(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LITE_BACKEND", "LITE_BACKENDS"):
        monkeypatch.delenv(name, raising=False)
    session = load(relu(), backend="host", threads=2)
    found = {o.name: (o.value, o.origin) for o in session_options(session, "host", 2, None)}
    assert found["backend"] == ("host", "command line")
    assert found["threads"] == ("2", "command line")
    assert found["precision"] == ("float32", "default")
    assert session_options(session, None, None, None)[0].origin == "default"
    assert session_options(session, None, None, None)[1].origin.startswith("default")
    monkeypatch.setenv("LITE_BACKEND", "host")
    monkeypatch.setenv("LITE_SAVED", "ignore")
    assert session_options(session, "x86", None, None)[0] == ("backend", "host", "environment variable LITE_BACKEND")
    assert ("LITE_SAVED", "ignore", "environment variable") in environment_options()


def test_origins_of_a_commands_options() -> None:
    shown: list[Any] = []

    @click.command()
    @click.option("--warmup", default=3)
    @click.option("--seed", default=0)
    @click.pass_context
    def command(context: click.Context, warmup: int, seed: int) -> None:
        shown.extend(given_options(context, {"warmup": "--warmup", "seed": "--seed"}))

    CliRunner().invoke(command, ["--seed", "0"], catch_exceptions=False)
    assert [tuple(option) for option in shown] == [("--warmup", "3", "default"), ("--seed", "0", "command line")]
