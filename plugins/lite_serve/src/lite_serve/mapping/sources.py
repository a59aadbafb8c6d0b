"""The formats of datasets: which parts the files have, and the rows of a part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import click

from lite_core.errors import InputError, LiteError
from lite_serve.mapping import arrays, pictures, tables, text_files
from lite_serve.mapping.parts import Part, files_of
from lite_serve.mapping.rows import Rows

if TYPE_CHECKING:
    import pyarrow as pa

    from lite_serve.mapping.job import Job

__all__ = ["file_of", "list_parts", "read_rows", "schema_of"]


class _Source(Protocol):
    """A format of datasets."""

    def parts(self, job: Job, root: Path, files: list[Path]) -> Iterator[Part]: ...

    def schema(self, job: Job, file: Path) -> pa.Schema | None: ...

    def rows(self, job: Job, part: Part, file: Path, columns: list[str] | None, most: int) -> Iterator[Rows]: ...


_SOURCES: dict[str, _Source] = {
    "parquet": tables.Parquet(),
    "arrow": tables.ArrowFiles(),
    "jsonl": text_files.JsonLines(),
    "csv": text_files.Csv(),
    "npy": arrays.Npy(),
    "npz": arrays.Npz(),
    "images": pictures.Pictures(),
}


def list_parts(job: Job) -> list[Part]:
    """Return the parts of a job's dataset, in the order of its rows. Only metadata of the files are read.

    A part is a row group of a Parquet file, or several small ones of one file; larger ones are divided. Parts without
    rows are left out.

    Raises:
        InputError: a file cannot be read.
    """
    path = Path(job.input)
    files = files_of(path, job.format)
    root = path.parent if path.is_file() else path
    found = [part for part in _parts_of(job, root, files) if part.rows != 0]
    return [replace(part, index=index) for index, part in enumerate(found)]


def _parts_of(job: Job, root: Path, files: list[Path]) -> Iterator[Part]:
    """Return the parts of files, with the index 0; those without rows included.

    Raises:
        InputError: a file cannot be read; names it.
    """
    source = _SOURCES[job.format]
    try:
        yield from source.parts(job, root, files)
    except (LiteError, click.ClickException):
        raise
    except Exception as error:  # of pyarrow, NumPy, zipfile and the file system
        raise InputError(f"{job.input!r} cannot be read as {job.format}: {error}") from error


def schema_of(job: Job, part: Part) -> pa.Schema | None:
    """Return the columns of a part; None for formats whose columns are arrays.

    Raises:
        InputError: the file cannot be read.
    """
    try:
        return _SOURCES[job.format].schema(job, file_of(job, part))
    except LiteError:
        raise
    except Exception as error:
        raise InputError(f"{part.path} cannot be read as {job.format}: {error}") from error


def read_rows(job: Job, part: Part, columns: list[str] | None, most: int) -> Iterator[Rows]:
    """Read the rows of a part in pieces, in order.

    Args:
        job: the job.
        part: the part.
        columns: the columns to read; None for all.
        most: about the most rows of a piece.
    """
    return _SOURCES[job.format].rows(job, part, file_of(job, part), columns, most)


def file_of(job: Job, part: Part) -> Path:
    """Return the path of a part's file."""
    path = Path(job.input)
    return path if path.is_file() else path / part.path
