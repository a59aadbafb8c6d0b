"""Products, convolutions, pools, reductions, normalisation and interpolation."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax, nn

from lite_core.ops.helpers import elements_in_windows, reference, windows_of
from lite_jax.kernels import is_float, kernel

kernel("MatMul")(lambda a, x, y: jnp.matmul(x, y))
kernel("Einsum")(lambda a, *xs: jnp.einsum(a.equation, *xs))


@kernel("Gemm")
def gemm(a: Any, x: Any, y: Any, c: Any = None) -> Any:
    alpha, beta = (a.alpha, a.beta) if is_float(x) else (int(a.alpha), int(a.beta))
    product = alpha * ((x.T if a.transA else x) @ (y.T if a.transB else y))
    return product if c is None else product + beta * c


# **** convolutions ****


def _per_channel(x: Any, rank: int) -> Any:
    return x.reshape(-1, *[1] * (rank - 2))


def _refuse_convolution(node: Any, a: Any) -> str | None:
    """XLA computes these as dense convolutions with zeros, which make NaN of other channels' infinities."""
    return "grouped convolutions of float64" if a.group > 1 and node.inputs[0].dtype == "float64" else None


@kernel("Conv", "ConvTranspose", refuse=_refuse_convolution)
def convolution(a: Any, x: Any, w: Any, bias: Any = None) -> Any:
    """A transposed convolution is one of the input with zeros between its elements, by the reversed kernel."""
    axes = windows_of(a.node)
    strides, dilations = [axis.stride for axis in axes], [axis.dilation for axis in axes]
    how: dict[str, Any] = {"rhs_dilation": dilations, "feature_group_count": a.group}
    if 0 in (x.size, w.size, *a.shape):
        y = jnp.zeros(a.shape, x.dtype)
    elif a.node.op == "Conv":
        y = lax.conv_general_dilated(x, w, strides, [(axis.begin, axis.fitting_end) for axis in axes], **how)
    else:
        w = w.reshape(a.group, -1, *w.shape[1:]).swapaxes(1, 2).reshape(a.shape[1], -1, *w.shape[2:])
        pads = [(i.extent - 1 - i.begin, i.size + i.begin - 1 - (i.count - 1) * i.stride) for i in axes]
        w = jnp.flip(w, range(2, x.ndim))
        y = lax.conv_general_dilated(x, w, [1] * len(axes), pads, lhs_dilation=strides, **how)
    return y if bias is None else y + _per_channel(bias, y.ndim)


# **** pools ****


def _limits(x: Any) -> Any:
    """Return the lowest and the highest number of a type: the extremes over no elements."""
    if is_float(x):
        return np.array([-np.inf, np.inf], x.dtype)
    return np.array([0, 1] if x.dtype == bool else [np.iinfo(x.dtype).min, np.iinfo(x.dtype).max], x.dtype)


def _pool(a: Any, x: Any, start: Any, function: Any) -> Any:
    axes = windows_of(a.node)
    kernel_shape, strides, dilations = [(1, 1, *n) for n in zip(*((i.kernel, i.stride, i.dilation) for i in axes))]
    pads = [(0, 0), (0, 0), *((axis.begin, axis.fitting_end) for axis in axes)]
    start = np.asarray(start, x.dtype)
    return lax.reduce_window(x, start, function, kernel_shape, strides, pads, window_dilation=dilations)


@kernel("AveragePool")
def average_pool(a: Any, x: Any) -> Any:
    return _pool(a, x, 0, lax.add) / elements_in_windows(windows_of(a.node), bool(a.count_include_pad)).astype(x.dtype)


@kernel("MaxPool", refuse=lambda node, a: "MaxPool with indices" if len(node.outputs) > 1 else None)
def max_pool(a: Any, x: Any) -> Any:
    return _pool(a, x, _limits(x)[0], lax.max)


kernel("GlobalAveragePool")(lambda a, x: jnp.mean(x, range(2, x.ndim), keepdims=True))
kernel("GlobalMaxPool")(lambda a, x: jnp.max(x, range(2, x.ndim), keepdims=True, initial=-np.inf))

# **** reductions ****


def _sum(x: Any, axes: Any, keepdims: bool) -> Any:
    return jnp.sum(x, axes, dtype=x.dtype, keepdims=keepdims)


def _reduce(function: Any, a: Any, x: Any, axes: Any = None) -> Any:
    if (axes is None or not axes.size) and a.noop_with_empty_axes:
        return x
    return function(x, tuple(range(x.ndim) if axes is None or not axes.size else axes % x.ndim), bool(a.keepdims))


def _refuse_integers(node: Any, a: Any) -> str | None:
    return None if node.outputs[0].dtype.is_floating else f"{node.op} of integers, whose sums need more bits"


