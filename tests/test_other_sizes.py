"""Sizes that were not prepared, in processes without llvmlite: the kernels come from the model file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_container_damage import assembled, parts_of

from lite_core import GraphBuilder, convert, load
from lite_core.container import ModelFile
from lite_core.ir import Graph
from lite_cpu.saved.frame import read_frame, write_frame
from lite_tools.commands.prepared import compiler_notes
from lite_x86 import detect

pytestmark = pytest.mark.skipif(not detect.is_x86_64(), reason="machine code of x86-64")

Array = np.ndarray[Any, Any]

_RUN = """
import json, logging, sys
import numpy as np
sys.modules["llvmlite"] = None  # an attempt to find or import it fails
from lite_core import load
from lite_core.errors import LiteError
from lite_tools.commands.prepared import compiler_notes
warnings = []
handler = logging.Handler()
handler.emit = lambda record: warnings.append(record.getMessage())
logging.getLogger("lite").addHandler(handler)
for line in sys.stdin:
    task = json.loads(line)
    warnings.clear()
    try:
        session = load(task["file"], "x86", threads=1, saved="trust", fallback=task["fallback"])
        inputs = dict(np.load(task["inputs"]))
        np.savez(task["outputs"], **session.run(inputs))
        answer = {"notes": session.notes, "devices": session.devices, "warnings": warnings}
        if "limits" in task:
            answer["limits"] = compiler_notes(session)
    except LiteError as error:
        answer = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), flush=True)
