"""Targets: .lite files, damaged behind their checksums, and the JSON of graphs in them.

Code in the files is never used: the session runs on ``host`` alone and is told to ignore what backends saved.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

import lite_core as lite
from fuzz.environment import environment
from fuzz.lite_layout import Parts, disassembled, sealed_header
from fuzz.mutation import mutated_bytes, mutated_json
from fuzz.mutation.plain import INTEGERS
from fuzz.targets import FuzzTarget
from lite_core.builder import GraphBuilder
from lite_core.container import ModelFile, PackedConstant, PartitionRecord, PlanRecord, TargetRecord
from lite_core.container.layout import FORMAT_VERSION, HEADER_SIZE
from lite_core.errors import LiteError
from lite_core.ir import DType, Graph, PanelLayout
from lite_core.session import make_ready
from lite_tools.writing import write_model

__all__ = ["GraphDocument", "LiteFile"]

#: Times of modification, all different: files written within the clock's resolution would share one mapping.
_TIMES = itertools.count(10**18, 10**6)


class LiteFile(FuzzTarget):
    """A whole file: header, table, sections."""

    allowed = (LiteError,)

    def seeds(self) -> Iterable[bytes]:
        """Return files of the present format, and those of older formats that the tests of the core keep."""
        yield from _model_files()
        goldens = Path(__file__).resolve().parents[3] / "core/tests/goldens"
        for file in sorted(goldens.rglob("*.lite")):
            if file.stat().st_size < 10_000:
                yield file.read_bytes()

    def run(self, data: bytes, folder: Path) -> None:
        """Read every part of the file, and make a session without running it."""
        path = _written(data, folder)
        file = ModelFile.open(path)
        for section in file.sections:
            file.section(section.name)
        assert all(isinstance(text, str) for text in (*file.metadata.values(), file.producer))
        graph = file.graph()
        str(graph)
        for target in file.targets:
            assert len(target.devices) == len(graph.nodes)
        file.verify()
        with environment(LITE_SAVED="ignore", LITE_BACKENDS="host"):
            lite.load(path, backend="host", threads=1)

    def mutate(self, data: bytes, chance: random.Random) -> bytes:
        """Change one part and repair the checksums before it; or change bytes anywhere."""
        if chance.random() < 0.1:
            return mutated_bytes(data, chance)
        try:
            parts = disassembled(data)
        except ValueError:
            return mutated_bytes(data, chance)
        kind = chance.random()
        if kind < 0.6:
            return _with_other_section(parts, chance).assembled()
        if kind < 0.95:
            # Offsets, sizes and checksums in the table become wrong; the checksum of the table is right.
            whole = parts.assembled()
            offset, size = (int.from_bytes(whole[at : at + 8], "little") for at in (24, 32))
            return parts.with_table(whole[:offset], mutated_json(whole[offset : offset + size], chance))
        header = bytearray(data[: HEADER_SIZE - 4])
        at, width = chance.choice([(0, 8), (8, 4), (12, 4), (16, 8), (24, 8), (32, 8), (40, 8)])
        number = chance.choice([*INTEGERS, FORMAT_VERSION + 1, len(data)]) & ((1 << 8 * width) - 1)
        header[at : at + width] = number.to_bytes(width, "little")
        return sealed_header(bytes(header)) + data[HEADER_SIZE:]


class GraphDocument(FuzzTarget):
    """The JSON of a graph: a list of the document and the bytes of its constants in hexadecimal."""

    allowed = (LiteError,)

    def __init__(self) -> None:
        self._frame = disassembled(_file_of(Graph("frame")))

    def seeds(self) -> Iterable[bytes]:
        """Return the graphs of the files that are the seeds of the other target."""
        for content in _model_files():
            contents = disassembled(content).contents
            constants = [contents[name].hex() for name in contents if name.startswith("constants/")]
            yield json.dumps([json.loads(contents["graph"]), constants], separators=(",", ":")).encode()

    def run(self, data: bytes, folder: Path) -> None:
        """Read the graph, print it, and make it ready to run."""
        try:
            document, texts = json.loads(data)
            constants = [bytes.fromhex(text) for text in texts]
            content = json.dumps(document).encode()
        except (ValueError, TypeError, RecursionError):
            content, constants = data, []
        numbered = {f"constants/{number}": content for number, content in enumerate(constants)}
        contents = {**self._frame.contents, "graph": content, **numbered}
        file = ModelFile.open(_written(self._frame._replace(contents=contents).assembled(), folder))
        graph = file.graph()
        str(graph)
        make_ready(graph, copy=False)

    def mutate(self, data: bytes, chance: random.Random) -> bytes:
        """Change the document."""
        return mutated_json(data, chance)


def _written(data: bytes, folder: Path) -> Path:
    path = folder / "model.lite"
    path.unlink(missing_ok=True)
    path.write_bytes(data)
    os.utime(path, ns=(0, next(_TIMES)))
    return path


def _with_other_section(parts: Parts, chance: random.Random) -> Parts:
    """Change one section: JSON by its structure, others by their bytes, or its name or presence."""
    names = list(parts.contents)
    if not names:
        return parts
    name = chance.choice([*names, *(n for n in ("graph", "targets", "graph", "targets") if n in names)])
    contents, rows = dict(parts.contents), dict(parts.rows)
    kind = chance.random()
    if kind < 0.05:
        del contents[name]
    elif kind < 0.1:
        other = f"{chance.choice(names)}{chance.choice(['', '0', 'x'])}"
        contents[other], rows[other] = contents[name], rows.get(name, [])
    elif name in ("graph", "targets"):
        contents[name] = mutated_json(contents[name], chance)
    else:
        contents[name] = mutated_bytes(contents[name], chance)
    return parts._replace(contents=contents, rows=rows)


def _model_files() -> Iterator[bytes]:
    for graph in _graphs():
        yield _file_of(graph)
        yield _file_of(graph, _target(graph), packed=_packed(graph))


def _file_of(graph: Graph, *targets: TargetRecord, packed: Sequence[PackedConstant] = ()) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.lite"
        write_model(path, graph, targets=targets, packed=packed, metadata={"note": "a seed"})
        return path.read_bytes()


def _packed(graph: Graph) -> list[PackedConstant]:
    """Store the first weights of a graph as matrix products read them."""
    weights = [array for array in graph.constants.values() if array.dtype == np.float32]
    found = []
    for array in weights[:1]:
        layout = PanelLayout(array.shape, tuple(range(array.ndim)), array.shape[-2], array.shape[-1], 4, 4)
        panels = np.zeros(layout.shape, np.float32)
        layout.pack(array, panels)
        found.append(PackedConstant(array, layout, panels.tobytes()))
    return found


def _target(graph: Graph) -> TargetRecord:
    """Return a record as a conversion for ``host`` writes it."""
    nodes = tuple(range(len(graph.nodes)))
    inputs = tuple(value.name for value in graph.inputs)
    outputs = tuple((value.name, value.type) for value in graph.outputs)
    part = PartitionRecord("part0", "host", nodes, inputs, outputs)
    shapes = {v.name: v.type.shape for v in graph.inputs if v.type.is_static}
    plan = PlanRecord(json.loads(json.dumps(shapes)), 1, (part,))
    return TargetRecord("host", "lite-core 0", "float32", False, ("host",) * len(nodes), ((),) * len(nodes), (plan,))


def _graphs() -> Iterator[Graph]:
    b = GraphBuilder("net")
    x = b.input("x", "float32", ["batch", 3, "h", "w"])
    k = b.constant(np.ones((2, 3, 3, 3), np.float32), "k")
    y = b.add("Relu", [b.add("Conv", [x, k], {"pads": (1, 1, 1, 1), "strides": (2, 2)}, name="conv")])
    b.output(b.add("ReduceMean", [y, b.constant(np.array([2, 3]))], {"keepdims": 0}), "y")
    yield b.build()

    b = GraphBuilder("shapes")
    x = b.input("x", "float32", [2, 4])
    r = b.add("Reshape", [x, b.constant(np.array([0, 2, 2]))])
    b.output(b.add("Transpose", [r], {"perm": (0, 2, 1)}), "y")
    b.output(b.add("Cast", [x], {"to": DType.INT64}), "i")
    yield b.build()

    b = GraphBuilder("branches")
    c, x = b.input("c", "bool", []), b.input("x", "float32", [4])
    then, other = GraphBuilder("then", outer=b), GraphBuilder("else", outer=b)
    then.output(then.add("Add", [x, x]), "t")
    other.output(other.add("Neg", [x]), "e")
    branches = {"then_branch": then.build(), "else_branch": other.build()}
    b.output(b.add("If", [c], branches), "y")
    yield b.build()