kernel("ReduceMax")(partial(_reduce, lambda x, axes, keepdims: jnp.max(x, axes, None, keepdims, _limits(x)[0])))
kernel("ReduceMin")(partial(_reduce, lambda x, axes, keepdims: jnp.min(x, axes, None, keepdims, _limits(x)[1])))
kernel("ReduceSum")(partial(_reduce, _sum))
kernel("ReduceL1")(partial(_reduce, lambda x, *how: _sum(jnp.abs(x), *how)))
kernel("ReduceL2", refuse=_refuse_integers)(partial(_reduce, lambda x, *how: jnp.sqrt(_sum(x * x, *how))))
kernel("ReduceSumSquare")(partial(_reduce, lambda x, *how: _sum(x * x, *how)))
kernel("ReduceLogSum", refuse=_refuse_integers)(partial(_reduce, lambda x, *how: jnp.log(_sum(x, *how))))
kernel("ReduceLogSumExp", refuse=_refuse_integers)(
    partial(_reduce, lambda x, axes, keepdims: nn.logsumexp(x, axes, keepdims=keepdims))
)
kernel("ReduceMean", refuse=_refuse_integers)(
    partial(_reduce, lambda x, axes, keepdims: jnp.mean(x, axes, keepdims=keepdims))
)
kernel("ReduceProd")(partial(_reduce, lambda x, axes, keepdims: jnp.prod(x, axes, x.dtype, keepdims=keepdims)))

# **** normalisation ****

kernel("Softmax")(lambda a, x: nn.softmax(x, a.axis))
kernel("LogSoftmax")(lambda a, x: nn.log_softmax(x, a.axis))


def _normalized(x: Any, axes: Any, epsilon: float) -> tuple[Any, Any, Any]:
    """Return elements of mean 0 and variance 1, the mean, and the reciprocal of the standard deviation."""
    mean = jnp.mean(x, axes, keepdims=True)
    inverse = 1 / jnp.sqrt(jnp.mean((x - mean) ** 2, axes, keepdims=True) + epsilon)
    return (x - mean) * inverse, mean, inverse


@kernel("LayerNormalization")
def layer_normalization(a: Any, x: Any, scale: Any, bias: Any = None) -> Any:
    y, mean, inverse = _normalized(x, range(a.axis % x.ndim, x.ndim), a.epsilon)
    return y * scale + (0 if bias is None else bias), mean, inverse


@kernel("RMSNormalization")
def rms_normalization(a: Any, x: Any, scale: Any) -> Any:
    mean = jnp.mean(x * x, range(a.axis % x.ndim, x.ndim), keepdims=True)
    return x / jnp.sqrt(mean + a.epsilon) * scale


@kernel("InstanceNormalization")
def instance_normalization(a: Any, x: Any, scale: Any, bias: Any) -> Any:
    y, _, _ = _normalized(x, range(2, x.ndim), a.epsilon)
    return y * _per_channel(scale, x.ndim) + _per_channel(bias, x.ndim)


@kernel("BatchNormalization", refuse=lambda node, a: "BatchNormalization in training" if a.training_mode else None)
def batch_normalization(a: Any, x: Any, *parameters: Any) -> Any:
    scale, bias, mean, variance = (_per_channel(parameter, x.ndim) for parameter in parameters)
    return (x - mean) / jnp.sqrt(variance + a.epsilon) * scale + bias


# **** interpolation ****


def _refuse_resize(node: Any, a: Any) -> str | None:
    if a.mode != "nearest" and not node.outputs[0].dtype.is_floating:
        return "Resize between integers"
    cropped = a.coordinate_transformation_mode == "tf_crop_and_resize"
    return "Resize of a region, or by a policy" if cropped or a.keep_aspect_ratio_policy != "stretch" else None


@kernel("Resize", refuse=_refuse_resize)
def resize(a: Any, x: Any, roi: Any = None, scales: Any = None, sizes: Any = None) -> Any:
    """Resizing is linear and separable: the reference resizes the unit vectors of an axis, which gives its matrix."""
    names = ("antialias", "coordinate_transformation_mode", "cubic_coeff_a", "exclude_outside", "mode", "nearest_mode")
    resize_one = reference("Resize", axes=(0,), **{name: getattr(a, name) for name in names})
    for i, axis in enumerate(range(x.ndim) if a.axes is None else a.axes):
        scaled = scales is not None and scales.size > 0
        own = (scales[i : i + 1], None) if scaled else (None, np.array([a.shape[axis]]))
        matrix = resize_one(np.eye(x.shape[axis]), None, *own)
        if a.mode == "nearest":
            x = jnp.take(x, (matrix @ np.arange(x.shape[axis])).astype(int), axis)
        elif not np.array_equal(matrix, np.eye(x.shape[axis])):
            x = jnp.moveaxis(jnp.tensordot(matrix.astype(x.dtype), x, (1, axis)), 0, axis)
    return x
