"""The compiled code in model files for x86: where it may go, levels of processors, and each weight once."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_container_damage import assembled, parts_of

from lite_core import GraphBuilder, convert, load
from lite_core.container import ModelFile, PartitionRecord
from lite_core.errors import InputError, ModelFormatError
from lite_core.ir import Graph
from lite_core.ops.evaluate import evaluate_graph
from lite_cpu.saved.frame import read_frame, write_frame
from lite_x86 import detect

pytestmark = pytest.mark.skipif(not detect.is_x86_64(), reason="machine code of x86-64")

Array = np.ndarray[Any, Any]
X = np.linspace(-1, 1, 64, dtype=np.float32)


def elementwise(op: str) -> Graph:
    b = GraphBuilder(op)
    b.output(b.add(op, [b.input("x", "float32", [64])]), "y")
    return b.build()


def prepared(graph: Graph, path: Path, **options: Any) -> Path:
    convert(graph, path, "x86", threads=1, **options)
    return path


def partition(path: Path, number: int = 0) -> PartitionRecord:
    return ModelFile.open(path).targets[number].plans[0].partitions[0]


def in_new_process(code: str, cache: Path, *arguments: object, **environment: str) -> str:
    """Run Python code and return what it prints; its kernel cache is empty at first."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    environ = {**os.environ, "LITE_CACHE_DIR": str(cache), **environment}
    done = subprocess.run(command, capture_output=True, text=True, env=environ, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# **** code of one file serves no other model ****


def with_code_of(path: Path, other: Path) -> None:
    """Give a file's kernel the code of another file's kernel, under the key of its own."""
    table, sections = parts_of(path.read_bytes())
    (program, _, own), (_, _, foreign) = partition(path).sections, partition(other).sections
    sections[own] = parts_of(other.read_bytes())[1][foreign]
    description, body = read_frame(memoryview(sections[program]))
    description["kernels"][0][1] = hashlib.sha256(sections[own]).hexdigest()
    sections[program] = write_frame(description, [bytes(body)])
    path.write_bytes(assembled(sections, optimized=True, seal=table["seal"]))


_TAKEOVER = """
import sys
import numpy as np
from lite_core import convert, load, read_model
forged, clean, output = sys.argv[1:]
x = np.linspace(-1, 1, 64, dtype=np.float32)
evil = load(forged, "x86", threads=1, saved="trust")
evil.prepare()
print(np.array_equal(evil.run(x=x)["y"], -x))  # the code of Neg under the key of Relu
graph = read_model(clean)
print(np.array_equal(load(graph, "x86", threads=1).run(x=x)["y"], np.maximum(x, 0)))
convert(graph, output, "x86", threads=1)
print(np.array_equal(load(output, "x86", threads=1).run(x=x)["y"], np.maximum(x, 0)))
"""


def test_code_of_a_file_serves_no_other_model_and_no_other_file(tmp_path: Path) -> None:
    forged = prepared(elementwise("Relu"), tmp_path / "forged.lite")
    with_code_of(forged, prepared(elementwise("Neg"), tmp_path / "neg.lite"))
    clean = prepared(elementwise("Relu"), tmp_path / "clean.lite")
    shown = in_new_process(_TAKEOVER, tmp_path / "cache", forged, clean, tmp_path / "new.lite")
    assert shown.split() == ["True", "True", "True"]
    code = [parts_of((tmp_path / name).read_bytes())[1] for name in ("clean.lite", "new.lite")]
    assert code[0] == code[1], "the forged code was written on"


def test_forged_code_is_not_used_without_trust(tmp_path: Path) -> None:
    forged = prepared(elementwise("Relu"), tmp_path / "forged.lite")
    with_code_of(forged, prepared(elementwise("Neg"), tmp_path / "neg.lite"))
    session = load(forged, "x86", threads=1)
    np.testing.assert_array_equal(session.run(x=X)["y"], np.maximum(X, 0))
    assert "lite trust" in session.notes[0]


def test_weights_of_a_file_serve_no_other_model(tmp_path: Path) -> None:
    """Weights are not sealed: a file may bring any numbers for the zeros that stand for a missing bias."""

    def network() -> Graph:
        b = GraphBuilder("net")
        weights = b.constant(np.random.default_rng(0).normal(size=(40, 24, 1, 1)).astype(np.float32))
        b.output(b.add("Conv", [b.input("x", "float32", [1, 24, 9, 9]), weights]), "y")
        return b.build()

    path, data = prepared(network(), tmp_path / "m.lite"), {"x": np.ones((1, 24, 9, 9), np.float32)}
    table, sections = parts_of(path.read_bytes())
    changed = {n: b"\x7f" * len(c) if n.startswith("weights/") else c for n, c in sections.items()}
    path.write_bytes(assembled(changed, optimized=True, seal=table["seal"]))
    forged = load(path, "x86", threads=1, saved="trust")
    forged.run(data)
    found = load(network(), "x86", threads=1).run(data)["y"]
    np.testing.assert_allclose(found, load(network(), "host").run(data)["y"], rtol=1e-4, atol=1e-5)


_WITHOUT_COMPILER = """
import sys
sys.modules["llvmlite"] = None
from lite_core.launcher import main
sys.argv = ["lite", "run", *sys.argv[1:], "-b", "x86", "-t", "1"]
main()
"""


def test_without_a_compiler_code_that_is_not_trusted_is_an_error_with_the_command(tmp_path: Path) -> None:
    path = prepared(elementwise("Relu"), tmp_path / "m.lite")
    cache = {"LITE_CACHE_DIR": str(tmp_path / "cache")}
    own = {**os.environ, **cache}
    stranger = {**own, "LITE_CONFIG_DIR": str(tmp_path / "empty")}
    command = [sys.executable, "-c", _WITHOUT_COMPILER, str(path)]
    assert subprocess.run(command, env=own, capture_output=True, timeout=60).returncode == 0
    refused = subprocess.run(command, env=stranger, capture_output=True, text=True, timeout=60)
    assert refused.returncode == 6, refused.stderr
    assert f"lite trust {path}" in refused.stderr
    trusted = [sys.executable, "-m", "lite_core", "trust", str(path)]
    assert subprocess.run(trusted, env=stranger, capture_output=True, timeout=60).returncode == 0
    assert subprocess.run(command, env=stranger, capture_output=True, timeout=60).returncode == 0


# **** each weight once ****


def convolutions() -> tuple[Graph, int]:
    """Return a network with the kinds of convolutions and products, and the size of its weights."""
    b, rng = GraphBuilder("net"), np.random.default_rng(0)

    def weights(*shape: int) -> Any:
        return b.constant(rng.normal(size=shape).astype(np.float32) / shape[1])

    y = b.input("x", "float32", [1, 3, 56, 56])
    same = {"pads": (1, 1, 1, 1)}
    for shape, attributes in [
        ((32, 3, 3, 3), same),
        ((64, 32, 1, 1), {}),
        ((64, 64, 3, 3), same),
        ((72, 32, 3, 3), {**same, "group": 2, "strides": (2, 2)}),
        ((100, 72, 1, 1), {}),
    ]:
        y = b.add("Relu", [b.add("Conv", [y, weights(*shape)], attributes)])
    y = b.add("ReduceMean", [y, b.constant(np.array([2, 3]))], {"keepdims": 0})
    b.output(b.add("MatMul", [y, weights(100, 1000)]), "y")
    graph = b.build()
    return graph, sum(array.nbytes for array in graph.constants.values())


def image() -> Array:
    return np.random.default_rng(1).normal(size=(1, 3, 56, 56)).astype(np.float32)


def test_each_weight_is_stored_once(tmp_path: Path) -> None:
    graph, size = convolutions()
    path = tmp_path / "m.lite"
    report = convert(graph, path, "x86", threads=(1, 2))
    code = report.split["code"]
    assert report.split["weights"] + report.split["weights packed besides"] < 1.1 * size
    assert path.stat().st_size < 1.2 * size + code + 20_000
    assert not report.warnings, "the prepared plans are used"


def test_plain_weights_are_read_back_bit_for_bit(tmp_path: Path) -> None:
    graph, _ = convolutions()
    read = ModelFile.open(prepared(graph, tmp_path / "m.lite")).graph()
    found = {value.name: array for value, array in read.constants.items()}
    expected = {value.name: array for value, array in graph.constants.items() if value.name in found}
    assert expected
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)
    assert not any(array.flags.writeable for array in found.values())
    np.testing.assert_allclose(evaluate_graph(read, [image()])[0], evaluate_graph(graph, [image()])[0], rtol=1e-5)


