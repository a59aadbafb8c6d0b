"""Recognition of Paddle programs by content, and search for the files that belong together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lite_core.checks import is_there
from lite_core.errors import InputError, ModelFormatError

from ..paddle_lite.header import FOLDER_FILES, looks_like_model, looks_like_topology

_HEAD_BYTES = 4096
_PROGRAM_SUFFIXES = (".json", ".pdmodel", ".nb")
_PROGRAM_NAMES = ("__model__.json", "__model__", "model")
_PREFERRED_STEMS = ("inference", "model", "__model__")
_COMBINED_NAMES = ("__params__", "params", "weights")
_PARAMETER_SUFFIXES = (".pdiparams", ".params")

_FOREIGN = (
    (b"PK\x03\x04", "a zip archive (unpack it first; a .pt or .npz file is one too)"),
    (b"\x1f\x8b", "a gzip archive (unpack it first)"),
    (b"\x89HDF", "an HDF5 file"),
    (b"\x7fELF", "an ELF binary"),
    (b"\x93NUMPY", "a NumPy array file"),
    (b"<?xml", "an XML file"),
    (b"<!DOCTYPE", "an HTML page (a failed download?)"),
    (b"version https://git-lfs", "a Git LFS pointer (fetch the real file with git lfs pull)"),
)


@dataclass(frozen=True, slots=True)
class ProgramFile:
    """A program file and its kind, ``"legacy"``, ``"pir"`` or ``"paddle_lite"``."""

    path: Path
    kind: str


def recognise(head: bytes, size: int) -> str | None:
    """Return the kind of a program, from its first bytes.

    Args:
        head: The first bytes of the file (4096, or the whole file if it is shorter).
        size: Size of the whole file in bytes.

    Returns:
        ``"legacy"``, ``"pir"``, ``"paddle_lite"`` or None.
    """
    if looks_like_model(head):
        return "paddle_lite"
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"{"):
        start = b"".join(text.split())
        return "pir" if b'"base_code":{' in start and b'"magic":"pir"' in start else None
    return "legacy" if _starts_like_program_desc(head, size) else None


def sniff_file(path: Path) -> str | None:
    """Return the kind of one file, or None if it is no Paddle program (or cannot be read)."""
    try:
        head, size = _read_head(path)
    except OSError:
        return None  # an unreadable file is not recognised as a program
    if path.name == FOLDER_FILES[0] and looks_like_topology(head) and path.with_name(FOLDER_FILES[1]).is_file():
        return "paddle_lite"
    return recognise(head, size)


def programs_in(directory: Path) -> list[ProgramFile]:
    """Return every program directly inside a directory, by content; only plausible names are opened."""
    found = []
    for path in sorted(directory.iterdir()):
        if path.is_file() and (path.suffix in _PROGRAM_SUFFIXES or path.name in _PROGRAM_NAMES):
            kind = sniff_file(path)
            if kind is not None:
                found.append(ProgramFile(path, kind))
    return found


def candidates_of_stem(path: Path) -> list[ProgramFile]:
    """Return the programs that a path without extension can mean, PIR first like Paddle 3 itself."""
    found = []
    for suffix in _PROGRAM_SUFFIXES:
        file = path.with_name(path.name + suffix)
        kind = sniff_file(file) if file.is_file() else None
        if kind is not None:
            found.append(ProgramFile(file, kind))
    return found


def find_program(path: Path) -> ProgramFile:
    """Return the program that a path means: a file, a model directory, or a stem without extension.

    Raises:
        ModelFormatError: There is no program, the file is something else, or a directory has several.
    """
    if path.is_dir():
        return _find_in_directory(path)
    if path.is_file():
        kind = sniff_file(path)
        if kind is None:
            raise ModelFormatError(describe_foreign(path))
        return ProgramFile(path, kind)
    if path.exists():
        raise ModelFormatError(f"{path} is no regular file (but a device, pipe or socket). Give a program file")
    if path.suffix in _PROGRAM_SUFFIXES:
        raise ModelFormatError(f"no Paddle program at {path}: the file does not exist")
    found = candidates_of_stem(path) if path.name else []
    if not found:
        tried = ", ".join(path.name + suffix for suffix in _PROGRAM_SUFFIXES)
        raise ModelFormatError(f"no Paddle program at {path}: it does not exist, nor does any program called {tried}")
    return found[0]


def _find_in_directory(directory: Path) -> ProgramFile:
    found = programs_in(directory)
    stems = sorted({file.path.name.removesuffix(file.path.suffix) for file in found})
    if not found:
        raise ModelFormatError(
            f"no Paddle program in the directory {directory}; looked for *.json, *.pdmodel, *.nb, "
            "__model__ and model. "
            f"Found: {[entry.name for entry in sorted(directory.iterdir())][:20]}"
        )
    if len(stems) > 1:
        preferred = [stem for stem in _PREFERRED_STEMS if stem in stems]
        if not preferred:
            raise ModelFormatError(
                f"{directory} holds several programs: {[file.path.name for file in found]}. Give the path of one."
            )
        stems = preferred
    same_stem = [file for file in found if file.path.name.removesuffix(file.path.suffix) == stems[0]]
    return next((file for file in same_stem if file.kind == "pir"), same_stem[0])


def find_parameters(program: Path, names: Sequence[str], params: Path | None) -> Path:
    """Return the parameter file of a program, or the directory that has one file per parameter.

    Args:
        program: The program file.
        names: Names of the parameters that are needed (at least one).
        params: The path that the caller gave explicitly.

    Raises:
        InputError: The file that the caller gave does not exist.
        ModelFormatError: No file fits; the message lists the names tried.
    """
    if params is not None:
        if not is_there(params):
            raise InputError(f"the parameter file {params} does not exist (params=)")
        return params
    directory = program.parent
    stem = program.name.removesuffix(program.suffix)
    named = [directory / f"{stem}.pdiparams", *(directory / name for name in _COMBINED_NAMES)]
    for candidate in named:
        # A variable may be named "params" too: then that file is one of many.
        if candidate.is_file() and candidate.name not in names:
            return candidate
    if all(_is_file_inside(directory, name) for name in names):
        return directory
    others = sorted(path for path in directory.iterdir() if path.suffix in _PARAMETER_SUFFIXES and path.is_file())
    if len(others) == 1:
        return others[0]
    present = sum(_is_file_inside(directory, name) for name in names)
    raise ModelFormatError(
        f"no parameter file for {program} ({len(names)} parameters) in {directory}. Tried "
        f"{', '.join(path.name for path in named)}; a single *.pdiparams (found "
        f"{[path.name for path in others]}); one file per parameter (found {present} of {len(names)}; "
        "the first is "
        f"{names[0]!r}). Put the file there or give it explicitly (params=...)."
    )


def describe_foreign(path: Path) -> str:
    """Explain why a file is no Paddle program, with the format it seems to have."""
    try:
        head, size = _read_head(path)
    except OSError as error:
        return f"cannot read {path}: {error}"
    start = f"{path} is not a Paddle program: it starts with {head[:8]!r}"
    if size == 0:
        return f"{path} is not a Paddle program: the file is empty"
    for magic, what in _FOREIGN:
        if head.startswith(magic):
            return f"{start}: {what}"
    if head[:1] == b"\x80" and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return (
            f"{start}: a Python pickle, such as paddle.save writes (.pdparams, .pdopt). It holds "
            "weights without a "
            "program, and a pickle can run code, so it is never loaded. Export the network with "
            "paddle.jit.save."
        )
    if head[4:8] == b"TFL3":
        return f"{start}: a TensorFlow Lite model"
    if head.startswith(b"\x00" * 12):
        return (
            f"{start}: it looks like a Paddle parameter file. Give the program beside it (.pdmodel, .json or __model__)"
        )
    if head.lstrip().startswith(b"{"):
        return f'{start}: JSON, but without "base_code": {{"magic": "pir"}} it is no Paddle PIR program'
    if head[8:10] == b'{"':
        return f"{start}: it looks like a safetensors file"
    if head[:1] == b"\x08" and size > 16:
        return f"{start}: it may be an ONNX model"
    if head[:1] == b"\x0a":
        return f"{start}: a protobuf message, but not a ProgramDesc; or the file is truncated ({size} bytes)"
    return (
        f"{start} ({size} bytes). Expected a ProgramDesc (.pdmodel, __model__), a PIR program (.json) or a Paddle-Lite "
        "model (.nb)."
    )


def _is_file_inside(directory: Path, name: str) -> bool:
    """Return True if a variable's own file exists; a name that cannot be a file name has no file."""
    if not name or "\0" in name or len(name) > 1024:
        return False
    try:
        return (directory / name).is_file()
    except OSError:
        return False  # the system rejects such a name, so there is no such file


