"""Columns of the output: arrays [rows, ...] as Arrow columns that other programs read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from lite_core.errors import InputError
from lite_core.ir import DType
from lite_serve.mapping.rows import Array

__all__ = ["column_of", "columns_of"]

#: Types that Arrow or many readers of Parquet lack, and the next larger ones, which hold the same numbers.
_STORED_AS = {
    DType.BFLOAT16: np.float32,
    DType.FLOAT8E4M3FN: np.float32,
    DType.FLOAT8E4M3FNUZ: np.float32,
    DType.FLOAT8E5M2: np.float32,
    DType.FLOAT8E5M2FNUZ: np.float32,
    DType.INT4: np.int8,
    DType.UINT4: np.uint8,
}


def column_of(array: Array, *, varies: bool = False) -> pa.Array:
    """Return an array as a column.

    Rows of one number become a plain column, rows of one dimension a fixed-size list, and rows of more dimensions
    Arrow's fixed-shape tensor, which programs that do not know it read as a list of all elements.

    Args:
        array: the array [rows, ...].
        varies: the rows of other batches may have other shapes: rows become lists, of lists for several dimensions.
    """
    rows, shape = len(array), array.shape[1:]
    if varies and shape:
        inner = column_of(array.reshape(rows * shape[0], *shape[1:]), varies=True)
        return pa.ListArray.from_arrays(pa.array(np.arange(rows + 1, dtype=np.int32) * np.int32(shape[0])), inner)
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.dtype.hasobject or flat.dtype.kind in "US":
        values = pa.array(flat.tolist(), pa.string())
    else:
        wider = _STORED_AS.get(DType.of(flat.dtype))
        values = pa.array(flat if wider is None else flat.astype(wider))
    if math.prod(shape) == 1 and len(shape) <= 1:
        return values
    if math.prod(shape) == 0:  # fixed-size lists of no elements lose the number of rows
        return pa.array([[]] * rows, pa.list_(values.type))
    lists = pa.FixedSizeListArray.from_arrays(values, math.prod(shape))
    if len(shape) == 1:
        return lists
    is_number = not (pa.types.is_string(values.type) or pa.types.is_boolean(values.type))
    return pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(values.type, shape), lists) if is_number else lists


def columns_of(result: Any, rows: int, function: str, varying: Mapping[str, bool]) -> dict[str, pa.Array]:
    """Return what a model or a function has returned as columns.

    Args:
        result: arrays, Arrow arrays or lists by name, or a record batch or table.
        rows: the rows that each must have.
        function: the function that returned it, for messages; empty for the model.
        varying: the outputs whose rows may differ in shape.

    Raises:
        InputError: a column has another number of rows, or is no column.
    """
    if isinstance(result, (pa.RecordBatch, pa.Table)):
        result = dict(zip(result.schema.names, result.columns))
    if not isinstance(result, Mapping):
        raise InputError(
            f"{function} returned {type(result).__name__}, expected a record batch, or a mapping of names to arrays"
        )
    found = {}
    for name, value in result.items():
        try:
            size = len(value)
        except TypeError:
            size = -1
        if size != rows:
            told = "no array" if size < 0 else f"{size} rows"
            raise InputError(
                f"{function} returned {told} as {name!r}, expected {rows} rows: one for each row it was given"
            )
        if isinstance(value, np.ndarray):
            found[name] = column_of(value, varies=varying.get(name, False))
        elif isinstance(value, pa.ChunkedArray):
            found[name] = value.combine_chunks()
        else:
            found[name] = value if isinstance(value, pa.Array) else pa.array(value)
    return found
