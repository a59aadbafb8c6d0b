"""The table of Paddle's operators: what they become is recorded, and backends are asked about that."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from lite_core import ops
from lite_core.ir import Node
from lite_paddle.lowering.operators import supported_ops
from lite_paddle.operator_table import HOST, NATIVE, NO, rows
from lite_paddle.recorded_nodes import Recorder, recorded_nodes, recorded_operators

SCRIPTS = Path(__file__).parents[3] / "scripts"


def test_every_lowered_operator_is_recorded() -> None:
    """If not: run scripts/record_paddle_nodes.py."""
    assert sorted(set(supported_ops()) - set(recorded_operators())) == []
    opset = {definition.qualified_name for definition in ops.all_ops()}
    assert sorted({node.qualified_op for node in recorded_nodes()} - opset) == []


def test_recorded_nodes_are_read_back() -> None:
    again = Recorder()
    for operator, numbers in recorded_operators().items():
        again.add(operator, [recorded_nodes()[number] for number in numbers])
    assert json.loads(again.text())["operators"] == recorded_operators()


@pytest.mark.full("paddle-lite")
def test_recorded_nodes_are_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    """If not: run scripts/record_paddle_nodes.py --scanned."""
    monkeypatch.syspath_prepend(SCRIPTS)
    from record_paddle_nodes import FILE, record_scanned

    recorder = Recorder()
    record_scanned(recorder)
    new, stored = _with_graphs(json.loads(recorder.text())), _with_graphs(json.loads(FILE.read_text(encoding="utf-8")))
    changed = [operator for operator, nodes in new.items() if nodes != stored.get(operator)]
    assert changed == []


def _with_graphs(document: dict[str, Any]) -> dict[str, list[Any]]:
    """Return each operator with its nodes, in which the numbers of sub-graphs are replaced by the sub-graphs."""

    def resolved(data: Any) -> Any:
        if isinstance(data, list):
            return [resolved(item) for item in data]
        if isinstance(data, dict):
            return {key: document["graphs"][item] if key == "graph" else resolved(item) for key, item in data.items()}
        return data

    nodes = [resolved(node) for node in document["nodes"]]
    chosen = {name: [nodes[n] for n in numbers] for name, numbers in document["operators"].items()}
    return {name: sorted(found, key=str) for name, found in chosen.items()}


def test_a_backend_is_asked_about_the_nodes() -> None:
    """A backend with kernels for MatMul alone: native is what becomes only that, or nothing."""

    def refuse(node: Node) -> str | None:
        return None if node.op == "MatMul" else f"it has no {node.op}"

    found = {row.name: row for row in rows({"toy": refuse})}
    assert found["bmm"].backends == {"toy": NATIVE}
    assert found["write_to_array"].backends == {"toy": NATIVE}
    assert found["feed"].backends == {"toy": NATIVE}
    assert found["relu"].backends == {"toy": HOST}
    assert found["relu"].to_host == {"toy": {"Relu": "it has no Relu"}}
    assert found["while"].backends == {"toy": HOST}
    assert found["warpctc"].backends == {"toy": NO}
    assert "loss" in found["warpctc"].reason


def test_a_loop_is_native_if_its_body_is() -> None:
    """Host drives loops that a backend refuses; the backend runs what is in them."""
    found = {row.name: row for row in rows({"toy": lambda node: "no loops" if node.subgraphs else None})}
    assert found["while"].backends == {"toy": NATIVE}
    assert "Loop" in found["while"].operators


def test_command(monkeypatch: pytest.MonkeyPatch) -> None:
    from lite_tools.cli.ops import command

    monkeypatch.setenv("LITE_BACKENDS", "host")
    described = CliRunner().invoke(command, ["--paddle", "conv2d", "--json"])
    assert described.exit_code == 0, described.output
    (row,) = json.loads(described.stdout)["operators"]
    assert (row["name"], row["backends"], row["operators"]) == ("conv2d", {"host": HOST}, ["Conv"])
    assert "strides" in row["attributes"]
    unknown = CliRunner().invoke(command, ["--paddle", "conv2"])
    assert unknown.exit_code == 2
    assert "conv2d" in unknown.output
    left_out = CliRunner().invoke(command, ["--paddle", "warpctc"])
    assert "it computes a loss, in training only" in left_out.output
    listed = CliRunner().invoke(command, ["--paddle"])
    assert "conv2d" in listed.output
    assert "can be read" in listed.output
    assert "--paddle" in CliRunner().invoke(command, ["--help"]).output
    assert CliRunner().invoke(command, ["Conv"]).exit_code == 0
