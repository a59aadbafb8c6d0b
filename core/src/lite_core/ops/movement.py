"""Operators that move elements: join, split, repeat, rearrange, reverse, select."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_core.ir import Dim, Shape, fresh_dim
from lite_core.ops.dtypes import ALL, MOVED
from lite_core.ops.inference import (
    Inference,
    fail,
    normalize_axis,
    propagate_reference,
    same_as_first,
    unknown_shape,
)
from lite_core.ops.registry import choice, op, optional, required
from lite_core.ops.shape_checks import check_rank, differ, format_shape, merge_dims

Array = np.ndarray[Any, Any]


# **** Concat, Split ****


def _infer_concat(inference: Inference) -> list[Shape | None]:
    shapes = [inference.shape(i) for i in range(len(inference.types))]
    known = [s for s in shapes if s is not None]
    if not known:
        return [None]
    result = list(known[0])
    axis = normalize_axis(inference.attributes["axis"], len(result))
    for shape in known[1:]:
        if len(shape) != len(result):
            check_rank(shape, len(result), f"each input of Concat (the first is {format_shape(known[0])})")
        for number, dim in enumerate(shape):
            if number == axis:
                result[number] = result[number] + dim
            elif differ(result[number], dim):
                raise fail(
                    f"inputs {format_shape(known[0])} and {format_shape(shape)} differ in axis {number}; "
                    f"they may differ in axis {axis} only"
                )
            else:
                result[number] = merge_dims(result[number], dim)
    if len(known) < len(shapes):
        result[axis] = fresh_dim()
    return [tuple(result)]


@op(
    "Concat",
    "inputs: T* -> concat_result: T",
    types={"T": MOVED},
    attributes={"axis": required("int")},
    infer=_infer_concat,
    propagate=lambda inference: propagate_reference(concat)(inference),
)
def concat(*inputs: Array, axis: int) -> Array:
    """The inputs concatenated along ``axis``."""
    return np.concatenate(inputs, axis=axis)


def _split_sizes(size: Dim, wanted: tuple[Dim, ...] | None, num_outputs: int | None, n_outputs: int) -> tuple[Dim, ...]:
    """Return the size of each part along the axis that is split."""
    if wanted is not None:
        if len(wanted) != n_outputs:
            raise fail(f"split {format_shape(wanted)} has {len(wanted)} sizes for {n_outputs} outputs")
        if any(isinstance(d, int) and d < 0 for d in wanted):
            raise fail(f"split {format_shape(wanted)} has a negative size")
        if differ(sum(wanted), size):
            raise fail(f"split {format_shape(wanted)} must add up to {size}, adds up to {sum(wanted)}")
        return wanted
    if num_outputs is not None and num_outputs != n_outputs:
        raise fail(f"num_outputs is {num_outputs}, the node has {n_outputs} outputs")
    part = (size + n_outputs - 1) // n_outputs
    return (part,) * (n_outputs - 1) + (size - part * (n_outputs - 1),)


def _infer_split(inference: Inference) -> list[Shape | None]:
    shape, n_outputs = inference.shape(0), inference.n_outputs
    num_outputs = inference.attributes["num_outputs"]
    if inference.has(1) and num_outputs is not None:
        raise fail("give either the input split or the attribute num_outputs, not both")
    if shape is None:
        return [None] * n_outputs
    axis = normalize_axis(inference.attributes["axis"], len(shape))
    wanted = inference.dims(1)
    if inference.has(1) and wanted is None:
        sizes: tuple[Dim, ...] = unknown_shape(n_outputs)
    else:
        sizes = _split_sizes(shape[axis], wanted, num_outputs, n_outputs)
        # NOTE: a negative size of the last part is an error only at run time: exported models have such nodes
        # in branches of If that are never taken.
        sizes = tuple(fresh_dim() if isinstance(d, int) and d < 0 else d for d in sizes)
    return [(*shape[:axis], size, *shape[axis + 1 :]) for size in sizes]


def _propagate_split(inference: Inference) -> Array | None:
    data, wanted = inference.value(0), inference.ints(1)
    if data is None or (inference.has(1) and wanted is None):
        return None
    axis = normalize_axis(inference.attributes["axis"], data.ndim)
    sizes = _split_sizes(data.shape[axis], wanted, inference.attributes["num_outputs"], inference.n_outputs)
    first = sizes[0]
    return np.asarray(np.take(data, range(first), axis=axis)) if isinstance(first, int) else None


@op(
    "Split",
    "input: T, split: int64? -> outputs: T*",
    types={"T": MOVED},
    attributes={"axis": 0, "num_outputs": optional("int")},
    infer=_infer_split,
    numbers=("split",),
    propagate=_propagate_split,
)
def split(x: Array, split: Array | None = None, *, axis: int, num_outputs: int | None, n_outputs: int) -> list[Array]:
    """Parts along ``axis``, of the sizes ``split`` or of equal size (the last one may be smaller)."""
    wanted = None if split is None else tuple(split.tolist())
    sizes = [d for d in _split_sizes(x.shape[axis], wanted, num_outputs, n_outputs) if isinstance(d, int)]
    if sizes[-1] < 0:
        raise fail(f"size {x.shape[axis]} cannot be split into {n_outputs} parts of {sizes[0]}, the last smaller")
    ends = np.cumsum(np.array(sizes, dtype=np.int64))
    return np.split(x, ends[:-1], axis=axis)


# **** Tile ****


def _infer_tile(inference: Inference) -> list[Shape | None]:
    shape, repeats = inference.shape(0), inference.dims(1)
    if repeats is None:
        return [None if shape is None else unknown_shape(len(shape))]
    if any(isinstance(r, int) and r < 0 for r in repeats):
        raise fail(f"repeats {format_shape(repeats)} has a negative entry")
    if shape is None:
        return [unknown_shape(len(repeats))]
    if len(repeats) != len(shape):
        raise fail(f"repeats {format_shape(repeats)} must have one entry for each axis of {format_shape(shape)}")
    return [tuple(d * r for d, r in zip(shape, repeats))]


def _propagate_tile(inference: Inference) -> Array | None:
    data, repeats = inference.value(0), inference.ints(1)
    return None if data is None or repeats is None else np.tile(data, repeats)


@op(
    "Tile",
    "input: T, repeats: int64 -> output: T",
    types={"T": MOVED},
    infer=_infer_tile,
    numbers=("repeats",),
    propagate=_propagate_tile,
)
def tile(x: Array, repeats: Array) -> Array:
    """``x`` repeated along each axis."""
    return np.tile(x, tuple(repeats.tolist()))


# **** Blocks of pixels to channels and back ****


def _blocksize(inference: Inference) -> int:
    size: int = inference.attributes["blocksize"]
    if size < 1:
        raise fail(f"blocksize must be at least 1, is {size}")
    return size


def _infer_depth_to_space(inference: Inference) -> list[Shape]:
    block, shape = _blocksize(inference), inference.shape(0)
    check_rank(shape, 4, "the input")
    if shape is None:
        return [unknown_shape(4)]
    n, c, h, w = shape
    if isinstance(c, int) and c % block**2:
        raise fail(f"{c} channels cannot be divided by the square of blocksize {block}")
    return [(n, c // block**2, h * block, w * block)]


@op(
    "DepthToSpace",
    "input: T -> output: T",
    types={"T": ALL},
    attributes={"blocksize": required("int"), "mode": choice("DCR", "CRD")},
    infer=_infer_depth_to_space,
)
def depth_to_space(x: Array, *, blocksize: int, mode: str) -> Array:
    """Channels moved to blocks of ``blocksize``² pixels: ``[N, C·b², H, W]`` becomes ``[N, C, H·b, W·b]``.

    In mode DCR the offset within the block is the slow part of the channel number, in CRD the fast part.
    """
    n, channels, h, w = x.shape
    b, c = blocksize, channels // blocksize**2
    if mode == "DCR":
        blocks = x.reshape(n, b, b, c, h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        blocks = x.reshape(n, c, b, b, h, w).transpose(0, 1, 4, 2, 5, 3)
    return np.reshape(blocks, (n, c, h * b, w * b))


def _infer_space_to_depth(inference: Inference) -> list[Shape]:
    block, shape = _blocksize(inference), inference.shape(0)
    check_rank(shape, 4, "the input")
    if shape is None:
        return [unknown_shape(4)]
    n, c, h, w = shape
    for name, size in (("height", h), ("width", w)):
        if isinstance(size, int) and size % block:
            raise fail(f"{name} {size} cannot be divided by blocksize {block}")
    return [(n, c * block**2, h // block, w // block)]


@op(
    "SpaceToDepth",
    "input: T -> output: T",
    types={"T": ALL},
    attributes={"blocksize": required("int")},
    infer=_infer_space_to_depth,
)
def space_to_depth(x: Array, *, blocksize: int) -> Array:
    """Blocks of pixels moved to channels: the inverse of DepthToSpace in mode DCR."""
    n, c, height, width = x.shape
    b, h, w = blocksize, height // blocksize, width // blocksize
    blocks = x.reshape(n, c, h, b, w, b).transpose(0, 3, 5, 1, 2, 4)
    return np.reshape(blocks, (n, c * b * b, h, w))


# **** ReverseSequence, Compress, Trilu ****


def _infer_reverse_sequence(inference: Inference) -> list[Shape | None]:
    shape, lengths = inference.shape(0), inference.shape(1)
    batch_axis, time_axis = inference.attributes["batch_axis"], inference.attributes["time_axis"]
    if {batch_axis, time_axis} != {0, 1}:
        raise fail(f"batch_axis and time_axis must be 0 and 1 or 1 and 0, are {batch_axis} and {time_axis}")
    check_rank(lengths, 1, "sequence_lens")
    if shape is not None:
        if len(shape) < 2:
            raise fail(f"the input must have rank 2 or more, has shape {format_shape(shape)}")
        if lengths is not None and differ(lengths[0], shape[batch_axis]):
            raise fail(f"sequence_lens has {lengths[0]} entries for a batch of {shape[batch_axis]}")
    return [shape]


@op(
    "ReverseSequence",
    "input: T, sequence_lens: int64 -> Y: T",
    types={"T": ALL},
    attributes={"batch_axis": 1, "time_axis": 0},
    infer=_infer_reverse_sequence,
)
def reverse_sequence(x: Array, sequence_lens: Array, *, batch_axis: int, time_axis: int) -> Array:
    """The first ``sequence_lens[i]`` time steps of batch entry ``i`` in reverse order, the rest unchanged."""
    steps = np.arange(x.shape[time_axis])
    if sequence_lens.size and (sequence_lens.min() < 0 or sequence_lens.max() > len(steps)):
        raise fail(f"sequence_lens must be from 0 to {len(steps)}, are {sequence_lens.tolist()}")
    lengths = sequence_lens[:, np.newaxis]
    source = np.where(steps < lengths, lengths - 1 - steps, steps)  # [batch, time]
    batch = np.arange(x.shape[batch_axis])[:, np.newaxis]
    if batch_axis == 0:
        return np.asarray(x[batch, source])
    return np.asarray(x[source.T, batch.T])


def _infer_compress(inference: Inference) -> list[Shape | None]:
    shape, axis = inference.shape(0), inference.attributes["axis"]
    condition = inference.value(1)
    check_rank(inference.shape(1), 1, "condition")
    count: Dim = fresh_dim("compressed") if condition is None else int(np.count_nonzero(condition))
    if axis is None:
        return [(count,)]
    if shape is None:
        return [None]
    axis = normalize_axis(axis, len(shape))
    return [(*shape[:axis], count, *shape[axis + 1 :])]


@op(
    "Compress",
    "input: T, condition: bool -> output: T",
    types={"T": ALL},
    attributes={"axis": optional("int")},
    infer=_infer_compress,
    numbers=("condition",),
)
def compress(x: Array, condition: Array, *, axis: int | None) -> Array:
    """The slices along ``axis`` where ``condition`` is true; without ``axis``, elements of the flattened input."""
    size = x.size if axis is None else x.shape[axis]
    if condition[size:].any():
        raise fail(f"condition selects index {size + int(condition[size:].argmax())} of {size} elements")
    return np.compress(condition, x, axis=axis)


def _infer_trilu(inference: Inference) -> list[Shape | None]:
    shape = inference.shape(0)
    if shape is not None and len(shape) < 2:
        raise fail(f"the input must have rank 2 or more, has shape {format_shape(shape)}")
    return same_as_first(inference)


@op(
    "Trilu",
    "input: T, k: int64? -> output: T",
    types={"T": ALL},
    attributes={"upper": 1},
    infer=_infer_trilu,
    numbers=("k",),
)
def trilu(x: Array, k: Array | None = None, *, upper: int) -> Array:
    """The upper (or lower) triangle of the last two axes, zeros elsewhere; ``k`` moves the diagonal up."""
    # NOTE: clamped because INT64_MAX, which exporters write for "everything", overflows in the sums of np.triu.
    limit = x.shape[-2] + x.shape[-1]
    diagonal = 0 if k is None else min(max(int(k.reshape(-1)[0]), -limit), limit)
    return np.triu(x, diagonal) if upper else np.tril(x, diagonal)
