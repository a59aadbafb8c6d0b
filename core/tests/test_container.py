"""The model file: graphs round-trip, constants are mapped and shared, and writing is atomic."""

from __future__ import annotations

import copy
import gc
import math
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from container_graphs import GRAPHS, chain, dtypes, records

from lite_core.container import FORMAT_VERSION, ModelFile, mapping
from lite_core.container.types_decoder import LocalNames, decode_type
from lite_core.errors import GraphError, InputError, LiteError, ModelFormatError
from lite_core.formats import read_model
from lite_core.ir import DType, Graph, Node, SymbolicDim, TensorType, Value, fresh_dim, verify_structure
from lite_core.ir.dims import broadcast
from lite_core.plugins import PluginManager
from lite_tools.writing import write_model
from lite_tools.writing.record_encoder import encode_type, names_in_file

F32 = DType.FLOAT32
every_graph = pytest.mark.parametrize("make", GRAPHS.values(), ids=GRAPHS)


def plain(graph: Graph, names: dict[str, str] | None = None) -> Any:
    """Return a graph as data that compare equal only if the graphs are the same."""
    names = names or names_in_file(v.type for scope in graph.walk() for v in scope.defined())
    numbers: dict[Value, str] = {v: v.name for scope in graph.walk() for v in scope.defined()}

    def of(item: Any) -> Any:
        if isinstance(item, Graph):
            return plain(item, names)
        if isinstance(item, np.ndarray):
            return str(item.dtype), item.shape, item.tobytes()
        if isinstance(item, tuple):
            return [of(element) for element in item]
        return type(item).__name__, repr(item)

    def value(v: Value | None) -> Any:
        return None if v is None else [v.name, encode_type(v.type, names)]

    return {
        "name": graph.name,
        "metadata": graph.metadata,
        "inputs": [value(v) for v in graph.inputs],
        "constants": [[value(v), of(array)] for v, array in graph.constants.items()],
        "nodes": [
            [node.op, node.domain, node.name, node.origin]
            + [[v and v.name for v in node.inputs], [value(v) for v in node.outputs]]
            + [(key, of(attribute)) for key, attribute in node.attributes.items()]
            for node in graph.nodes
        ],
        "outputs": [numbers.get(v, v.name) for v in graph.outputs],
    }


def written(folder: Path, graph: Graph, **arguments: Any) -> Path:
    path = folder / "model.lite"
    write_model(path, graph, **arguments)
    return path


# **** round-trip ****


@every_graph
def test_graph_round_trip(make: Callable[[], Graph], tmp_path: Path) -> None:
    graph = make()
    found = ModelFile.open(written(tmp_path, graph)).graph()
    verify_structure(found)
    assert plain(found) == plain(graph)


@every_graph
def test_records_and_pieces_round_trip(make: Callable[[], Graph], tmp_path: Path) -> None:
    graph = make()
    targets, pieces = records(graph)
    path = written(tmp_path, graph, targets=targets, pieces=pieces, metadata={"a": "b"}, optimized=True)
    file = ModelFile.open(path)
    fresh = {s for v in graph.outputs for s in v.type.symbols if "?" in s}
    assert fresh or file.targets == targets
    assert [t.backend for t in file.targets] == ["toy", "other"]
    assert bytes(file.section("code/0")) == b"machine code"
    assert [bytes(content) for content in file.contents(["weights/0", "code/0"])] == [b"weights", b"machine code"]
    assert (file.metadata, file.optimized, file.format_version) == ({"a": "b"}, True, FORMAT_VERSION)
    assert file.producer.startswith("lite-core ")
    file.verify()


def test_bytes_of_a_file_do_not_depend_on_names_of_unknown_sizes(tmp_path: Path) -> None:
    """The names of unknown sizes differ between processes, and between readings of a file."""

    def content(graph: Graph) -> bytes:
        targets, pieces = records(graph)
        return written(tmp_path, graph, targets=targets, pieces=pieces).read_bytes()

    for make in GRAPHS.values():
        first = content(make())
        for _ in range(11):  # so that numbers of symbols have more digits than before
            fresh_dim()
        assert content(make()) == first
        assert content(ModelFile.open(tmp_path / "model.lite").graph()) == first


def test_pieces_are_complete_read_only_and_aligned(tmp_path: Path) -> None:
    numbers = np.arange(3, dtype=np.int32)
    empty = memoryview(numbers[:0])
    pieces = {"code/0": b"ab", "weights/1": memoryview(numbers), "code/2": b"", "weights/3": empty}
    file = ModelFile.open(written(tmp_path, chain(), pieces=pieces))
    contents = file.contents([*pieces])
    assert [bytes(content) for content in contents] == [b"ab", numbers.tobytes(), b"", b""]
    for content in contents:
        assert content.readonly
        assert np.frombuffer(content, np.uint8).ctypes.data % 64 == 0
    del file
    assert bytes(contents[0]) == b"ab"


