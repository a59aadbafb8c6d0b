"""Average, maximum and power pools. The pools that also return indices are in ``indexed_pooling``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lite_core.ir import Dim, Value
from lite_paddle.lowering.adaptive import adaptive_average, adaptive_maximum
from lite_paddle.lowering.context import Context
from lite_paddle.lowering.integers import known_ints
from lite_paddle.lowering.layout import in_channels_first
from lite_paddle.lowering.limits import lowest_finite
from lite_paddle.lowering.registry import lowers
from lite_paddle.lowering.unlowerable import Unlowerable
from lite_paddle.lowering.windows import Pads, explicit_pads, onnx_pads, per_axis, same_pads
from lite_paddle.source import SourceOp

__all__ = ["PoolGeometry", "maximum_pool", "pool_maximum", "read_geometry"]


@dataclass(frozen=True, slots=True)
class PoolGeometry:
    """The windows of a pool, for each spatial axis."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    pads: Pads
    ceil_mode: bool = False
    #: ONNX computes the pads itself, because they depend on an unknown size.
    automatic: bool = False

    @property
    def window_may_lie_in_padding(self) -> bool:
        """Return True if rounding up can produce a last window that begins behind the input."""
        return self.ceil_mode and any(e + s > k for k, s, (_, e) in zip(self.kernel, self.strides, self.pads))

    def with_floor(self) -> PoolGeometry:
        """Return the same windows without ``ceil_mode``: the end padding grows by stride - 1.

        NOTE: ONNX drops a last window that begins in the padding, Paddle keeps it, so ONNX's ``ceil_mode`` is usable
        only where no such window can occur.
        """
        if not self.ceil_mode:
            return self
        pads = [(b, e + s - 1) for s, (b, e) in zip(self.strides, self.pads)]
        return replace(self, pads=pads, ceil_mode=False)

    def attributes(self) -> dict[str, Any]:
        attributes: dict[str, Any] = {"kernel_shape": self.kernel, "strides": self.strides}
        if self.automatic:
            attributes["auto_pad"] = "SAME_UPPER"
        else:
            attributes["pads"] = onnx_pads(self.pads)
        if self.ceil_mode:
            attributes["ceil_mode"] = 1
        return attributes


def read_geometry(op: SourceOp, kernel: list[int], sizes: tuple[Dim, ...]) -> PoolGeometry:
    """Return the windows of a pool that is neither global nor adaptive."""
    axes = len(kernel)
    strides = per_axis(op.attrs.get("strides", 1), axes, "strides")
    ceil_mode = bool(op.attrs.get("ceil_mode", False))
    algorithm = op.attrs.get("padding_algorithm", "EXPLICIT")
    automatic = False
    if algorithm == "SAME":
        found = same_pads(sizes, kernel, strides)
        automatic = found is None
        pads = found or [(0, 0)] * axes
        # SAME has already rounded the output size up, unless the kernel is smaller than the stride.
        if automatic and ceil_mode and any(k < s for k, s in zip(kernel, strides)):
            raise Unlowerable("it has SAME padding, ceil_mode and an input of unknown size")
        ceil_mode = ceil_mode and not automatic
    elif algorithm == "VALID":
        pads = [(0, 0)] * axes
    elif algorithm == "EXPLICIT":
        pads = explicit_pads(op.attrs.get("paddings", [0]), axes)
    else:
        raise Unlowerable(f"its padding_algorithm is {algorithm!r}, expected EXPLICIT, SAME or VALID")
    return PoolGeometry(tuple(kernel), tuple(strides), pads, ceil_mode, automatic)


def maximum_pool(context: Context, x: Value, geometry: PoolGeometry) -> Value:
    """Return the maximum of every window, including windows wholly in the padding."""
    if not geometry.window_may_lie_in_padding:
        return context.node("MaxPool", [x], geometry.attributes())
    result = context.node("MaxPool", [x], geometry.with_floor().attributes())
    if not x.dtype.is_floating:
        return result
    # Paddle's maximum of a window wholly in the padding is the lowest finite number.
    return context.node("Max", [result, context.scalar(lowest_finite(x.dtype), x)])


def pool_maximum(op: SourceOp, context: Context, x: Value, kernel: list[int]) -> Value:
    """Lower any maximum pool, channels first: global, adaptive (``kernel`` is then the output size) or ordinary."""
    if op.attrs.get("global_pooling"):
        return context.node("GlobalMaxPool", [x])
    if op.attrs.get("adaptive"):
        return adaptive_maximum(context, x, kernel)
    return maximum_pool(context, x, read_geometry(op, kernel, x.shape[2:]))


