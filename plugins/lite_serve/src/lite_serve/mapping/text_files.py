"""CSV files and JSON lines as datasets. The types of their columns are those of the beginning of the first file."""

from __future__ import annotations

import io
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json

from lite_serve.mapping.job import Job
from lite_serve.mapping.parts import Part, files_of
from lite_serve.mapping.rows import Rows

__all__ = ["Csv", "JsonLines"]

#: Bytes of text that are parsed at once, and from which the types of columns are found.
_PIECE = 2**20


class JsonLines:
    """Files with one JSON object in each line: parts are ranges of lines."""

    def parts(self, job: Job, root: Path, files: list[Path]) -> Iterator[Part]:
        """Return the parts of files; the number of rows in each is not known."""
        for file in files:
            stat = file.stat()
            length = _line_bytes(file)
            wanted = job.most_rows(length) * length
            count = max(1, round(stat.st_size / wanted))
            bounds = [0, *(_line_after(file, stat.st_size * n // count) for n in range(1, count)), stat.st_size]
            path = file.relative_to(root).as_posix()
            for start, stop in pairwise(bounds):
                if stop > start:
                    first = 0 if start == 0 else None
                    yield Part(0, path, stat.st_size, stat.st_mtime_ns, (), start, None, stop, first)

    def schema(self, job: Job, file: Path) -> pa.Schema:
        """Return the columns of the dataset."""
        first = files_of(Path(job.input), job.format)[0]
        piece = next(_pieces_of_lines(first, 0, first.stat().st_size), b"")
        if not piece.strip():
            raise ValueError(f"{first.name} is empty")
        return pa_json.read_json(io.BytesIO(piece), _in_one_block(piece)).schema

    def rows(self, job: Job, part: Part, file: Path, columns: list[str] | None, most: int) -> Iterator[Rows]:
        """Read the rows of a part."""
        schema = self.schema(job, file)
        if columns is not None:
            schema = pa.schema([schema.field(name) for name in columns])
        options = pa_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
        for piece in _pieces_of_lines(file, part.start, part.stop or 0):
            if piece.strip():
                table = pa_json.read_json(io.BytesIO(piece), _in_one_block(piece), options)
                yield from table.combine_chunks().to_batches()


class Csv:
    """Files with comma-separated values (.csv) or tabs (.tsv), whose first line names the columns: a file is a part."""

    def parts(self, job: Job, root: Path, files: list[Path]) -> Iterator[Part]:
        """Return the parts of files; the number of rows in each is not known."""
        for file in files:
            stat = file.stat()
            yield Part(0, file.relative_to(root).as_posix(), stat.st_size, stat.st_mtime_ns)

    def schema(self, job: Job, file: Path) -> pa.Schema:
        """Return the columns of the dataset."""
        first = files_of(Path(job.input), job.format)[0]
        with pa_csv.open_csv(first, _csv_reading(), _csv_parsing(first)) as reader:
            return reader.schema

    def rows(self, job: Job, part: Part, file: Path, columns: list[str] | None, most: int) -> Iterator[Rows]:
        """Read the rows of a part."""
        types = {field.name: field.type for field in self.schema(job, file)}
        options = pa_csv.ConvertOptions(column_types=types, include_columns=columns or list(types))
        with pa_csv.open_csv(file, _csv_reading(), _csv_parsing(file), options) as reader:
            yield from reader


def _csv_reading() -> pa_csv.ReadOptions:
    return pa_csv.ReadOptions(use_threads=False, block_size=_PIECE)


def _csv_parsing(file: Path) -> pa_csv.ParseOptions:
    return pa_csv.ParseOptions(delimiter="\t" if file.suffix.lower() == ".tsv" else ",", newlines_in_values=True)


def _in_one_block(piece: bytes) -> pa_json.ReadOptions:
    return pa_json.ReadOptions(use_threads=False, block_size=len(piece) + 1)


def _line_bytes(file: Path) -> float:
    """Return the mean length of the first lines of a file."""
    with file.open("rb") as content:
        beginning = content.read(_PIECE)
    return max(1.0, len(beginning) / max(1, beginning.count(b"\n")))


def _line_after(file: Path, position: int) -> int:
    """Return where the first line begins at or after a position."""
    with file.open("rb") as content:
        content.seek(max(0, position - 1))
        content.readline()
        return content.tell()


def _pieces_of_lines(file: Path, start: int, stop: int) -> Iterator[bytes]:
    """Return the bytes between two positions in pieces of whole lines."""
    with file.open("rb") as content:
        content.seek(start)
        while start < stop:
            piece = content.read(min(_PIECE, stop - start))
            if not piece:
                raise ValueError(f"{file} became shorter during the run")
            if not piece.endswith(b"\n"):
                piece += content.readline(stop - start - len(piece)) if start + len(piece) < stop else b""
            start += len(piece)
            yield piece
