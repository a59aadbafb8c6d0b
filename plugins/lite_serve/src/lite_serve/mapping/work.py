"""A part, done: its rows read, run and written to one file. The same on one machine and on the workers of a cluster."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lite_core.errors import InputError, LiteError
from lite_core.forking import new_lock
from lite_core.session import OpenedModel
from lite_serve.mapping.files import completed_file
from lite_serve.mapping.job import Job
from lite_serve.mapping.manifest import Finished
from lite_serve.mapping.model import JobModel
from lite_serve.mapping.parts import Part
from lite_serve.mapping.preparation import Preparation
from lite_serve.mapping.results import columns_of
from lite_serve.mapping.rows import Rows, batches, count
from lite_serve.mapping.sources import file_of, read_rows

__all__ = ["PartError", "Stopped", "do_part", "model_of", "output_name", "release"]

#: A row group of the output is written when it has this many bytes.
_GROUP_BYTES = 16 * 2**20
#: Rows that are read at once, if they are small.
_ROWS_READ = 16384

_models: dict[str, JobModel] = {}
_lock = new_lock()


class PartError(LiteError):
    """A part cannot be done; the message names the part and the rows."""


class Stopped(Exception):
    """The run was asked to stop before the part was finished."""


def model_of(job: Job, opened: OpenedModel | None = None) -> JobModel:
    """Return the model of a job, which all threads of a process share.

    Args:
        job: the job.
        opened: the model, if it has been opened already.

    Raises:
        LiteError: the model cannot be loaded, or is not that of the job.
    """
    with _lock:
        if (found := _models.get(job.key)) is None:
            found = _models[job.key] = JobModel(job, opened)
        return found


def release(job: Job) -> None:
    """Drop the model of a job."""
    with _lock:
        _models.pop(job.key, None)


def output_name(index: int) -> str:
    """Return the name of the file with the results of a part."""
    return f"part-{index:05d}.parquet"


def do_part(
    job: Job,
    part: Part,
    *,
    progress: Callable[[int], object] = lambda rows: None,
    is_stopped: Callable[[], bool] = lambda: False,
) -> Finished:
    """Do a part and write its file, which replaces an earlier one at once. Two processes may do one part at a time.

    Args:
        job: the job.
        part: the part.
        progress: called with the number of rows after each batch.
        is_stopped: returns True if the part should be left unfinished; asked before each batch.

    Raises:
        PartError: the rows do not fit the model, a function or the model failed, or the part was changed.
        LiteError: the model cannot be loaded, or its functions cannot be imported.
        OSError: the file cannot be written.
        Stopped: as ``is_stopped`` wanted.
    """
    begin = time.perf_counter()
    model = model_of(job)
    _check_unchanged(job, part)
    try:
        preparation = Preparation(job, model, part)
    except LiteError as error:
        raise PartError(f"{part.path}: {error}") from error
    rows = 0
    path = Path(job.output, output_name(part.index))
    with suppress(_NoRows), completed_file(path) as file:
        writer = _Writer(file)
        try:
            for batch in batches(_read(job, part, preparation.columns), model.batch):
                if is_stopped():
                    raise Stopped
                size = count(batch)
                try:
                    writer.add(_results(model, preparation, batch, rows))
                except (LiteError, MemoryError) as error:
                    raise PartError(_described(part, rows, size, error)) from error
                rows += size
                progress(size)
            _check_unchanged(job, part)
            if part.rows is not None and rows != part.rows:
                raise PartError(f"{part}: {rows} rows were read, expected {part.rows}; the file was changed")
            if rows == 0:
                raise _NoRows
        finally:
            writer.close()
        size = file.tell()
    if rows == 0:
        return Finished(part, "", 0, 0, seconds=time.perf_counter() - begin)
    return Finished(
        part, path.name, size, rows, writer.columns, tuple(model.session.devices), time.perf_counter() - begin
    )


class _NoRows(Exception):
    """The part has no rows: no file is written."""


def _read(job: Job, part: Part, columns: list[str] | None) -> Any:
    pieces = read_rows(job, part, columns, _ROWS_READ)
    while True:
        try:
            piece = next(pieces, None)
        except LiteError:
            raise
        except Exception as error:  # of pyarrow, NumPy, zipfile and the file system
            raise PartError(f"{part}: the file cannot be read as {job.format}: {error}") from error
        if piece is None:
            return
        yield piece


def _results(model: JobModel, preparation: Preparation, batch: Rows, start: int) -> dict[str, pa.Array]:
    """Return the columns of a batch's results."""
    size = count(batch)
    outputs = model.run(preparation.inputs(batch, start))
    varying = preparation.varying
    if model.after is None:
        found = columns_of(outputs, size, "the model", varying)
    else:
        found = columns_of(preparation.called("--after", model.after, outputs, batch), size, "--after", varying)
    kept = preparation.kept(batch)
    if same := sorted(kept.keys() & found.keys()):
        raise InputError(
            f"the column {same[0]!r} is in the input and among the results: name the output otherwise, by "
            f"--result {same[0]}=NAME, or choose columns by --keep"
        )
    return {**kept, **found}


