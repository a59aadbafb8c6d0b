"""Pictures of graphs: what they contain, how they are laid out, and the SVG files."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import click
import numpy as np
import pytest
from comparison_samples import HOSTILE, sample_report

from lite_core import GraphBuilder, load
from lite_core.errors import InputError
from lite_core.ir import Graph
from lite_tools.cli.inspect import command
from lite_tools.pages.graph import graph_page
from lite_tools.pages.page import printable
from lite_tools.pictures import (
    Annotations,
    KernelUse,
    Layout,
    NodeError,
    Picture,
    PictureNode,
    errors_of_comparison,
    kernels_of_profile,
    lay_out,
    layout,
    legend_of,
    observed_kernels,
    picture_of_graph,
    svg_file,
)
from lite_tools.pictures.layout import Box

SVG = "{http://www.w3.org/2000/svg}"


def chain() -> Graph:
    b = GraphBuilder("chain")
    x = b.input("x", "float32", [2, 3])
    added = b.add("Add", [b.add("Neg", [x], name="neg"), x], name="add")
    b.output(b.add("Relu", [added], name="relu"), "y")
    return b.build()


def branches() -> Graph:
    b = GraphBuilder("branches")
    condition, x = b.input("condition", "bool", []), b.input("x", "float32", ["n"])
    bodies = []
    for op in ("Abs", "Neg"):
        inner = GraphBuilder(op.lower(), outer=b)
        inner.output(inner.add(op, [x], name=op.lower()))
        bodies.append(inner.build())
    b.output(b.add("If", [condition], {"then_branch": bodies[0], "else_branch": bodies[1]}, name="choice"), "y")
    return b.build()


def in_a_column(picture: Picture) -> Layout:
    """Return a layout without Graphviz."""
    boxes = [Box(50, 40 * i, 80, 30) for i in range(len(picture.nodes))]
    return Layout(200, 40 * len(boxes), boxes, [Box(100, 50, 190, 90)] * len(picture.groups), [[]] * len(picture.edges))


def texts_of(svg: str) -> list[str]:
    """Return the texts of an SVG file; fails if it is not well-formed."""
    return [element.text or "" for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_picture_has_nodes_kernels_times_and_errors() -> None:
    known = Annotations(
        devices={"neg": "x86", "add": "x86", "relu": "host"},
        refusals={"relu": ["x86: not today"]},
        kernels=[KernelUse("fused", ("neg", "add"), "x86", 0.002), KernelUse("relu_f32", ("relu",), "host", 0.00005)],
        errors={"add": NodeError(0.25, "diverges", "off by one")},
    )
    picture = picture_of_graph(chain(), known)
    assert [node.op for node in picture.nodes if node.kind == "node"] == ["Neg", "Add", "Relu"]
    assert [node.kind for node in picture.nodes] == ["input", "node", "node", "node", "output"]
    assert [(group.title, group.kind) for group in picture.groups] == [("fused · 2.000 ms", "kernel")]
    assert [node.group for node in picture.nodes] == [None, 0, 0, None, None]
    assert len(picture.edges) == 5
    add, relu = picture.nodes[2], picture.nodes[3]
    assert (add.device, add.seconds, add.error, add.status) == ("x86", 0.002, 0.25, "diverges")
    assert ("kernel", "fused, 2.000 ms, with 1 other node(s)") in add.facts
    assert ("reason", "off by one") in add.facts
    assert ("refused by", "x86: not today") in relu.facts
    assert ("kernel", "relu_f32, 50.0 µs") in relu.facts
    assert picture.colours == ("error", "time", "device")
    texts = texts_of(svg_file(picture, in_a_column(picture), "error"))
    assert {"neg", "add", "relu", "x", "fused · 2.000 ms", "x86 · 2.000 ms · error 0.25"} <= {*texts}


def test_bodies_of_control_flow_are_groups_whose_results_reach_the_node() -> None:
    picture = picture_of_graph(branches())
    assert [group.title for group in picture.groups] == ["then_branch of choice", "else_branch of choice"]
    index = {node.name: i for i, node in enumerate(picture.nodes)}
    assert [picture.nodes[index[name]].group for name in ("abs", "neg", "choice")] == [0, 1, None]
    edges = {(edge.source, edge.target) for edge in picture.edges}
    pairs = (("x", "abs"), ("x", "neg"), ("abs", "choice"), ("neg", "choice"), ("condition", "choice"))
    assert {(index[a], index[b]) for a, b in pairs} <= edges


def test_kernels_are_observed() -> None:
    session = load(chain(), "host")
    plan = session.plan()
    kernels = observed_kernels(plan, [np.zeros((2, 3), np.float32)])
    assert [kernel.nodes for kernel in kernels] == [("neg",), ("add",), ("relu",)]


def test_layout_has_places_for_everything() -> None:
    pytest.importorskip("pygraphviz", reason="pictures need the extra lite-tools[pictures]")
    picture = picture_of_graph(branches())
    found = lay_out(picture)
    heights = {node.name: box.y for node, box in zip(picture.nodes, found.boxes)}
    assert heights["condition"] < heights["choice"]
    assert heights["x"] < heights["abs"] < heights["choice"]
    for node, box in zip(picture.nodes, found.boxes):
        assert box.width / 2 <= box.x <= found.width - box.width / 2, node
        if node.group is not None:
            frame = found.frames[node.group]
            assert abs(box.x - frame.x) <= (frame.width - box.width) / 2
            assert abs(box.y - frame.y) <= (frame.height - box.height) / 2
    for path, edge in zip(found.paths, picture.edges):
        assert len(path) % 3 == 1
        assert path[0][1] == pytest.approx(found.boxes[edge.source].y, abs=40)
    svg = svg_file(picture, found, "device")
    assert {"Abs", "Neg", "If", "choice", "then_branch of choice"} <= {*texts_of(svg)}


def test_hostile_names_are_text_in_svg_and_page() -> None:
    nodes = [PictureNode(name, name, device=name, facts=((name, name),)) for name in HOSTILE]
    picture = Picture(HOSTILE[0], nodes)
    svg = svg_file(picture, in_a_column(picture), "device")
    titles = [title.text for title in ElementTree.fromstring(svg).iter(f"{SVG}title")]
    assert all(any(printable(name) in (title or "") for title in titles) for name in HOSTILE)
    page = graph_page(picture, in_a_column(picture), HOSTILE[0])
    assert len(re.findall("<script", page)) == 2
    assert "<img" not in page
    assert not re.search("[\x00\x1b\u202e\u2028\ud800]", page)


def test_profile_and_comparison_are_read() -> None:
    kernel = {"kernel": "gemm", "nodes": ["a", "b"], "device": "x86", "seconds": 0.5}
    assert kernels_of_profile({"kernels": [kernel]}, "p.json") == [KernelUse("gemm", ("a", "b"), "x86", 0.5)]
    errors = errors_of_comparison(sample_report(), "c.json")
    assert errors["conv_1"] == NodeError(pytest.approx(0.012), "diverges", "more than rounding")
    assert errors["relu_0"].status == "rounding"
    assert errors["softmax_0"].size == float("inf")
    for data in ([], {"kernels": []}, {"kernels": [{"nodes": ["a"]}]}):
        with pytest.raises(InputError, match=r"lite run MODEL --profile"):
            kernels_of_profile(data, "p.json")
    with pytest.raises(InputError, match="lite compare"):
        errors_of_comparison({"kernels": []}, "c.json")


def test_legend_names_what_occurs() -> None:
    nodes = [PictureNode("a", "Add", seconds=1.0, error=1e-9), PictureNode("b", "Add", error=float("inf"))]
    picture = Picture("legend", nodes)
    assert [text for _, text in legend_of(picture, "error")] == ["below 1e-7", "above 1e-2"]
    assert legend_of(picture, "time")[-1] == ("time-5", "up to 1000.0 ms")


def run(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    command.main(arguments, standalone_mode=False)
    return capsys.readouterr().out


def test_inspect_draws_a_plan_with_its_kernels(
    tmp_path: Path, relu_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pygraphviz", reason="pictures need the extra lite-tools[pictures]")
    page, svg = tmp_path / "graph.html", tmp_path / "graph.svg"
    shown = run([str(relu_model), "--html", str(page), "--svg", str(svg), "--backend", "host", "--json"], capsys)
    assert json.loads(shown)["nodes"] == 1
    assert "host" in texts_of(svg.read_text(encoding="utf-8"))
    data = json.loads(re.findall(r'id="data">(.*?)</script>', page.read_text(encoding="utf-8"))[0])
    assert ["kernel", "host"] in data["graph"]["nodes"][1]["facts"]


def test_profile_of_other_devices_is_refused(relu_model: Path, tmp_path: Path) -> None:
    kernel = {"kernel": "gemm", "nodes": ["a"], "device": "opencl", "seconds": 0.5}
    profile = tmp_path / "profile.json"
    profile.write_text(json.dumps({"kernels": [kernel]}))
    words = [str(relu_model), "--svg", str(tmp_path / "a.svg"), "--backend", "host", "--profile", str(profile)]
    with pytest.raises(InputError, match="measured on opencl, but this plan runs on host"):
        command.main(words, standalone_mode=False)
    assert not (tmp_path / "a.svg").exists()


def test_inspect_refuses_what_does_not_go_together(relu_model: Path, tmp_path: Path) -> None:
    svg = str(tmp_path / "a.svg")
    for options, message in (
        (["--time"], "--svg"),
        (["--svg", svg, "--memory"], "--svg"),
        (["--svg", str(tmp_path / "nowhere/a.svg")], "nowhere"),
    ):
        with pytest.raises(click.UsageError, match=re.escape(message)):
            command.main([str(relu_model), *options], standalone_mode=False)
    with pytest.raises(InputError, match="--profile"):
        command.main([str(relu_model), "--svg", svg, "--profile", str(relu_model)], standalone_mode=False)


def test_missing_layout_names_the_command_that_installs_it(
    relu_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(click.ClickException) as raised:
        command.main([str(relu_model), "--svg", str(tmp_path / "a.svg")], standalone_mode=False)
    assert "lite-tools[pictures]" in raised.value.next_command  # type: ignore[attr-defined]