def _read_head(path: Path) -> tuple[bytes, int]:
    with path.open("rb") as file:
        return file.read(_HEAD_BYTES), path.stat().st_size


def _read_varint(data: bytes, position: int) -> tuple[int, int] | None:
    """Return (value, next position) of a protobuf varint, or None if it is incomplete."""
    value = 0
    for count in range(10):
        if position >= len(data):
            return None
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            return value, position
    return None


def _starts_like_program_desc(head: bytes, size: int) -> bool:
    """Return True if bytes begin with block 0 {idx 0, parent_idx -1 or 0, then a variable, an operator or the end}.

    0x0A alone (field 1, length-delimited) starts many protobuf files.
    """
    if head[:1] != b"\x0a":
        return False
    length = _read_varint(head, 1)
    if length is None or length[0] > size - length[1]:
        return False
    end = length[1] + length[0]
    if head[length[1] : length[1] + 1] != b"\x08":
        return False
    index = _read_varint(head, length[1] + 1)
    if index is None or index[0] != 0 or head[index[1] : index[1] + 1] != b"\x10":
        return False
    parent = _read_varint(head, index[1] + 1)
    if parent is None or parent[0] not in (0, 2**64 - 1, 2**32 - 1):
        return False
    position = parent[1]
    if position == end:
        return True
    if head[position : position + 1] not in (b"\x1a", b"\x22"):
        return False
    inner = _read_varint(head, position + 1)
    if inner is None or inner[0] > end - inner[1]:
        return False
    first_fields = (b"\x0a",) if head[position] == 0x1A else (b"\x0a", b"\x12", b"\x1a")
    return head[inner[1] : inner[1] + 1] in first_fields
