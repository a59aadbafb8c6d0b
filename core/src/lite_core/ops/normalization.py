"""Normalisations: zero mean and unit variance over some axes, or unit norm."""

from __future__ import annotations

from typing import Any

import numpy as np

from lite_core.ir import DType, Shape, TensorType
from lite_core.ops.dtypes import FLOATS
from lite_core.ops.inference import Inference, broadcast_shapes, fail, normalize_axis, same_as_first
from lite_core.ops.registry import Inferred, op, required
from lite_core.ops.shape_checks import check_vector, differ, format_shape

Array = np.ndarray[Any, Any]


def _mean(x: Array, axes: tuple[int, ...]) -> Array:
    # np.mean would warn about empty axes; this quotient is NaN for them, as 0 / 0.
    count = np.prod([x.shape[a] for a in axes], dtype=x.dtype)
    return np.asarray(np.add.reduce(x, axis=axes, keepdims=True) / count)


def _standardize(x: Array, axes: tuple[int, ...], epsilon: float) -> tuple[Array, Array, Array]:
    """Return ``(x - mean) / sqrt(variance + epsilon)``, the mean, and the reciprocal standard deviation."""
    mean = _mean(x, axes)
    centred = x - mean
    reciprocal = 1 / np.sqrt(_mean(np.square(centred), axes) + epsilon)
    centred *= reciprocal
    return centred, mean, reciprocal


def _per_channel(vector: Array, rank: int) -> Array:
    return vector.reshape(-1, *(1 for _ in range(rank - 2)))


def _check_rank(x: Shape | None, least: int) -> None:
    if x is not None and len(x) < least:
        raise fail(f"the input must have rank {least} or more (batch, channels, ...), is {format_shape(x)}")


# **** normalization with given statistics ****


def _infer_batch_normalization(inference: Inference) -> list[Shape | None]:
    if inference.attributes["training_mode"]:
        raise fail(
            "training_mode=1 computes statistics of the batch, which inference does not support; "
            "export the model for inference (training_mode=0)"
        )
    if inference.n_outputs > 1:
        raise fail(f"the node has {inference.n_outputs} outputs; with training_mode=0 there is only Y")
    x = inference.shape(0)
    if x is not None:
        _check_rank(x, 1)
        channels = x[1] if len(x) > 1 else 1
        for index, what in enumerate(("scale", "B", "input_mean", "input_var"), start=1):
            check_vector(inference, index, channels, what, "channel")
    return [x]


@op(
    "BatchNormalization",
    "X: T, scale: T1, B: T1, input_mean: T2, input_var: T2 -> Y: T, running_mean: T2?, running_var: T2?",
    types={"T": FLOATS, "T1": FLOATS, "T2": FLOATS},
    attributes={"epsilon": 1e-5, "momentum": 0.9, "training_mode": 0},
    infer=_infer_batch_normalization,
)
def batch_normalization(
    x: Array,
    scale: Array,
    b: Array,
    mean: Array,
    variance: Array,
    *,
    epsilon: float,
    momentum: float,
    training_mode: int,
) -> Array:
    """``(X - input_mean) / sqrt(input_var + epsilon) * scale + B``, with one value of each parameter per channel.

    Inference only (https://arxiv.org/abs/1502.03167); an input of rank 1 is one channel.
    """
    factor = scale / np.sqrt(variance + epsilon)
    rank = max(x.ndim, 2)
    y: Array = x - _per_channel(mean, rank)
    y *= _per_channel(factor, rank)
    y += _per_channel(b, rank)
    return y


# **** normalization with the statistics of the input ****


