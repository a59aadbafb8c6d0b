"""``lite inspect``: the graph before and after the passes, and graphs as data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from installed_plugins import install, lite

from lite_core import GraphBuilder, load
from lite_core.container import ModelFile
from lite_tools import plugin
from lite_tools.cli.graph_data import graph_to_dict
from lite_tools.commands import LazyCommand
from lite_tools.writing import write_model

PASS = """
from lite_core.passes import PassResult
from lite_core.plugins import hookimpl

LITE_API_VERSION = 1

class ReluToAbs:
    name = "relu_to_abs"

    def __call__(self, graph):
        found = [node for node in graph.nodes if node.op == "Relu"]
        for node in found:
            node.op = "Abs"
        return PassResult(graph, bool(found))

@hookimpl
def lite_passes():
    return [ReluToAbs()]
"""


PARTS = {"graph": ["--ops", "--weights"], "memory": ["--memory"], "sections": ["--sections"]}


def ops_shown(shown: Any) -> dict[str, int]:
    counts: dict[str, int] = json.loads(shown.stdout)["op_counts"]
    return counts


def test_optimized_runs_passes_of_plugins(site: Path, relu_model: Path) -> None:
    install(site, "abs", PASS)
    assert ops_shown(lite(site, "inspect", str(relu_model), "--json")) == {"Relu": 1, "Identity": 1}
    assert ops_shown(lite(site, "inspect", str(relu_model), "--optimized", "--json")) == {"Abs": 1}


def test_optimized_does_not_run_passes_on_an_optimized_file(tmp_path: Path, relu_model: Path) -> None:
    optimized = tmp_path / "optimized.lite"
    write_model(optimized, ModelFile.open(relu_model).graph(), optimized=True)
    for file, expected in ((relu_model, {"Relu": 1}), (optimized, {"Relu": 1, "Identity": 1})):
        shown = lite(tmp_path, "inspect", str(file), "--optimized", "--json")
        assert ops_shown(shown) == load(file).graph.op_counts() == expected


@pytest.mark.parametrize(
    "words",
    [
        ["run", "MODEL"],
        ["check", "MODEL"],
        ["check", "MODEL", "--targets", "host"],
        ["inspect", "MODEL"],
        ["inspect", "MODEL", "--optimized"],
        ["inspect", "MODEL", "--memory"],
        ["inspect", "MODEL", "--sections"],
        ["convert", "MODEL", "-o", "OUTPUT", "--targets", "host", "--no-verify"],
    ],
    ids=" ".join,
)
def test_file_is_opened_once(
    tmp_path: Path, relu_model: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    opened: list[str] = []
    real = ModelFile.open

    def counted(path: Any) -> ModelFile:
        opened.append(str(path))
        return real(path)

    monkeypatch.setattr(ModelFile, "open", staticmethod(counted))
    paths = {"MODEL": str(relu_model), "OUTPUT": str(tmp_path / "out.lite")}
    name, *rest = (paths.get(word, word) for word in words)
    (command,) = (c for c in plugin.lite_commands() if c.name == name)
    assert isinstance(command, LazyCommand)
    shown = CliRunner().invoke(command, rest)
    assert shown.exit_code == 0, shown.output
    assert opened.count(str(relu_model)) == 1


def test_parts_are_shown_one_after_another(tmp_path: Path, relu_model: Path) -> None:
    shown = lite(tmp_path, "inspect", str(relu_model), "--ops", "--weights", "--memory", "--sections", "--origins")
    assert shown.returncode == 0, shown.stderr
    heads = ["operator  count", "constant  type  KiB", "graph relu(", "arena (KiB)", "section  offset"]
    positions = [shown.stdout.find(head) for head in heads]
    assert positions == sorted(positions), shown.stdout
    assert min(positions) >= 0, shown.stdout


def test_several_parts_are_one_document(tmp_path: Path, relu_model: Path) -> None:
    alone = [
        json.loads(lite(tmp_path, "inspect", str(relu_model), *words, "--json").stdout) for words in PARTS.values()
    ]
    every = [word for words in PARTS.values() for word in words]
    together = json.loads(lite(tmp_path, "inspect", str(relu_model), *every, "--json").stdout)
    for name, part in zip(PARTS, alone):
        assert {"schema_version": 1, **together[name]} == part


def test_backend_options_need_memory(tmp_path: Path, relu_model: Path) -> None:
    shown = lite(tmp_path, "inspect", str(relu_model), "-O", "x86.mkl=never")
    assert shown.returncode == 2
    assert "--memory" in shown.stderr


def test_graph_to_dict_includes_sub_graphs() -> None:
    b = GraphBuilder("branch")
    condition, x = b.input("condition", "bool", []), b.input("x", "float32", ["n"])
    bodies = []
    for op in ("Identity", "Neg"):
        inner = GraphBuilder(op.lower(), outer=b)
        inner.output(inner.add(op, [x]))
        bodies.append(inner.build())
    b.output(b.add("If", [condition], {"then_branch": bodies[0], "else_branch": bodies[1]}), "y")
    data = json.loads(json.dumps(graph_to_dict(b.build())))
    assert data["inputs"][1] == {"name": "x", "dtype": "float32", "shape": ["n"]}
    assert data["nodes"][0]["attributes"]["else_branch"]["nodes"][0]["op"] == "Neg"
