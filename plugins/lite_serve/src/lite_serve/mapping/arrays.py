"""NumPy's files as datasets: arrays whose first dimension is the rows."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from lite_serve.mapping.job import Job
from lite_serve.mapping.parts import Part
from lite_serve.mapping.rows import Array, Rows
from lite_serve.mapping.tables import grouped

__all__ = ["ARRAY", "Npy", "Npz"]

#: The name of the column that the array of an .npy file is.
ARRAY = "array"
_PIECE_BYTES = 8 * 2**20


class Npy:
    """.npy files: parts are ranges of rows. Files are mapped."""

    def parts(self, job: Job, root: Path, files: list[Path]) -> Iterator[Part]:
        """Return the parts of files."""
        for file in files:
            mapped = _mapped(file)
            most = job.most_rows(mapped.nbytes / max(1, len(mapped)))
            yield from grouped(file.relative_to(root).as_posix(), file.stat(), [len(mapped)], most)

    def schema(self, job: Job, file: Path) -> None:
        """Return None: the only column is :data:`ARRAY`."""
        return

    def rows(self, job: Job, part: Part, file: Path, columns: list[str] | None, most: int) -> Iterator[Rows]:
        """Read the rows of a part."""
        mapped = _mapped(file)
        size = min(most, _rows_of_piece(mapped.dtype, mapped.shape[1:]))
        stop = part.start + (part.rows or 0)
        if stop > len(mapped):
            raise ValueError(f"{part.path} was changed during the run")
        for start in range(part.start, stop, size):
            yield {ARRAY: np.array(mapped[start : min(stop, start + size)])}


class Npz:
    """.npz files: the columns are the arrays in the file, whose first dimensions must be equal; a file is a part."""

    def parts(self, job: Job, root: Path, files: list[Path]) -> Iterator[Part]:
        """Return the parts of files."""
        for file in files:
            with zipfile.ZipFile(file) as archive:
                sizes = {name: shape[0] for name, (shape, _) in _headers(archive).items()}
            if len(set(sizes.values())) != 1:
                listed = ", ".join(f"{name} {size}" for name, size in sizes.items()) or "nothing"
                raise ValueError(f"the arrays in {file.name} must have equally many rows, it has {listed}")
            stat, (rows,) = file.stat(), set(sizes.values())
            path = file.relative_to(root).as_posix()
            yield Part(0, path, stat.st_size, stat.st_mtime_ns, (), 0, rows)

    def schema(self, job: Job, file: Path) -> None:
        """Return None: the columns are arrays."""
        return

    def rows(self, job: Job, part: Part, file: Path, columns: list[str] | None, most: int) -> Iterator[Rows]:
        """Read the rows of a part, of all arrays side by side: no array is expanded as a whole."""
        with zipfile.ZipFile(file) as archive:
            about = {n: found for n, found in _headers(archive).items() if columns is None or n in columns}
            opened = {name: archive.open(f"{name}.npy") for name in about}
            for name, content in opened.items():
                _header(content, name)
            size = min(most, *(_rows_of_piece(dtype, shape[1:]) for shape, dtype in about.values()))
            total = part.rows or 0
            for start in range(0, total, size):
                rows = min(size, total - start)
                yield {n: _next(opened[n], rows, shape[1:], dtype) for n, (shape, dtype) in about.items()}


def _mapped(file: Path) -> Array:
    mapped = np.load(file, mmap_mode="r", allow_pickle=False)
    if mapped.ndim == 0:
        raise ValueError(f"{file.name} holds a single value, not rows")
    return np.asarray(mapped)


def _headers(archive: zipfile.ZipFile) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
    found = {}
    for member in archive.infolist():
        if member.filename.endswith(".npy"):
            name = member.filename.removesuffix(".npy")
            with archive.open(member) as content:
                found[name] = _header(content, name)
    return found


def _header(content: IO[bytes], name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Read the header of an array: its shape and element type."""
    version = np.lib.format.read_magic(content)
    if version not in {(1, 0), (2, 0)}:
        raise ValueError(f"the array {name!r} has format version {version}, expected 1.0 or 2.0")
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, is_fortran, dtype = read(content)
    if dtype.hasobject:
        raise ValueError(f"the array {name!r} contains Python objects (pickles), which can run code and are not read")
    if not shape:
        raise ValueError(f"the array {name!r} is a single value, not rows")
    if is_fortran and len(shape) > 1:
        raise ValueError(f"the array {name!r} is stored by columns; save numpy.ascontiguousarray of it")
    return shape, dtype


def _next(content: IO[bytes], rows: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    wanted = rows * math.prod(shape) * dtype.itemsize
    data = content.read(wanted)
    if len(data) != wanted:
        raise ValueError("the archive is truncated")
    return np.frombuffer(data, dtype).reshape(rows, *shape)


def _rows_of_piece(dtype: np.dtype[Any], shape: tuple[int, ...]) -> int:
    return max(1, _PIECE_BYTES // max(1, math.prod(shape) * dtype.itemsize))
