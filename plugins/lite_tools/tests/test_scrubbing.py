"""Removal of private names from reports."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from lite_core.builder import GraphBuilder
from lite_core.ir import Graph, Origin
from lite_tools.reporting.scrubbing import Scrubber, shared_variables
from lite_tools.reporting.sizes import smallest_shapes
from lite_tools.reporting.substitutes import for_report

SCRUBBER = Scrubber(
    model="/home/anna/secret/customer.onnx",
    home="/home/anna",
    user="anna",
    host="box7.corp.example",
    folders=(("/home/anna/venv/lib/site-packages", "<packages>"), ("/home/anna/venv", "<python>")),
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cannot open /home/anna/secret/customer.onnx: no such file", "cannot open <model>: no such file"),
        ("customer.onnx is damaged", "<model> is damaged"),
        ("'/home/anna/data/faces.npz'", "'<home>/...'"),
        ("in /home/anna", "in <home>"),
        ("/home/annabel/x.npz", "<path>/..."),
        ('File "/home/anna/venv/lib/site-packages/lite_core/x.py", line 3', 'File "<packages>/lite_core/x.py", line 3'),
        ("python at /home/anna/venv/bin/python", "python at <python>/bin/python"),
        ("/home/anna/src/tool/run.py:33", "<home>/tool/run.py:33"),
        ("/tmp/build-77/run.py:33", "<path>/build-77/run.py:33"),
        (r"C:\Users\anna\faces.npz", "<path>/..."),
        ("anna@box7 runs it on BOX7.corp.example", "<user>@<host> runs it on <host>"),
        ("Hannah and Annabel", "Hannah and Annabel"),
        ("node '/layer1/conv/Conv' of /backbone/stage", "node '/layer1/conv/Conv' of /backbone/stage"),
        ("/usr/lib/libOpenCL.so.1", "/usr/lib/libOpenCL.so.1"),
        ("https://example.com/a/b and 1/2", "https://example.com/a/b and 1/2"),
    ],
)
def test_texts(text: str, expected: str) -> None:
    assert SCRUBBER.text(text) == expected


def test_a_common_name_is_a_word() -> None:
    assert (
        Scrubber(user="root", host="localhost").text("the square root on localhost") == "the square root on localhost"
    )


def test_data() -> None:
    assert SCRUBBER.data({"anna": ["/home/anna/x", 3, None]}) == {"<user>": ["<home>/...", 3, None]}


def test_names_that_stay_in_a_file_are_found() -> None:
    assert SCRUBBER.found_in(b"..Anna..") == ["<user>"]
    assert SCRUBBER.found_in(b"..conv1..") == []


def test_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "zaphod")
    scrubber = Scrubber.for_this_machine("model.onnx")
    assert scrubber.text(f"zaphod in {os.path.abspath('model.onnx')}") == "<user> in <model>"
    found = scrubber.text(np.__file__)
    assert found == "<packages>/numpy/__init__.py"


def test_variables() -> None:
    given = {"LITE_BACKENDS": "x86", "GLOG_v": "5", "OMP_NUM_THREADS": "2", "API_TOKEN": "secret", "PATH": "/home/anna"}
    assert shared_variables(given) == {"GLOG_v": "5", "LITE_BACKENDS": "x86", "OMP_NUM_THREADS": "2"}


@pytest.fixture
def graph() -> Graph:
    b = GraphBuilder("customer")
    weights = np.linspace(1, 2, 4096, dtype=np.float32).reshape(64, 64)
    y = b.add("MatMul", [b.input("x", "float32", ["n", 64]), b.constant(weights, "weights")])
    b.output(b.add("Reshape", [b.add("Mul", [y, b.constant(np.float32(0.5), "half")]), b.constant([-1, 32])]), "y")
    graph = b.build()
    graph.metadata["source"] = "/home/anna/train.txt"
    graph.nodes[0].origin = Origin("MatMul", "/home/anna/net.txt")
    return graph


def test_weights_are_replaced(graph: Graph) -> None:
    found = for_report(graph, SCRUBBER, with_weights=False)
    arrays = {value.name: array for value, array in found.constants.items()}
    before = {value.name: array for value, array in graph.constants.items()}
    assert (arrays["weights"] != before["weights"]).mean() > 0.99
    assert (arrays["weights"].shape, arrays["weights"].dtype) == ((64, 64), np.float32)
    assert abs(arrays["weights"].mean() - 1.5) < 0.05  # 1021 numbers with a deviation of 0.29: five standard errors
    assert arrays["half"] == np.float32(0.5)
    assert [*arrays.values()][-1].tolist() == [-1, 32]
    assert found.metadata == {"source": "<home>/..."}
    assert found.nodes[0].origin == Origin("MatMul", "<home>/...")
    assert (found.name, graph.name, graph.metadata["source"]) == ("model", "customer", "/home/anna/train.txt")


def test_weights_are_kept(graph: Graph) -> None:
    found = for_report(graph, SCRUBBER, with_weights=True)
    for array, expected in zip(found.constants.values(), graph.constants.values()):
        np.testing.assert_array_equal(array, expected)


def test_smallest_shapes(graph: Graph) -> None:
    assert smallest_shapes(graph, {}) == {"x": (1, 64)}
    assert smallest_shapes(graph, {"x": (7, 64)}) == {"x": (7, 64)}
    b = GraphBuilder("strided")
    weights = b.constant(np.zeros((1, 1, 5, 5), np.float32))
    b.output(b.add("Conv", [b.input("x", "float32", ["n", 1, "h", "w"]), weights]), "y")
    assert min(smallest_shapes(b.build(), {})["x"][2:]) >= 5  # the kernel must fit


def test_the_models_of_a_report_keep_their_names() -> None:
    assert Scrubber(model="model.lite").text("lite run model.lite") == "lite run model.lite"
    assert Scrubber(model="elsewhere/model.lite").text("elsewhere/model.lite, model.lite") == "<model>, model.lite"


def test_a_path_without_suffix_is_found_as_a_path_only(tmp_path: Path) -> None:
    scrubber = Scrubber(model=str(tmp_path / "inference"))
    assert scrubber.text(f"{tmp_path}/inference for inference") == "<model> for inference"
    assert scrubber.text("inference/weights.bin, /inference/conv") == "<model>/weights.bin, /inference/conv"
