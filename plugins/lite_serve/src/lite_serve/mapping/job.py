"""The description of a run over a dataset: what is computed from what, and what identifies it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from lite_core.checks import path_of
from lite_core.errors import InputError
from lite_core.formats import find_model
from lite_core.session import OpenedModel, open_model
from lite_serve.mapping.functions import Function

__all__ = ["PICTURES_OF_A_PART", "ROWS_OF_A_PART", "Job", "opened_with_digest"]

#: The most rows and bytes of a part, and the most pictures, unless the user says otherwise: what is done again after a
#: run was killed.
ROWS_OF_A_PART, PICTURES_OF_A_PART = 65536, 1024
_BYTES_OF_A_PART = 2**28

_PIECE = 2**20


@dataclass(frozen=True, slots=True)
class Job:
    """A model, a dataset, and how the one is applied to the other. Can be pickled, and is the same on every machine.

    Attributes:
        model: the path of the model.
        input: the path of a file, or of a folder with files of one format.
        output: the folder of the results.
        model_digest: identifies the content of the model, see :func:`opened_with_digest`.
        format: the format of the input, one of :data:`lite_serve.mapping.parts.FORMATS`.
        columns: the column that each input of the model is read from, where their names differ.
        results: the outputs to write, each with the name of its column; empty for all, by their names.
        keep: the columns of the input to copy; ``*`` alone for all, None for those with single values that do not
            feed the model.
        fill: the value that replaces nulls, by column; the name ``*`` is for all others.
        rounding: convert numbers to the model's element types even if they are rounded.
        shapes: shapes of inputs, with the batch, for sizes that the model leaves open.
        batch: rows of each run; None for what the model says, else by their size.
        part_rows: the most rows of a part; None for a number by their size.
        image: mean, standard deviation and channel order of pictures, as texts of the options of `lite run`.
        before: the function that prepares rows; None for none.
        after: the function that turns outputs into columns; None for none.
        backend: backends to run on, as for :func:`lite_core.load`.
        precision: this and the next two are further arguments of :func:`lite_core.load`, as JSON.
        backend_options: see there.
        reader_options: see there.
        folder: the folder from which modules of functions are imported, besides the installed ones.
        threads: threads of a session; they do not decide what a job is.
    """

    model: str
    input: str
    output: str
    model_digest: str
    format: str = "parquet"
    columns: tuple[tuple[str, str], ...] = ()
    results: tuple[tuple[str, str], ...] = ()
    keep: tuple[str, ...] | None = None
    fill: tuple[tuple[str, str], ...] = ()
    rounding: bool = False
    shapes: tuple[tuple[str, tuple[int, ...]], ...] = ()
    batch: int | None = None
    part_rows: int | None = None
    image: tuple[str, str, bool] = ("0", "1", False)
    before: Function | None = None
    after: Function | None = None
    backend: str | tuple[str, ...] = "auto"
    precision: str = "null"
    backend_options: str = "{}"
    reader_options: str = "{}"
    folder: str = ""
    threads: int | None = field(default=None, compare=False)

    def settings(self) -> dict[str, Any]:
        """Return everything that decides the rows of the output, as plain data for the manifest."""
        return {
            "input": self.input,
            "model": self.model_digest,
            "format": self.format,
            "column": dict(self.columns),
            "result": dict(self.results),
            "keep": None if self.keep is None else list(self.keep),
            "fill": dict(self.fill),
            "cast": self.rounding,
            "shape": {name: list(shape) for name, shape in self.shapes},
            "batch": self.batch,
            "part-rows": self.part_rows,
            "mean": self.image[0],
            "std": self.image[1],
            "bgr": self.image[2],
            "before": None if self.before is None else [self.before.name, self.before.digest],
            "after": None if self.after is None else [self.after.name, self.after.digest],
            "backend": self.backend if isinstance(self.backend, str) else list(self.backend),
            "precision": json.loads(self.precision),
            "backend-option": json.loads(self.backend_options),
            "reader": json.loads(self.reader_options),
        }

    @property
    def key(self) -> str:
        """The SHA-256 of :meth:`settings`: equal for jobs whose finished parts may stand side by side."""
        return hashlib.sha256(json.dumps(self.settings(), sort_keys=True).encode()).hexdigest()

    def most_rows(self, row_bytes: float) -> int:
        """Return the most rows of a part.

        Args:
            row_bytes: the mean size of a row.
        """
        return self.part_rows or max(1, min(ROWS_OF_A_PART, int(_BYTES_OF_A_PART / max(1.0, row_bytes))))

    def session_options(self) -> dict[str, Any]:
        """Return the keyword arguments of :func:`lite_core.load`."""
        return {
            "backend": self.backend if isinstance(self.backend, str) else list(self.backend),
            "precision": json.loads(self.precision),
            "backend_options": json.loads(self.backend_options),
            "threads": self.threads,
        }


def opened_with_digest(model: str, reader_options: Mapping[str, Any]) -> tuple[OpenedModel, str]:
    """Open a model, and return it with the SHA-256 of its content.

    The content is that of the file, or of all files of a folder, and the constants, which some formats keep in other
    files. A .lite file contains everything.

    Raises:
        LiteError: the model cannot be read.
    """
    path = path_of("model", model)
    if not path.exists():
        find_model(model)  # which says what is similar
        raise InputError(f"there is no model {model!r}")
    opened = open_model(model, reader_options=reader_options)
    digest = hashlib.sha256()
    for file in _files(path):
        digest.update(f"{file.relative_to(path.parent).as_posix() if path.is_dir() else ''}\0".encode())
        with file.open("rb") as content:
            while piece := content.read(_PIECE):
                digest.update(piece)
    if opened.file is None:
        for array in opened.graph.every_constant():
            digest.update(f"{array.dtype}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return opened, digest.hexdigest()


def _files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
    else:
        yield from sorted(file for file in path.rglob("*") if file.is_file())
