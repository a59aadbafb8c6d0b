"""Operators that write elements at indices: ScatterElements, ScatterND."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_core.ir import DType, Shape
from lite_core.ops.dtypes import INDICES, MOVED
from lite_core.ops.gather import (
    check_elementwise_indices,
    check_index_depth,
    elementwise_index,
    nd_index,
)
from lite_core.ops.inference import Inference, fail, normalize_axis
from lite_core.ops.registry import choice, op
from lite_core.ops.shape_checks import differ, format_shape

Array = np.ndarray[Any, Any]

_REDUCTIONS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def _scatter(data: Array, index: tuple[Any, ...], updates: Array, reduction: str) -> Array:
    result: Array = data.copy()
    if reduction == "none":
        result[index] = updates
    else:
        _REDUCTIONS[reduction].at(result, index, updates)
    return result


def _check_reduction(inference: Inference) -> None:
    reduction = inference.attributes["reduction"]
    if inference.dtype(0) is DType.BOOL and reduction != "none":
        raise fail(f"reduction {reduction} is not defined for bool")


def _infer_scatter_elements(inference: Inference) -> list[Shape | None]:
    data, indices, updates = (inference.shape(i) for i in range(3))
    _check_reduction(inference)
    if data is not None:
        axis = normalize_axis(inference.attributes["axis"], len(data))
        if indices is not None:
            check_elementwise_indices(data, indices, axis)
    if indices is not None and updates is not None:
        _check_updates(updates, indices)
    return [data]


def _check_updates(updates: Shape, wanted: Shape) -> None:
    if len(updates) != len(wanted) or any(differ(a, b) for a, b in zip(updates, wanted)):
        raise fail(f"updates must have shape {format_shape(wanted)}, has {format_shape(updates)}")


@op(
    "ScatterElements",
    "data: T, indices: I, updates: T -> output: T",
    types={"T": MOVED, "I": INDICES},
    attributes={"axis": 0, "reduction": choice("none", "add", "mul", "max", "min")},
    infer=_infer_scatter_elements,
)
def scatter_elements(data: Array, indices: Array, updates: Array, *, axis: int, reduction: str) -> Array:
    """A copy of ``data`` with ``output[indices[i, j], j] = updates[i, j]`` for axis 0, and so on.

    With a reduction each update is combined with the element at its index. Without one the indices should be
    unique, because the order of writes is undefined.
    """
    axis %= data.ndim
    return _scatter(data, elementwise_index(data.shape, indices, axis), updates, reduction)


def _infer_scatter_nd(inference: Inference) -> list[Shape | None]:
    data, indices, updates = (inference.shape(i) for i in range(3))
    _check_reduction(inference)
    if data is not None and indices is not None:
        depth = check_index_depth(data, indices)
        if depth is not None and updates is not None:
            _check_updates(updates, (*indices[:-1], *data[depth:]))
    return [data]


@op(
    "ScatterND",
    "data: T, indices: int64, updates: T -> output: T",
    types={"T": MOVED},
    attributes={"reduction": choice("none", "add", "mul", "max", "min")},
    infer=_infer_scatter_nd,
)
def scatter_nd(data: Array, indices: Array, updates: Array, *, reduction: str) -> Array:
    """A copy of ``data`` with the slices at the index tuples in the last axis of ``indices`` updated."""
    return _scatter(data, nd_index(data.shape, indices) or (...,), updates, reduction)
