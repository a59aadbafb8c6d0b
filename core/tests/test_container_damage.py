"""Damaged and hostile model files: reading raises only LiteError, and memory stays in proportion to the file."""

from __future__ import annotations

import copy
import itertools
import json
import os
import re
import struct
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from container_graphs import GRAPHS, records
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_convert import Toy

from lite_core import convert, load
from lite_core.backend import Device, No, Yes
from lite_core.builder import GraphBuilder
from lite_core.container import FORMAT_VERSION, ModelFile
from lite_core.errors import LiteError, ModelFormatError
from lite_core.ir import Graph, Node, format_graph, verify_structure
from lite_core.plugins import plugins_with
from lite_tools.writing import write_model

#: Times of modification, all different: files written within the clock's resolution would share one mapping.
_TIMES = itertools.count(1)

#: Limit of the memory per byte of a file: an empty list takes 3 bytes of JSON and 64 in memory, plus decoding.
_FACTOR, _BASE = 60, 1 << 20


@pytest.fixture(scope="module")
def contents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Small model files by the names of their graphs, with targets and their saved sections."""
    path = tmp_path_factory.mktemp("files") / "model.lite"
    found = {}
    for name, make in GRAPHS.items():
        graph = make()
        targets, pieces = records(graph)
        write_model(path, graph, targets=targets, pieces=pieces, metadata={"a": "b"})
        found[name] = path.read_bytes()
    return found


def read_everything(path: Path) -> None:
    file = ModelFile.open(path)
    graph = file.graph()
    assert len(file.targets) >= 0
    for section in file.sections:
        file.section(section.name)
    file.verify()
    verify_structure(graph)
    format_graph(graph)


def error_of(path: Path, content: bytes) -> LiteError | None:
    """Return the LiteError that reading a file with this content raises, or None; other errors fail the test."""
    path.write_bytes(content)
    os.utime(path, ns=(0, next(_TIMES)))
    found = None
    try:
        read_everything(path)
    except LiteError as error:
        found = error
    assert found is None or path.name in str(found)
    return found


# **** files with replaced parts and valid checksums ****


def parts_of(content: bytes) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the table of a file, and the bytes of each section."""
    offset, size = struct.unpack_from("<QQ", content, 24)
    table = json.loads(content[offset : offset + size])
    return table, {name: content[start : start + size] for name, start, size, *_ in table["sections"]}


def assembled(sections: dict[str, bytes], table: dict[str, Any] | bytes | None = None, **fields: Any) -> bytes:
    """Return a file with these sections; the table or its fields, ``version`` and ``producer`` may be given."""
    version, producer = fields.pop("version", FORMAT_VERSION), fields.pop("producer", b"lite-core 9.9")
    body, rows = bytearray(128), []
    for name, data in sections.items():
        body += bytes(-len(body) % 64)
        is_sealed = not name.startswith(("constants/", "weights/"))
        rows.append([name, len(body), len(data), [zlib.crc32(data)] if data else [], is_sealed])
        body += data
    body += bytes(-len(body) % 64)
    document = {"opset": 22, "optimized": False, "metadata": {}, "seal": "", "sections": rows, **fields}
    packed = table if isinstance(table, bytes) else json.dumps(table or document).encode()
    total = len(body) + len(packed)
    header = struct.pack(
        "<8sIIQQQ84s", b"\x89LITE\r\n\x1a", version, zlib.crc32(packed), total, len(body), len(packed), producer
    )
    body[:128] = header + struct.pack("<I", zlib.crc32(header))
    return bytes(body) + packed


def with_json(content: bytes, section: str, change: Callable[[Any], Any]) -> bytes:
    """Return the file with the JSON document of a section replaced by ``change(document)``."""
    _, sections = parts_of(content)
    sections[section] = json.dumps(change(json.loads(sections[section]))).encode()
    return assembled(sections)


