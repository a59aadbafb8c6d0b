"""From the rows of a part to the arrays that the model gets, and the columns that are copied."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa

from lite_core.errors import InputError
from lite_core.ir import TensorType
from lite_serve.mapping.columns import array_of
from lite_serve.mapping.feeding import converted, shaped
from lite_serve.mapping.job import Job
from lite_serve.mapping.model import JobModel
from lite_serve.mapping.parts import Part
from lite_serve.mapping.pictures import PATH
from lite_serve.mapping.results import column_of
from lite_serve.mapping.rows import Array, Rows, count
from lite_serve.mapping.sources import schema_of
from lite_tools.commands import ImageOptions, collect_inputs

__all__ = ["Preparation", "check_columns", "column_for", "kept_columns"]

#: Formats whose numbers are written as text, so that they are rounded to the type of the input anyway.
_TEXTS = ("jsonl", "csv")


class Preparation:
    """The way from the rows of a part to the inputs of a model.

    Args:
        job: the job.
        model: its model.
        part: the part.

    Raises:
        InputError: a column is missing, or columns do not fit the options.
    """

    def __init__(self, job: Job, model: JobModel, part: Part) -> None:
        self._job, self._model, self._part = job, model, part
        schema = schema_of(job, part)
        self._types = model.session.inputs
        self._keep: list[str] | None = None
        #: Numbers may be rounded to the element types of the inputs.
        self.rounding = job.rounding or (job.format in _TEXTS and job.before is None)
        #: The columns to read; None for all.
        self.columns: list[str] | None = None
        #: The outputs, by their columns, whose rows may differ in shape from batch to batch.
        self.varying: Mapping[str, bool] = {}
        if schema is not None:
            feeding = [] if job.before or job.format == "images" else self._feeding(schema)
            self._keep = kept_columns(job, schema, feeding)
            if job.before is None and job.after is None:
                self.columns = [*dict.fromkeys([*feeding, *self._keep])]
            if job.format == "images":
                self.columns = None
            elif any(_has_open_size(schema.field(name).type) for name in feeding):
                self.varying = model.open_outputs()

    def _feeding(self, schema: pa.Schema) -> list[str]:
        return [column_for(self._job, name, self._types, schema.names) for name in self._types]

    def inputs(self, batch: Rows, start: int) -> dict[str, Array]:
        """Return the inputs of the model for a batch.

        Args:
            batch: the rows.
            start: the number of the first one in the part.

        Raises:
            InputError: a row does not fit, or the function before the model failed.
        """
        prepared, given = batch, "the rows"
        if self._model.before is not None:
            prepared, given = self.called("--before", self._model.before, batch), "--before"
        elif self._job.format == "images":
            return self._pictures(batch)
        if isinstance(prepared, pa.Table):
            prepared = prepared.combine_chunks()
        names = prepared.schema.names if isinstance(prepared, (pa.RecordBatch, pa.Table)) else None
        if names is None and not isinstance(prepared, Mapping):
            raise InputError(
                f"{given} returned {type(prepared).__name__}, expected a record batch, or a mapping of names to arrays"
            )
        columns = list(prepared) if names is None else names
        arrays = {}
        for name, type_ in self._types.items():
            column = column_for(self._job, name, self._types, columns)
            found = prepared[column] if names is None else prepared.column(column)
            arrays[name] = self._array(name, type_, column, found, start)
            if len(arrays[name]) != count(batch):
                raise InputError(f"{given} returned {len(arrays[name])} rows as {column!r}, expected {count(batch)}")
        return arrays

    def _array(self, name: str, type_: TensorType, column: str, found: Any, start: int) -> Array:
        def locate(row: int) -> str:
            first = self._part.first_row
            if first is None:
                return f"row {start + row} after the beginning of {self._part}"
            return f"row {first + start + row} of {self._part.path}"

        if isinstance(found, (pa.Array, pa.ChunkedArray)):
            replaced = dict(self._job.fill)
            array = array_of(found, column, locate, replaced.get(column, replaced.get("*")))
        else:
            array = np.asarray(found)
            if array.ndim == 0:
                raise InputError(f"{column!r} is a single value, expected one row for each row")
            if array.dtype.kind == "U":
                array = array.astype(object)
        array = converted(array, type_.dtype, column, name, locate, rounding=self.rounding)
        return shaped(array, type_, self._model.shapes.get(name), column, name)

    def _pictures(self, batch: pa.RecordBatch) -> dict[str, Array]:
        """Return the pictures of a batch of paths."""
        if len(self._types) != 1:
            names = ", ".join(self._types)
            raise InputError(f"pictures feed a model with one input, this one has {names}; add --before")
        ((name, type_),) = self._types.items()
        shape = self._model.shapes.get(name)
        dims = type_.shape if shape is None else shape
        single = type_ if dims is None else type_.with_shape((1, *dims[1:]))
        options = ImageOptions.parse(*self._job.image)
        shapes = {} if shape is None else {name: (1, *shape[1:])}
        arrays: list[Array] = []
        for path in batch.column(PATH).to_pylist():
            file = str(Path(self._job.input, path) if Path(self._job.input).is_dir() else Path(self._job.input))
            try:
                array = collect_inputs({name: single}, [f"{name}={file}"], shapes, options, 0)[0][name]
            except click.ClickException as error:
                raise InputError(error.format_message()) from error
            if arrays and array.shape != arrays[0].shape:
                sizes = (
                    f"{'x'.join(map(str, array.shape[1:]))}, those before are {'x'.join(map(str, arrays[0].shape[1:]))}"
                )
                raise InputError(
                    f"{path} is {sizes}: give the size to bring all to, by --shape {name}=1x3xHEIGHTxWIDTH"
                )
            arrays.append(array)
        return {name: np.concatenate(arrays)}

    def kept(self, batch: Rows) -> dict[str, pa.Array]:
        """Return the columns that are copied beside the results."""
        if isinstance(batch, pa.RecordBatch):
            return {name: batch.column(name) for name in self._keep or ()}
        wanted = self._job.keep
        if wanted == ("*",):
            wanted = tuple(batch)
        if wanted is None:
            feeding = [column_for(self._job, name, self._types, list(batch)) for name in self._types]
            wanted = tuple(n for n, array in batch.items() if array.ndim == 1 and n not in feeding)
        if missing := [name for name in wanted if name not in batch]:
            raise InputError(_missing_column(missing[0], "--keep", list(batch)))
        return {name: column_of(batch[name]) for name in wanted}

    def called(self, option: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function of the user.

        Raises:
            InputError: it raised; the message names the line.
        """
        try:
            return function(*arguments)
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)[1:]
            where = f", in line {frames[-1].lineno} of {Path(frames[-1].filename).name}" if frames else ""
            name = getattr(self._job, option.removeprefix("--")).name
            raise InputError(f"{option} {name} raised {type(error).__name__}: {error}{where}") from error


