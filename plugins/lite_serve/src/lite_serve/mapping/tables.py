"""Parquet and Arrow files as datasets. Reading takes memory for some record batches, however large the file is."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lite_serve.mapping.job import Job
from lite_serve.mapping.parts import Part
from lite_serve.mapping.rows import Rows, sliced

__all__ = ["ArrowFiles", "Parquet", "grouped"]

#: Bytes that are read of a column at once. Without it, whole column chunks are read.
_BUFFER = 2**20
#: Bytes of a piece of rows, estimated from the metadata.
_PIECE_BYTES = 8 * 2**20


def grouped(path: str, stat: Any, sizes: list[int], most: int) -> Iterator[Part]:
    """Return the parts of a file that consists of groups of rows.

    Args:
        path: the file, relative to the dataset's folder.
        stat: its size and times.
        sizes: the rows of each group.
        most: the most rows of a part. Small groups that follow each other are one part; larger ones are divided.
    """
    first = 0
    groups: list[int] = []
    together = 0
    for group, rows in enumerate([*sizes, 0]):
        if groups and (group == len(sizes) or together + rows > most):
            yield Part(0, path, stat.st_size, stat.st_mtime_ns, tuple(groups), 0, together, None, first)
            first, groups, together = first + together, [], 0
        if rows > most:
            count = -(-rows // most)
            bounds = [rows * number // count for number in range(count + 1)]
            for start, stop in pairwise(bounds):
                yield Part(0, path, stat.st_size, stat.st_mtime_ns, (group,), start, stop - start, None, first + start)
            first += rows
        elif rows:
            groups.append(group)
            together += rows


def within(pieces: Iterator[pa.RecordBatch], part: Part) -> Iterator[Rows]:
    """Return the rows of a part from those of its groups."""
    skip, left = part.start, part.rows or 0
    for piece in pieces:
        begin = min(skip, piece.num_rows)
        skip -= begin
        end = min(piece.num_rows, begin + left)
        if end > begin:
            left -= end - begin
            yield sliced(piece, begin, end)
        if left == 0:
            return
    raise ValueError(f"{part.path} has {left} rows fewer than its metadata said: it was changed during the run")


class Parquet:
    """Parquet files: parts are row groups."""

    def parts(self, job: Job, root: Path, files: list[Path]) -> Iterator[Part]:
        """Return the parts of files."""
        for file in files:
            stat = file.stat()
            with _named(file), pq.ParquetFile(file) as opened:
                about = opened.metadata
                groups = [about.row_group(group) for group in range(about.num_row_groups)]
                sizes = [group.num_rows for group in groups]
                row_bytes = sum(group.total_byte_size for group in groups) / max(1, sum(sizes))
            yield from grouped(file.relative_to(root).as_posix(), stat, sizes, job.most_rows(row_bytes))

    def schema(self, job: Job, file: Path) -> pa.Schema:
        """Return the columns of a file."""
        with pq.ParquetFile(file) as opened:
            return opened.schema_arrow

    def rows(self, job: Job, part: Part, file: Path, columns: list[str] | None, most: int) -> Iterator[Rows]:
        """Read the rows of a part."""
        with pq.ParquetFile(file, buffer_size=_BUFFER, pre_buffer=False) as opened:
            groups = [opened.metadata.row_group(group) for group in part.groups]
            row_bytes = sum(group.total_byte_size for group in groups) / max(1, sum(g.num_rows for g in groups))
            size = max(1, min(most, int(_PIECE_BYTES / max(1.0, row_bytes))))
            pieces = opened.iter_batches(size, row_groups=list(part.groups), columns=columns, use_threads=False)
            yield from within(pieces, part)


class ArrowFiles:
    """Files of Arrow's IPC format, such as Feather files: parts are record batches. Files are mapped."""

    def parts(self, job: Job, root: Path, files: list[Path]) -> Iterator[Part]:
        """Return the parts of files. Of a compressed file, everything is read once to count rows."""
        for file in files:
            with _named(file), pa.memory_map(str(file)) as mapped, pa.ipc.open_file(mapped) as opened:
                found = [(b.num_rows, b.nbytes) for b in map(opened.get_batch, range(opened.num_record_batches))]
            sizes = [rows for rows, _ in found]
            most = job.most_rows(sum(size for _, size in found) / max(1, sum(sizes)))
            yield from grouped(file.relative_to(root).as_posix(), file.stat(), sizes, most)

    def schema(self, job: Job, file: Path) -> pa.Schema:
        """Return the columns of a file."""
        with pa.memory_map(str(file)) as mapped, pa.ipc.open_file(mapped) as opened:
            return opened.schema

    def rows(self, job: Job, part: Part, file: Path, columns: list[str] | None, most: int) -> Iterator[Rows]:
        """Read the rows of a part."""
        with pa.memory_map(str(file)) as mapped, pa.ipc.open_file(mapped) as opened:
            pieces = (opened.get_batch(group) for group in part.groups)
            yield from within((p if columns is None else p.select(columns) for p in pieces), part)


class _named:
    """Add the name of a file to errors of pyarrow, which often lack it."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (pa.ArrowException, OSError)) and str(self._file) not in str(error):
            raise ValueError(f"{self._file}: {error}") from error
