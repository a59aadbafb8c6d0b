"""Operators that move elements. The shapes of the results are known, so most are one call."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from lite_jax.kernels import kernel

kernel("Reshape", "Squeeze", "Unsqueeze", "Flatten", moves=True)(lambda a, x, *numbers: x.reshape(a.shape))
kernel("Expand", moves=True)(lambda a, x, shape: jnp.broadcast_to(x, a.shape))
kernel("Transpose", moves=True)(lambda a, x: jnp.transpose(x, a.perm))
kernel("Concat", moves=True)(lambda a, *xs: jnp.concatenate(xs, a.axis))
kernel("Tile", moves=True)(lambda a, x, repeats: jnp.tile(x, repeats))
kernel("Shape")(lambda a, x: np.array(x.shape)[slice(a.start, a.end)])
kernel("ConstantOfShape")(lambda a, shape: jnp.full(a.shape, 0 if a.value is None else a.value.reshape(())))
kernel("Range")(lambda a, start, limit, delta: start + delta * np.arange(*a.shape, dtype=a.result))


@kernel("Slice", moves=True)
def slice_(a: Any, x: Any, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> Any:
    index = [slice(None)] * x.ndim
    axes, steps = np.arange(len(starts)) if axes is None else axes, np.ones_like(starts) if steps is None else steps
    for axis, start, end, step in zip(axes, starts.tolist(), ends.tolist(), steps.tolist()):
        # Backwards, an end before the first element is None to Python.
        index[axis] = slice(start, None if step < 0 and end < -x.shape[axis] else end, step)
    return x[tuple(index)]


@kernel("Split", moves=True)
def split(a: Any, x: Any, sizes: Any = None) -> Any:
    return tuple(jnp.split(x, np.cumsum([v.shape[a.axis] for v in a.node.outputs])[:-1].tolist(), a.axis))


@kernel("Pad", moves=True)
def pad(a: Any, x: Any, pads: Any, constant: Any = None, axes: Any = None) -> Any:
    widths = np.zeros((x.ndim, 2), int)
    widths[slice(None) if axes is None else axes] = np.reshape(pads, (2, -1)).T
    x = x[tuple(slice(max(0, -b), n - max(0, -e)) for n, (b, e) in zip(x.shape, widths.tolist()))]
    value = {"constant_values": 0 if constant is None else constant.reshape(())} if a.mode == "constant" else {}
    return jnp.pad(x, np.maximum(widths, 0).tolist(), a.mode, **value) if x.ndim else x


@kernel("Trilu", moves=True)
def trilu(a: Any, x: Any, k: Any = None) -> Any:
    diagonal = int(np.clip(0 if k is None else k.item(), -x.shape[-2] - 1, x.shape[-1] + 1))
    return jnp.triu(x, diagonal) if a.upper else jnp.tril(x, diagonal)


@kernel("DepthToSpace", moves=True)
def depth_to_space(a: Any, x: Any) -> Any:
    (n, c, h, w), b = x.shape, a.blocksize
    parts = (n, b, b, c // b**2, h, w) if a.mode == "DCR" else (n, c // b**2, b, b, h, w)
    return x.reshape(parts).transpose(*((0, 3, 4, 1, 5, 2) if a.mode == "DCR" else (0, 1, 4, 2, 5, 3))).reshape(a.shape)


# **** indices ****


@kernel("Gather", moves=True)
def gather(a: Any, x: Any, index: Any) -> Any:
    """A program of JAX cannot raise an error for an index that is out of range: it takes the nearest inside."""
    size = x.shape[a.axis]
    index = jnp.clip(jnp.where(index < 0, index + size, index), 0, max(size - 1, 0))
    return jnp.zeros(a.shape, x.dtype) if 0 in a.shape else jnp.take(x, index, a.axis)


@kernel("TopK", moves=True)
def top_k(a: Any, x: Any, k: Any) -> Any:
    """Sorting is stable, and NaN is the largest; for descending order, what is reversed is sorted and reversed back."""
    axis = a.axis % x.ndim
    order = jnp.argsort(jnp.flip(x, axis) if a.largest else x, axis, stable=True)
    order = x.shape[axis] - 1 - jnp.flip(order, axis) if a.largest else order
    index = lax.slice_in_dim(order, 0, a.shape[axis], axis=axis)
    return jnp.take_along_axis(x, index, axis), index


@kernel("ArgMax", "ArgMin")
def arg_extreme(a: Any, x: Any) -> Any:
    find = jnp.argmax if a.node.op == "ArgMax" else jnp.argmin
    if a.select_last_index:
        return x.shape[a.axis] - 1 - find(jnp.flip(x, a.axis), a.axis, keepdims=bool(a.keepdims))
    return find(x, a.axis, keepdims=bool(a.keepdims))
