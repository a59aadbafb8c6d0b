"""Writing model files."""

from __future__ import annotations

import glob
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from lite_core.checks import is_there
from lite_core.container.layout import (
    ALIGNMENT,
    BLOCK,
    FORMAT_VERSION,
    HEADER_SIZE,
    WEIGHTS,
    Header,
    Table,
    constant_section,
)
from lite_core.container.records import PackedConstant, Section, TargetRecord
from lite_core.container.trust import code_digest
from lite_core.errors import GraphError, ModelFormatError
from lite_core.ir import DType, Graph, TensorType, verify_structure
from lite_tools.writing.abandoned import remove_abandoned
from lite_tools.writing.graph_encoder import GraphEncoder
from lite_tools.writing.layout_encoder import encode_header, encode_table, pack_nibbles, to_json
from lite_tools.writing.record_encoder import encode_targets, names_in_file

__all__ = ["new_file", "write_model"]

Bytes = bytes | memoryview


def write_model(
    path: str | os.PathLike[str],
    graph: Graph,
    *,
    targets: Sequence[TargetRecord] = (),
    pieces: Mapping[str, Bytes] | None = None,
    packed: Sequence[PackedConstant] = (),
    stripped: Iterable[np.ndarray[Any, Any]] = (),
    metadata: Mapping[str, str] | None = None,
    optimized: bool = False,
    seal: Callable[[str], str] | None = None,
) -> None:
    """Write a model file atomically: an existing file is replaced only when the new one is complete.

    Equal arguments give equal bytes.

    Args:
        path: path of the file.
        graph: the graph.
        targets: the records of the targets, the preferred one first.
        pieces: saved state of backends, by the section names in the records: ``code/N`` or ``weights/N``.
        packed: the constants that the sections ``packed/0``, ... in the records refer to. Each constant is stored once,
            in its first layout in this list; others are made from it when they are read.
        stripped: constants whose elements are left out, because no prepared plan reads them.
        metadata: metadata of the file.
        optimized: True if the passes were run on the graph.
        seal: returns the seal for a digest, :func:`lite_tools.writing.seal` for code that this process made.

    Raises:
        GraphError: the graph is invalid, or has an attribute that a file cannot hold.
        ModelFormatError: a record names a missing section, a section name is used twice, or the file cannot be written.
    """
    verify_structure(graph)
    contents = _contents(graph, targets, pieces or {}, packed, {id(array) for array in stripped})
    texts = {str(k): str(v) for k, v in (metadata or {}).items()}
    with new_file(Path(path)) as stream:
        _write(stream, contents, texts, optimized, seal)


@contextmanager
def new_file(file: Path) -> Iterator[BinaryIO]:
    """Open a stream for the content of a model file, which replaces an existing one when it is complete.

    Raises:
        ModelFormatError: the file cannot be written.
    """
    is_there(file)  # a device or a pipe must not be replaced
    temporary = file.with_name(f".{file.name}.{os.urandom(4).hex()}")
    try:
        remove_abandoned(file.parent.glob(f".{glob.escape(file.name)}.{'[0-9a-f]' * 8}"))
        try:
            with temporary.open("xb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(temporary, file)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise ModelFormatError(f"model {str(file)!r} cannot be written: {error.strerror or error}") from error


class _Content(NamedTuple):
    """The bytes of a section; ``is_sealed`` if the seal covers them."""

    data: Bytes
    is_sealed: bool = True


def _contents(
    graph: Graph,
    targets: Sequence[TargetRecord],
    pieces: Mapping[str, Bytes],
    packed: Sequence[PackedConstant],
    stripped: set[int],
) -> dict[str, _Content]:
    """Return the content of each section, by name."""
    partitions = [p for target in targets for plan in target.plans for p in plan.partitions]
    known = {*pieces, *(f"packed/{number}" for number in range(len(packed)))}
    missing = sorted({name for p in partitions for name in p.sections} - known)
    if missing:
        raise ModelFormatError(
            f"graph {graph.name!r}: the records name sections that 'pieces' lacks: {', '.join(missing)}"
        )
    names = names_in_file([*_types(graph), *(type for p in partitions for _, type in p.outputs)])
    try:
        encoder = GraphEncoder(graph, names, packed)
        records = to_json(encode_targets(targets, names))
    except (RecursionError, ValueError) as error:
        raise GraphError(f"graph {graph.name!r} has a dimension that a file cannot hold: {error}") from None
    wrong = sorted(name for name in pieces if not name.startswith(("code/", WEIGHTS)))
    if wrong:
        raise ModelFormatError(
            f"graph {graph.name!r}: names in 'pieces' must begin with code/ or {WEIGHTS}: {', '.join(wrong)}"
        )
    encoder.document["stripped"] = [n for n, array in enumerate(encoder.arrays) if id(array) in stripped]
    first = {id(constant.array): constant.data for constant in reversed(packed)}
    arrays = {
        constant_section(number): _Content(first.get(id(array)) or _bytes_of(array), not _holds_weights(array))
        for number, array in enumerate(encoder.arrays)
        if id(array) not in stripped
    }
    saved = {name: _Content(data, not name.startswith(WEIGHTS)) for name, data in pieces.items()}
    return {"graph": _Content(to_json(encoder.document)), **arrays, "targets": _Content(records), **saved}


def _holds_weights(array: np.ndarray[Any, Any]) -> bool:
    """Return True for types of which code computes with elements, but never uses them as sizes or indices."""
    dtype = DType.of(array)
    return dtype.is_floating or (dtype.itemsize == 1 and dtype is not DType.BOOL)


def _types(graph: Graph) -> Iterable[TensorType]:
    return (value.type for scope in graph.walk() for value in scope.defined())


def _bytes_of(array: np.ndarray[Any, Any]) -> memoryview:
    if DType.of(array) in (DType.INT4, DType.UINT4):
        return pack_nibbles(array).data
    little = array if array.dtype.byteorder in "=|<" else array.astype(array.dtype.newbyteorder("<"))
    return np.ascontiguousarray(little).reshape(-1).view(np.uint8).data


def _write(
    stream: BinaryIO,
    contents: Mapping[str, _Content],
    metadata: Mapping[str, str],
    optimized: bool,
    seal: Callable[[str], str] | None,
) -> None:
    """Write the sections, then the table, then the header, which contains the offset of the table."""
    stream.write(bytes(HEADER_SIZE))
    sections = {name: _write_section(stream, name, content) for name, content in contents.items()}
    digest = code_digest({name: content.data for name, content in contents.items() if content.is_sealed})
    table = encode_table(Table(sections, metadata, optimized, seal(digest) if seal else ""))
    offset = _pad(stream)
    stream.write(table)
    stream.seek(0)
    header = Header(FORMAT_VERSION, zlib.crc32(table), offset + len(table), offset, len(table))
    stream.write(encode_header(header))


def _write_section(stream: BinaryIO, name: str, section: _Content) -> Section:
    offset, data = _pad(stream), section.data
    stream.write(data)
    size = memoryview(data).nbytes
    content = memoryview(data).cast("B") if size else memoryview(b"")
    checksums = [zlib.crc32(content[start : start + BLOCK]) for start in range(0, size, BLOCK)]
    return Section(name, offset, size, tuple(checksums), section.is_sealed)


def _pad(stream: BinaryIO) -> int:
    """Pad the file with zeros to the alignment of sections; return the offset."""
    stream.write(bytes(-stream.tell() % ALIGNMENT))
    return stream.tell()
