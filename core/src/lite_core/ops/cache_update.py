"""Writing new positions into a cache."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_core.ir import Shape
from lite_core.ops.dtypes import ALL
from lite_core.ops.inference import Inference, fail, normalize_axis
from lite_core.ops.registry import choice, op
from lite_core.ops.shape_checks import check_rank, check_vector, differ, format_shape

Array = np.ndarray[Any, Any]


def _infer_tensor_scatter(inference: Inference) -> list[Shape | None]:
    cache, update = inference.shape(0), inference.shape(1)
    if cache is None:
        return [None]
    axis = normalize_axis(inference.attributes["axis"], len(cache))
    if axis == 0:
        raise fail("axis 0 is the batch, it must be a later axis")
    check_rank(update, len(cache), "update")
    check_vector(inference, 2, cache[0], "write_indices", "row of the batch")
    for number, (a, b) in enumerate(zip(cache, update or ())):
        too_long = number == axis and isinstance(a, int) and isinstance(b, int) and b > a
        if too_long or (number != axis and differ(a, b)):
            raise fail(f"update {format_shape(update)} does not fit into the cache {format_shape(cache)}")
    return [cache]


@op(
    "TensorScatter",
    "past_cache: T, update: T, write_indices: int64? -> present_cache: T",
    types={"T": ALL},
    attributes={"axis": -2, "mode": choice("linear", "circular")},
    infer=_infer_tensor_scatter,
)
def tensor_scatter(cache: Array, update: Array, starts: Array | None, *, axis: int, mode: str) -> Array:
    """The cache with ``update`` written into it along ``axis``, in each row of the batch from its start index on.

    ``write_indices`` [batch] are the starts, 0 if they are left out. A ``circular`` cache continues at its beginning;
    in a ``linear`` one the update must end inside the cache. It is an operator of ONNX's opset 24.
    """
    result = np.moveaxis(cache.copy(), axis, 1)
    new = np.moveaxis(update, axis, 1)
    size, count = result.shape[1], new.shape[1]
    for row, start in enumerate(np.zeros(len(cache), np.int64) if starts is None else starts):
        if start < 0 or (mode == "linear" and start + count > size):
            raise fail(f"{count} new positions from index {start} on do not fit into a cache of {size}")
        result[row, (start + np.arange(count)) % size] = new[row]
    return np.ascontiguousarray(np.moveaxis(result, 1, axis))