def test_all_damaged_sections_are_named(tmp_path: Path) -> None:
    path = written(tmp_path, chain(), pieces={f"code/{number}": bytes([number]) * 100 for number in range(5)})
    content = bytearray(path.read_bytes())
    for section in (s for s in ModelFile.open(path).sections if s.name in ("code/1", "code/4")):
        content[section.offset] ^= 1
    path.write_bytes(content)
    file = ModelFile.open(path)
    with pytest.raises(ModelFormatError, match=r"damaged.*: code/1, code/4;"):
        file.contents([f"code/{number}" for number in range(5)])
    assert bytes(file.contents(["code/0", "code/2"])[1]) == bytes([2]) * 100


@pytest.mark.parametrize("array", [np.arange(6).reshape(2, 3).T, np.arange(8)[::2], np.arange(3, dtype=">i4")])
def test_arrays_of_any_layout_are_written(array: Any, tmp_path: Path) -> None:
    graph = Graph()
    graph.outputs = [graph.add_constant("c", array)]
    (found,) = ModelFile.open(written(tmp_path, graph)).graph().constants.values()
    np.testing.assert_array_equal(found, array)


# **** unknown dimensions ****


def test_unknown_size_read_from_a_file_equals_no_other_size() -> None:
    known = fresh_dim("rows")
    read = decode_type(["float32", [[[1, str(known)]], [[1, str(known)]]]], LocalNames()).shape
    assert read is not None
    assert read[0] == read[1] != known
    assert str(read[0]).startswith("rows?")


def test_factors_are_sorted_by_their_new_names() -> None:
    """Factors are sorted as text, in which 10 comes before 9; equal dimensions must stay equal."""
    names = LocalNames({"a?0": "a?9", "a?1": "a?10"})
    a, b = (SymbolicDim({(name,): 1}) for name in ("a?9", "a?10"))
    data = [[1, "a?0", "a?1"], [1, ["broadcast", [[1, "a?0"]], [[1, "a?1"]]]]]
    assert decode_type(["float32", [data]], names).shape == (a * b + broadcast(b, a),)


# **** mapping and sharing ****


def test_constants_are_read_only_aligned_and_shared(tmp_path: Path) -> None:
    path = written(tmp_path, dtypes())
    one, other = ModelFile.open(path), ModelFile.open(path)
    arrays = list(one.graph().constants.values())
    assert all(a is b for a, b in zip(arrays, other.graph().constants.values(), strict=True))
    for array in arrays:
        assert not array.flags.writeable
        assert array.ctypes.data % 64 == 0 or not array.size
        if DType.of(array).is_floating:  # these are the mapping itself; sealed constants are copies
            with pytest.raises(ValueError, match="WRITEABLE"):
                array.flags.writeable = True
    assert arrays[-2] is arrays[-3]  # "again" is the same array as the one before


def test_constants_outlive_the_file_object_and_stay_the_same(tmp_path: Path) -> None:
    path = written(tmp_path, dtypes())
    kept = list(ModelFile.open(path).graph().constants.values())
    gc.collect()
    renamed = path.rename(tmp_path / "renamed.lite")
    again = ModelFile.open(renamed).graph().constants.values()
    assert all(a is b for a, b in zip(kept, again, strict=True))


def test_replaced_file_is_read_again_and_old_constants_stay(tmp_path: Path) -> None:
    def model(number: int) -> Path:
        graph = Graph()
        graph.outputs = [graph.add_constant("c", np.full(1000, number))]
        return written(tmp_path, graph)

    (old,) = ModelFile.open(model(1)).graph().constants.values()
    (new,) = ModelFile.open(model(2)).graph().constants.values()
    assert old.sum() == 1000
    assert new.sum() == 2000


def test_a_mapping_ends_with_its_last_user(tmp_path: Path) -> None:
    path = written(tmp_path, dtypes())
    before = len(mapping._mapped)
    graph = ModelFile.open(path).graph()
    array = next(iter(graph.constants.values()))
    del graph
    assert len(mapping._mapped) == before + 1
    del array
    gc.collect()
    assert len(mapping._mapped) == before


def test_threads_share_the_constants_of_a_file(tmp_path: Path) -> None:
    path = written(tmp_path, dtypes())
    found: list[Graph] = []
    threads = [threading.Thread(target=lambda: found.append(ModelFile.open(path).graph())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    arrays = [[id(a) for a in graph.constants.values()] for graph in found]
    assert arrays == [arrays[0]] * 8


def test_only_requested_constants_are_verified(tmp_path: Path) -> None:
    graph = Graph()
    graph.outputs = [graph.add_constant(name, np.full(16, k, np.uint8)) for k, name in enumerate("ab", 65)]
    path = written(tmp_path, graph)
    path.write_bytes(path.read_bytes().replace(b"B" * 16, b"B" * 15 + b"C"))
    file = ModelFile.open(path)
    a, b = file.graph(verify=False).constants.values()
    file.verify_constants([a, np.zeros(3)])
    for failing in (lambda: file.verify_constants([b]), file.graph, file.verify):
        with pytest.raises(ModelFormatError, match=r"damaged.*: constants/1;"):
            failing()


def test_large_files_are_verified_by_two_threads_and_all_damage_is_named(tmp_path: Path) -> None:
    graph = Graph()
    graph.outputs = [graph.add_constant(f"c{k}", np.full(1 << 20, k, np.uint8)) for k in range(6)]
    path = written(tmp_path, graph)
    ModelFile.open(path).verify()
    content = bytearray(path.read_bytes())
    damaged = [s for s in ModelFile.open(path).sections if s.name in ("constants/1", "constants/4", "targets")]
    for section in damaged:
        content[section.offset] ^= 1
    path.write_bytes(content)
    with pytest.raises(ModelFormatError, match=r"damaged.*: constants/1, constants/4, targets;"):
        ModelFile.open(path).verify()


# **** writing ****


def test_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, chain())
    before = path.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ModelFormatError, match=r"model\.lite'.*No space left on device"):
        write_model(path, dtypes())
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model.lite"]