def test_assembled_files_are_valid(contents: dict[str, bytes], tmp_path: Path) -> None:
    for name, content in contents.items():
        assert error_of(tmp_path / "m.lite", assembled(parts_of(content)[1])) is None, name


# **** truncation, single bytes ****


def spans(content: bytes) -> list[tuple[int, int]]:
    """Return offset and size of the header, of each section, and of the table."""
    table, _ = parts_of(content)
    sections = [(offset, size) for _, offset, size, *_ in table["sections"]]
    return [(0, 128), *sections, struct.unpack_from("<QQ", content, 24)]


def sample(start: int, end: int, step: int) -> set[int]:
    """Return every ``step``-th position of a range, and its last one."""
    return {*range(start, end, step), end - 1} if start < end else set()


def test_truncated_file_is_an_error(contents: dict[str, bytes], tmp_path: Path) -> None:
    """Cut a file off within its header, at both ends of each section and of the table, and at a sample of lengths."""
    content, path = contents["dtypes"], tmp_path / "m.lite"
    ends = {end + near for start, size in spans(content) for end in (start, start + size) for near in (-1, 0, 1)}
    for length in sorted({*range(130), *ends, *sample(0, len(content), 61)}):
        if 0 <= length < len(content):
            error = error_of(path, content[:length])
            assert isinstance(error, ModelFormatError), length
            if length >= 128:
                assert re.search(rf"cut off.* {length} bytes.* {len(content)} ", str(error))
    assert "too long" in str(error_of(path, content + b"\0"))


def test_flipped_bytes_are_detected_except_in_padding(contents: dict[str, bytes], tmp_path: Path) -> None:
    """Flip every byte of the header, and the first, the last and a sample of each section, the table and padding."""
    content = contents["chain"]
    used = sorted(spans(content))
    padding = [(start + size, following) for (start, size), (following, _) in itertools.pairwise(used)]
    expected = dict.fromkeys(range(128), True)
    expected |= {byte: True for start, size in used for byte in sample(start, start + size, 17)}
    expected |= {byte: False for start, end in padding for byte in sample(start, end, 17)}
    assert set(expected.values()) == {True, False}
    for number, (position, detected) in enumerate(expected.items()):
        flipped = bytearray(content)
        flipped[position] ^= (0x01, 0xFF)[number % 2]
        assert (error_of(tmp_path / "m.lite", bytes(flipped)) is not None) == detected, position


@pytest.mark.parametrize(
    ("name", "section"),
    [("attributes", "graph"), ("dimensions", "graph"), ("branches", "graph"), ("branches", "targets")],
)
def test_flipped_bytes_with_valid_checksums_are_read_or_refused(
    name: str, section: str, contents: dict[str, bytes], tmp_path: Path
) -> None:
    _, sections = parts_of(contents[name])
    for number, position in enumerate(range(0, len(sections[section]), 7)):
        data = bytearray(sections[section])
        data[position] ^= (0x01, 0x10)[number % 2]
        error_of(tmp_path / "m.lite", assembled({**sections, section: bytes(data)}))


# **** hostile content ****


def put(*path: Any, value: Any) -> Callable[[Any], Any]:
    """Return a change that sets one element of a document."""

    def change(document: Any) -> Any:
        parent = document
        for key in path[:-1]:
            parent = parent[key]
        parent[path[-1]] = value
        return document

    return change


def deep(levels: int, of: Callable[[Any], Any], innermost: Any) -> Any:
    data = innermost
    for _ in range(levels):
        data = of(data)
    return data


def inner_graph(body: Any) -> Any:
    node = {"op": "Op", "in": [], "out": [["y", 0]], "attrs": {"body": ["graph", body]}}
    return {"name": "g", "inputs": [], "constants": [], "nodes": [node], "outputs": []}


