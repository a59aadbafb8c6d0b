"""The frame of a saved program: a description, tables and code behind a checksum, then arrays.

===============  =======================================================================================
bytes            what
===============  =======================================================================================
0                ``LITECPU2``
8                CRC-32 of everything from byte 12 to the arrays
12               where the arrays begin, a multiple of 64; then their sum (see :func:`_sum`), the bytes of
                 the whole blob and of the description: 64 bits each, little-endian as everything here
64               the description, JSON
next of 64       the body: tables and code, whose sizes the description tells
next of 64       the arrays, each at a multiple of 64
===============  =======================================================================================
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from lite_core.backend import Options
from lite_core.errors import LiteError
from lite_core.ir import Graph
from lite_cpu.aligned import LINE_BYTES, aligned_empty
from lite_cpu.executable import Pieces

__all__ = ["Blob", "SavedStateError", "compatibility", "describe_graph", "places", "read_blob", "write_blob"]

Array = np.ndarray[Any, Any]

_MAGIC = b"LITECPU2"
_CHECKED_FROM = 12
_HEADER = struct.Struct("<8sIQQQQ")  # magic, checksum, start of the arrays, their sum, bytes of all, of the description
_HEADER_BYTES = 64


class SavedStateError(LiteError):
    """Saved state is damaged, or does not fit where it is used."""


class Blob(NamedTuple):
    """A blob that is whole: its description, its body, and the bytes of its arrays."""

    description: dict[str, Any]
    body: memoryview
    arrays: memoryview


def compatibility(identity: str, options: Options) -> str:
    """What must be the same for saved programs to be used.

    Args:
        identity: of the kernel library.
        options: what the session allows.
    """
    return f"{identity}, {options.precision}{', exact' if options.exact else ''}"


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


def write_blob(description: Mapping[str, Any], body: Sequence[bytes], arrays: Sequence[Array]) -> Pieces:
    """A blob in pieces, those of large arrays being views of them.

    Args:
        description: for JSON.
        body: what is found in :attr:`Blob.body`.
        arrays: contiguous; see :func:`places` for where they go.
    """
    text = json.dumps(description, separators=(",", ":")).encode()
    head = _padded(text) + _padded(b"".join(body))
    memories = [array.reshape(-1).view(np.uint8).data for array in arrays]
    total = _HEADER_BYTES + len(head) + sum(_round_up(m.nbytes) for m in memories)
    sums = sum(_sum(memory) for memory in memories) % 2**64
    header = _HEADER.pack(_MAGIC, 0, _HEADER_BYTES + len(head), sums, total, len(text))
    checked = header[_CHECKED_FROM:].ljust(_HEADER_BYTES - _CHECKED_FROM, b"\0") + head
    pieces: Pieces = [_MAGIC + struct.pack("<I", zlib.crc32(checked)), checked]
    for memory in memories:
        pieces += (memory, b"\0" * (-memory.nbytes % LINE_BYTES))
    return [piece for piece in pieces if len(piece)]


def places(sizes: Sequence[int]) -> list[int]:
    """Where arrays of these sizes begin, in bytes from the first."""
    return [0, *accumulate(map(_round_up, sizes))][: len(sizes)]


def read_blob(blob: memoryview | bytes) -> Blob:
    """The parts of a blob, as views of it (or of a copy where it does not begin at a multiple of 64).

    Raises:
        SavedStateError: it is none, of another version, cut short or damaged.
    """
    memory = np.frombuffer(blob, np.uint8)
    if memory.nbytes < _HEADER_BYTES:
        raise SavedStateError(f"the saved state has {memory.nbytes} bytes, expected at least {_HEADER_BYTES}")
    if memory.ctypes.data % LINE_BYTES:
        aligned = aligned_empty(memory.shape, np.uint8)
        aligned[:] = memory
        memory = aligned
    view = memory.data
    magic, checksum, start, expected_sum, total, text_bytes = _HEADER.unpack_from(view)
    if magic != _MAGIC:
        raise SavedStateError(f"the saved state starts with {magic!r}, expected {_MAGIC!r}")
    if total != view.nbytes or total % LINE_BYTES:
        raise SavedStateError(f"the saved state has {view.nbytes} bytes, expected {total}")
    body = _HEADER_BYTES + _round_up(text_bytes)
    if not body <= start <= total or start % LINE_BYTES:
        raise SavedStateError(f"the saved state is damaged: body at byte {body}, arrays at {start} of {total}")
    if zlib.crc32(view[_CHECKED_FROM:start]) != checksum or _sum(view[start:]) != expected_sum:
        raise SavedStateError("the saved state is damaged: its checksum does not match")
    description = json.loads(bytes(view[_HEADER_BYTES : _HEADER_BYTES + text_bytes]))
    if not isinstance(description, dict):
        raise SavedStateError("the saved state's description is no JSON object")
    return Blob(description, view[body:start], view[start:])


def _sum(memory: memoryview) -> int:
    """The sum of the 64-bit words, the last one filled up with zeros, modulo 2**64.

    It finds any single error as surely as a better checksum would, and is five times as fast as CRC-32 on a hundred
    megabytes of weights, which every start waits for.
    """
    whole = memory.nbytes // 8 * 8
    words = np.frombuffer(memory[:whole], "<u8")
    return (int(np.add.reduce(words)) + int.from_bytes(memory[whole:], "little")) % 2**64


def _padded(content: bytes) -> bytes:
    return content.ljust(_round_up(len(content)), b"\0")


def _round_up(size: int) -> int:
    return -(-size // LINE_BYTES) * LINE_BYTES
