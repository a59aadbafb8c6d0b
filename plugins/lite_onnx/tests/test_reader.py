"""Contents of model files: names, versions, damaged and external tensors, and files of other formats."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper
from small_models import X, call, function, graph, load, make, node, run, value

import lite_core as lite
from lite_core.errors import ModelFormatError, UnsupportedOperatorError
from lite_core.formats import read_model
from lite_core.plugins import PluginManager
from lite_onnx.sniffing import sniff

RELU = node("Relu", ["x"], ["y"], name="relu")
ADD = node("Add", ["x", "w"], ["y"], name="add")


# **** names, inputs and outputs ****


def test_inputs_and_initializers_as_outputs(tmp_path: Path) -> None:
    results = run(make([], outputs=["x", "w"], constants={"w": X * 3}), tmp_path)
    np.testing.assert_array_equal(results["x"], X)
    np.testing.assert_array_equal(results["w"], X * 3)


def test_output_that_is_listed_twice(tmp_path: Path) -> None:
    assert list(run(make([RELU], outputs=["y", "y"]), tmp_path)) == ["y"]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (make([RELU], outputs=[]), "has no outputs"),
        (make([]), "no node computes"),
        (make([RELU], ["x", "x"]), "two inputs called 'x'"),
        (make([RELU], [""]), "must be a text, not empty"),
        (make([RELU, RELU]), "'y' is computed twice"),
        (make([RELU], ir_version=2), "IR version 2; Lite reads 3 and newer"),
        (onnx.ModelProto(ir_version=8), "no graph"),
    ],
)
def test_invalid_models_are_errors(model: onnx.ModelProto, message: str, tmp_path: Path) -> None:
    with pytest.raises(ModelFormatError, match=message):
        load(model, tmp_path)


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (make([RELU]), "relu"),
        (make([node("Someop", ["x"], ["y"])]), "Someop"),
        (make([node("Relu", ["x"], ["result"])], outputs=["result"]), "result"),
        (make([node("Add", ["x", "weights"], ["y"])], constants={"weights": X}), "weights"),
        (make([call("twice")], functions=[function("twice", [RELU])]), "twice"),
        (make([node("If", ["x"], ["y"], then_branch=graph([RELU], ["inner"]), else_branch=graph([], []))]), "inner"),
    ],
    ids=["node", "operator", "output", "constant", "function", "value-of-a-branch"],
)
def test_names_that_are_not_utf_8_are_errors(model: onnx.ModelProto, text: str, tmp_path: Path) -> None:
    content, damaged = model.SerializeToString(), b"\xff" * len(text)
    assert text.encode() in content
    path = tmp_path / "model.onnx"
    path.write_bytes(content.replace(text.encode(), damaged))
    with pytest.raises(ModelFormatError, match=re.escape(f"the name {damaged!r} is not UTF-8")):
        lite.load(path, backend="host")


def test_nodes_in_any_order_and_unneeded_nodes(tmp_path: Path) -> None:
    unneeded = [node("Unknown", ["x"], []), node("Unknown", ["x"], ["z"]), node("Relu", ["nothing"], ["w"])]
    nodes = [node("Neg", ["a"], ["y"]), *unneeded, node("Relu", ["x"], ["a"])]
    np.testing.assert_array_equal(run(make(nodes), tmp_path)["y"], [-1, 0])


def test_bodies_reuse_names_of_the_enclosing_graph(tmp_path: Path) -> None:
    branches = {
        "then_branch": graph([node("Relu", ["x"], ["y"])], ["y"]),
        "else_branch": graph([node("Neg", ["x"], ["z"])], ["z"]),
    }
    model = make(
        [node("If", ["c"], ["z"], **branches), node("Abs", ["z"], ["y"])], ["x", value("c", (), TensorProto.BOOL)]
    )
    assert run(model, tmp_path, c=np.array(True))["y"].tolist() == [1, 0]
    assert run(model, tmp_path, c=np.array(False))["y"].tolist() == [1, 2]


def test_unusual_names_and_dimensions(tmp_path: Path) -> None:
    dims = (0, -1, "batch*2", "a b", "?", "é/{}", None, "")
    model = make([node("Relu", ["/in put:0"], ["/out put"])], [value("/in put:0", dims)], ["/out put"])
    session = load(model, tmp_path)
    shape = session.inputs["/in put:0"].shape
    assert shape is not None
    assert [str(dim) for dim in (*shape[2:4], shape[5])] == ["batch*2", "a b", "é/{}"]
    lite.convert(session.graph, tmp_path / "model.lite", ["host"], verify=False)
    again = lite.load(tmp_path / "model.lite", backend="host")
    # Each unknown size has a unique number.
    before, after = (re.sub(r"\?\d+", "?", str(each)) for each in (shape, again.inputs["/in put:0"].shape))
    assert before == after
    x = np.ones((0, 1, 2, 3, 1, 1, 1, 1), np.float32)
    assert again.run({"/in put:0": x})["/out put"].shape == x.shape


def test_metadata_is_kept_and_other_fields_are_ignored(tmp_path: Path) -> None:
    model = make([RELU], constants={"unused": np.array(["text"], object)})
    model.metadata_props.add(key="labels", value="cat\ndog")
    model.graph.quantization_annotation.add(tensor_name="y")
    model.training_info.add()
    metadata = load(model, tmp_path).graph.metadata
    assert metadata["onnx.labels"] == "cat\ndog"
    assert metadata["opset"] == "ai.onnx 21, own 1"


def test_duplicate_initializers(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    model = make([ADD], constants={"w": X})
    model.graph.initializer.append(numpy_helper.from_array(X * 10, "w"))
    assert run(model, tmp_path)["y"].tolist() == [11, -22]
    assert "initializer 'w'" in caplog.text


# **** versions ****


def test_models_without_opsets_and_with_the_domain_ai_onnx(tmp_path: Path) -> None:
    model = make([RELU], ir_version=3)
    del model.opset_import[:]
    assert run(model, tmp_path)["y"].tolist() == [1, 0]
    model.opset_import.add(domain="ai.onnx", version=13)
    model.graph.node[0].domain = "ai.onnx"
    assert run(model, tmp_path)["y"].tolist() == [1, 0]


def test_versions_newer_than_onnx(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "lite.onnx")
    assert run(make([RELU], opset=24, ir_version=90), tmp_path)["y"].tolist() == [1, 0]
    assert "IR version 90, newer than onnx knows" in caplog.text
    with pytest.raises(UnsupportedOperatorError, match=r"Relu .*relu.*\n?.*opset 900.*\n.*pip install --upgrade onnx"):
        load(make([RELU], opset=900), tmp_path)


def test_attribute_of_a_newer_opset(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedOperatorError, match="Cast has no attribute 'round_mode'"):
        load(make([node("Cast", ["x"], ["y"], to=10, round_mode="up")], opset=24), tmp_path)


# **** every problem at once ****


def test_every_problem_is_listed_with_its_node(tmp_path: Path) -> None:
    branches = {
        f"{name}_branch": graph([node("Inner", ["x"], ["z"], name=f"in_{name}")], ["z"]) for name in ("then", "else")
    }
    nodes = [
        node("Foo", ["x"], ["a"], name="first"),
        node("Bar", ["x"], ["b"], name="second"),
        node("If", ["c"], ["d"], name="branch", **branches),
        node("Sum", ["a", "b", "d", "lost", "more"], ["y"], name="sum"),
    ]
    model = make(nodes, ["x", value("c", (), TensorProto.BOOL)])
    model.graph.initializer.extend([_external(name, f"{name}.bin") for name in ("lost", "more")])
    with pytest.raises(UnsupportedOperatorError) as caught:
        load(model, tmp_path)
    found = {name for problem in caught.value.problems for name in problem.nodes}
    assert found == {"first", "second", "in_then", "in_else", "lost", "more"}


# **** external tensors ****


def _external(name: str, location: str, count: int = 2, **entries: int) -> TensorProto:
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[count], data_location=TensorProto.EXTERNAL)
    for key, entry in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=str(entry))
    return tensor


def _with(tensors: list[TensorProto], nodes: list[onnx.NodeProto] | None = None) -> onnx.ModelProto:
    model = make(nodes or [ADD])
    model.graph.initializer.extend(tensors)
    return model


@pytest.mark.parametrize("entries", [{}, {"offset": 3, "length": 8}, {"offset": 0}, {"offset": 3}])
def test_external_tensors(entries: dict[str, int], tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/w.bin").write_bytes(b"\0" * entries.get("offset", 0) + (X * 5).tobytes() + b"\0\0\0\0")
    assert run(_with([_external("w", "data/w.bin", **entries)]), tmp_path)["y"].tolist() == [6, -12]


def test_external_tensors_of_constants_and_bodies(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(np.concatenate([X * 5, X]).tobytes())
    body = graph([node("Add", ["x", "w"], ["z"])], ["z"])
    body.initializer.append(_external("w", "w.bin"))
    constant = node("Constant", [], ["v"], value=_external("", "w.bin", offset=8, length=8))
    branch = node("If", ["c"], ["a"], then_branch=body, else_branch=body)
    model = make([constant, branch, node("Add", ["a", "v"], ["y"])], ["x", value("c", (), TensorProto.BOOL)])
    assert run(model, tmp_path, c=np.array(True))["y"].tolist() == [7, -14]


def test_all_missing_files_are_in_one_error(tmp_path: Path) -> None:
    (tmp_path / "short.bin").write_bytes(b"\0" * 8)
    nodes = [node("Add", ["x" if i == 0 else f"a{i - 1}", f"w{i}"], [f"a{i}"]) for i in range(6)]
    tensors = [
        _external("w0", "nowhere.bin"),
        _external("w1", "nowhere.bin", offset=8),
        _external("w2", "short.bin", offset=1 << 62, length=8),
        _external("w3", "short.bin", length=1 << 62),
        _external("w4", "short.bin", offset=-1),
        TensorProto(name="w5", data_type=TensorProto.FLOAT, dims=[3], raw_data=b"\0"),
    ]
    model = _with(tensors, nodes)
    model.graph.output[0].name = "a5"
    with pytest.raises(ModelFormatError) as caught:
        load(model, tmp_path)
    lines = str(caught.value).splitlines()
    assert "6 of its tensors cannot be read" in lines[0]
    assert lines[1] == f"  w0, w1: the file 'nowhere.bin' is not beside the model, in {str(tmp_path)!r}"
    assert [line.split(":")[0].strip() for line in lines[2:6]] == ["w2", "w3", "w4", "w5"]
    assert "copy the model again" in lines[-1]


@pytest.mark.parametrize(
    "location", ["../w.bin", "/etc/hostname", "link.bin", "linked/w.bin", "", "a\0b", "round.bin", "."]
)
def test_files_outside_the_folder_are_not_read(location: str, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "w.bin").write_bytes(X.tobytes())
    (folder / "link.bin").symlink_to(tmp_path / "w.bin")
    (folder / "linked").symlink_to(tmp_path)
    (folder / "round.bin").symlink_to(folder / "round.bin")
    with pytest.raises(ModelFormatError, match=r"w: the file .* cannot be used|w: the file .* is not beside"):
        load(_with([_external("w", location)]), folder)


def test_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "w.bin")
    with pytest.raises(ModelFormatError, match="not an ordinary file"):
        load(_with([_external("w", "w.bin")]), tmp_path)


def test_links_into_a_download_cache(tmp_path: Path) -> None:
    for folder in ("blobs", "snapshot"):
        (tmp_path / folder).mkdir()
    (tmp_path / "blobs/1").write_bytes(_with([_external("w", "w.bin")]).SerializeToString())
    (tmp_path / "blobs/2").write_bytes(X.tobytes())
    for name, blob in (("model.onnx", "1"), ("w.bin", "2")):
        (tmp_path / "snapshot" / name).symlink_to(tmp_path / "blobs" / blob)
    assert lite.load(tmp_path / "snapshot/model.onnx", backend="host").run(x=X)["y"].tolist() == [2, -4]


def test_large_file_is_mapped_once_and_only_used_pages_are_read(tmp_path: Path) -> None:
    count = 1 << 26  # 256 MB each, in a sparse file
    tensors = [_external(f"w{i}", "w.bin", count, offset=4 * count * i, length=4 * count) for i in range(4)]
    with (tmp_path / "w.bin").open("wb") as file:
        file.truncate(4 * 4 * count)
        for i in range(4):  # different first elements: equal constants would be compared to the end
            file.seek(4 * count * i)
            file.write(np.float32(i + 1).tobytes())
    gathers = [node("Gather", [f"w{i}", "i"], [f"g{i}"]) for i in range(4)]
    model = _with(tensors, [*gathers, node("Sum", [f"g{i}" for i in range(4)], ["y"])])
    model.graph.input[0].CopyFrom(value("i", (2,), TensorProto.INT64))
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    script = (
        "import resource, sys, numpy as np, lite_core as lite\n"
        "def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "before = peak()\n"
        "session = lite.load(sys.argv[1], backend='host')\n"
        "assert session.run(i=np.array([5, 7]))['y'].tolist() == [0, 0]\n"
        "maps = open('/proc/self/maps').read() if sys.platform == 'linux' else 'w.bin'\n"
        "print(peak() - before, maps.count('w.bin'))"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "model.onnx")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    grown, mappings = map(int, done.stdout.split())
    assert mappings == 1
    assert grown < 150_000, f"{grown} KiB"


# **** imports ****


def test_lowerings_of_other_domains_are_imported_only_when_needed(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(make([RELU]).SerializeToString())
    script = (
        "import sys, lite_onnx\n"
        "lite_onnx.read(sys.argv[1])\n"
        "print([name for name in sys.modules if '.ai_onnx_ml' in name or '.com_microsoft' in name])"
    )
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# **** format detection ****


def test_onnx_files_are_detected(tmp_path: Path) -> None:
    path = tmp_path / "renamed.bin"
    path.write_bytes(make([RELU]).SerializeToString())
    assert sniff(path)
    assert lite.load(path, backend="host").run(x=X)["y"].tolist() == [1, 0]
    # Fields in another order: the graph, then the version.
    graph_first = onnx.ModelProto(graph=make([RELU]).graph).SerializeToString() + b"\x08\x08"
    (tmp_path / "first.onnx").write_bytes(graph_first)
    assert lite.load(tmp_path / "first.onnx", backend="host").run(x=X)["y"].tolist() == [1, 0]
    for content in (b"", b"\0", b"\x08", b"PK\x03\x04", b"\x0a\x04\x08\x00\x10\x00"):  # the last: a Paddle program
        path.write_bytes(content)
        assert not sniff(path)
    assert not sniff(tmp_path / "nowhere")


def test_folders(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.onnx").write_bytes(make([RELU]).SerializeToString())
    assert list(lite.load(folder, backend="host").outputs) == ["y"]
    (folder / "b.onnx").write_bytes(make([RELU]).SerializeToString())
    with pytest.raises(ModelFormatError, match=r"a\.onnx, b\.onnx"):
        lite.load(folder, backend="host")
    (folder / "model.onnx").write_bytes(make([RELU], outputs=["y"]).SerializeToString())
    assert list(lite.load(folder, backend="host").outputs) == ["y"]


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "an empty file"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "git lfs pull"),
        (b"\n<!DOCTYPE html><html>", "a web page"),
        (b"PK\x03\x04rest", "a zip archive"),
        (b'<\n  ir_version: 8,\n  opset_import: ["" : 15]\n>', "begins with"),
        (b'<ir_version: 8, opset_import: ["" : 15]>', "an ONNX model as text"),
        (b"ir_version: 8\ngraph {\n}\n", "an ONNX model as text"),
    ],
)
def test_other_files_are_identified(content: bytes, what: str, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    with pytest.raises(ModelFormatError, match=what):
        lite.load(path, backend="host")


def test_error_without_the_plugin_names_it(tmp_path: Path) -> None:
    for name in ("model.onnx", "renamed.bin"):
        (tmp_path / name).write_bytes(make([RELU]).SerializeToString())
        with pytest.raises(ModelFormatError, match="`pip install lite-onnx` reads such models"):
            read_model(tmp_path / name, plugins=PluginManager(list))
