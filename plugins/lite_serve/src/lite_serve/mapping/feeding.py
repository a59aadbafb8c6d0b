"""Arrays for the inputs of a model: element types and shapes that fit, without changing a number in silence."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from lite_core.errors import InputError
from lite_core.ir import DType, TensorType
from lite_serve.mapping.columns import Locate
from lite_serve.mapping.rows import Array

__all__ = ["RoundingError", "converted", "shaped"]


class RoundingError(InputError):
    """Numbers would be rounded, which the user may allow."""


def converted(array: Array, dtype: DType, column: str, name: str, locate: Locate, *, rounding: bool) -> Array:
    """Return an array with the element type of an input.

    Integers are converted if all of them stay what they are, floating numbers if the type contains all of theirs.

    Args:
        array: the array [rows, ...].
        dtype: the element type of the input.
        column: the name of the column, for messages.
        name: the name of the input.
        locate: names a row.
        rounding: convert floating numbers even if they are rounded, and integers to the nearest floating numbers.

    Raises:
        InputError: the array has another element type, or a number that the input's type lacks.
    """
    wanted = dtype.numpy
    if array.dtype == wanted:
        return array
    mismatch = f"column {column!r} is {_name(array)}, the input {name!r} is {dtype}"
    if array.dtype.hasobject or wanted.hasobject or (wanted.kind == "b") != (array.dtype.kind == "b"):
        if array.dtype.kind == "b" and not wanted.hasobject:
            return array.astype(wanted)
        raise InputError(f"{mismatch}; convert it by a function: --before module:function")
    from_integer, to_integer = array.dtype.kind in "iu", dtype.is_integer
    if from_integer:
        with np.errstate(all="ignore"):
            changed = array.astype(wanted)
            same = changed.astype(np.float64 if wanted.kind == "V" else array.dtype) == array
            if to_integer and wanted.kind in "iu":  # -1 and 2**64 - 1 are the same bits
                same &= (changed < 0) == (array < 0)
        if same.all() or (rounding and not to_integer):
            return changed
        row = int(np.argwhere(~same)[0][0])
        value = array[tuple(np.argwhere(~same)[0])]
        how = "" if to_integer else "; to round it, add --cast"
        kind = InputError if to_integer else RoundingError
        raise kind(f"{mismatch}, which cannot hold the {value} in {locate(row)}{how}")
    if to_integer:
        raise InputError(f"{mismatch}; convert it by a function: --before module:function")
    if rounding or np.can_cast(array.dtype, wanted, "safe"):
        with np.errstate(over="ignore"):
            return array.astype(wanted)
    raise RoundingError(f"{mismatch}: numbers would be rounded; to allow that, add --cast")


def shaped(array: Array, type: TensorType, given: Sequence[int] | None, column: str, name: str) -> Array:
    """Return an array [rows, ...] with the shape that rows of an input have.

    Args:
        array: the array.
        type: the type of the input, whose first dimension is the rows.
        given: the shape of the input from the user, with the batch; None for none.
        column: the name of the column, for messages.
        name: the name of the input.

    Raises:
        InputError: the rows of the column have another shape.
    """
    dims = type.shape if given is None else tuple(given)
    if dims is None:
        return array
    row = dims[1:]
    own = array.shape[1:]
    if len(own) == len(row) and all(not isinstance(dim, int) or dim == size for dim, size in zip(row, own)):
        return array
    sizes = [dim for dim in row if isinstance(dim, int)]
    elements = math.prod(own)
    if len(sizes) == len(row) and math.prod(sizes) == elements and (len(own) <= 1 or 1 in (*own, *sizes)):
        return array.reshape(len(array), *sizes)
    open_dims = len(row) - len(sizes)
    if len(own) <= 1 and open_dims == 1 and elements and elements % math.prod(sizes) == 0:
        return array.reshape(len(array), *(dim if isinstance(dim, int) else -1 for dim in row))
    hint = "" if open_dims < 2 or len(own) > 1 else f"; give the sizes of its rows: --shape {name}=1x..."
    raise InputError(
        f"a row of column {column!r} has the shape {list(own)}, a row of the input {name!r} has "
        f"[{', '.join(map(str, row))}]{hint}"
    )


def _name(array: Array) -> str:
    return "text" if array.dtype.hasobject else array.dtype.name