NODE = ("graph", "nodes", 0)
FLOOR: Callable[[Any], Any] = lambda dim: [[1, ["//", dim, 2]], [1, "n"]]  # noqa: E731
MAX: Callable[[Any], Any] = lambda dim: [[1, "n", ["max", dim, 2]]]  # noqa: E731

HOSTILE_GRAPHS = {
    "no graph": lambda _: [],
    "null": lambda _: None,
    "a value before it is defined": put(*NODE, "in", value=[5]),
    "a value counted from the end": put(*NODE, "in", value=[-1]),
    "a type counted from the end": put("graph", "inputs", 0, 1, value=-1),
    "a type that is not there": put("graph", "inputs", 0, 1, value=99),
    "one name for two values": put("graph", "inputs", value=[["x", 0], ["x", 0]]),
    "a value without a name": put("graph", "inputs", value=[["", 0]]),
    "a number for a name": put("graph", "inputs", value=[[7, 0]]),
    "a number for an operator": put(*NODE, "op", value=7),
    "a list for an operator": put(*NODE, "op", value=["Conv"]),
    "a number for an origin": put(*NODE, "from", value=7),
    "a node that writes nothing": put(*NODE, "out", value=[None]),
    "numbers for metadata": put("graph", "meta", value={"a": 1}),
    "an attribute of no kind": put(*NODE, "attrs", value={"a": ["pickle", "x"]}),
    "a kind that cannot be looked up": put(*NODE, "attrs", value={"a": [["int"], 1]}),
    "true for a number": put(*NODE, "attrs", value={"a": ["int", True]}),
    "a float for an integer": put(*NODE, "attrs", value={"a": ["ints", [1, 2.0]]}),
    "NaN for an integer": put(*NODE, "attrs", value={"a": ["int", float("nan")]}),
    "NaN as JSON does not have it": put(*NODE, "attrs", value={"a": ["float", float("nan")]}),
    "an unknown float": put(*NODE, "attrs", value={"a": ["float", "NaN"]}),
    "a float too large": put(*NODE, "attrs", value={"a": ["float", 10**400]}),
    "an unknown type": put("types", 0, 0, value="complex64"),
    "a list for a type": put("types", 0, 0, value=[]),
    "a negative size": put("types", 0, 1, value=[-1]),
    "a float for a size": put("types", 0, 1, value=[1.5]),
    "an unknown operator of dimensions": put("types", 0, 1, value=[[[1, ["**", 2, 3]]]]),
    "an empty symbol": put("types", 0, 1, value=[[[1, ""]]]),
    "a dimension nested 99 deep": put("types", 0, 1, value=[deep(99, FLOOR, 1)]),
    "a dimension nested 101 deep": put("types", 0, 1, value=[deep(101, MAX, [[1, "n"]])]),
    "a dimension nested 300 deep": put("types", 0, 1, value=[deep(300, FLOOR, 1)]),
    "a constant larger than its section": put("types", 1, 1, value=[2**40]),
    "a constant whose size overflows": put("types", 1, 1, value=[2**62, 2**62, 4]),
    "a constant of rank 100": put("types", 1, 1, value=[1] * 100),
    "a constant of negative number": put("graph", "constants", 0, 2, value=-1),
    "a constant that is not there": put("graph", "constants", 0, 2, value=10**9),
    "a constant of unknown size": put("types", 1, 1, value=[[[1, "n"]]]),
    "a constant of unknown rank": put("types", 1, 1, value=None),
    "inner graphs nested 40 deep": put("graph", value=deep(40, inner_graph, inner_graph({}))),
    "inner graphs nested 150 deep": put("graph", value=deep(150, inner_graph, inner_graph({}))),
}
VALID_GRAPHS = {"a dimension nested 99 deep"}


@pytest.mark.parametrize("name", HOSTILE_GRAPHS)
def test_hostile_graphs_are_refused(name: str, contents: dict[str, bytes], tmp_path: Path) -> None:
    content = with_json(contents["chain"], "graph", HOSTILE_GRAPHS[name])
    error = error_of(tmp_path / "m.lite", content)
    assert (error is None) == (name in VALID_GRAPHS)
    assert error is None or "section 'graph'" in str(error)


