"""``lite ops --backend``: the recorded nodes, and what backends answer about them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from lite_conformance.cases.plugins.brought import every_table
from lite_core import ops
from lite_core.backend import Unavailable
from lite_core.plugins import available_backends
from lite_tools.cli import lite
from lite_tools.examining.operator_nodes import operator_nodes


def run(*arguments: str) -> Result:
    return CliRunner().invoke(lite, ["ops", *arguments])


def shown(*arguments: str) -> dict[str, Any]:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.output)
    return found


def test_every_operator_is_recorded_in_each_type_of_its_cases() -> None:
    graph = operator_nodes()
    ops.verify(graph)
    tables = [table for table in every_table() if not table.is_of_plugin]
    wanted = {f"{table.definition.qualified_name}/{dtype}" for table in tables for _, dtype, _ in table.cases()}
    recorded = {node.name for node in graph.nodes}
    assert recorded == wanted, "run scripts/record_operator_nodes.py"
    assert all(node.name.rpartition("/")[0] == node.qualified_op for node in graph.nodes)


def test_host_runs_every_operator_in_every_type() -> None:
    found = shown("--backend", "host")
    assert not any(row["refused"] for row in found["operators"])
    assert len(found["operators"]) > 200


@pytest.mark.parametrize("backend", ["x86", "arm"])  # a machine has a device of one of them at most
def test_types_and_reasons_of_a_backend(backend: str) -> None:
    (conv,) = shown("conv", "-b", backend)["operators"]
    assert conv["operator"] == "Conv"
    assert "float32" in conv["runs_in"]
    assert "float32" in conv["refused"]["float64"]
    text = run("-b", backend).output
    assert "\nConv " in text
    assert f"{backend} refuses in every type:\n" in text
    absent = isinstance(available_backends()[backend].probe(), Unavailable)
    assert ("not on this machine" in text) == absent


def test_format_is_restricted_to_the_backend() -> None:
    rows = shown("--paddle", "relu", "--backend", "x86")["operators"]
    assert [*rows[0]["backends"]] == ["x86"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("-b", "nonsense"), 3, "nonsense"),
        (("-b", "nonsense", "--paddle"), 3, "nonsense"),
        (("Convv", "-b", "host"), 2, "did you mean"),
        (("StringConcat", "-b", "host"), 3, "depend on the model"),
    ],
)
def test_what_cannot_be_asked_is_an_error(arguments: tuple[str, ...], code: int, message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == code
    assert message in result.output
