"""The part of a report that loads and runs the model, here in the process of the test."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lite_core as lite
from lite_core.container import ModelFile
from lite_tools.reporting import ReportRequest
from lite_tools.reporting.processes import End
from lite_tools.reporting.trial import cut_node, main
from lite_tools.writing import write_model


@pytest.fixture
def request_in(tmp_path: Path) -> Iterator[Any]:
    """A function that writes the request for a model of some operators, and returns its folder."""

    def write(*operators: str, **changes: Any) -> Path:
        b = lite.GraphBuilder("model")
        x = b.input("x", "float32", ["batch", 4])
        for number, op in enumerate(operators):
            x = b.add(op, [x], name=f"node_{number}")
        b.output(x, "y")
        write_model(tmp_path / "given.lite", b.build())
        asked = {**asdict(ReportRequest(str(tmp_path / "given.lite"), "host")), **changes}
        (tmp_path / "request.json").write_text(json.dumps(asked))
        return tmp_path

    return write


def facts_in(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "facts.json").read_text())
    return found


def test_model_that_runs(request_in: Any) -> None:
    folder = request_in("Exp", "Neg", shapes=["x=2x4"])
    assert main(folder) == 0
    facts = facts_in(folder)
    assert (facts["step"], facts["shapes"]) == ("ended", {"x": [2, 4]})
    assert facts["assignment"] == ["Exp 'node_0' on host", "Neg 'node_1' on host"]
    assert "host/0" in facts["plan"]
    assert not ModelFile.open(folder / "model.lite").targets
    with np.load(folder / "inputs.npz") as inputs:
        assert inputs["x"].shape == (2, 4)


def test_the_kernel_that_fails_is_left_behind(request_in: Any) -> None:
    folder = request_in("Exp", model=str(outside(request_in("Exp"))), shapes=["x=2x4"])
    assert main(folder) == 1
    assert json.loads((folder / "kernel.json").read_text()) == {"kernel": "host", "nodes": ["outside"]}
    facts = facts_in(folder)
    assert facts["step"] == "running"
    assert "outside" in facts["error"]["message"]


def outside(folder: Path) -> Path:
    """Write a model that reads a row behind the last one, which only a run finds out."""
    b = lite.GraphBuilder("outside")
    rows = b.add("Exp", [b.input("x", "float32", ["batch", 4])])
    b.output(b.add("Gather", [rows, b.constant(np.array([9]))], name="outside"), "y")
    write_model(folder / "outside.lite", b.build())
    return folder / "outside.lite"


def test_a_node_is_cut_out(request_in: Any) -> None:
    folder = request_in("Exp", "Neg", "Abs", nodes=["node_1"], sizes={"x": [3, 4]})
    assert cut_node(folder) == 0
    graph = ModelFile.open(folder / "node.lite").graph()
    assert [node.op for node in graph.nodes] == ["Neg"]
    with np.load(folder / "node_inputs.npz") as inputs:
        assert [array.shape for array in inputs.values()] == [(3, 4)]
    with pytest.raises(lite.LiteError, match="sub-graph"):
        cut_node(request_in("Exp", nodes=["elsewhere"], sizes={"x": [3, 4]}))


def test_options_of_the_user(request_in: Any) -> None:
    folder = request_in("Exp", shapes=["z=1"])
    assert main(folder) == 1
    assert facts_in(folder)["error"]["is_of_user"]


@pytest.mark.parametrize(
    ("code", "kind", "signal"), [(0, "ran", "exit code 0"), (1, "failed", "exit code 1"), (-11, "crashed", "SIGSEGV")]
)
def test_ends(code: int, kind: str, signal: str) -> None:
    end = End(code, "", "first\nlast\nFatal Python error: Segmentation fault\n\nStack\n")
    assert (end.kind, end.signal, end.last_line) == (kind, signal, "last")


def test_no_end() -> None:
    assert End(None, "", "waiting\n").kind == "hung"
