"""Operands that families share: elements to be moved, indices, sizes given at run time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from lite_conformance.cases.op_cases import Draw
from lite_conformance.cases.tensors import Array, Tensor, integers, ints, normal, special, t, values
from lite_core.ir import DType

__all__ = [
    "ALL",
    "EACH_SIZE",
    "FLOATS",
    "INTEGERS",
    "NUMERIC",
    "data",
    "distinct_indices",
    "distinct_tuples",
    "index_tuples",
    "indices",
    "run_time_ints",
    "some_ints",
    "whole_range",
    "without_nan",
]

ALL: tuple[DType, ...] = tuple(d for d in DType if not d.is_narrow and d is not DType.STRING)
FLOATS = tuple(d for d in ALL if d.is_floating)
INTEGERS = tuple(d for d in ALL if d.is_integer)
NUMERIC = INTEGERS + FLOATS
#: Element types of every size, and bool: sufficient for the drawn cases of operators that only move elements.
EACH_SIZE = (DType.FLOAT32, DType.INT64, DType.FLOAT16, DType.UINT8, DType.BOOL)

# **** elements ****


def whole_range(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return integers of the whole range of the type, which do not fit smaller types; other types: standard normal."""
    if not dtype.is_integer:
        return normal(random, shape, dtype)
    info = np.iinfo(dtype.numpy)
    return np.asarray(random.integers(info.min, info.max, shape, dtype=dtype.numpy, endpoint=True))


def data(*shape: int) -> Tensor:
    """Return a run-time tensor for operators that move elements without computing with them."""
    return t(*shape, init=whole_range)


def without_nan(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return the numbers of ``special`` with 1 for NaN; :mod:`not_a_number` has the cases of NaN."""
    array = special(random, shape, dtype)
    return np.where(np.isnan(array), array.dtype.type(1), array) if dtype.is_floating else array


# **** integer operands: axes, indices, counts, sizes ****


def run_time_ints(*elements: int) -> Tensor:
    """Return an int64 vector given at run time, so that sizes computed from it are unknown at compile time."""
    return values(np.array(elements, np.int64), "int64")


def some_ints(draw: Draw, elements: Sequence[int]) -> Tensor:
    """Draw an int64 vector that is a constant of the graph or given at run time."""
    return draw(st.sampled_from([ints, run_time_ints]))(*elements)  # type: ignore[no-any-return]


def indices(size: int, *shape: int, dtype: str = "int64", constant: bool = False) -> Tensor:
    """Return indices into an axis of this size, about half of them negative."""
    return Tensor(shape, integers(-size, size) if size else integers(0, 1), dtype, constant)


def distinct_indices(size: int, axis: int, *shape: int, dtype: str = "int64", constant: bool = False) -> Tensor:
    """Return indices into an axis of this size that address distinct elements along ``axis`` of ``shape``."""

    def initialize(random: np.random.Generator, wanted: tuple[int, ...], _: DType) -> Array:
        along = [*wanted]
        count, along[axis] = wanted[axis], size
        order = np.take(np.argsort(random.random(along), axis), range(count), axis)
        return _from_either_end(random, order, size).astype(dtype)

    return Tensor(shape, initialize, dtype, constant)


def index_tuples(sizes: Sequence[int], *shape: int) -> Tensor:
    """Return tuples, ``[*shape, len(sizes)]``, that address elements of a tensor whose first axes have these sizes."""

    def initialize(random: np.random.Generator, wanted: tuple[int, ...], dtype: DType) -> Array:
        return np.stack([random.integers(-n, n, wanted[:-1]) for n in sizes], -1)

    return t(*shape, len(sizes), init=initialize, dtype="int64")


def distinct_tuples(sizes: Sequence[int], *shape: int) -> Tensor:
    """Return tuples as :func:`index_tuples` does, all of which address distinct elements."""

    def initialize(random: np.random.Generator, wanted: tuple[int, ...], dtype: DType) -> Array:
        flat_index = random.permutation(int(np.prod(sizes)))[: int(np.prod(wanted[:-1]))].reshape(wanted[:-1])
        axes = np.unravel_index(flat_index, tuple(sizes))
        return np.stack([_from_either_end(random, i, n) for i, n in zip(axes, sizes)], -1).astype(np.int64)

    return t(*shape, len(sizes), init=initialize, dtype="int64")


def _from_either_end(random: np.random.Generator, index: Array, size: int) -> Array:
    """Return the indices with about half of them replaced by their negative equivalents."""
    return np.where(random.random(index.shape) < 0.5, index, index - size)
