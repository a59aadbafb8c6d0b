"""Model file formats: the contract of readers and writers, and choosing one for a file by its content."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from lite_core.errors import ModelFormatError
from lite_core.ir import Graph
from lite_core.plugins import PluginHost, default_host

__all__ = ["Format", "read_model"]

# Where a reader for a file nobody recognises would come from: beginnings of well-known formats.
_KNOWN_ELSEWHERE = {
    b"PK\x03\x04": "a zip archive (unpack it, or export the model for inference first)",
    b"\x80\x02": "a Python pickle; Lite never unpickles, export the model for inference first",
    b"\x80\x04": "a Python pickle; Lite never unpickles, export the model for inference first",
    b"\x89HDF": "an HDF5 file (Keras); convert it to ONNX first",
    b"TFL3": "a TensorFlow Lite model",
}


@runtime_checkable
class Format(Protocol):
    """A model format, given by a plugin's ``lite_formats`` hook.

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
    """Read a model of any format that an installed plugin reads.

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
    readers: list[Format] = [item for _, item in host.ask("lite_formats")]
    # A stem such as "inference" stands for inference.pdmodel beside inference.pdiparams.
    candidates = [file] if file.exists() else [file.with_name(file.name + s) for r in readers for s in r.suffixes]
    candidates = [c for c in candidates if c.exists()]
    if not candidates:
        raise ModelFormatError(f"model {str(path)!r}: there is no such file or folder; {_neighbours(file)}")
    for candidate in candidates:
        for reader in readers:
            if reader.sniff(candidate):
                return reader.read(candidate, **options)
    raise ModelFormatError(f"model {str(path)!r} is {_describe(candidates[0])}; {_installed(host, readers)}")


def _installed(host: PluginHost, readers: list[Format]) -> str:
    failed = [r.label for r in host.records() if r.failed]
    broken = f" Plugins that failed to load: {', '.join(failed)}; see `lite doctor`." if failed else ""
    if not readers:
        return f"no installed plugin reads model files. `pip install lite-paddle` reads Paddle's.{broken}"
    known = "; ".join(f"{r.name} reads {', '.join(r.suffixes)}" for r in readers)
    return f"no installed plugin recognises it ({known}).{broken}"


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
        beginning = file.read(16)
    if not beginning:
        return "an empty file"
    for magic, meaning in _KNOWN_ELSEWHERE.items():
        if beginning.startswith(magic) or beginning[4:8] == magic:
            return meaning
    return f"a file that begins with {beginning!r}"
