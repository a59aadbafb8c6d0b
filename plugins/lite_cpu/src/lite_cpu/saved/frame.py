"""The frame of a saved program: a description, and tables and code, behind a checksum.

===============  =======================================================================================
bytes            what
===============  =======================================================================================
0                ``LITECPU3``
8                CRC-32 of everything from byte 12 on
12               the bytes of all of it, and of the description: 64 bits each, little-endian as everything here
64               the description, JSON
next of 64       the body: tables and code, whose sizes the description tells
===============  =======================================================================================
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

__all__ = ["Frame", "SavedStateError", "compatibility", "describe_graph", "read_frame", "write_frame"]

_MAGIC = b"LITECPU3"
_CHECKED_FROM = 12
_HEADER = struct.Struct("<8sIQQ")  # magic, checksum, bytes of all, of the description
_HEADER_BYTES = 64


class SavedStateError(LiteError):
    """Saved state is damaged, or does not fit where it is used."""


class Frame(NamedTuple):
    """What is in a frame that is whole."""

    description: dict[str, Any]
    body: memoryview


def compatibility(identity: str, options: Options) -> str:
    """What must be the same for saved programs to be used.

    Args:
        identity: of the kernel library.
        options: what the session allows; of the backend's own options, those that programs must agree in.
    """
    own = "".join(f", {name}={value}" for name, value in sorted(options.own.items()))
    return f"{identity}, {options.precision}{', exact' if options.exact else ''}{own}"


def describe_graph(graph: Graph) -> dict[str, Any]:
    """What tells a partition's graph from another: its arguments, and a checksum of operators and names."""
    nodes = [
        f"{node.qualified_op}({[v and v.name for v in node.inputs]}) {[v and v.name for v in node.outputs]}"
        for node in graph.nodes
    ]
    return {
        "inputs": [str(value.type) for value in graph.inputs],
        "outputs": [str(value.type) for value in graph.outputs],
        "nodes": zlib.crc32("\n".join(nodes).encode()),
    }


def write_frame(description: Mapping[str, Any], body: Sequence[bytes]) -> bytes:
    """A frame.

    Args:
        description: for JSON.
        body: what is found in :attr:`Frame.body`, one after another.
    """
    text = json.dumps(description, separators=(",", ":")).encode()
    content = b"".join([text, b"\0" * (-len(text) % LINE_BYTES), *body])
    header = _HEADER.pack(_MAGIC, 0, _HEADER_BYTES + len(content), len(text))
    checked = header[_CHECKED_FROM:].ljust(_HEADER_BYTES - _CHECKED_FROM, b"\0") + content
    return _MAGIC + struct.pack("<I", zlib.crc32(checked)) + checked


def read_frame(memory: memoryview) -> Frame:
    """What is in a frame; the body is a view of it.

    Raises:
        SavedStateError: it is none, of another version, cut short or damaged.
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
