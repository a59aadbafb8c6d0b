"""Model file formats: the contract of readers and writers, and choosing one for a file by its content."""

from __future__ import annotations

import inspect
import os
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from lite_core import __version__
from lite_core.container import LITE_FORMAT
from lite_core.errors import InputError, LiteError, ModelFormatError
from lite_core.ir import Graph
from lite_core.plugins import PluginHost, PluginRecord, default_host

__all__ = ["Format", "read_model"]

# Where a reader for a file nobody recognises would come from: beginnings of well-known formats.
_KNOWN_ELSEWHERE = {
    b"PK\x03\x04": "a zip archive (unpack it, or export the model for inference first)",
    b"\x80\x02": "a Python pickle; Lite never unpickles, export the model for inference first",
    b"\x80\x04": "a Python pickle; Lite never unpickles, export the model for inference first",
    b"\x89HDF": "an HDF5 file (Keras); convert it to ONNX first",
    b"TFL3": "a TensorFlow Lite model",
    b"\x1f\x8b": "a gzip file; unpack it first",
    b"version https://git-lfs": "a pointer of Git LFS, not the file itself; `git lfs pull` fetches that",
    b"<!doctype html": "a web page, not a model; fetch the file itself",
    b"<html": "a web page, not a model; fetch the file itself",
    b"<ir_version": "an ONNX model as text; onnx.parser.parse_model reads it, and onnx.save writes the model",
    b"ir_version:": "an ONNX model as text; onnx.load(FILE, 'textproto') reads it, and onnx.save writes the model",
}


# Who speaks in messages about Lite's own files; it needs no plugin.
_BUILTIN = PluginRecord("lite", "lite-core", __version__, "lite_core.container", stage="ready")


@runtime_checkable
class Format(Protocol):
    """A model format: Lite's own, or one given by a plugin's ``lite_formats`` hook.

    ``sniff`` looks at the content, reads a few kilobytes at most and never raises. ``read`` raises
    ModelFormatError for a damaged file and UnsupportedOperatorError, once, with every operator that
    cannot be lowered.
    """

    #: Short name: ``paddle``.
    name: str
    #: What a person would look for: ``(".pdmodel", "__model__", ".json")``.
    suffixes: tuple[str, ...]

    def sniff(self, path: Path) -> bool:
        """Whether the file or folder is of this format."""
        ...

    def read(self, path: Path, **options: Any) -> Graph:
        """The model as a graph."""
        ...

    # def write(self, graph: Graph, path: Path, **options: Any) -> None: (optional)


def read_model(path: str | os.PathLike[str], *, host: PluginHost | None = None, **options: Any) -> Graph:
    """Read a model: a ``.lite`` file, or any format that an installed plugin reads.

    Args:
        path: a file, or a folder that holds a model.
        host: the plugins; the process's own by default.
        options: passed to the reader, for example ``params=`` for a parameter file elsewhere.

    Raises:
        ModelFormatError: there is no such file, or no installed plugin recognises it.
        UnsupportedOperatorError: operators cannot be lowered; all are listed.
    """
    host = host or default_host()
    file = Path(path)
    if LITE_FORMAT.sniff(file):
        return _read(_BUILTIN, LITE_FORMAT, file, options)  # without loading a plugin, which takes time
    offered: list[tuple[PluginRecord, Any]] = [*host.ask("lite_formats"), (_BUILTIN, LITE_FORMAT)]
    readers = [reader for _, reader in offered]
    # A stem such as "inference" stands for inference.pdmodel beside inference.pdiparams.
    candidates = [file] if file.exists() else [file.with_name(file.name + s) for r in readers for s in r.suffixes]
    candidates = [c for c in candidates if c.exists()]
    if not candidates:
        raise ModelFormatError(f"model {str(path)!r}: there is no such file or folder; {_neighbours(file)}")
    for candidate in candidates:
        for record, reader in offered:
            if _recognises(host, record, reader, candidate):
                return _read(record, reader, candidate, options)
    raise ModelFormatError(
        f"model {str(path)!r} is {_describe(candidates[0])}; {_installed(candidates[0], host, readers)}"
    )


def _recognises(host: PluginHost, record: PluginRecord, reader: Format, path: Path) -> bool:
    try:
        return reader.sniff(path)
    except Exception as error:  # the contract forbids it; another reader may know the file
        host.reject(record, "sniff", f"format {reader.name!r} failed with {type(error).__name__}: {error}")
        return False


def _read(record: PluginRecord, reader: Any, path: Path, options: dict[str, Any]) -> Graph:
    parameters = inspect.signature(reader.read).parameters
    named = [n for n, p in parameters.items() if p.kind is p.KEYWORD_ONLY]
    if not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        unknown = [n for n in options if n not in named]
        if unknown:
            raise InputError(
                f"reading {str(path)!r}: format {reader.name!r} has no option {', '.join(unknown)} "
                f"(it has: {', '.join(named) or 'none'})"
            )
    who = f"model {str(path)!r}: the reader {reader.name!r} of plugin {record.label}"
    try:
        graph = reader.read(path, **options)
    except LiteError:
        raise
    except Exception as error:
        raise ModelFormatError(f"{who} failed with {type(error).__name__}: {error}") from error
    if not isinstance(graph, Graph):
        raise ModelFormatError(f"{who} gave {type(graph).__name__}, not a Graph")
    return graph


def _installed(path: Path, host: PluginHost, readers: list[Format]) -> str:
    failed = [r.label for r in host.records() if r.failed]
    broken = f" Plugins that failed to load: {', '.join(failed)}; see `lite doctor`." if failed else ""
    known = "; ".join(f"{r.name} reads {', '.join(r.suffixes)}" for r in readers)
    missing = "" if len(readers) > 1 else " `pip install lite-paddle` reads Paddle's models."
    if _may_be_onnx(path) and not any(r.name == "onnx" for r in readers):
        missing = " `pip install lite-onnx` reads ONNX models."
    return f"no installed plugin recognises it ({known}).{missing}{broken}"


def _may_be_onnx(path: Path) -> bool:
    """Whether a file, or one in a folder, has ONNX's suffix or begins as most of its models do: with an IR version."""
    if path.is_dir():
        return any(path.glob("*.onnx"))
    with path.open("rb") as file:
        start = file.read(3)
    # The field 1 is a number of one byte, and a text or a message comes next.
    is_alike = len(start) == 3 and start[0] == 0x08 and start[1] < 0x80 and start[2] in (0x12, 0x1A, 0x3A, 0x42)
    return is_alike or path.suffix == ".onnx"


def _neighbours(path: Path) -> str:
    """What the nearest folder that exists holds: the reader of the message may have mistyped a name."""
    folder = next((p for p in path.absolute().parents if p.is_dir()), Path("/"))
    names = sorted(p.name for p in folder.iterdir())
    shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    return f"{str(folder)!r} holds {shown or 'nothing'}"


def _describe(path: Path) -> str:
    if path.is_dir():
        names = sorted(p.name for p in path.iterdir())[:8]
        return f"a folder without a model in it (it holds: {', '.join(names) or 'nothing'})"
    with path.open("rb") as file:
        beginning = file.read(32)
    if not beginning:
        return "an empty file"
    text = beginning.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    for magic, meaning in _KNOWN_ELSEWHERE.items():
        if beginning.startswith(magic) or beginning[4:8] == magic or text.startswith(magic):
            return meaning
    return f"a file that begins with {beginning[:16]!r}"
