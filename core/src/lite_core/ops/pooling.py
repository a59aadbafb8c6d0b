"""Pooling: the maximum, mean or norm of windows, or of all spatial axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from lite_core.ir import Dim, DType, Shape, fresh_dim
from lite_core.ops.dtypes import FLOATS
from lite_core.ops.inference import Inference, fail, unknown_shape
from lite_core.ops.registry import op, optional, required
from lite_core.ops.shape_checks import differ, format_shape
from lite_core.ops.spatial import (
    WINDOW_ATTRIBUTES,
    WindowAttributes,
    WindowAxis,
    after,
    check_kernel,
    elements_in_windows,
    taps,
    window_axes,
    window_counts,
)

Array = np.ndarray[Any, Any]

_POOL_ATTRIBUTES: dict[str, Any] = {**WINDOW_ATTRIBUTES, "ceil_mode": 0, "kernel_shape": required("ints")}


def _infer_pool(inference: Inference) -> list[Shape | None]:
    attributes = inference.attributes
    kernel: tuple[int, ...] = attributes["kernel_shape"]
    check_kernel(kernel)
    window = WindowAttributes.read(attributes, len(kernel))
    x = inference.shape(0)
    if x is None:
        return [unknown_shape(len(kernel) + 2)] * inference.n_outputs
    _check_rank(x, kernel)
    counts = window_counts(window, kernel, x[2:], bool(attributes["ceil_mode"]))
    return [(*x[:2], *counts)] * inference.n_outputs


def _check_rank(x: Shape, kernel: Sequence[int]) -> None:
    if len(x) != len(kernel) + 2:
        raise fail(
            f"kernel_shape {list(kernel)} needs an input of rank {len(kernel) + 2} (batch, channels and the "
            f"spatial axes), it is {format_shape(x)}"
        )


def _axes(x: Array, kernel_shape: tuple[int, ...], attributes: dict[str, Any]) -> tuple[WindowAxis, ...]:
    window = WindowAttributes.read(attributes, len(kernel_shape))
    return window_axes(window, kernel_shape, x.shape[2:], bool(attributes["ceil_mode"]))


def _reduce_windows(x: Array, axes: Sequence[WindowAxis], reduction: np.ufunc, start: Any) -> Array:
    """Reduce every window, one axis after the other: k + k steps for a window of k * k elements."""
    for number, axis in enumerate(axes):
        reduced = np.full((*x.shape[: number + 2], axis.count, *x.shape[number + 3 :]), start, dtype=x.dtype)
        for windows, elements in axis.taps():
            part = reduced[after(number + 2, windows)]
            reduction(part, x[after(number + 2, elements)], out=part)
        x = reduced
    return x


def _smallest(dtype: np.dtype[Any]) -> Any:
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


# **** MaxPool ****


@op(
    "MaxPool",
    "X: T -> Y: T, Indices: int64?",
    types={"T": (*FLOATS, DType.INT8, DType.UINT8)},
    attributes={**_POOL_ATTRIBUTES, "storage_order": 0},
    infer=_infer_pool,
)
def max_pool(
    x: Array, *, kernel_shape: tuple[int, ...], storage_order: int, n_outputs: int, **attributes: Any
) -> tuple[Array, ...]:
    """The maximum of each window; padding does not count.

    ``Indices`` are the positions of the maxima in the flattened ``X``, the first of equal ones. NaN is larger than
    any number. With ``storage_order`` 1 the spatial axes of each channel are flattened in column-major order.
    """
    axes = _axes(x, kernel_shape, attributes)
    if n_outputs == 1:
        return (_reduce_windows(x, axes, np.maximum, _smallest(x.dtype)),)
    return _maxima_with_indices(x, axes, "F" if storage_order else "C")


def _maxima_with_indices(x: Array, axes: Sequence[WindowAxis], order: Literal["C", "F"]) -> tuple[Array, Array]:
    sizes, counts = x.shape[2:], tuple(a.count for a in axes)
    positions = np.arange(int(np.prod(sizes)), dtype=np.int64).reshape(sizes, order=order)
    best = np.full((*x.shape[:2], *counts), _smallest(x.dtype), dtype=x.dtype)
    indices = np.full(best.shape, -1, dtype=np.int64)
    for _, windows, elements in taps(axes):
        candidates, held = x[after(2, *elements)], best[after(2, *windows)]
        found = indices[after(2, *windows)]
        # The first element is always taken, because -inf is not larger than the initial value.
        better = (candidates > held) | (found < 0) | (np.isnan(candidates) & ~np.isnan(held))
        np.copyto(held, candidates, where=better)
        np.copyto(found, np.broadcast_to(positions[elements], found.shape), where=better)
    channels = np.arange(x.shape[0] * x.shape[1], dtype=np.int64) * positions.size
    channels = channels.reshape(*x.shape[:2], *(1 for _ in sizes))
    return best, np.where(indices < 0, -1, indices + channels)


# **** AveragePool and LpPool ****


@op(
    "AveragePool",
    "X: T -> Y: T",
    types={"T": FLOATS},
    attributes={**_POOL_ATTRIBUTES, "count_include_pad": 0},
    infer=_infer_pool,
)
def average_pool(x: Array, *, kernel_shape: tuple[int, ...], count_include_pad: int, **attributes: Any) -> Array:
    """The mean of each window.

    The mean is over the elements inside the input or, with ``count_include_pad``, inside the padded input.
    Elements beyond the padding, in a last window of ``ceil_mode``, never count.
    """
    axes = _axes(x, kernel_shape, attributes)
    sums = _reduce_windows(x, axes, np.add, 0)
    sums /= elements_in_windows(axes, bool(count_include_pad))
    return sums


def _check_order(p: int) -> None:
    if p < 1:
        raise fail(f"p must be at least 1, is {p}")


def _infer_lp_pool(inference: Inference) -> list[Shape | None]:
    _check_order(inference.attributes["p"])
    return _infer_pool(inference)


def _powers(x: Array, p: int) -> Array:
    return np.abs(x) if p == 1 else np.square(x) if p == 2 else np.abs(x) ** p


def _root(x: Array, p: int) -> Array:
    return x if p == 1 else np.sqrt(x) if p == 2 else x ** (1 / p)


@op(
    "LpPool",
    "X: T -> Y: T",
    types={"T": FLOATS},
    attributes={**_POOL_ATTRIBUTES, "p": 2},
    infer=_infer_lp_pool,
)
def lp_pool(x: Array, *, kernel_shape: tuple[int, ...], p: int, **attributes: Any) -> Array:
    """The norm of each window: ``sum(|x| ** p) ** (1 / p)``; padding is zero."""
    return _root(_reduce_windows(_powers(x, p), _axes(x, kernel_shape, attributes), np.add, 0), p)


# **** global pools ****


def _infer_global(inference: Inference) -> list[Shape | None]:
    x = inference.shape(0)
    if x is None:
        return [None]
    if len(x) < 2:
        raise fail(f"the input must have rank 2 or more (batch, channels, spatial axes), is {format_shape(x)}")
    return [(*x[:2], *(1 for _ in x[2:]))]


def _spatial_axes(x: Array) -> tuple[int, ...]:
    return tuple(range(2, x.ndim))


@op("GlobalAveragePool", "X: T -> Y: T", types={"T": FLOATS}, infer=_infer_global)
def global_average_pool(x: Array) -> Array:
    """The mean over all spatial axes, which stay with size 1."""
    count = np.prod(x.shape[2:], dtype=x.dtype)
    return np.asarray(np.add.reduce(x, axis=_spatial_axes(x), keepdims=True) / count)


@op("GlobalMaxPool", "X: T -> Y: T", types={"T": FLOATS}, infer=_infer_global)
def global_max_pool(x: Array) -> Array:
    """The maximum over all spatial axes, which stay with size 1; -inf when there are no elements."""
    return np.maximum.reduce(x, axis=_spatial_axes(x), keepdims=True, initial=-np.inf)


def _infer_global_lp(inference: Inference) -> list[Shape | None]:
    _check_order(inference.attributes["p"])
    return _infer_global(inference)


@op("GlobalLpPool", "X: T -> Y: T", types={"T": FLOATS}, attributes={"p": 2}, infer=_infer_global_lp)
def global_lp_pool(x: Array, *, p: int) -> Array:
    """The norm over all spatial axes, which stay with size 1: ``sum(|x| ** p) ** (1 / p)``."""
    return _root(np.add.reduce(_powers(x, p), axis=_spatial_axes(x), keepdims=True), p)


# **** MaxUnpool ****


def _unpooled_sizes(attributes: dict[str, Any], sizes: Sequence[Dim]) -> Shape:
    kernel: tuple[int, ...] = attributes["kernel_shape"]
    window = WindowAttributes.read(attributes, len(kernel))
    results = tuple(
        (size - 1) * stride + taps_ - begin - end
        for size, taps_, stride, (begin, end) in zip(sizes, kernel, window.strides, window.pads)
    )
    if any(isinstance(r, int) and r < 0 for r in results):
        raise fail(f"pads {attributes['pads']} are larger than the output: its sizes would be {list(results)}")
    return results


def _infer_max_unpool(inference: Inference) -> list[Shape | None]:
    attributes = dict(inference.attributes)
    kernel: tuple[int, ...] = attributes["kernel_shape"]
    check_kernel(kernel)
    rank = len(kernel) + 2
    x, indices = inference.shape(0), inference.shape(1)
    natural: Shape = unknown_shape(rank)
    if x is not None:
        _check_rank(x, kernel)
        natural = (*x[:2], *_unpooled_sizes(attributes, x[2:]))
        if indices is not None and (len(indices) != len(x) or any(differ(a, b) for a, b in zip(x, indices))):
            raise fail(f"the indices must have the input's shape {format_shape(x)}, are {format_shape(indices)}")
    if not inference.has(2):
        return [natural]
    wanted = inference.dims(2)
    if wanted is None:
        return [(natural[0], natural[1], *(fresh_dim("size") for _ in kernel))]
    if len(wanted) != rank or any(isinstance(a, int) and isinstance(b, int) and a < b for a, b in zip(wanted, natural)):
        raise fail(f"output_shape {format_shape(wanted)} must have at least the sizes {format_shape(natural)}")
    return [wanted]


@op(
    "MaxUnpool",
    "X: T1, I: int64, output_shape: int64? -> output: T1",
    types={"T1": FLOATS},
    attributes={"kernel_shape": required("ints"), "pads": optional("ints"), "strides": optional("ints")},
    infer=_infer_max_unpool,
    numbers=("output_shape",),
)
def max_unpool(
    x: Array, indices: Array, output_shape: Array | None, *, kernel_shape: tuple[int, ...], **attributes: Any
) -> Array:
    """The inverse of MaxPool: every element is stored at its index in ``I``, all other elements are 0.

    The indices refer to the flattened output of size ``stride * (size - 1) + kernel - pads`` along each
    axis; a larger ``output_shape`` adds zeros at the end of the axes.
    """
    sizes = _unpooled_sizes({"kernel_shape": kernel_shape, **attributes}, x.shape[2:])
    shape = tuple(int(n) for n in (*x.shape[:2], *sizes))
    flat = np.zeros(int(np.prod(shape)), dtype=x.dtype)
    if indices.size and (indices.min() < 0 or indices.max() >= flat.size):
        raise fail(f"indices from {indices.min()} to {indices.max()} do not fit into {flat.size} elements of output")
    flat[indices.reshape(-1)] = x.reshape(-1)
    unpooled = flat.reshape(shape)
    if output_shape is None:
        return unpooled
    return np.pad(unpooled, [(0, int(n) - m) for n, m in zip(output_shape, shape)])
