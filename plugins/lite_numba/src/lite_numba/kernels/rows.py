"""Loops over rows: distributions, normalisations, sums. All axes that count become one: a loop serves every rank."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from lite_core.backend import No, Yes
from lite_core.ir import Array, Node
from lite_numba.backend import backend
from lite_numba.kernels.elementwise import exp
from lite_numba.kernels.numpy_calls import FLOATS, by_reference


def along(array: Array, axis: int) -> Array:
    """Return an array as [outer, axis, inner], in which one compiled loop serves every rank and every axis."""
    shape, axis = array.shape, axis % array.ndim
    return array.reshape(math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :]))


# **** distributions ****


def _last_axis(node: Node) -> Yes | No:
    x, axis = node.inputs[0], node.attributes.get("axis", -1)
    is_last = axis == -1 or (x is not None and x.type.rank is not None and axis == x.type.rank - 1)
    return Yes() if is_last else No("the loop is along the last axis")


def _rows(x: Array, *, axis: int, out: Array, is_log: bool) -> Any:
    return along(x, axis)[:, :, 0], is_log, along(out, axis)[:, :, 0]


def softmax(x, is_log, out):
    rows, size = x.shape
    powers, best = np.empty(size), np.empty(16, x.dtype)
    for r in range(rows):
        best[:] = -np.inf
        for k in range(0, size - 15, 16):  # sixteen maxima, which vectors compute at once
            for lane in range(16):
                best[lane] = np.maximum(best[lane], x[r, k + lane])
        largest, total = best.max(), 0.0
        for k in range(size // 16 * 16, size):
            largest = np.maximum(largest, x[r, k])  # NaN if any element is
        for k in range(size):
            powers[k] = exp(x[r, k] - largest)
        for k in range(size):
            total += powers[k]
        for k in range(size):
            out[r, k] = x[r, k] - largest - math.log(total) if is_log else powers[k] / total


for _op, _is_log in (("Softmax", False), ("LogSoftmax", True)):
    _given = partial(_rows, is_log=_is_log)
    backend.kernel(_op, dtypes=FLOATS, when=_last_axis, prepare=_given, sums_in_any_order=True)(softmax)
    by_reference(_op)


# **** normalisations ****


def _one_row(node: Node) -> Yes | No:
    x, *vectors = (0 if v is None else v.type.rank or 0 for v in node.inputs)
    axis: Any = node.attributes.get("axis", -1)
    return Yes() if max(vectors) <= (-axis if axis < 0 else x - axis) else No("the loop has one row of factors")


def _normalized(x: Array, *vectors: Array | None, axis: int, epsilon: float, stash_type: int, out: Any) -> Any:
    rows = x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))
    spread = (None if p is None else np.broadcast_to(p, x.shape[axis:]).reshape(1, rows.shape[1]) for p in vectors)
    statistics = (None if s is None else s.reshape(-1) for s in out[1:])
    return rows, *spread, epsilon, out[0].reshape(rows.shape), *statistics


@backend.kernel("LayerNormalization", dtypes=FLOATS, when=_one_row, prepare=_normalized, sums_in_any_order=True)
def layer_normalization(x, scale, b, epsilon, out, means, reciprocals):
    """Rows of ``scale`` and ``b`` apply to rows of ``x`` in turn: there is one, or one for each group."""
    rows, size = x.shape
    for r in range(rows):
        mean, variance = 0.0, 0.0
        for k in range(size):
            mean += x[r, k]
        mean /= size
        for k in range(size):
            variance += (x[r, k] - mean) ** 2
        reciprocal = 1 / math.sqrt(variance / size + epsilon)
        factors = scale[r % len(scale)]
        for k in range(size):
            out[r, k] = (x[r, k] - mean) * reciprocal * factors[k]
        if b is not None:
            shifts = b[r % len(b)]
            for k in range(size):
                out[r, k] += shifts[k]
        if means is not None:
            means[r] = mean
        if reciprocals is not None:
            reciprocals[r] = reciprocal


by_reference("LayerNormalization")


def _in_groups(x: Array, scale: Array, b: Array, *, epsilon: float, out: Array, num_groups: int = 0, **_: Any) -> Any:
    groups, size = num_groups or x.shape[1], math.prod(x.shape[2:])
    shape = x.shape[0] * groups, x.shape[1] // max(groups, 1) * size
    spread = (np.repeat(p, size).reshape(groups, shape[1]) for p in (scale, b))
    return x.reshape(shape), *spread, epsilon, out.reshape(shape), None, None


for _op in ("InstanceNormalization", "GroupNormalization"):
    backend.kernel(_op, dtypes=FLOATS, prepare=_in_groups, sums_in_any_order=True)(layer_normalization)


# **** sums ****


def _reduced(x: Array, axes: Array | None, *, keepdims: int, noop_with_empty_axes: int, out: Array) -> Any:
    given = [] if axes is None else [int(axis) for axis in axes.reshape(-1)]
    count = len(given) or x.ndim
    rows = np.moveaxis(x, given, range(-len(given), 0))
    return rows.reshape(-1 if x.size else out.size, math.prod(rows.shape[x.ndim - count :])), out.reshape(-1)


def _reduces(node: Node) -> Yes | No:
    noop = node.attributes.get("noop_with_empty_axes", 0)
    return No("without axes, the tensor is left as it is: not even squared") if noop else Yes()


def _sum(op: str, of_element: Callable[..., Any], of_sum: Callable[..., Any]) -> None:
    """Register the sum of a function of each element; ``of_sum`` receives the sum and the number of elements."""

    def loop(x, out):
        for r in range(len(x)):
            total = 0.0
            for k in range(x.shape[1]):
                total += of_element(np.float64(x[r, k]))
            out[r] = of_sum(total, x.shape[1])

    loop.__name__ = op.lower()
    backend.kernel(op, dtypes=FLOATS, when=_reduces, prepare=_reduced, sums_in_any_order=True)(loop)
    by_reference(op)


_sum("ReduceSum", lambda x: x, lambda total, size: total)
_sum("ReduceMean", lambda x: x, lambda total, size: total / size)
_sum("ReduceL1", lambda x: abs(x), lambda total, size: total)
_sum("ReduceSumSquare", lambda x: x * x, lambda total, size: total)
_sum("ReduceL2", lambda x: x * x, lambda total, size: math.sqrt(total))
