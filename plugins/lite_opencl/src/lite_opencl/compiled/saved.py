"""The saved state of a partition in a model file: launches, compiled programs, packed constants and tuning choices.

The first piece is JSON: the launches, and descriptions of the other pieces. A restored partition is therefore not
lowered, packed or built again. Pieces that partitions or shapes share, programs and packed constants, are stored once.
The tuning choices also serve other shapes on the same device.

Packed weights are saved as they are, and recognised by their size and both ends. All other pieces count as code; they
begin with a frame: a magic number, the size of the content and its SHA-256. The content of large ones is not hashed
again when it is restored: the reader of the file has verified it. The frame identifies the piece.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from lite_compiler.saved_weights import is_weight, sampled_checksum
from lite_compiler.tournaments.choice import choices_of_json, choices_to_json
from lite_core.backend import Interval, Options, Stale
from lite_core.ir import DType, Graph, SavedWeights, Value
from lite_opencl.compiled.faults import Faults
from lite_opencl.compiled.graph import CompiledGraph
from lite_opencl.compiled.launches import launch_from_json, launch_to_json
from lite_opencl.device.memory import DeviceArray
from lite_opencl.device.runtime import DeviceRuntime

if TYPE_CHECKING:
    from lite_compiler.observing import Segment

__all__ = ["fingerprint", "restore", "save"]

_MAGIC = b"LITEOCS4"

#: Magic, size and SHA-256 of the content; the frame's 64 bytes keep the content as aligned as the piece.
_FRAME = struct.Struct("<8sQ32s16x")

Piece = bytes | memoryview


def save(compiled: CompiledGraph, runtime: DeviceRuntime) -> list[bytes | SavedWeights]:
    """Return the pieces of a partition whose kernels have run."""
    # Imported late: a partition is saved once, and restored often.
    from lite_compiler.observing import segments_to_json

    keys = compiled.programs
    programs = [_framed(runtime.programs.binary(key)) for key in keys]
    constants = [constant for constant, name in zip(compiled.constants, compiled.names) if name is None]
    contents = [(constant.type.dtype, runtime.memory.download(constant).tobytes()) for constant in constants]
    # NOTE: packed constants that are no weights may be tables of indices, which kernels do not check.
    packed = [SavedWeights(content) if is_weight(dtype) else _framed(content) for dtype, content in contents]
    header = {
        "partition": fingerprint(compiled.graph),
        "programs": [[key, _checksum(piece)] for key, piece in zip(keys, programs)],
        "packed": [_description(dtype, content) for dtype, content in contents],
        "names": compiled.names,
        "launches": [launch_to_json(launch) for launch in compiled.launches],
        "arena": compiled.arena_bytes,
        "lifetimes": compiled.lifetimes,
        "segments": segments_to_json(compiled.segments()),
        "faults": compiled.faults,
        "choices": choices_to_json(compiled.choices),
        "tuned": compiled.is_tuned,
    }
    return [_framed(json.dumps(header).encode()), *programs, *packed]


def restore(pieces: Sequence[Piece], graph: Graph, runtime: DeviceRuntime, options: Options) -> CompiledGraph | Stale:
    """Return the partition that :func:`save` was given, with its programs ready, or the reason why that is impossible.

    If the session tunes, the saved kernels must have been chosen by measuring.
    """
    error = _frame_error(pieces[0]) if pieces else "is missing"
    if error:
        return Stale(f"the first piece, which describes the others, {error}")
    content = bytes(_content(pieces[0]))
    if hashlib.sha256(content).hexdigest() != _checksum(pieces[0]):
        return Stale("the checksum of the first piece does not match its content: it is damaged")
    try:
        header = json.loads(content)
    except ValueError:
        return Stale("the first piece does not describe the others")
    if header["partition"] != fingerprint(graph):
        return Stale("it was saved from another partition")
    checksums = [checksum for _, checksum in header["programs"]]
    if len(pieces) != 1 + len(checksums) + len(header["packed"]):
        return Stale(f"there are {len(pieces)} pieces, expected {1 + len(checksums) + len(header['packed'])}")
    programs, packed = pieces[1 : 1 + len(checksums)], pieces[1 + len(checksums) :]
    for number, (checksum, piece) in enumerate(zip(checksums, programs), 1):
        if _frame_error(piece) or _checksum(piece) != checksum:
            return Stale(f"piece {number} is not the program that was saved there")
    for number, (described, piece) in enumerate(zip(header["packed"], packed), 1 + len(checksums)):
        if not _is_described(piece, described):
            return Stale(f"piece {number} is not the packed constant that was saved there")
    if options.tune and not header["tuned"]:
        return Stale("it was saved without measuring which kernels are fastest")
    return _assembled(header, programs, packed, graph, runtime)


def _assembled(
    header: dict[str, Any], programs: Sequence[Piece], packed: Sequence[Piece], graph: Graph, runtime: DeviceRuntime
) -> CompiledGraph | Stale:
    keys: dict[str, str] = {}
    for (key, _), piece in zip(header["programs"], programs):
        restored = runtime.programs.restore(key, bytes(_content(piece)))
        if not restored:
            return Stale(f"the driver refuses the program {key}")
        keys[key] = restored
    saved = zip(header["packed"], packed)
    launches = [launch_from_json(item) for item in header["launches"]]
    arrays = {value.name: array for value, array in graph.constants.items()}
    constants = [
        _uploaded(*next(saved), runtime) if name is None else runtime.constants.plain(arrays[name])
        for name in header["names"]
    ]
    faults = header["faults"]
    choices = choices_of_json(header["choices"])
    runtime.tuning.offer(choices)
    visible, count = header["segments"], len(launches)
    sizes = [header["arena"], *[prod(v.shape) * v.dtype.itemsize for v in graph.outputs]]

    def segments() -> list[Segment]:
        # Parsed late: few partitions are observed.
        from lite_compiler.observing import segments_from_json

        return segments_from_json(visible, count, sizes)

    return CompiledGraph(
        graph,
        [launch._replace(program=keys[launch.program]) for launch in launches],
        constants,
        header["names"],
        header["arena"],
        [Interval(*lifetime) for lifetime in header["lifetimes"]],
        segments,
        None if faults is None else Faults(faults[0], tuple(faults[1])),
        choices,
        header["tuned"],
    )


def _description(dtype: DType, content: bytes) -> list[Any]:
    """Return element type, size and checksum of a packed constant."""
    checksum = sampled_checksum(content) if is_weight(dtype) else hashlib.sha256(content).hexdigest()
    return [dtype.value, len(content), checksum]


def _is_described(piece: Piece, described: Sequence[Any]) -> bool:
    """Return True if a piece is the packed constant that the first piece describes."""
    dtype, size, checksum = str(described[0]), int(described[1]), described[2]
    if is_weight(DType(dtype)):
        return len(piece) == size and sampled_checksum(piece) == int(checksum)
    return not _frame_error(piece) and len(_content(piece)) == size and _checksum(piece) == str(checksum)


def _uploaded(described: Sequence[Any], piece: Piece, runtime: DeviceRuntime) -> DeviceArray:
    """Return a packed constant; it is shared by all partitions that restore it from the same bytes of a mapped file."""
    dtype = DType(described[0])
    content = np.frombuffer(piece if is_weight(dtype) else _content(piece), dtype.numpy)
    owner = piece.obj if isinstance(piece, memoryview) else None
    # NOTE: only mapped memory keeps its address; a bytes object does not support weak references.
    source = content if owner is None or isinstance(owner, bytes) else owner
    return runtime.constants.get(("saved", content.ctypes.data, content.nbytes), [source], lambda: content)


def _framed(content: bytes) -> bytes:
    return _FRAME.pack(_MAGIC, len(content), hashlib.sha256(content).digest()) + content


def _frame_error(piece: Piece) -> str:
    """Return the error in the frame of a piece, or an empty string."""
    if len(piece) < _FRAME.size:
        return f"has {len(piece)} bytes, fewer than its frame"
    magic, size, _ = _FRAME.unpack_from(piece)
    if magic != _MAGIC:
        return f"begins with {magic!r}, not with {_MAGIC!r}"
    found = len(piece) - _FRAME.size
    return "" if found == size else f"should have {size} bytes after its frame, has {found}"


def _checksum(piece: Piece) -> str:
    checksum: bytes = _FRAME.unpack_from(piece)[2]
    return checksum.hex()


def _content(piece: Piece) -> memoryview:
    return memoryview(piece)[_FRAME.size :]


def fingerprint(graph: Graph) -> str:
    """Return a checksum of a partition: operators, attributes, connections, constants, types of inputs and outputs."""
    numbers: dict[Value, int] = {}

    def number(value: Value | None) -> int | None:
        return None if value is None else numbers.setdefault(value, len(numbers))

    lines = [f"{number(v)}: {v.type}" for v in graph.inputs]
    lines += [f"{number(v)}: constant {v.name} {v.type}" for v in graph.constants]
    for node in graph.nodes:
        attributes = sorted((name, str(a)) for name, a in node.attributes.items())
        inputs, outputs = [number(v) for v in node.inputs], [number(v) for v in node.outputs]
        lines.append(f"{node.qualified_op} {attributes} {inputs} -> {outputs}")
    lines += [f"output {number(v)}: {v.type}" for v in graph.outputs]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