def test_another_shape_and_no_code_at_all_give_the_same_results(tmp_path: Path) -> None:
    graph, _ = convolutions()
    path = prepared(graph, tmp_path / "m.lite")
    expected = load(path, "x86", threads=1).run(x=image())["y"]
    np.testing.assert_array_equal(load(path, "x86", threads=1, saved="ignore").run(x=image())["y"], expected)
    np.testing.assert_allclose(load(path, "host").run(x=image())["y"], expected, rtol=1e-3, atol=1e-4)


def test_damaged_packed_weights_are_named(tmp_path: Path) -> None:
    graph, _ = convolutions()
    path = prepared(graph, tmp_path / "m.lite")
    content = bytearray(path.read_bytes())
    largest = max((s for s in ModelFile.open(path).sections), key=lambda s: s.size)
    content[largest.offset + 5] ^= 1
    path.write_bytes(content)
    for saved in ("own", "ignore"):
        with pytest.raises(ModelFormatError, match=rf"damaged.*{largest.name}"):
            load(path, "x86", threads=1, saved=saved).run(x=image())


def test_stripped_files_run_what_is_prepared_and_refuse_the_rest(tmp_path: Path) -> None:
    b = GraphBuilder("net")
    weights = b.constant(np.random.default_rng(0).normal(size=(64, 1, 3, 3)).astype(np.float32))
    bias = b.constant(np.ones(64, np.float32))
    x = b.input("x", "float32", [1, 64, "h", 8])
    b.output(b.add("Conv", [x, weights, bias], {"group": 64}), "y")
    graph, shapes = b.build(), {"x": (1, 64, 8, 8)}
    whole = prepared(graph, tmp_path / "whole.lite", shapes=shapes)
    path = prepared(graph, tmp_path / "m.lite", shapes=shapes, strip=True)
    assert path.stat().st_size + weights.type.dtype.itemsize * 64 * 9 <= whole.stat().st_size
    data = np.ones((1, 64, 8, 8), np.float32)
    np.testing.assert_array_equal(load(path, "x86").run(x=data)["y"], load(whole, "x86").run(x=data)["y"])
    for run in (
        lambda: load(path, "x86").run(x=data[:, :, :5]),
        lambda: load(path, "host"),
        lambda: load(path, "x86", saved="ignore"),
        lambda: ModelFile.open(path).graph(),
    ):
        with pytest.raises(ModelFormatError, match=r"m\.lite.*--strip"):
            run()
    with pytest.raises(InputError, match="strip.*prepared plan"):
        prepared(graph, tmp_path / "n.lite", strip=True, prepare=False)