def _average_pool(context: Context, x: Value, geometry: PoolGeometry, exclusive: bool) -> Value:
    """Average the elements of each window that lie in the input and, unless ``exclusive``, in the padding."""
    if geometry.automatic and not exclusive:
        raise Unlowerable(
            "it averages over SAME padding, whose size depends on an unknown size of the input",
            "export the model with fixed sizes",
        )
    if exclusive or not any(b or e for b, e in geometry.pads):
        counted = geometry.with_floor() if geometry.window_may_lie_in_padding else geometry
        return context.node("AveragePool", [x], counted.attributes())
    if not geometry.ceil_mode and all(e <= b for b, e in geometry.pads):
        return context.node("AveragePool", [x], {**geometry.attributes(), "count_include_pad": 1})
    # Behind the input, as many elements count as there is padding before it. With ceil_mode the last window may reach
    # even farther.
    padded = _padded(context, x, [(b, min(b, e)) for b, e in geometry.pads])
    inside = replace(geometry, pads=[(0, max(e - b, 0)) for b, e in geometry.pads]).with_floor()
    return context.node("AveragePool", [padded], inside.attributes())


def _padded(context: Context, x: Value, pads: Pads) -> Value:
    return context.node("Pad", [x, context.builder.ints(*onnx_pads([(0, 0), (0, 0), *pads]))])


def _kernel(op: SourceOp, context: Context, axes: int) -> list[int]:
    if op.inputs.get("KernelSizeTensor") or op.inputs.get("KernelSizeTensorList"):
        known = known_ints(op, context, "ksize", "KernelSizeTensor", "KernelSizeTensorList")
    else:
        known = context.attribute(op, "ksize", "kernel_size")
    kernel = per_axis(known, axes, "ksize")
    if any(k < 1 for k in kernel):
        raise Unlowerable(
            f"its ksize is {kernel}: the size was not known when the model was exported",
            "export the model with fixed sizes for the axes that are kept",
        )
    return kernel


@lowers("pool2d", "pool3d", "max_pool2d_v2")
def pool(op: SourceOp, context: Context) -> None:
    axes = 3 if op.type == "pool3d" else 2
    kind = "max" if op.type == "max_pool2d_v2" else op.attrs.get("pooling_type", "max")
    if kind not in ("max", "avg"):
        raise Unlowerable(f"its pooling_type is {kind!r}, expected max or avg")
    attrs = op.attrs

    def compute(x: Value) -> Value:
        context.rank(x, "its pool depends on the size")
        kernel = [1] * axes if attrs.get("global_pooling") else _kernel(op, context, axes)
        if kind == "max":
            return pool_maximum(op, context, x, kernel)
        if attrs.get("global_pooling"):
            return context.node("GlobalAveragePool", [x])
        if attrs.get("adaptive"):
            return adaptive_average(context, x, kernel)
        geometry = read_geometry(op, kernel, x.shape[2:])
        return _average_pool(context, x, geometry, bool(attrs.get("exclusive", True)))

    source = context.any_input(op, "X", "x", "0")
    result = in_channels_first(context, source, str(attrs.get("data_format", "NCHW")), compute)
    for slot in ("Out", "out", "0"):
        context.bind(op, slot, result)


@lowers("lp_pool2d")
def power_pool(op: SourceOp, context: Context) -> None:
    """Compute ``sum(x ** p) ** (1 / p)`` over each window, without absolute values; the maximum for infinite p."""
    attrs = op.attrs
    if attrs.get("adaptive"):
        raise Unlowerable("an adaptive lp_pool2d has no counterpart in Lite")
    power = float(context.attribute(op, "norm_type"))

    def compute(x: Value) -> Value:
        context.rank(x, "its pool depends on the size")
        if attrs.get("global_pooling"):
            raise Unlowerable("a global lp_pool2d has no counterpart in Lite")
        geometry = read_geometry(op, _kernel(op, context, 2), x.shape[2:])
        if np.isinf(power):
            return maximum_pool(context, x, geometry)
        raised = context.node("Pow", [x, context.scalar(power, x)])
        plain = geometry.with_floor()
        if not plain.automatic:
            raised = _padded(context, raised, plain.pads)
            plain = replace(plain, pads=[(0, 0)] * len(plain.pads))
        mean = context.node("AveragePool", [raised], {**plain.attributes(), "count_include_pad": 1})
        total = context.node("Mul", [mean, context.scalar(float(np.prod(plain.kernel)), x)])
        return context.node("Pow", [total, context.scalar(1 / power, x)])

    source = context.any_input(op, "X", "x", "0")
    result = in_channels_first(context, source, str(attrs.get("data_format", "NCHW")), compute)
    for slot in ("Out", "out", "0"):
        context.bind(op, slot, result)
