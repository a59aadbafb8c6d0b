"""Writing model files."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from lite_core.container.graph_codec import GraphEncoder
from lite_core.container.layout import (
    ALIGNMENT,
    BLOCK,
    FORMAT_VERSION,
    HEADER_SIZE,
    Header,
    Table,
    constant_section,
    to_json,
)
from lite_core.container.records import Section, TargetRecord
from lite_core.container.targets_codec import encode_targets
from lite_core.container.types_codec import names_in_file
from lite_core.errors import GraphError, ModelFormatError
from lite_core.ir import Graph, TensorType, verify_structure

__all__ = ["write_model"]

Bytes = bytes | memoryview


def write_model(
    path: str | os.PathLike[str],
    graph: Graph,
    *,
    targets: Sequence[TargetRecord] = (),
    pieces: Mapping[str, Bytes] | None = None,
    metadata: Mapping[str, str] | None = None,
    optimized: bool = False,
) -> None:
    """Write a model file atomically: an existing file is replaced only when the new one is complete.

    Equal arguments give equal bytes.

    Args:
        path: path of the file.
        graph: the graph.
        targets: the records of the targets, the preferred one first.
        pieces: saved state of backends, by the section names in the records.
        metadata: metadata of the file.
        optimized: True if the passes were run on the graph.

    Raises:
        GraphError: the graph is invalid, or has an attribute that a file cannot hold.
        ModelFormatError: a record names a missing section, a section name is used twice, or the file cannot be written.
    """
    verify_structure(graph)
    contents = _contents(graph, targets, pieces or {})
    file = Path(path)
    temporary = file.with_name(f".{file.name}.{os.urandom(4).hex()}")
    try:
        try:
            with temporary.open("xb") as stream:
                _write(stream, contents, {str(k): str(v) for k, v in (metadata or {}).items()}, optimized)
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(temporary, file)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise ModelFormatError(f"model {str(file)!r} cannot be written: {error.strerror or error}") from error


def _contents(graph: Graph, targets: Sequence[TargetRecord], pieces: Mapping[str, Bytes]) -> dict[str, Bytes]:
    """Return the bytes of each section, by name."""
    partitions = [p for target in targets for plan in target.plans for p in plan.partitions]
    missing = sorted({name for p in partitions for name in p.sections} - {*pieces})
    if missing:
        raise ModelFormatError(
            f"graph {graph.name!r}: the records name sections that 'pieces' lacks: {', '.join(missing)}"
        )
    names = names_in_file([*_types(graph), *(type for p in partitions for _, type in p.outputs)])
    try:
        encoder = GraphEncoder(graph, names)
        records = to_json(encode_targets(targets, names))
    except (RecursionError, ValueError) as error:
        raise GraphError(f"graph {graph.name!r} has a dimension that a file cannot hold: {error}") from None
    arrays = {constant_section(number): _bytes_of(array) for number, array in enumerate(encoder.arrays)}
    own: dict[str, Bytes] = {"graph": to_json(encoder.document), **arrays, "targets": records}
    taken = sorted({*own} & {*pieces})
    if taken:
        raise ModelFormatError(
            f"graph {graph.name!r}: names in 'pieces' belong to sections of every file: {', '.join(taken)}"
        )
    return {**own, **pieces}


def _types(graph: Graph) -> Iterable[TensorType]:
    return (value.type for scope in graph.walk() for value in scope.defined())


def _bytes_of(array: np.ndarray[Any, Any]) -> memoryview:
    little = array if array.dtype.byteorder in "=|<" else array.astype(array.dtype.newbyteorder("<"))
    return np.ascontiguousarray(little).reshape(-1).view(np.uint8).data


def _write(stream: BinaryIO, contents: Mapping[str, Bytes], metadata: Mapping[str, str], optimized: bool) -> None:
    """Write the sections, then the table, then the header, which contains the offset of the table."""
    stream.write(bytes(HEADER_SIZE))
    sections = {name: _write_section(stream, name, data) for name, data in contents.items()}
    table = Table(sections, metadata, optimized).pack()
    offset = _pad(stream)
    stream.write(table)
    stream.seek(0)
    stream.write(Header(FORMAT_VERSION, zlib.crc32(table), offset + len(table), offset, len(table)).pack())


def _write_section(stream: BinaryIO, name: str, data: Bytes) -> Section:
    offset = _pad(stream)
    stream.write(data)
    size = memoryview(data).nbytes
    content = memoryview(data).cast("B") if size else memoryview(b"")
    checksums = [zlib.crc32(content[start : start + BLOCK]) for start in range(0, size, BLOCK)]
    return Section(name, offset, size, tuple(checksums))


def _pad(stream: BinaryIO) -> int:
    """Pad the file with zeros to the alignment of sections; return the offset."""
    stream.write(bytes(-stream.tell() % ALIGNMENT))
    return stream.tell()