def check_columns(job: Job, model: JobModel, part: Part) -> None:
    """Check, before rows are read, that the columns of a part fit the model's inputs.

    Raises:
        InputError: a column is missing, or its element type does not fit; names the file.
    """
    try:
        preparation = Preparation(job, model, part)
        schema = schema_of(job, part)
        if schema is None or job.before is not None or job.format == "images":
            return
        for name, type_ in model.session.inputs.items():
            column = column_for(job, name, model.session.inputs, schema.names)
            array = array_of(pa.array([], schema.field(column).type), column, str)
            converted(array, type_.dtype, column, name, str, rounding=preparation.rounding)
    except InputError as error:
        error.args = (f"{part.path}: {error}",)
        raise


def column_for(job: Job, name: str, types: Mapping[str, TensorType], columns: list[str]) -> str:
    """Return the column that feeds an input: the one that the user names, else that of its name, else the only one.

    Raises:
        InputError: there is no such column.
    """
    wanted = dict(job.columns).get(name, "")
    if wanted:
        if wanted in columns:
            return wanted
        raise InputError(_missing_column(wanted, f"--column {name}={wanted}", columns))
    if name in columns:
        return name
    if len(types) == 1 and len(columns) == 1:
        return columns[0]
    raise InputError(
        f"the input {name!r} has no column: the columns are {', '.join(columns)}; name one by --column {name}=COLUMN"
    )


def kept_columns(job: Job, schema: pa.Schema, feeding: list[str]) -> list[str]:
    """Return the columns to copy.

    Raises:
        InputError: there is no such column.
    """
    if job.keep == ("*",):
        return list(schema.names)
    if job.keep is not None:
        if missing := [name for name in job.keep if name not in schema.names]:
            raise InputError(_missing_column(missing[0], "--keep", schema.names))
        return list(job.keep)
    return [field.name for field in schema if field.name not in feeding and _is_single(field.type)]


def _missing_column(name: str, option: str, columns: list[str]) -> str:
    return f"{option}: there is no column {name!r}; the columns are {', '.join(columns)}"


def _is_single(kind: pa.DataType) -> bool:
    """Return True for types of single values of few bytes: no lists, structures, tensors or binary data."""
    if isinstance(kind, pa.BaseExtensionType):
        return False
    if pa.types.is_fixed_size_list(kind):  # not nested for older versions of pyarrow
        return False
    return not bool(pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _has_open_size(kind: pa.DataType) -> bool:
    """Return True for a type whose rows may differ in shape."""
    if pa.types.is_fixed_size_list(kind):
        return _has_open_size(kind.value_type)
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))