def test_values_of_an_inner_graph_cannot_be_used_outside(contents: dict[str, bytes], tmp_path: Path) -> None:
    inner = {"name": "i", "inputs": [["x", 0]], "constants": [], "nodes": [], "outputs": [0]}
    for outputs, fine in (([1], True), ([0], False)):
        graph = {**inner_graph(inner), "outputs": outputs}
        error = error_of(tmp_path / "m.lite", with_json(contents["chain"], "graph", put("graph", value=graph)))
        # The targets are for another number of nodes, which is checked after the graph.
        assert ("section 'graph'" in str(error)) is not fine


HOSTILE_TARGETS = {
    "no list": lambda _: {},
    "devices of another graph": put(0, "devices", value=["x86"]),
    "a number for a device": put(0, "devices", 0, value=1),
    "a node that is not there": put(0, "plans", 0, "partitions", 0, "nodes", value=[0, 10**9]),
    "a negative node": put(0, "plans", 0, "partitions", 0, "nodes", value=[-1]),
    "true for a node": put(0, "plans", 0, "partitions", 0, "nodes", value=[True]),
    "a node that runs twice": put(0, "plans", 0, "partitions", 1, "nodes", value=[1]),
    "a node that does not run": put(0, "plans", 0, "partitions", 0, "nodes", value=[0]),
    "nodes in another order": put(0, "plans", 0, "partitions", 0, "nodes", value=[1, 0]),
    "an input that is not there": put(0, "plans", 0, "partitions", 0, "inputs", value=["elsewhere"]),
    "a constant for an input": put(0, "plans", 0, "partitions", 0, "inputs", value=["split_shape"]),
    "an output that is not there": put(0, "plans", 0, "partitions", 0, "outputs", 0, 0, value="elsewhere"),
    "a section that is not there": put(0, "plans", 0, "partitions", 0, "sections", value=["elsewhere"]),
    "a text for sections": put(0, "plans", 0, "partitions", 0, "sections", value="code/0"),
    "a number for a section": put(0, "plans", 0, "partitions", 0, "sections", 0, value=0),
    "no thread": put(0, "plans", 0, "threads", value=0),
    "half a thread": put(0, "plans", 0, "threads", value=0.5),
    "a negative shape": put(0, "plans", 0, "shapes", value={"x": [-1]}),
    "a text for texts": put(0, "plans", 0, "partitions", 0, "inputs", value="abc"),
    "a refusal of three": put(1, "refusals", value=[[["a", "b", "c"]], []]),
    "a number for a flag": put(0, "exact", value=1),
    "no type": put(0, "plans", 0, "partitions", 0, "outputs", value=[["y", {}]]),
}


@pytest.mark.parametrize("name", HOSTILE_TARGETS)
def test_hostile_targets_are_refused(name: str, contents: dict[str, bytes], tmp_path: Path) -> None:
    error = error_of(tmp_path / "m.lite", with_json(contents["chain"], "targets", HOSTILE_TARGETS[name]))
    assert "section 'targets'" in str(error)


INVALID_JSON = {
    "text in another encoding": '{"types": []}'.encode("utf-16"),
    "bytes that are no text": b'{"types": "\xff\xfe"}',
    "nothing": b"",
    "cut off": b'{"types": [',
    "nested a million deep": b"[" * 10**6,
    "a number of a million digits": b"[" + b"9" * 10**6 + b"]",
    "a large exponent": b"[1e999]",
    "nested objects": b'{"a":' * 10**5,
}


