"""Binary format of a saved program without its code: a header with a checksum, a description, and tables.

================  ======================================================================================
offset            content
================  ======================================================================================
0                 ``LITECPU4``
8                 CRC-32 of everything from byte 12 on
12                size of the whole frame and of the description in bytes: 64 bits each, little-endian
                  like all numbers here
64                the description, JSON
multiple of 64    the body: the tables; the description has their sizes
================  ======================================================================================
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from lite_core.backend import Options
from lite_core.errors import LiteError
from lite_core.ir import Graph
from lite_cpu.aligned import LINE_BYTES
from lite_cpu.sources import sources_version

__all__ = ["Frame", "SavedStateError", "compatibility", "describe_graph", "read_frame", "write_frame"]

_MAGIC = b"LITECPU4"
_CHECKED_FROM = 12
_HEADER = struct.Struct("<8sIQQ")  # magic, checksum, size of the frame, size of the description
_HEADER_BYTES = 64


class SavedStateError(LiteError):
    """Saved state is damaged, or does not fit the partition or the process."""


class Frame(NamedTuple):
    """The content of a valid frame."""

    description: dict[str, Any]
    body: memoryview


def compatibility(options: Options) -> str:
    """Return a text that must be equal for saved programs to be used. The core compares what the processor needs.

    Args:
        options: the session's options; of the backend's own options only those that programs depend on.
    """
    own = "".join(f", {name}={value}" for name, value in sorted(options.own.items()))
    return f"lite_cpu {sources_version()}, {options.precision}{', exact' if options.exact else ''}{own}"


def describe_graph(graph: Graph) -> dict[str, Any]:
    """Return a description that distinguishes graphs: types of inputs and outputs, and a checksum of the nodes."""
    return {
        "inputs": [str(value.type) for value in graph.inputs],
        "outputs": [str(value.type) for value in graph.outputs],
        "nodes": zlib.crc32(_names_and_attributes(graph).encode()),
    }


def _names_and_attributes(graph: Graph) -> str:
    lines = [f"{[value.name for value in graph.inputs]} {[value.name for value in graph.outputs]}"]
    for node in graph.nodes:
        texts = {k: _names_and_attributes(a) if isinstance(a, Graph) else str(a) for k, a in node.attributes.items()}
        inputs, outputs = ([v and v.name for v in values] for values in (node.inputs, node.outputs))
        lines.append(f"{node.qualified_op}({inputs}) {outputs} {sorted(texts.items())}")
    return "\n".join(lines)


def write_frame(description: Mapping[str, Any], body: Sequence[bytes]) -> bytes:
    """Return a frame as bytes.

    Args:
        description: the description, which must be serializable as JSON.
        body: the parts of :attr:`Frame.body`, in their order.
    """
    text = json.dumps(description, separators=(",", ":")).encode()
    content = b"".join([text, b"\0" * (-len(text) % LINE_BYTES), *body])
    header = _HEADER.pack(_MAGIC, 0, _HEADER_BYTES + len(content), len(text))
    checked = header[_CHECKED_FROM:].ljust(_HEADER_BYTES - _CHECKED_FROM, b"\0") + content
    return _MAGIC + struct.pack("<I", zlib.crc32(checked)) + checked


def read_frame(memory: memoryview) -> Frame:
    """Parse a frame; the body of the result is a view of ``memory``.

    Raises:
        SavedStateError: the bytes are no frame, of another version, truncated or damaged.
    """
    if memory.nbytes < _HEADER_BYTES:
        raise SavedStateError(f"the saved program has {memory.nbytes} bytes, expected at least {_HEADER_BYTES}")
    magic, checksum, total, text_bytes = _HEADER.unpack_from(memory)
    if magic != _MAGIC:
        raise SavedStateError(f"the saved program starts with {magic!r}, expected {_MAGIC!r}")
    if total != memory.nbytes:
        raise SavedStateError(f"the saved program has {memory.nbytes} bytes, expected {total}")
    if zlib.crc32(memory[_CHECKED_FROM:]) != checksum:
        raise SavedStateError("the saved program is damaged: its checksum does not match")
    end = _HEADER_BYTES + text_bytes
    description = json.loads(bytes(memory[_HEADER_BYTES:end]))
    if not isinstance(description, dict):
        raise SavedStateError("the saved program's description is no JSON object")
    return Frame(description, memory[end + -end % LINE_BYTES :])