def _infer_layer_normalization(inference: Inference) -> list[Inferred]:
    stash_type = inference.attributes["stash_type"]
    stashed = {1: DType.FLOAT32, 16: DType.BFLOAT16}.get(stash_type)
    if stashed is None:
        raise fail(f"stash_type must be 1 (float32) or 16 (bfloat16), is {stash_type}")
    x = inference.shape(0)
    if x is None:
        unknown: list[Inferred] = [None, TensorType(stashed), TensorType(stashed)]
        return unknown[: inference.n_outputs]
    axis = normalize_axis(inference.attributes["axis"], len(x))
    for index, what in ((1, "Scale"), (2, "B")):
        if inference.has(index):
            _check_broadcasts_to(inference.shape(index), x, what)
    statistics = TensorType(stashed, (*x[:axis], *(1 for _ in x[axis:])))
    known: list[Inferred] = [x, statistics, statistics]
    return known[: inference.n_outputs]


def _check_broadcasts_to(shape: Shape | None, x: Shape, what: str) -> None:
    result = broadcast_shapes(shape, x)
    if result is not None and (len(result) != len(x) or any(differ(a, b) for a, b in zip(result, x))):
        raise fail(f"{what} {format_shape(shape)} must broadcast to the input's shape {format_shape(x)}")


@op(
    "LayerNormalization",
    "X: T, Scale: T, B: T? -> Y: T, Mean: U?, InvStdDev: U?",
    types={"T": FLOATS, "U": (DType.FLOAT32, DType.BFLOAT16)},
    attributes={"axis": -1, "epsilon": 1e-5, "stash_type": 1},
    infer=_infer_layer_normalization,
)
def layer_normalization(
    x: Array, scale: Array, b: Array | None, *, axis: int, epsilon: float, stash_type: int
) -> tuple[Array, Array, Array]:
    """Zero mean and unit variance over ``axis`` and all later axes, times ``Scale``, plus ``B``.

    ``stash_type`` (1 float32, 16 bfloat16) is the element type of the statistics ``Mean`` and
    ``InvStdDev``. They are computed in float64 for float64 inputs, otherwise in float32.
    """
    y, mean, reciprocal = _standardize(x, tuple(range(axis % x.ndim, x.ndim)), epsilon)
    y *= scale
    if b is not None:
        y += b
    return y, mean, reciprocal


def _infer_channel_normalization(inference: Inference) -> list[Shape | None]:
    x = inference.shape(0)
    _check_rank(x, 2)
    if x is not None:
        check_vector(inference, 1, x[1], "scale", "channel")
        check_vector(inference, 2, x[1], "the bias", "channel")
    return [x]


@op(
    "InstanceNormalization",
    "input: T, scale: T, B: T -> output: T",
    types={"T": FLOATS},
    attributes={"epsilon": 1e-5},
    infer=_infer_channel_normalization,
)
def instance_normalization(x: Array, scale: Array, b: Array, *, epsilon: float) -> Array:
    """Zero mean and unit variance over the spatial axes of each channel of each sample, scaled and shifted.

    The result is multiplied by ``scale`` and ``B`` is added, both per channel
    (https://arxiv.org/abs/1607.08022).
    """
    y = _standardize(x, tuple(range(2, x.ndim)), epsilon)[0]
    y *= _per_channel(scale, x.ndim)
    y += _per_channel(b, x.ndim)
    return y


def _infer_group_normalization(inference: Inference) -> list[Shape | None]:
    x, groups = inference.shape(0), inference.attributes["num_groups"]
    if groups < 1:
        raise fail(f"num_groups must be at least 1, is {groups}")
    if inference.attributes["stash_type"] not in (1, 10, 11, 16):
        raise fail(f"stash_type must name a floating type, is {inference.attributes['stash_type']}")
    shape = _infer_channel_normalization(inference)
    if x is not None and isinstance(x[1], int) and x[1] % groups:
        raise fail(f"num_groups {groups} does not divide the {x[1]} channels of the input {format_shape(x)}")
    return shape


