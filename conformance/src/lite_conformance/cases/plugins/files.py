"""Model files with the results that they must give, for the readers of plugins.

A table has the files of one format, and one call adds a file::

    files = file_table("acme")
    files("two-layers", Path(__file__).with_name("two_layers.acme"), inputs=[x], outputs=[y])
    files("scale", b"ACME scale 2.5", inputs=[x], reference=lambda x: 2.5 * x)
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from lite_conformance.cases.tensors import Array
from lite_conformance.judge.tolerances import GRAPH, Numerics

__all__ = ["FileCase", "FileTable"]

_RESERVED = ("foreign-files", "no-files")

#: A file or folder, its bytes, or a function that returns the bytes.
Content = str | os.PathLike[str] | bytes | Callable[[], bytes]


@dataclass(frozen=True, slots=True)
class FileCase:
    """A model file with the results that it must give.

    Attributes:
        label: describes the model.
        content: the file or folder, its bytes, or a function that returns the bytes.
        inputs: an array for each input of the model.
        expected: returns the expected outputs for these inputs; None if only reading is checked.
        numerics: the required accuracy.
        file_name: name of the file that bytes are written to, or of the model in a folder; empty for the default.
        options: options of the reader.
    """

    label: str
    content: Content
    inputs: tuple[Array, ...] = ()
    expected: Callable[..., Any] | None = None
    numerics: Numerics = GRAPH
    file_name: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    def put_in(self, folder: Path, suffixes: Sequence[str]) -> Path:
        """Write the model into an empty folder and return its path there."""
        if isinstance(self.content, (str, os.PathLike)):
            source = Path(self.content)
            if source.is_dir():
                target = folder / source.name
                shutil.copytree(source, target)
                return target / self.file_name if self.file_name else target
            path = folder / (self.file_name or source.name)
            shutil.copyfile(source, path)
            return path
        suffix = suffixes[0] if suffixes else ""
        # A suffix may be a whole file name.
        path = folder / (self.file_name or (f"model{suffix}" if suffix.startswith(".") else suffix or "model"))
        path.write_bytes(self.content if isinstance(self.content, bytes) else self.content())
        return path


class FileTable:
    """The files of one format; see the module's docstring."""

    def __init__(self, format_name: str) -> None:
        self.format_name = format_name
        self._cases: dict[str, FileCase] = {}

    def __call__(
        self,
        label: str,
        content: Content,
        *,
        inputs: Sequence[Any] = (),
        outputs: Sequence[Any] | None = None,
        reference: Callable[..., Any] | None = None,
        numerics: Numerics = GRAPH,
        file_name: str = "",
        options: Mapping[str, Any] | None = None,
    ) -> None:
        """Add a file.

        Args:
            label: name of the case, unique for the format.
            content: path of a file or folder, which is copied before it is read; or the bytes of a file; or a
                function that returns the bytes.
            inputs: an array for each input of the model.
            outputs: the expected outputs for these inputs.
            reference: returns the expected outputs, an array or several, for arrays of the inputs; instead of
                ``outputs``.
            numerics: the required accuracy.
            file_name: name of the file that bytes are written to, by default ``model`` with the format's first
                suffix; or the name of the model in a folder that is given as content.
            options: options of the reader.

        Raises:
            ValueError: the label is taken, or there are outputs and a reference.
        """
        if label in _RESERVED:
            raise ValueError(f"format {self.format_name!r}: a file cannot be called {label!r}, a case of the suite is")
        if label in self._cases:
            raise ValueError(f"format {self.format_name!r} already has a file {label!r}")
        if outputs is not None and reference is not None:
            raise ValueError(f"file {label!r} of format {self.format_name!r} has outputs and a reference: give one")
        if outputs is not None:
            arrays = tuple(np.asarray(array) for array in outputs)
            reference = _returning(arrays)
        given = tuple(np.asarray(array) for array in inputs)
        self._cases[label] = FileCase(label, content, given, reference, numerics, file_name, dict(options or {}))

    def __iter__(self) -> Iterator[FileCase]:
        return iter(self._cases.values())


def _returning(arrays: tuple[Array, ...]) -> Callable[..., Any]:
    return lambda *inputs: arrays
