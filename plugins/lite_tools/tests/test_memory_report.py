"""``lite inspect --memory``: the reported memory is that of a run."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from lite_core.backend import Buffer, Device, Executable, Interval, MemoryUse, No, Options, Partition, Yes
from lite_core.builder import GraphBuilder
from lite_core.ir import Graph, Node
from lite_core.ops.evaluate import evaluate_graph
from lite_core.plugins import plugins_with
from lite_core.session import load
from lite_tools.cli.inspect import command
from lite_tools.cli.memory import memory_report, print_memory_report
from lite_tools.writing import write_model

ROW = 4 * 64  # bytes of each row of a tensor of the chain


def chain() -> Graph:
    """Build operators that alternate between two backends: tensors of 256 bytes a row, of which two live at once."""
    b = GraphBuilder("chain")
    x = b.input("x", "float32", ["n", 64])
    for op in ("Neg", "Exp", "Neg", "Exp"):
        x = b.add(op, [x])
    b.output(b.add("Neg", [b.add("Add", [x, b.constant(np.ones((1, 64), np.float32))])]), "y")
    return b.build()


class Partial:
    """A backend for some operators, in main memory."""

    def __init__(self, name: str, ops: set[str], use: MemoryUse | None = None) -> None:
        self.name = name
        self._ops = ops
        self._use = use

    def probe(self) -> list[Device]:
        return [Device(self.name)]

    def supports(self, node: Node, device: Device) -> Yes | No:
        return Yes() if node.op in self._ops else No(f"{self.name} has no {node.op}")

    def compile(self, part: Partition, device: Device, options: Options) -> Executable:
        return PartialRun(part) if self._use is None else ReportingRun(part, self._use)


class PartialRun:
    scratch_bytes = 0

    def __init__(self, part: Partition) -> None:
        self._graph = part.graph

    def run(self, inputs: Any, outputs: Any, scratch: Buffer | None) -> None:
        for buffer, result in zip(outputs, evaluate_graph(self._graph, [b.data for b in inputs])):
            buffer.store(result)


class ReportingRun(PartialRun):
    scratch_bytes = 1000

    def __init__(self, part: Partition, use: MemoryUse) -> None:
        super().__init__(part)
        self._use = use

    def memory_use(self) -> MemoryUse:
        return self._use


USE = MemoryUse(192, (Interval(64, 0, 1), Interval(100, 1, 2), Interval(64, 2, 3)), scratch_bytes=808, weight_bytes=512)


def report(rows: int) -> dict[str, Any]:
    plugins = plugins_with(Partial("even", {"Neg"}), Partial("odd", {"Exp", "Add"}, USE))
    session = load(chain(), backend=["even", "odd"], fallback="never", plugins=plugins)
    return memory_report(session.plan({"x": (rows, 64)}))


@pytest.mark.parametrize("rows", [1, 3])
def test_arena_of_a_memory_space(rows: int) -> None:
    (arena,) = report(rows)["arenas"]
    scratch, size = 1024, rows * ROW  # 1,000 bytes of scratch, rounded up to a multiple of 64
    assert arena["space"] == "host"
    assert arena["size"] == arena["lower_bound"] == scratch + 2 * size
    assert arena["without_reuse"] == 2 * 1000 + 4 * size


def test_memory_of_partitions() -> None:
    silent, reporting, *_ = parts = report(1)["partitions"]
    assert [p["backend"] for p in parts] == ["even", "odd", "even", "odd", "even"]
    assert (silent["arena"], silent["scratch"], silent["constants"], silent["weights"]) == (None, 0, 0, None)
    assert reporting["arena"]["lower_bound"] == reporting["arena"]["size"] == 192
    assert reporting["arena"]["without_reuse"] == 228
    assert (reporting["scratch"], reporting["weights"], parts[3]["constants"]) == (808, 512, ROW)


def test_backend_that_does_not_report_its_allocations() -> None:
    plugins = plugins_with(Partial("even", {"Neg", "Exp", "Add"}, MemoryUse(4096, (), 0, 0)))
    (part,) = memory_report(load(chain(), backend="even", plugins=plugins).plan({"x": (1, 64)}))["partitions"]
    assert part["arena"] == {"size": 4096, "lower_bound": None, "without_reuse": None}


@pytest.mark.parametrize(
    ("memory_use", "fault"),
    [
        (lambda: {}["oops"], "memory_use() failed with KeyError: 'oops'"),
        (lambda: sys.exit(3), "memory_use() failed with SystemExit: 3"),
        (lambda: (192, 0), "memory_use() returned tuple, expected a MemoryUse"),
        (lambda: None, "memory_use() returned NoneType, expected a MemoryUse"),
    ],
)
def test_backend_whose_memory_report_fails_is_named_and_the_rest_is_reported(
    memory_use: Callable[[], Any], fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    even = Partial("even", {"Neg", "Exp", "Add"}, USE)
    session = load(chain(), backend="even", plugins=plugins_with(even))
    plan = session.plan({"x": (1, 64)})
    vars(plan.compiled[0].executable)["memory_use"] = memory_use
    found = memory_report(plan)
    (part,) = found["partitions"]
    assert (part["arena"], part["scratch"], part["weights"]) == (None, 1000, None)
    assert part["constants"] == ROW
    assert found["arenas"]
    (warning,) = (record.getMessage() for record in caplog.records if record.levelname == "WARNING")
    assert warning.startswith("backend 'even' (this process), partition ")
    assert warning.endswith(fault)


def test_tables_show_all_arenas(capsys: pytest.CaptureFixture[str]) -> None:
    print_memory_report(report(1))
    shown = capsys.readouterr().out
    assert all(text in shown for text in ("host memory", "inside odd/"))


# **** the command ****


@pytest.fixture
def model(tmp_path: Path) -> str:
    """The file of the chain."""
    write_model(tmp_path / "chain.lite", chain(), optimized=False)
    return str(tmp_path / "chain.lite")


def inspect(*arguments: str) -> Result:
    return CliRunner().invoke(command, arguments)


def test_command_prints_a_report(model: str) -> None:
    shown = inspect(model, "--memory", "--shape", "x=2x64", "--backend", "host")
    assert shown.exit_code == 0
    assert "host/0" in shown.output
    data = json.loads(inspect(model, "--memory", "--shape", "x=2x64", "--backend", "host", "--json").output)
    assert data["inputs"] == {"x": [2, 64]}
    assert [part["nodes"] for part in data["partitions"]] == [6]


def test_open_batch_is_taken_as_one_with_a_note(model: str) -> None:
    shown = inspect(model, "--memory", "--backend", "host")
    assert shown.exit_code == 0
    assert "note: input x leaves its batch open: 1 is taken; for a batch of 8, --shape x=8x64" in shown.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--memory", "--optimized"], "--optimized"),
        (["--shape", "x=2x64"], "--memory"),
        (["--threads", "2"], "--memory"),
        (["--backend", "host"], "--memory"),
        (["--memory", "--shape", "x=2x65"], "x is float32[n, 64]"),
    ],
)
def test_wrong_usage(model: str, arguments: list[str], message: str) -> None:
    shown = inspect(model, *arguments)
    assert shown.exit_code == 2
    assert message in shown.output