def test_writing_into_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ModelFormatError, match="No such file or directory"):
        write_model(tmp_path / "nowhere" / "model.lite", chain())


def one_node(**attributes: Any) -> Graph:
    y = Value("y", TensorType(F32, ()))
    return Graph("g", outputs=[y], nodes=[Node("Op", [], [y], attributes, name="op")])


def nested(depth: int) -> Graph:
    graph = one_node()
    for _ in range(depth):
        y = Value("y", TensorType(F32, ()))
        graph = Graph("g", outputs=[y], nodes=[Node("Op", [], [y], {"body": graph})])
    return graph


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (one_node(mixed=(1, "a")), r"'mixed'.*\(1, 'a'\)"),
        (one_node(anything={1}), "'anything'"),
        (nested(40), "nested.* 32 "),
        (Graph("g", outputs=[Value("y", TensorType(F32))]), "output 'y'.*'g'"),
    ],
)
def test_graph_that_cannot_be_stored_is_refused(graph: Graph, message: str, tmp_path: Path) -> None:
    with pytest.raises(GraphError, match=message):
        write_model(tmp_path / "model.lite", graph)
    assert not os.listdir(tmp_path)


def test_dimension_that_is_nested_too_deep_is_refused(tmp_path: Path) -> None:
    dim: Any = SymbolicDim.named("n")
    for _ in range(120):
        dim = (dim + 1) // SymbolicDim.named("k")
    graph = Graph("g", inputs=[Value("x", TensorType(F32, (dim,)))])
    with pytest.raises(GraphError, match=r"'g'.*dimension.*nested.* 100 "):
        write_model(tmp_path / "model.lite", graph)


def test_pieces_must_match_the_records(tmp_path: Path) -> None:
    targets, pieces = records(chain())
    with pytest.raises(ModelFormatError, match="'pieces'.*code/0, weights/0"):
        write_model(tmp_path / "model.lite", chain(), targets=targets)
    with pytest.raises(ModelFormatError, match="'pieces' must begin with code/ or weights/: constants/0, graph"):
        write_model(tmp_path / "model.lite", chain(), pieces={**pieces, "graph": b"", "constants/0": b""})


def test_file_has_the_default_permissions(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"")
    assert written(tmp_path, chain()).stat().st_mode == (tmp_path / "other").stat().st_mode


# **** reading with read_model ****


def test_read_model_needs_no_plugin(tmp_path: Path) -> None:
    path, no_plugins = written(tmp_path, chain()), PluginManager(list)
    for name in (path, path.with_suffix("")):
        assert plain(read_model(name, plugins=no_plugins)) == plain(chain())
    with pytest.raises(InputError, match="'lite'.*params"):
        read_model(path, plugins=no_plugins, params="x")
    (tmp_path / "text.lite").write_text("something else")
    with pytest.raises(LiteError, match=r"lite reads \.lite.*pip install lite-paddle"):
        read_model(tmp_path / "text.lite", plugins=no_plugins)


def test_reading_a_model_file_imports_no_slow_modules(tmp_path: Path) -> None:
    path = written(tmp_path, chain())
    code = (
        "import sys; from lite_core.container import ModelFile\n"
        f"ModelFile.open({str(path)!r}).graph()\n"
        "print([m for m in ('lite_core.ops', 'lite_core.passes', 'click', 'pluggy', 'ml_dtypes') if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_comparison_of_these_tests_detects_small_differences() -> None:
    for make in GRAPHS.values():
        graph, other = make(), make()
        assert plain(graph) == plain(other)
        other.name += "!"
        assert plain(graph) != plain(other)
    for key, changed in (("whole", 1), ("zero", 0.0), ("nan", math.inf), ("nothing", (0,)), ("dtype", "bfloat16")):
        graph = GRAPHS["attributes"]()
        other = copy.copy(graph)
        (node,) = graph.nodes
        other.nodes = [Node(node.op, node.inputs, node.outputs, {**node.attributes, key: changed}, domain=node.domain)]
        other.nodes[0].origin = node.origin
        assert plain(graph) != plain(other), key
