"""Cures that `lite check` names: there is always one, and what it says is true of the backends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from lite_core.backend import No, Yes
from lite_core.builder import GraphBuilder
from lite_core.errors import OperatorProblem
from lite_core.ir import Graph, Node
from lite_core.kernel_backend import KernelBackend
from lite_core.plugins import plugins_with
from lite_tools.cli.check import command
from lite_tools.examining.cures import ALLOW_FALLBACK, NodeCures, command_of_cures, cure_of_problem
from lite_tools.writing import write_model


class Picky(KernelBackend):
    """A backend that runs Relu in float32 with known sizes only."""

    def __init__(self, name: str = "picky") -> None:
        super().__init__(name)

    def supports(self, node: Node, device: Any) -> Yes | No:
        (x,) = node.inputs
        if node.op != "Relu":
            return No(f"there is no kernel for {node.op}")
        if str(x.dtype) != "float32":
            return No(f"{x.dtype} is not implemented")
        return Yes() if x.type.is_static else No("its size is not known")


class Willing(Picky):
    """A backend that runs everything."""

    def supports(self, node: Node, device: Any) -> Yes | No:
        return Yes()


def graph(op: str = "Relu", dtype: str = "float32", dims: list[int | str] | None = None) -> Graph:
    b = GraphBuilder("g")
    b.output(b.add(op, [b.input("x", dtype, dims or [1, 4])], name="node"), "y")
    return b.build()


def cure(found: Graph, *backends: KernelBackend, **how: str) -> str:
    return NodeCures(found, plugins_with(*backends)).of("node", ["picky"], **how)


def test_another_element_type_helps() -> None:
    assert "picky runs it in float32: export the model with float64 as float32" in cure(graph(dtype="float64"), Picky())


def test_known_sizes_help() -> None:
    assert "picky runs it when the sizes are known" in cure(graph(dims=["n", 4]), Picky())
    assert "--shape x=1x4" in cure(graph(dims=["n", 4]), Picky())


def test_another_backend_helps() -> None:
    assert cure(graph("Exp"), Picky(), Willing("willing")) == "willing runs it: --backend picky,willing"
    assert cure(graph("Exp"), Picky(), Willing("willing"), host=ALLOW_FALLBACK) == (
        "willing runs it: --targets picky,willing --allow-fallback"
    )
    found = cure(graph("Exp"), Picky(), *(Willing(name) for name in "abc"))
    assert "a, b and c run it" in found


def test_host_runs_what_no_other_backend_runs() -> None:
    found = cure(graph("Exp"), Picky(), host=ALLOW_FALLBACK)
    assert "host runs it, by its slow reference, with --allow-fallback" in found
    assert "lite new-plugin kernel-backend" in found
    assert "pip install" in found  # packages that are not among the plugins of this test


def test_nothing_is_to_be_done_where_another_device_was_chosen() -> None:
    assert cure(graph("Exp"), Picky(), runs_on="willing") == "nothing: willing runs it"
    assert "copies to it would take longer" in cure(graph(), Picky(), runs_on="host")


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("lite-onnx has no lowering for it (opset 17)", "lite new-plugin operator my_op"),
        ("the size of axis 2 of 'x' is not known before the model runs", "fixed input sizes"),
        ("there is not enough memory for it: 3", "smaller sizes"),
        ("it takes 8-bit integers, not float16", "float32"),
        ("its attribute 'scales' is missing", "export it again"),
        ("it keeps past and present in one buffer", "in a form without this"),
    ],
)
def test_problems_of_readers_have_a_cure(reason: str, expected: str) -> None:
    assert expected in cure_of_problem(OperatorProblem("acme.MyOp", reason, ("n",)))


def test_the_cure_of_the_reader_comes_first() -> None:
    assert cure_of_problem(OperatorProblem("Op", "why", ("n",), "pip install acme")) == "pip install acme"
    assert command_of_cures(["sorry", "pip install --upgrade onnx lite-onnx, or export it"]) == (
        "pip install --upgrade onnx lite-onnx"
    )
    assert command_of_cures(["sorry", "lite plugins lite-acme"]) == "lite plugins lite-acme"
    assert command_of_cures(["did you mean Relu?"]) == "lite ops"


@pytest.fixture
def model(tmp_path: Path) -> str:
    """A model whose only operator x86 and OpenCL do not have."""
    b = GraphBuilder("det")
    b.output(b.add("Det", [b.input("x", "float32", [1, 3, 3])]), "y")
    write_model(tmp_path / "det.lite", b.build())
    return str(tmp_path / "det.lite")


@pytest.mark.parametrize(
    ("words", "key"),
    [
        (["-b", "numba"], "refusals"),
        (["-b", "numba", "--no-fallback"], "problems"),
        (["--targets", "numba"], "refusals"),
    ],
)
def test_check_says_what_to_do(model: str, words: list[str], key: str) -> None:
    shown = CliRunner().invoke(command, [model, *words, "--json"])
    document = json.loads(shown.stdout)
    assert all(row["remedy"] for row in document[key])
    assert document[key]
    text = CliRunner().invoke(command, [model, *words]).output
    assert "what to do" in text


def test_arrays_are_not_changed(model: str) -> None:
    found = graph(dtype="float64")
    cure(found, Picky())
    assert {str(value.dtype) for value in found.defined()} == {"float64"}
    assert np.dtype(found.inputs[0].dtype.numpy) == np.float64


def test_cure_of_an_inference_that_fails_is_a_report_to_its_package() -> None:
    reason = (
        "it does not fit Lite's operators: node 'echo' (zenith.Echo) on (float32[4, 8], int64[]): the inference of "
        "zenith.Echo, in the module lite_zenith.operators of lite-zenith 0.1.0, failed with KeyError: 'x'"
    )
    cure = cure_of_problem(OperatorProblem("zenith.Echo", reason, ("y",)))
    assert "report it to the authors of lite-zenith" in cure
    assert command_of_cures([cure]) == "lite plugins lite-zenith"