@pytest.mark.parametrize("part", ["table", "graph", "targets"])
@pytest.mark.parametrize("name", INVALID_JSON)
def test_invalid_json_is_refused(part: str, name: str, contents: dict[str, bytes], tmp_path: Path) -> None:
    data, (_, sections) = INVALID_JSON[name], parts_of(contents["chain"])
    content = assembled(sections, data) if part == "table" else assembled({**sections, part: data})
    assert isinstance(error_of(tmp_path / "m.lite", content), ModelFormatError)


def rows(*changed: list[Any]) -> Callable[[list[list[Any]]], list[list[Any]]]:
    return lambda present: [*present, *changed]


HOSTILE_SECTIONS = {
    "one name twice": lambda present: [*present, present[0]],
    "over the header": rows(["x", 64, 8, [0]]),
    "over another": lambda present: [*present, ["x", present[0][1], 1, [0]]],
    "over the table": lambda present: [*present, ["x", present[-1][1] + 64, 200, [0]]],
    "outside the file": rows(["x", 1 << 20, 0, []]),
    "outside any file": rows(["x", 1 << 70, 1 << 70, [0]]),
    "a negative size": rows(["x", 1 << 20, -5, []]),
    "a negative offset": rows(["x", -64, 5, [0]]),
    "not aligned": lambda present: [*present, ["x", present[-1][1] + 1, 1, [0]]],
    "a float for an offset": rows(["x", 128.0, 1, [0]]),
    "a number for a name": rows([1, 128, 1, [0]]),
    "too few fields": rows(["x", 128, 1]),
    "no checksum": lambda present: [[*present[0][:3], []], *present[1:]],
    "too many checksums": lambda present: [[*present[0][:3], present[0][3] * 2], *present[1:]],
    "a checksum for checksums": lambda present: [[*present[0][:3], *present[0][3]], *present[1:]],
    "a negative checksum": lambda present: [[*present[0][:3], [-1]], *present[1:]],
    "no list": lambda _: 5,
    "texts": rows("abcd"),
    "no sections": lambda _: [],
}


@pytest.mark.parametrize("name", HOSTILE_SECTIONS)
def test_hostile_sections_are_refused(name: str, contents: dict[str, bytes], tmp_path: Path) -> None:
    table, sections = parts_of(contents["chain"])
    table["sections"] = HOSTILE_SECTIONS[name](table["sections"])
    assert isinstance(error_of(tmp_path / "m.lite", assembled(sections, table)), ModelFormatError)


@pytest.mark.parametrize("fields", [{"opset": "22"}, {"optimized": 1}, {"metadata": []}, {"metadata": {"a": 1}}])
def test_hostile_tables_are_refused(fields: dict[str, Any], contents: dict[str, bytes], tmp_path: Path) -> None:
    error = error_of(tmp_path / "m.lite", assembled(parts_of(contents["chain"])[1], **fields))
    assert "table" in str(error)


# **** other files ****


def test_other_files_are_refused_with_the_reason(tmp_path: Path) -> None:
    def message(name: str) -> str:
        with pytest.raises(ModelFormatError) as caught:
            ModelFile.open(tmp_path / name)
        return str(caught.value)

    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "text").write_text("a text, and no model")
    assert "not a file" in message(".")
    assert "No such file or directory" in message("nowhere")
    assert "cannot be read" in message("a\0b")
    assert re.search(r"not a \.lite file.* b''", message("empty"))
    assert re.search(r"not a \.lite file.* b'a text, '", message("text"))


def test_file_truncated_after_opening_is_an_error(contents: dict[str, bytes], tmp_path: Path) -> None:
    path = tmp_path / "m.lite"
    path.write_bytes(contents["chain"])
    file = ModelFile.open(path)
    with path.open("r+b") as stream:
        stream.truncate(200)
    for asked in (file.graph, lambda: file.targets, lambda: file.section("code/0"), file.verify):
        with pytest.raises(ModelFormatError, match=r"cut off.* 200 bytes"):
            asked()