@op(
    "GroupNormalization",
    "X: T, scale: T, bias: T -> Y: T",
    types={"T": FLOATS},
    attributes={"epsilon": 1e-5, "num_groups": required("int"), "stash_type": 1},
    infer=_infer_group_normalization,
)
def group_normalization(x: Array, scale: Array, b: Array, *, epsilon: float, num_groups: int, stash_type: int) -> Array:
    """Zero mean and unit variance over each group of channels of each sample, scaled and shifted.

    The result is multiplied by ``scale`` and ``bias`` is added, both per channel
    (https://arxiv.org/abs/1803.08494). It is computed in at least float32.
    """
    grouped = x.reshape(x.shape[0], num_groups, x.shape[1] // num_groups, *x.shape[2:])
    y: Array = _standardize(grouped, tuple(range(2, grouped.ndim)), epsilon)[0].reshape(x.shape)
    y *= _per_channel(scale, x.ndim)
    y += _per_channel(b, x.ndim)
    return y


def _infer_mean_variance(inference: Inference) -> list[Shape | None]:
    x = inference.shape(0)
    if x is not None:
        for axis in inference.attributes["axes"]:
            normalize_axis(axis, len(x), "axes entry")
    return [x]


@op(
    "MeanVarianceNormalization",
    "X: T -> Y: T",
    types={"T": FLOATS},
    attributes={"axes": (0, 2, 3)},
    infer=_infer_mean_variance,
)
def mean_variance_normalization(x: Array, *, axes: tuple[int, ...]) -> Array:
    """``(X - mean) / (deviation + 1e-9)`` over ``axes``; ONNX's definition has the 1e-9."""
    reduced_axes = tuple(sorted({a % x.ndim for a in axes}))
    centred = x - _mean(x, reduced_axes)
    deviation = np.sqrt(_mean(np.square(centred), reduced_axes))
    return np.asarray(centred / (deviation + x.dtype.type(1e-9)))


# **** division by a norm ****


def _infer_lrn(inference: Inference) -> list[Shape | None]:
    if inference.attributes["size"] < 1:
        raise fail(f"size must be at least 1, is {inference.attributes['size']}")
    _check_rank(inference.shape(0), 2)
    return same_as_first(inference)


@op(
    "LRN",
    "X: T -> Y: T",
    types={"T": FLOATS},
    attributes={"alpha": 1e-4, "beta": 0.75, "bias": 1.0, "size": required("int")},
    infer=_infer_lrn,
)
def lrn(x: Array, *, alpha: float, beta: float, bias: float, size: int) -> Array:
    """Local response normalization over neighbouring channels, as in AlexNet.

    ``X / (bias + alpha / size * sum(X ** 2)) ** beta``, where the sum covers ``size`` neighbouring channels,
    ``(size - 1) // 2`` of them before each channel.
    """
    squares, channels = np.square(x), x.shape[1]
    sums = np.zeros_like(squares)
    before = (size - 1) // 2
    for shift in range(-before, size - before):
        targets = slice(max(0, -shift), max(0, channels - max(0, shift)))
        sources = slice(max(0, shift), max(0, channels - max(0, -shift)))
        sums[:, targets] += squares[:, sources]
    return np.asarray(x / (bias + alpha / size * sums) ** beta)


def _infer_lp_normalization(inference: Inference) -> list[Shape | None]:
    x, p = inference.shape(0), inference.attributes["p"]
    if p not in (1, 2):
        raise fail(f"p must be 1 or 2, is {p}")
    if x is not None:
        normalize_axis(inference.attributes["axis"], len(x))
    return [x]


@op(
    "LpNormalization",
    "input: T -> output: T",
    types={"T": FLOATS},
    attributes={"axis": -1, "p": 2},
    infer=_infer_lp_normalization,
)
def lp_normalization(x: Array, *, axis: int, p: int) -> Array:
    """The input divided by its norm (p = 1 or 2) along ``axis``; 0 where the norm is 0."""
    if p == 1:
        norm = np.add.reduce(np.abs(x), axis=axis, keepdims=True)
    else:
        norm = np.sqrt(np.add.reduce(np.square(x), axis=axis, keepdims=True))
    return np.asarray(x / np.where(norm == 0, x.dtype.type(1), norm))