# **** levels ****

_RUN_LEVEL = """
import sys
import numpy as np
from lite_core import load
session = load(sys.argv[1], "x86", threads=1)
x = np.random.default_rng(1).normal(size=(1, 3, 56, 56)).astype(np.float32)
y = session.run(x=x)["y"]
np.save(sys.argv[2], y)
print("emitter" if "lite_cpu.emitter" in sys.modules else "restored", "|", "; ".join(session.notes))
"""


def levels_here() -> Sequence[str]:
    """The levels that this processor contains, highest first."""
    features = detect.this_processor().features
    return [f"x86-64-{level}" for level in ("v4", "v3", "v2") if not detect.missing_features(level, features)]


def test_a_session_uses_the_first_level_that_the_processor_contains(tmp_path: Path) -> None:
    if len(levels_here()) < 2:
        pytest.skip(f"this processor contains only {levels_here()}")
    graph, size = convolutions()
    path = prepared(graph, tmp_path / "m.lite", cpu=levels_here())
    records = ModelFile.open(path).targets
    assert [record.level for record in records] == list(levels_here())
    assert [len(record.features) for record in records] == sorted((len(r.features) for r in records), reverse=True)
    assert path.stat().st_size < 1.25 * size + sum(
        s.size for s in ModelFile.open(path).sections if s.name.startswith("code/")
    ), "the levels share the weights"
    expected = load(graph, "host").run(x=image())["y"]
    for number, level in enumerate(levels_here()):
        result = tmp_path / f"{level}.npy"
        forced = {"LITE_X86_LEVEL": level.removeprefix("x86-64-")}
        state, _, notes = in_new_process(_RUN_LEVEL, tmp_path / "cache", path, result, **forced).partition(" |")
        assert state == "restored", notes
        assert notes.count("which this processor lacks") == number
        np.testing.assert_allclose(np.load(result), expected, rtol=1e-3, atol=1e-4)


def test_unknown_levels_are_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"x86-64-v5.*x86-64-v2, x86-64-v3.*x86-64-v4\+vnni"):
        prepared(elementwise("Relu"), tmp_path / "m.lite", cpu="x86-64-v5")
    with pytest.raises(InputError, match="levels"):
        convert(elementwise("Relu"), tmp_path / "m.lite", "host", cpu="x86-64-v3")


def test_code_for_a_level_that_this_processor_lacks_is_left_alone(tmp_path: Path) -> None:
    graph, _ = convolutions()
    path = prepared(graph, tmp_path / "m.lite", cpu=levels_here()[0])
    shown = in_new_process(_RUN_LEVEL, tmp_path / "cache", path, tmp_path / "y.npy", LITE_X86_LEVEL="v2")
    if levels_here()[0] != "x86-64-v2":
        assert shown.startswith("emitter | x86: the file's x86-64-")
