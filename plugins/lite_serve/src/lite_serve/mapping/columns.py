"""Columns of Arrow tables as NumPy arrays [rows, ...]."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lite_core.errors import InputError
from lite_serve.mapping.rows import Array

__all__ = ["Locate", "array_of"]

#: Returns the name of a row in messages, given its number in a batch.
Locate = Callable[[int], str]


def array_of(column: pa.Array, name: str, locate: Locate, fill: str | None = None) -> Array:
    """Return a column as an array whose first dimension is the rows.

    Numbers, truth values and texts become [rows]; lists of equal lengths, fixed-size lists and nested ones become
    [rows, ...], and tensors have their shapes.

    Args:
        column: the column; a list may contain lists.
        name: its name, for messages.
        locate: names a row.
        fill: a text that replaces nulls; it is converted to the type of the elements.

    Raises:
        InputError: a value is null, lists differ in length, or no array can have elements of this type.
    """
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column.type, pa.BaseExtensionType):
        return _extension(column, name, locate, fill)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    is_fixed = pa.types.is_fixed_size_list(kind)
    if is_fixed or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        _refuse_null(column, name, locate, "a null instead of a list")
        size = kind.list_size if is_fixed else _common_length(column, name, locate)
        inner = array_of(column.flatten(), name, lambda row: locate(row // max(1, size)), fill)
        return inner.reshape(len(column), size, *inner.shape[1:])
    if fill is not None and column.null_count:
        column = _filled(column, name, fill)
    _refuse_null(column, name, locate, "a null")
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        texts = np.empty(len(column), object)
        texts[:] = column.to_pylist()
        return texts
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return np.asarray(column.to_numpy(zero_copy_only=False))
    raise InputError(
        f"column {name!r} is {kind}, which is no number, text, truth value or list of them; prepare it by a function: "
        "--before module:function"
    )


def _extension(column: pa.Array, name: str, locate: Locate, fill: str | None) -> Array:
    array = array_of(column.storage, name, locate, fill)
    if isinstance(column.type, pa.FixedShapeTensorType):
        array = array.reshape(len(column), *column.type.shape)
        if order := column.type.permutation:
            array = array.transpose(0, *(axis + 1 for axis in order))
    return array


def _refuse_null(column: pa.Array, name: str, locate: Locate, what: str) -> None:
    if column.null_count:
        row = int(pc.index(column.is_null(), True).as_py())
        raise InputError(
            f"column {name!r} has {what} in {locate(row)}; give a value for nulls inside it: --fill {name}=VALUE"
        )


def _common_length(column: pa.Array, name: str, locate: Locate) -> int:
    lengths = pc.list_value_length(column).to_numpy(zero_copy_only=False)
    if len(lengths) == 0:
        return 0
    if (differs := np.flatnonzero(lengths != lengths[0])).size:
        row = int(differs[0])
        raise InputError(
            f"column {name!r} has {lengths[row]} elements in {locate(row)}, and {lengths[0]} in {locate(0)}: rows of "
            "one batch must be equally long. Run each row by itself, by --batch 1, or fill them up, by --before"
        )
    return int(lengths[0])


def _filled(column: pa.Array, name: str, fill: str) -> pa.Array:
    try:
        return column.fill_null(pa.scalar(fill).cast(column.type))
    except pa.ArrowException:
        raise InputError(f"--fill {name}={fill}: {fill!r} is no {column.type}, which the column is") from None