def test_missing_section_is_an_error(contents: dict[str, bytes], tmp_path: Path) -> None:
    (tmp_path / "m.lite").write_bytes(contents["chain"])
    with pytest.raises(ModelFormatError, match=r"m\.lite'.*'x'.*: graph, constants/0, targets"):
        ModelFile.open(tmp_path / "m.lite").section("x")


# **** structure changed at random ****


def paths(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every element of a document."""
    items = (
        document.items() if isinstance(document, dict) else enumerate(document if isinstance(document, list) else ())
    )
    for key, item in items:
        yield (*path, key)
        yield from paths(item, (*path, key))


ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 12),
    st.sampled_from([2**31, 2**63, -(2**63), 10**30, 1.5, -0.0, 1e300]),
    st.sampled_from(["", "x", "int", "graph", "float32", "nan", "//", "unknown?0", "\ud800"]),
    st.sampled_from([[], {}, [[]], [0], [None], {"a": 1}, ["int", 1], [[1, "n"]]]),
)


def change_at_random(document: Any, data: st.DataObject) -> None:
    """Change one to three elements of a JSON document: replace, remove, repeat, or overwrite with another element."""
    for _ in range(data.draw(st.integers(1, 3))):
        found = list(paths(document))
        if not found:
            break
        *outer, key = data.draw(st.sampled_from(found))
        parent: Any = document
        for step in outer:
            parent = parent[step]
        action = data.draw(st.sampled_from(["replace", "remove", "repeat", "other"]))
        if action == "replace":
            parent[key] = copy.deepcopy(data.draw(ODD))
        elif action == "remove":
            del parent[key]
        elif action == "repeat" and isinstance(parent, list):
            parent.append(parent[key])
        else:
            *path, last = data.draw(st.sampled_from(found))
            other: Any = document
            with suppress(LookupError, TypeError):  # an earlier step may have removed it
                for step in path:
                    other = other[step]
                parent[key] = json.loads(json.dumps(other[last]))


@given(data=st.data())
@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
def test_structure_changed_at_random_gives_a_graph_or_an_error(
    data: st.DataObject, contents: dict[str, bytes], tmp_path: Path
) -> None:
    """The graph of a file that can be read is valid; read_everything() verifies it."""
    content = contents[data.draw(st.sampled_from(sorted(contents)))]
    table, sections = parts_of(content)
    part = data.draw(st.sampled_from(["graph", "graph", "graph", "targets", "table"]))
    document = table if part == "table" else json.loads(sections[part])
    change_at_random(document, data)
    whole = (
        assembled(sections, document)
        if part == "table"
        else assembled({**sections, part: json.dumps(document).encode()})
    )
    error_of(tmp_path / "m.lite", whole)


# **** plans that sessions use ****


class Choosy(Toy):
    """A backend that refuses If and Exp, so that plans have several partitions, one of them a node with sub-graphs."""

    def supports(self, node: Node, device: Device) -> Yes | No:
        return No(f"toy has no {node.op}") if node.op in ("If", "Exp") else Yes()


def prepared_model() -> Graph:
    b = GraphBuilder("prepared")
    x = b.input("x", "float32", ["n", 3])
    hidden = b.add("MatMul", [b.add("Relu", [x]), b.constant(np.arange(12, dtype=np.float32).reshape(3, 4), "w")])
    branches: dict[str, Any] = {}
    for name, op in (("then_branch", "Abs"), ("else_branch", "Neg")):
        inner = GraphBuilder(name, outer=b)
        inner.output(inner.add(op, [hidden]))
        branches[name] = inner.build()
    condition = b.add("Greater", [b.add("ReduceMax", [x], {"keepdims": 0}), b.constant(np.float32(0), "zero")])
    b.output(b.add("Exp", [b.add("Neg", [b.add("If", [condition], branches)])]), "y")
    b.output(b.add("NonZero", [b.add("Relu", [hidden])]), "indices")
    return b.build()


class Prepared(NamedTuple):
    """A backend, a file with plans for it, and the results of running this file."""

    backend: type[Toy]
    content: bytes
    results: list[dict[str, Any]]


@pytest.fixture(scope="module", params=[Toy, Choosy])
def prepared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """A file with plans for two shapes, for a backend that saves state and, inserted afterwards, for host."""
    path = tmp_path_factory.mktemp("prepared") / "model.lite"
    shapes = [{"x": (2, 3)}, {"x": (5, 3)}]
    plugins = plugins_with(request.param())
    convert(prepared_model(), path, ["toy", "host"], shapes=shapes, threads=2, allow_fallback=True, plugins=plugins)

    def with_plans_for_host(targets: Any) -> Any:
        moved = json.loads(json.dumps(targets[0]).replace('"toy"', '"host"'))
        for plan in moved["plans"]:
            for partition in plan["partitions"]:
                partition["sections"] = []
        return [targets[0], {**moved, "plugin": targets[1]["plugin"]}]

    content = with_json(path.read_bytes(), "targets", with_plans_for_host)
    return Prepared(request.param, content, run_prepared(path, request.param, content))


def run_prepared(path: Path, backend: type[Toy], content: bytes) -> list[dict[str, Any]]:
    path.write_bytes(content)
    os.utime(path, ns=(0, next(_TIMES)))
    x = np.linspace(-1, 2, 6, dtype=np.float32).reshape(2, 3)
    plugins = plugins_with(backend())
    return [load(path, name, threads=2, saved="trust", plugins=plugins).run(x=x) for name in ("toy", "host")]


def assert_right_or_refused(path: Path, prepared: Prepared, change: Callable[[Any], Any]) -> None:
    """Check that a file with changed targets gives the same results or raises a LiteError."""
    with suppress(LiteError):
        found = run_prepared(path, prepared.backend, with_json(prepared.content, "targets", change))
        for one, other in zip(found, prepared.results, strict=True):
            assert {k: (v.dtype, v.tolist()) for k, v in one.items()} == {
                k: (v.dtype, v.tolist()) for k, v in other.items()
            }


@given(data=st.data())
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
def test_randomly_changed_targets_give_right_results_or_an_error(
    data: st.DataObject, prepared: Prepared, tmp_path: Path
) -> None:
    def change(document: Any) -> Any:
        change_at_random(document, data)
        return document

    assert_right_or_refused(tmp_path / "m.lite", prepared, change)


PARTITIONS = (0, "plans", 0, "partitions")
MISLEADING_PLANS = {
    "partitions in another order": lambda document: put(*PARTITIONS, value=document[0]["plans"][0]["partitions"][::-1]),
    "an unknown backend": lambda _: put(*PARTITIONS, 0, "backend", value="unknown"),
    "another backend": lambda _: put(*PARTITIONS, 0, "backend", value="host"),
    "a section of other content": lambda _: put(*PARTITIONS, 0, "sections", value=["graph"]),
    "more sections": lambda _: put(*PARTITIONS, 0, "sections", value=["code/0", "code/0", "graph"]),
    "no sections": lambda _: put(*PARTITIONS, 0, "sections", value=[]),
    "other threads": lambda _: put(0, "plans", 0, "threads", value=10**9),
    "no inputs": lambda _: put(*PARTITIONS, 0, "inputs", value=[]),
    "no outputs": lambda _: put(*PARTITIONS, 0, "outputs", value=[]),
    "shapes of another plan": lambda _: put(0, "plans", 0, "shapes", value={"x": [5, 3]}),
    "another element type": lambda _: put(*PARTITIONS, 0, "outputs", 0, 1, 0, value="int8"),
    "another rank": lambda _: put(*PARTITIONS, 0, "outputs", 0, 1, 1, value=[2, 4, 1]),
    "more than there is memory": lambda _: put(*PARTITIONS, 0, "outputs", 0, 1, 1, value=[2**40, 3]),
    "more than can be addressed": lambda _: put(*PARTITIONS, -1, "outputs", -1, 1, 1, value=[2, 10**30]),
    "no plugin": lambda _: put(0, "plugin", value=""),
}


@pytest.mark.parametrize("name", MISLEADING_PLANS)
def test_misleading_plans_give_right_results_or_an_error(name: str, prepared: Prepared, tmp_path: Path) -> None:
    assert_right_or_refused(tmp_path / "m.lite", prepared, lambda document: MISLEADING_PLANS[name](document)(document))


def test_a_plan_in_an_order_that_cannot_run_is_refused(tmp_path: Path) -> None:
    path, plugins = tmp_path / "m.lite", plugins_with(Choosy())
    convert(prepared_model(), path, "toy", shapes={"x": (2, 3)}, threads=2, allow_fallback=True, plugins=plugins)
    reverse = lambda document: put(*PARTITIONS, value=document[0]["plans"][0]["partitions"][::-1])(document)  # noqa: E731
    path.write_bytes(with_json(path.read_bytes(), "targets", reverse))
    with pytest.raises(ModelFormatError, match=r"m\.lite'.*section 'targets'"):
        load(path, "toy", threads=2, saved="trust", plugins=plugins).run(x=np.ones((2, 3), np.float32))


# **** memory ****


BOMBS = {
    "empty lists": b'{"types": [' + b"[]," * 50_000 + b"[]]}",
    "types": b'{"types": [' + b'["int8",[0,0,0,0]],' * 8_000 + b'["int8",[]]], "graph": {}}',
    "inputs": b'{"types": [["int8",[]]], "graph": {"name":"","inputs":['
    + b",".join(b'["%d",0]' % k for k in range(12_000))
    + b"]}}",
    "nodes": b'{"types": [["int8",[]]], "graph": {"name":"","inputs":[],"constants":[],"nodes":['
    + b",".join(b'{"op":"","in":[],"out":[["%d",0]]}' % k for k in range(8_000))
    + b"]}}",
    "a long dimension": b'{"types": [["int8",[[' + b",".join(b'[1,"%d"]' % k for k in range(12_000)) + b"]]]]}",
    "a product": b'{"types": [["int8",[[[1' + b',["//",[[1,"n"]],3]' * 8_000 + b"]]]]]}",
    "one large array many times": b'{"types": [["uint8",[65536]]], "graph": {"name":"","inputs":[],"constants":['
    + b",".join(b'["%d",0,0]' % k for k in range(8_000))
    + b'],"nodes":[],"outputs":[]}}',
}


@pytest.mark.parametrize("name", BOMBS)
def test_memory_stays_in_proportion_to_the_file(name: str, contents: dict[str, bytes], tmp_path: Path) -> None:
    content = assembled({"graph": BOMBS[name], "constants/0": bytes(65536), "targets": b"[]"})
    path = tmp_path / "m.lite"
    path.write_bytes(content)
    tracemalloc.start()
    try:
        with suppress(LiteError):
            ModelFile.open(path).graph()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < _FACTOR * len(content) + _BASE, peak / len(content)


def test_damaged_weights_are_found_for_shapes_that_the_file_has_no_plan_for(prepared: Prepared, tmp_path: Path) -> None:
    backend, content, _ = prepared
    path = tmp_path / "m.lite"
    path.write_bytes(content)
    section = next(s for s in ModelFile.open(path).sections if s.size == 4 * 12 and s.name.startswith("constants/"))
    path.write_bytes(content[: section.offset] + bytes([content[section.offset] ^ 1]) + content[section.offset + 1 :])
    session = load(path, "toy", threads=2, saved="trust", plugins=plugins_with(backend()))
    with pytest.raises(ModelFormatError, match=rf"damaged.*{section.name}"):
        session.run(x=np.ones((7, 3), np.float32))