def _described(part: Part, start: int, rows: int, error: BaseException) -> str:
    if part.first_row is None:
        where = f"{part}, rows {start} to {start + rows - 1} after its beginning"
    else:
        first = part.first_row + start
        where = f"{part.path}, rows {first} to {first + rows - 1}"
    return f"{where}: {str(error) or type(error).__name__}"


def _check_unchanged(job: Job, part: Part) -> None:
    stat = None
    if not part.pictures:
        try:
            stat = file_of(job, part).stat()
        except OSError as error:
            raise PartError(f"{part}: {error}") from error
    if stat is not None and (stat.st_size, stat.st_mtime_ns) != (part.size, part.mtime_ns):
        raise PartError(f"{part}: the file was changed during the run; type the same command again")


class _Writer:
    """A Parquet file that is written in row groups of some megabytes."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._writer: pq.ParquetWriter | None = None
        self._schema: pa.Schema | None = None
        self._waiting: list[pa.RecordBatch] = []
        self._bytes = 0
        self.columns: tuple[tuple[str, str], ...] = ()

    def add(self, columns: dict[str, pa.Array]) -> None:
        """Add rows.

        Raises:
            InputError: their columns or types are not those of the rows before.
        """
        batch = pa.RecordBatch.from_arrays(list(columns.values()), list(columns))
        if self._schema is None:
            self._schema = batch.schema
            self.columns = tuple((field.name, str(field.type)) for field in batch.schema)
            texts = [f.name for f in batch.schema if pa.types.is_string(f.type) or pa.types.is_dictionary(f.type)]
            self._writer = pq.ParquetWriter(self._file, batch.schema, use_dictionary=texts, write_statistics=True)
        elif batch.schema != self._schema:
            batch = _cast(batch, self._schema)
        self._waiting.append(batch)
        self._bytes += batch.nbytes
        if self._bytes >= _GROUP_BYTES:
            self._flush()

    def close(self) -> None:
        """Write what is left, and the end of the file."""
        if self._writer is not None:
            writer, self._writer = self._writer, None
            try:
                if self._waiting:
                    self._flush(writer)
            finally:
                writer.close()

    def _flush(self, writer: pq.ParquetWriter | None = None) -> None:
        table = pa.Table.from_batches(self._waiting, self._schema)
        self._waiting, self._bytes = [], 0
        found = writer or self._writer
        if found is not None:
            found.write_table(table, row_group_size=max(1, table.num_rows))


def _cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch with the types of earlier ones, such as text where a function returned only None."""
    if batch.schema.names != schema.names:
        raise InputError(f"the results have the columns {batch.schema.names}, those before had {schema.names}")
    try:
        arrays = [column.cast(field.type) for column, field in zip(batch.columns, schema)]
    except pa.ArrowException as error:
        raise InputError(f"the results have other types than those before: {error}") from error
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
