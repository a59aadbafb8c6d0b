"""Reading and writing of whole Paddle-Lite model files (``.nb``) of the container versions 0, 1 and 2.

Layout, little endian, nothing aligned: uint16 container version; 16 bytes with the version of Paddle-Lite's converter,
ended by a zero; uint64 size of the topology; the topology; the parameters.

In version 2 the parameters begin with uint16 numbers: the version (0), the size of further metadata and its bytes, the
size of the header (6). The header has a uint16 number of parameters and a uint32 size of the largest one. For each
parameter follow the uint32 size of the record, the uint32 offset of its buffer from that field, and the buffer. In
version 1 one buffer has all parameters. In version 0 topology and parameters are streams
(:mod:`~lite_paddle.paddle_lite.streams`).
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from os import PathLike
from pathlib import Path

from lite_core.checks import path_of
from lite_core.errors import ModelFormatError

from . import streams
from .flat_reader import read_combined_parameters, read_parameter, read_topology
from .flat_writer import write_parameter, write_topology
from .header import FOLDER_FILES, HEADER, looks_like_model
from .parameters import collect
from .program import Array, Program

__all__ = [
    "NEWEST_OPT_VERSION",
    "decode",
    "encode",
    "read_folder",
    "read_model",
]

#: The newest version of Paddle-Lite's converter that is released; it is written into files.
NEWEST_OPT_VERSION = "v2.13-rc"
_PARAMETER_HEAD = struct.Struct("<HHHHI")
_RECORD = struct.Struct("<II")
_PARAMETER_HEADER_SIZE = 6
_MOST_PARAMETERS = 0xFFFF


def read_model(path: str | PathLike[str]) -> Program:
    """Read a ``.nb`` file, or a folder with ``__model__.nb`` and ``param.nb``.

    Returns:
        The program; its parameters are views of the mapped file.

    Raises:
        ModelFormatError: the file is no such model, damaged, or cannot be read.
        InputError: the path is neither a string nor path-like, is empty, or contains a null character.
    """
    file = path_of("path", path)
    try:
        if file.is_dir():
            return read_folder(file)
        return decode(_mapped(file), str(file))
    except OSError as error:
        raise ModelFormatError(f"cannot read {file}: {error}") from error


def read_folder(folder: Path) -> Program:
    """Read a folder that Paddle-Lite wrote before version 2.3.

    Raises:
        ModelFormatError: a file is missing or damaged.
    """
    topology, parameters = (folder / name for name in FOLDER_FILES)
    for file in (topology, parameters):
        if not file.is_file():
            raise ModelFormatError(f"{folder} has no {file.name}; a model of Paddle-Lite before 2.3 has {FOLDER_FILES}")
    blocks, version = streams.read_topology(streams.Stream(_mapped(topology), str(topology)))
    arrays = streams.read_parameters(streams.Stream(_mapped(parameters), str(parameters)))
    return Program(blocks, arrays, version, meta_version=-1)


def decode(data: bytes | bytearray | memoryview, what: str = "the Paddle-Lite model") -> Program:
    """Decode the bytes of a ``.nb`` file.

    Args:
        data: the bytes. Parameters of the result are views of them.
        what: description for messages, such as the path.

    Raises:
        ModelFormatError: the bytes are no such file, or damaged.
    """
    view = memoryview(data).toreadonly()
    if not looks_like_model(bytes(view[: HEADER.size])):
        raise ModelFormatError(
            f"{what} ({len(view)} bytes) is not a Paddle-Lite model: it starts with {bytes(view[:8])!r}, expected the "
            "container version 0, 1 or 2 and the version of the converter, such as v2.13-rc"
        )
    version, text, size = HEADER.unpack_from(view)
    if size > len(view) - HEADER.size:
        raise ModelFormatError(
            f"{what} is truncated: its topology has {size} bytes, but {len(view) - HEADER.size} follow the header; "
            "copy or convert the model again"
        )
    topology, rest = view[HEADER.size : HEADER.size + size], view[HEADER.size + size :]
    try:
        if version == 0:
            blocks, paddle = streams.read_topology(streams.Stream(topology, "the topology"))
            arrays = streams.read_parameters(streams.Stream(rest, "the list of parameters"))
        else:
            blocks, paddle = read_topology(topology)
            arrays = collect(read_combined_parameters(rest) if version == 1 else _separate_parameters(rest))
    except ModelFormatError as error:
        raise ModelFormatError(f"{what}: {error}") from None
    if not blocks:
        raise ModelFormatError(f"{what}: the program has no blocks; the file is damaged")
    return Program(blocks, arrays, paddle, version, text.partition(b"\0")[0].decode())


def encode(program: Program, opt_version: str = NEWEST_OPT_VERSION) -> bytes:
    """Return the bytes of a ``.nb`` file of the container version 2.

    They depend on nothing but the arguments and the version of the package flatbuffers.

    Args:
        program: the program; its ``meta_version`` and ``opt_version`` are not used.
        opt_version: the version of Paddle-Lite that the file names. Paddle-Lite warns where it differs from its own.

    Raises:
        ModelFormatError: the format cannot hold the program: too many parameters, or an element type or a type of
            attribute without a number.
    """
    name = opt_version.encode()
    if not 0 < len(name) < 16 or not opt_version.isprintable() or not opt_version.isascii():
        raise ModelFormatError(f"the version {opt_version!r} has to be 1 to 15 printable ASCII characters")
    if len(program.parameters) > _MOST_PARAMETERS:
        raise ModelFormatError(
            f"the model has {len(program.parameters)} parameters; a .nb file can hold {_MOST_PARAMETERS}"
        )
    topology = write_topology(program)
    names = sorted(program.parameters, key=str.encode)
    largest = max((program.parameters[name].nbytes for name in names), default=0)
    parts: list[bytes | bytearray] = [HEADER.pack(2, name, len(topology)), topology]
    parts.append(_PARAMETER_HEAD.pack(0, 0, _PARAMETER_HEADER_SIZE, len(names), largest))
    for parameter in names:
        buffer = write_parameter(parameter, program.parameters[parameter])
        parts += [_RECORD.pack(4 + len(buffer), 4), buffer]
    return b"".join(parts)


def _separate_parameters(data: memoryview) -> Iterator[tuple[str, Array]]:
    """Yield the parameters of a file of the container version 2."""
    stream = streams.Stream(data, "the list of parameters")
    version, metadata = struct.unpack("<HH", stream.take(4))
    if version != 0:
        raise ModelFormatError(f"the list of parameters has the version {version}, expected 0")
    stream.take(metadata)
    (header_size,) = struct.unpack("<H", stream.take(2))
    header = stream.take(header_size)
    if header_size < _PARAMETER_HEADER_SIZE:
        raise ModelFormatError(f"the header of the parameters has {header_size} bytes, expected at least 6")
    (count,) = struct.unpack_from("<H", header)
    for position in range(count):
        size, offset = _RECORD.unpack(stream.take(8))
        if not 4 <= offset <= size:
            raise ModelFormatError(f"parameter {position} begins at {offset} of {size} bytes; the file is damaged")
        stream.take(offset - 4)
        yield read_parameter(stream.take(size - offset), position)


def _mapped(path: Path) -> memoryview:
    with path.open("rb") as file:
        if path.stat().st_size == 0:  # cannot be mapped
            return memoryview(b"")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
