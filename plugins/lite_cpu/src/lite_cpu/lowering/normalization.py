"""Lowering of normalizations: by given statistics, by statistics of the input, and by a norm."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from lite_compiler.chains import Apply
from lite_compiler.fusion import Group
from lite_compiler.tensors import memory_order
from lite_core.ir import DType, Node, Value
from lite_core.ops import attributes_of
from lite_cpu.chains import Chain, Operand
from lite_cpu.emitter import float_bits
from lite_cpu.kernels.normalization import Normalization, ScaleToNorm
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.registry import lowers
from lite_cpu.lowering.rows import along_axes, plan_rows
from lite_cpu.lowering.shape import required_input
from lite_cpu.lowering.widening import widened_value
from lite_cpu.tensors import Tensor

F32 = DType.FLOAT32

#: The epsilon that MeanVarianceNormalization adds to the deviation, by ONNX's definition.
_MEAN_VARIANCE_EPSILON = 1e-9


def refuse_normalization(node: Node) -> str | None:
    for value in node.inputs:
        if value is not None and value.dtype is not F32 and not value.dtype.is_half:
            return f"{node.op} of {value.dtype}: the CPU kernels normalise in float32"
    return None


# **** by given statistics ****


@lowers("BatchNormalization", refuse=refuse_normalization, epilogue=True)
def batch_normalization(lowering: Lowering, group: Group) -> None:
    """Emit ``(x - mean) * factor + bias`` and the tail as one chain; the factor is computed from two vectors."""
    x, scale, bias, mean, variance = (required_input(group.head, i) for i in range(5))
    source = lowering.tensor(x)
    epsilon = attributes_of(group.head)["epsilon"]
    factor = _factor(lowering, scale, variance, epsilon)
    vectors = [_per_channel(t, source.rank) for t in (lowering.tensor(mean), factor, lowering.tensor(bias))]
    normalized = group.head.outputs[0]
    assert normalized is not None
    steps = (Apply("Sub", (0, 1), F32), Apply("Mul", (4, 2), F32), Apply("Add", (5, 3), normalized.dtype))
    tail, reads = lowering.chain(normalized, group.tail)
    chain = Chain(Operand(source.dtype), tuple([Operand(v.dtype) for v in vectors]), steps).then(tail)
    operands = [*vectors, *(lowering.tensor(v) for v in reads)]
    lowering.elementwise(chain, [source, *operands], lowering.target(group.output, memory_order(source)))


def _factor(lowering: Lowering, scale: Value, variance: Value, epsilon: float) -> Tensor:
    """Return ``scale / sqrt(variance + epsilon)``, computed before the run if both are known."""
    scales, variances = lowering.known(scale), lowering.known(variance)
    if scales is not None and variances is not None:
        deviations = np.sqrt(variances.astype(np.float32) + np.float32(epsilon))
        return lowering.constant(scales.astype(np.float32) / deviations)
    factor = lowering.allocate(scale.shape, F32)
    steps = (Apply("Add", (0, 1), F32), Apply("Sqrt", (3,), F32), Apply("Div", (2, 4), F32))
    added = lowering.constant(np.full(1, epsilon, np.float32))
    chain = Chain(Operand(variance.dtype), (Operand(F32), Operand(scale.dtype)), steps)
    lowering.elementwise(chain, [lowering.tensor(variance), added, lowering.tensor(scale)], factor)
    return factor


def _per_channel(vector: Tensor, rank: int) -> Tensor:
    """Return [channels] as [channels, 1, ...], which broadcasts to a tensor [batch, channels, ...] of this rank."""
    shape = (vector.shape[0], *(1 for _ in range(rank - 2)))
    return Tensor(vector.storage, vector.dtype, shape, (vector.strides[0], *(0 for _ in shape[1:])), vector.offset)


# **** by the statistics of the input ****


def _factors(lowering: Lowering, value: Value) -> Tensor:
    """Return a scale or a bias; if it is known, as float32, so that no row converts it."""
    return lowering.tensor(value if lowering.known(value) is None else widened_value(lowering, value))


@lowers("LayerNormalization", refuse=refuse_normalization)
def layer_normalization(lowering: Lowering, group: Group) -> None:
    """Normalize over an axis and all axes after it; also write the statistics if they are outputs."""
    node = group.head
    attributes = attributes_of(node)
    x, scale = required_input(node), required_input(node, 1)
    bias = node.inputs[2] if len(node.inputs) > 2 else None
    axes = range(attributes["axis"] % len(x.shape), len(x.shape))
    y, mean, deviation = (*node.outputs, None, None)[:3]
    source = lowering.tensor(x)
    target = None if y is None else lowering.target(y, memory_order(source))
    _normalize(
        lowering,
        source,
        lowering.allocate(source.shape, F32) if target is None else target,
        axes,
        attributes["epsilon"],
        scale=_factors(lowering, scale).expand(source.shape),
        bias=None if bias is None else _factors(lowering, bias).expand(source.shape),
        mean=None if mean is None else along_axes(lowering.target(mean), source.shape, axes),
        deviation=None if deviation is None else along_axes(lowering.target(deviation), source.shape, axes),
    )


@lowers("InstanceNormalization", refuse=refuse_normalization)
def instance_normalization(lowering: Lowering, group: Group) -> None:
    """Normalize over the spatial axes of each channel of each sample."""
    x, scale, bias = (required_input(group.head, i) for i in range(3))
    source = lowering.tensor(x)
    _normalize(
        lowering,
        source,
        lowering.target(group.output, memory_order(source)),
        range(2, source.rank),
        attributes_of(group.head)["epsilon"],
        scale=_per_channel(_factors(lowering, scale), source.rank).expand(source.shape),
        bias=_per_channel(_factors(lowering, bias), source.rank).expand(source.shape),
    )


@lowers("GroupNormalization", refuse=refuse_normalization)
def group_normalization(lowering: Lowering, group: Group) -> None:
    """Normalize over each group of channels, which becomes an axis, and the spatial axes."""
    x, scale, bias = (required_input(group.head, i) for i in range(3))
    attributes = attributes_of(group.head)
    groups = attributes["num_groups"]
    source = lowering.tensor(x)
    target = lowering.target(group.output, memory_order(source))

    def grouped(tensor: Tensor) -> Tensor:
        """Return a view of [batch, channels, ...] as [batch, groups, channels of a group, ...]."""
        stride, inner = tensor.strides[1], tensor.shape[1] // groups
        shape = (tensor.shape[0], groups, inner, *tensor.shape[2:])
        strides = (tensor.strides[0], inner * stride, stride, *tensor.strides[2:])
        return Tensor(tensor.storage, tensor.dtype, shape, strides, tensor.offset)

    _normalize(
        lowering,
        grouped(source),
        grouped(target),
        range(2, source.rank + 1),
        attributes["epsilon"],
        scale=grouped(_per_channel(_factors(lowering, scale), source.rank).expand(source.shape)),
        bias=grouped(_per_channel(_factors(lowering, bias), source.rank).expand(source.shape)),
    )


@lowers("MeanVarianceNormalization", refuse=refuse_normalization)
def mean_variance_normalization(lowering: Lowering, group: Group) -> None:
    """Normalize over the axes that the node names."""
    source = lowering.tensor(required_input(group.head))
    axes = {a % source.rank for a in attributes_of(group.head)["axes"]}
    target = lowering.target(group.output, memory_order(source))
    _normalize(lowering, source, target, axes, _MEAN_VARIANCE_EPSILON, epsilon_outside=True)


def _normalize(
    lowering: Lowering,
    source: Tensor,
    target: Tensor,
    axes: Collection[int],
    epsilon: float,
    *,
    scale: Tensor | None = None,
    bias: Tensor | None = None,
    mean: Tensor | None = None,
    deviation: Tensor | None = None,
    epsilon_outside: bool = False,
) -> None:
    """Emit a normalization over ``axes``; all tensors have the shape of ``source``."""
    optional = (scale, bias, mean, deviation)
    tensors = [source, target, *(t for t in optional if t is not None)]
    plan = plan_rows(lowering, tensors, axes, wide=source.dtype.is_half)
    kernel = Normalization(
        plan.layout, scale is not None, bias is not None, mean is not None, deviation is not None, epsilon_outside
    )
    params: Sequence[int] = [*plan.params, float_bits(epsilon)]
    lowering.step(
        kernel, tensors, params, plan.tasks, plan.grain, flops=8 * source.size, scratch_bytes=plan.scratch_bytes
    )


# **** by a norm ****


@lowers("LpNormalization", refuse=refuse_normalization)
def lp_normalization(lowering: Lowering, group: Group) -> None:
    """Divide the elements by the norm along an axis."""
    attributes = attributes_of(group.head)
    source = lowering.tensor(required_input(group.head))
    tensors = [source, lowering.target(group.output, memory_order(source))]
    plan = plan_rows(lowering, tensors, [attributes["axis"] % source.rank])
    kernel = ScaleToNorm(plan.layout, attributes["p"])
    lowering.step(kernel, tensors, plan.params, plan.tasks, plan.grain, flops=3 * source.size)