"""


class Device:
    """A process without llvmlite, in which sessions run model files."""

    def __init__(self, folder: Path) -> None:
        environ = {**os.environ, "LITE_CACHE_DIR": str(folder / "cache")}
        command = [sys.executable, "-c", _RUN]
        self._process = subprocess.Popen(command, env=environ, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._folder = folder

    def run(
        self, file: Path, inputs: Mapping[str, Array], fallback: str = "never", **more: bool
    ) -> tuple[Any, Mapping[str, Array]]:
        """Run a file and return what the process says about it, with its ``limits`` if asked for, and the outputs."""
        given, results = self._folder / "in.npz", self._folder / "out.npz"
        np.savez(given, **inputs)  # type: ignore[arg-type]  # it takes names as keywords
        results.unlink(missing_ok=True)
        task = {"file": str(file), "inputs": str(given), "outputs": str(results), "fallback": fallback, **more}
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(task) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        return answer, dict(np.load(results)) if results.exists() else {}

    def close(self) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.wait(60)
        self._process.stdout.close()


@pytest.fixture(scope="module")
def device(tmp_path_factory: pytest.TempPathFactory) -> Any:
    found = Device(tmp_path_factory.mktemp("device"))
    yield found
    found.close()


def classifier() -> Graph:
    """Convolutions of pictures of any width, and a mean whose kernel depends on the number of pictures."""
    b, rng = GraphBuilder("classifier"), np.random.default_rng(0)
    x = b.input("x", "float32", ["batch", 3, 16, "width"])
    for columns, channels in ((24, 3), (32, 24)):
        weights = b.constant(rng.normal(size=(columns, channels, 3, 3)).astype(np.float32) / channels)
        x = b.add("Relu", [b.add("Conv", [x, weights], {"pads": (1, 1, 1, 1)})])
    x = b.add("ReduceMean", [x, b.constant(np.array([2, 3]))], {"keepdims": 0})
    b.output(b.add("MatMul", [x, b.constant(rng.normal(size=(32, 10)).astype(np.float32))]), "y")
    return b.build()


def pictures(*shape: int) -> dict[str, Array]:
    return {"x": np.random.default_rng(1).normal(size=shape).astype(np.float32)}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("files") / "classifier.lite"
    convert(classifier(), path, "x86", threads=1, shapes={"x": (1, 3, 16, 40)}, verify=False)
    return path


def agree(found: Mapping[str, Array], graph: Graph, inputs: Mapping[str, Array]) -> None:
    expected = load(graph, "host").run(inputs)
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-4, atol=1e-5)


def with_one_kernel(path: Path, output: Path) -> Path:
    """Copy a file without all but one of the kernels for other sizes."""
    (record,) = ModelFile.open(path).targets[0].kernels
    table, sections = parts_of(path.read_bytes())
    description, body = read_frame(memoryview(sections[record.sections[0]]))
    description["kernels"] = description["kernels"][:1]
    sections[record.sections[0]] = write_frame(description, [bytes(body)])
    targets = json.loads(sections["targets"])
    targets[0]["kernels"][0]["sections"] = list(record.sections[:3])
    sections["targets"] = json.dumps(targets).encode()
    output.write_bytes(assembled(sections, optimized=True, seal=table["seal"]))
    return output


@pytest.mark.parametrize("shape", [(1, 3, 16, 40), (1, 3, 16, 75), (3, 3, 16, 40), (5, 3, 16, 21)])
def test_the_kernels_of_a_file_serve_other_sizes(file: Path, device: Device, shape: Sequence[int]) -> None:
    answer, outputs = device.run(file, pictures(*shape))
    assert answer == {"notes": [], "devices": ["x86"], "warnings": []}
    agree(outputs, classifier(), pictures(*shape))


def test_the_limits_of_a_file_are_what_is_prepared(file: Path, device: Device) -> None:
    answer, _ = device.run(file, pictures(1, 3, 16, 40), limits=True)
    (line,) = answer["limits"]
    assert line.startswith("x86: compiling kernels needs llvmlite")
    assert "Prepared are x=1x3x16x40; other sizes run by the kernels in the file" in line
    assert compiler_notes(load(file, "x86")) == []


def test_the_kernels_are_those_of_the_plans_stored_once(file: Path) -> None:
    (target,) = ModelFile.open(file).targets
    ((plan,), (kernels,)) = target.plans, target.kernels
    of_plan = [name for name in plan.partitions[0].sections[1:] if name.startswith("code/")]
    assert set(of_plan) < set(kernels.sections[1:])


def test_a_missing_kernel_is_named_with_the_command_that_prepares_the_sizes(
    file: Path, device: Device, tmp_path: Path
) -> None:
    path, inputs = with_one_kernel(file, tmp_path / "one.lite"), pictures(2, 3, 16, 40)
    command = (
        "lite convert MODEL -o classifier.lite --targets x86 --threads 1 --input-shape=x=1x3x16x40 "
        "--input-shape x=2x3x16x40"
    )
    answer, outputs = device.run(path, inputs, "host")
    assert answer["devices"] == ["host"]
    assert "lacks" in answer["notes"][0]
    assert command in answer["notes"][1]
    agree(outputs, classifier(), inputs)
    answer, _ = device.run(path, inputs)
    assert answer["error"].startswith("CompileError")
    assert "lacks" in answer["error"]
    assert command in answer["error"]
    answer, outputs = device.run(path, pictures(1, 3, 16, 40))
    assert answer["devices"] == ["x86"], "the prepared plan needs no other kernels"


def test_files_of_other_versions_and_stripped_files_say_why_they_do_not_run(
    file: Path, device: Device, tmp_path: Path
) -> None:
    table, sections = parts_of(file.read_bytes())
    targets = json.loads(sections["targets"])
    for part in (*targets[0]["kernels"], *targets[0]["plans"][0]["partitions"]):
        part["compatibility"] = "lite_cpu of last year"
    other = tmp_path / "other.lite"
    other.write_bytes(assembled({**sections, "targets": json.dumps(targets).encode()}, seal=table["seal"]))
    for fallback in ("never", "host"):
        answer, _ = device.run(other, pictures(1, 3, 16, 40), fallback)
        assert "needs llvmlite" in answer["error"]
        assert "prepared for lite_cpu of last year" in answer["error"]
    stripped = tmp_path / "stripped.lite"
    options: dict[str, Any] = {"threads": 1, "verify": False, "strip": True}
    convert(classifier(), stripped, "x86", shapes={"x": (1, 3, 16, 40)}, **options)
    answer, _ = device.run(stripped, pictures(2, 3, 16, 40))
    assert "--strip" in answer["error"]


def dynamic() -> Graph:
    """Sizes that depend on data, between matrix products; and a Loop with another one inside."""
    b, rng = GraphBuilder("dynamic"), np.random.default_rng(0)
    weights = b.constant(rng.normal(size=(24, 24)).astype(np.float32) / 5)
    x = b.input("x", "float32", ["rows", 24])
    count = b.input("count", "int64", [])
    first = b.add("Relu", [b.add("MatMul", [x, weights])])
    largest = b.add("ReduceMax", [x, b.constant(np.array([1]))], {"keepdims": 0})
    is_large = b.add("Greater", [largest, b.constant(np.float32(1.8))])
    kept = b.add("Compress", [first, is_large], {"axis": 0})
    b.output(b.add("Tanh", [b.add("MatMul", [kept, weights])]), "kept")

    body = GraphBuilder("body")
    body.input("i", "int64", [])
    going = body.input("going", "bool", [])
    state = body.input("state", "float32", ["rows", 24])
    matrix = body.constant(rng.normal(size=(24, 24)).astype(np.float32) / 5, name="matrix")
    body.output(body.add("Identity", [going], name="stay"), "on")
    product = body.add("MatMul", [state, matrix], name="product")
    body.output(body.add("Sigmoid", [product], name="squash"), "next")
    b.output(b.add("Loop", [count, b.constant(np.array(True)), first], {"body": body.build()}), "looped")
    return b.build()


def dynamic_inputs() -> list[dict[str, Array]]:
    """Return inputs of :func:`dynamic` in several sizes, the first one for the conversion."""
    rows = np.random.default_rng(2).normal(size=(9, 24)).astype(np.float32)
    return [{"x": x, "count": np.array(n)} for x, n in ((rows, 3), (rows[:5], 2), (-rows, 1))]


def test_sizes_that_depend_on_data_and_bodies_run_by_the_kernels_of_a_file(device: Device, tmp_path: Path) -> None:
    graph, path = dynamic(), tmp_path / "dynamic.lite"
    inputs = dynamic_inputs()
    convert(graph, path, "x86", threads=1, shapes={"x": (9, 24)}, data=inputs[0], verify=False, allow_fallback=True)
    for given in inputs:
        answer, outputs = device.run(path, given, "host")
        (note,) = answer["notes"]
        assert "1 of 8 nodes run on host" in note
        assert "1 x Compress" in note
        assert answer["warnings"] == []
        assert "x86" in answer["devices"]
        agree(outputs, graph, given)


def test_recurrent_weights_are_read_from_a_file_as_they_are_packed_for_it(tmp_path: Path) -> None:
    """In whole blocks of units, the file has them in the order that the kernel reads."""
    b, rng = GraphBuilder("lstm"), np.random.default_rng(0)
    hidden, depth = 48, 20
    x = b.input("x", "float32", ["steps", 1, depth])
    weights = [rng.normal(size=(2, 4 * hidden, n)).astype(np.float32) / n for n in (depth, hidden)]
    attributes = {"hidden_size": hidden, "direction": "bidirectional"}
    b.output(b.add("LSTM", [x, *map(b.constant, weights)], attributes), "y")
    graph, path = b.build(), tmp_path / "lstm.lite"
    convert(graph, path, "x86", threads=1, shapes={"x": (4, 1, depth)}, verify=False)
    inputs = {"x": rng.normal(size=(6, 1, depth)).astype(np.float32)}
    agree(load(path, "x86", threads=1, saved="ignore").run(inputs), graph, inputs)
