"""Normalizations: by given statistics, by the input's own statistics, by a norm, and by neighbouring channels."""

from __future__ import annotations

from collections.abc import Callable, Collection
from math import prod

import numpy as np

from lite_compiler.chains import Apply
from lite_compiler.fusion import Group
from lite_core.ir import DType
from lite_opencl.chains import Chain, Operand
from lite_opencl.lowering.context import Lowering
from lite_opencl.lowering.registry import lowers
from lite_opencl.lowering.rows import (
    choose_plan,
    fold,
    is_foldable,
    row_epilogue,
    rows_first,
    rows_items,
    rows_kernel,
    sizes_of,
    strides_of,
    unfold,
)
from lite_opencl.lowering.steps import Argument
from lite_opencl.programs.element_types import c_type, literal, scalar
from lite_opencl.programs.kernel_source import KernelSource
from lite_opencl.tensors import Tensor, accepts_any, types_of

__all__ = ["normalize"]

#: The number that MeanVarianceNormalization adds to the standard deviation, by ONNX's definition.
_MEAN_VARIANCE_EPSILON = 1e-9

_LOCAL = (64, 1, 1)


# **** by given statistics ****


@lowers("BatchNormalization", epilogue=True)
def batch_normalization(lowering: Lowering, group: Group) -> None:
    """Lower BatchNormalization to the chain ``(x - mean) * factor + bias``, followed by the tail of the group."""
    x = lowering.tensor(group.input(0))
    scale, bias, mean, variance = (group.input(i) for i in range(1, 5))
    epsilon = float(group.attributes["epsilon"])
    wide = DType.FLOAT64 if any(v.dtype is DType.FLOAT64 for v in (group.input(0), scale, variance)) else DType.FLOAT32
    normalized = group.head.outputs[0]
    assert normalized is not None
    scales, variances = lowering.known(scale), lowering.known(variance)

    def vector(tensor: Tensor) -> Tensor:
        return _per_channel(tensor, x.rank)

    reads: list[Tensor | np.generic] = [vector(lowering.tensor(mean)), vector(lowering.tensor(bias))]
    # Numbers of values: 0 is x, 1 the mean, 2 the bias, then the operands of the factor.
    if scales is not None and variances is not None:
        known_scales, known_variances = scales, variances

        def factors() -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
            exact = known_scales.astype(np.float64) / np.sqrt(known_variances.astype(np.float64) + epsilon)
            return exact.astype(wide.numpy)

        key = ("batch normalization", epsilon, wide)
        reads.append(vector(lowering.constant(key, [scales, variances], factors)))
        steps = [Apply("Sub", (0, 1), wide), Apply("Mul", (4, 3), wide)]
    else:
        tensors = [vector(lowering.tensor(scale)), vector(lowering.tensor(variance))]
        reads += [*tensors, scalar(epsilon, wide)]
        deviation = [Apply("Add", (4, 5), wide), Apply("Sqrt", (6,), wide), Apply("Div", (3, 7), wide)]
        steps = [*deviation, Apply("Sub", (0, 1), wide), Apply("Mul", (9, 8), wide)]
    last = len(reads) + len(steps)
    steps += [Apply("Add", (last, 2), wide), Apply("Cast", (last + 1,), normalized.dtype)]
    operands = tuple(Operand(r.dtype if isinstance(r, Tensor) else wide, None) for r in reads)
    tail, more = lowering.chain(normalized, group.tail)
    chain = _concatenate(Chain(x.dtype, operands, tuple(steps)), tail)
    lowering.elementwise(chain, x, [*reads, *more], lowering.target(group.output, fits=accepts_any))


def _concatenate(first: Chain, second: Chain) -> Chain:
    """Concatenate two chains, the second of which starts from the result of the first."""
    first_operands, second_operands = len(first.operands), len(second.operands)

    def number_of_first(number: int) -> int:
        return number if number <= first_operands else number + second_operands

    def number_of_second(number: int) -> int:
        if number == 0:
            return first_operands + second_operands + len(first.steps)
        is_operand = number <= second_operands
        return number + first_operands if is_operand else number + first_operands + len(first.steps)

    def renumbered(step: Apply, number_of: Callable[[int], int]) -> Apply:
        return step._replace(inputs=tuple(None if n is None else number_of(n) for n in step.inputs))

    steps = (
        *(renumbered(step, number_of_first) for step in first.steps),
        *(renumbered(step, number_of_second) for step in second.steps),
    )
    return Chain(first.start, (*first.operands, *second.operands), steps)


def _per_channel(vector: Tensor, rank: int) -> Tensor:
    """Return a vector [channels] as [channels, 1, ...], which can be broadcast to a tensor of that rank."""
    ones = max(rank - 2, 0)
    return vector.view((vector.shape[0], *(1,) * ones), (vector.strides[0], *(0,) * ones))


# **** by the input's own statistics ****


@lowers("LayerNormalization", epilogue=True)
def layer_normalization(lowering: Lowering, group: Group) -> None:
    """Lower LayerNormalization over an axis and all following ones, with the statistics that are used."""
    x, bias = lowering.tensor(group.input(0)), group.optional(2)
    axes = range(group.attributes["axis"] % x.rank, x.rank)
    _, mean, factor = (*group.head.outputs, None, None)[:3]
    statistics = None
    if mean is not None or factor is not None:
        rows = (*x.shape[: axes.start], *(1 for _ in axes))
        targets = [lowering.allocate(rows, DType.FLOAT32) if v is None else lowering.target(v) for v in (mean, factor)]
        statistics = (targets[0], targets[1])
    normalize(
        lowering,
        group,
        "Standardize",
        axes,
        epsilon=float(group.attributes["epsilon"]),
        scale=lowering.tensor(group.input(1)).expand(x.shape),
        bias=None if bias is None else lowering.tensor(bias).expand(x.shape),
        statistics=statistics,
    )


@lowers("InstanceNormalization", epilogue=True)
def instance_normalization(lowering: Lowering, group: Group) -> None:
    """Lower InstanceNormalization over the spatial axes of every channel of every sample."""
    x, scale, bias = (lowering.tensor(group.input(i)) for i in range(3))
    normalize(
        lowering,
        group,
        "Standardize",
        range(2, x.rank),
        epsilon=float(group.attributes["epsilon"]),
        scale=_per_channel(scale, x.rank).expand(x.shape),
        bias=_per_channel(bias, x.rank).expand(x.shape),
    )


@lowers("GroupNormalization", epilogue=True)
def group_normalization(lowering: Lowering, group: Group) -> None:
    """Lower GroupNormalization over the channels of a group, which become an axis, and the spatial axes."""
    x, scale, bias = (lowering.tensor(group.input(i)) for i in range(3))
    groups = int(group.attributes["num_groups"])

    def grouped(tensor: Tensor) -> Tensor:
        """Return [batch, channels, ...] as [batch, groups, channels of a group, ...], a view."""
        stride, inner = tensor.strides[1], tensor.shape[1] // groups
        shape = (tensor.shape[0], groups, inner, *tensor.shape[2:])
        return tensor.view(shape, (tensor.strides[0], inner * stride, stride, *tensor.strides[2:]))

    normalize(
        lowering,
        group,
        "Standardize",
        range(2, x.rank + 1),
        epsilon=float(group.attributes["epsilon"]),
        scale=_per_channel(scale, x.rank).expand(x.shape),
        bias=_per_channel(bias, x.rank).expand(x.shape),
        view=grouped,
    )


@lowers("MeanVarianceNormalization", epilogue=True)
def mean_variance_normalization(lowering: Lowering, group: Group) -> None:
    """Lower MeanVarianceNormalization over the axes of its attribute."""
    axes = {a % len(group.output.shape) for a in group.attributes["axes"]}
    normalize(lowering, group, "MeanVariance", axes, epsilon=_MEAN_VARIANCE_EPSILON)


@lowers("LpNormalization", epilogue=True)
def norm_normalization(lowering: Lowering, group: Group) -> None:
    """Lower LpNormalization: elements divided by the norm of their row."""
    axes = [group.attributes["axis"] % len(group.output.shape)]
    normalize(lowering, group, f"ByNorm{group.attributes['p']}", axes)


def normalize(
    lowering: Lowering,
    group: Group,
    op: str,
    axes: Collection[int],
    *,
    epsilon: float = 0.0,
    scale: Tensor | None = None,
    bias: Tensor | None = None,
    statistics: tuple[Tensor, Tensor] | None = None,
    view: Callable[[Tensor], Tensor] = lambda tensor: tensor,
    cost: int = 8,
) -> None:
    """Emit a normalization of the rows of a group's first input along ``axes``, and the group's tail.

    Args:
        lowering: gets the step.
        group: the group; results of its head, ``scale`` and ``bias`` have the shape of its first input.
        op: the operation, a macro of ``kernels/rows.cl``.
        axes: the axes of a row, not negative.
        epsilon: the number that the formula adds to a divisor.
        scale: the factors of the results, or None.
        bias: the numbers that are added to the scaled results, or None.
        statistics: destinations of the mean and the factor of each row, or None.
        view: returns the view of a tensor that has these axes.
        cost: number of floating-point operations for an element.
    """
    x, start = lowering.tensor(group.input(0)), group.head.outputs[0]

    def fits(destination: Tensor) -> bool:
        return is_foldable([rows_first(view(t), axes) for t in (destination, x)], view(x).rank - len(axes))

    y = lowering.allocate(x.shape, x.dtype) if start is None else lowering.target(group.output, fits)
    chain, operands = (Chain(x.dtype), []) if start is None else lowering.chain(start, group.tail)
    if not x.size:
        return
    operands = [view(o.expand(x.shape)) if isinstance(o, Tensor) else o for o in operands]
    x, y, scale, bias = view(x), view(y), scale and view(scale), bias and view(bias)
    epilogue = row_epilogue(lowering, (chain, operands), x.shape, axes)
    split = x.rank - len(axes)
    named = {"Y": y, "X": x, **({} if scale is None else {"SCALE": scale}), **({} if bias is None else {"BIAS": bias})}
    views = [rows_first(t, axes) for t in named.values()]
    folded = dict(zip(named, fold(lowering, views, split, results=1)))
    acc = c_type(x.dtype).compute
    defines: dict[str, int | str] = {"START": literal(-np.inf, acc) if "oftmax" in op else "0", "FLOATING": 1}
    defines |= {f"HAS_{name}": 1 for name in ("SCALE", "BIAS") if name in folded}
    if chain.steps:
        defines["HAS_TAIL"] = 1
    plan = choose_plan(lowering.device, folded["X"], 8 if acc == "double" else 4)
    if c_type(y.dtype).suffix == "plain":
        defines["Y_IS_PLAIN"] = 1
    kernel = rows_kernel("rows", "normalize_rows", op, plan, folded, acc, defines, epilogue.chain)
    arguments: list[Argument] = [*folded.values()]
    results = [0]
    if statistics is not None:
        means, factors = statistics
        more = types_of(MEANS=means, FACTORS=factors)
        kernel = kernel._replace(defines=(*kernel.defines, ("HAS_MEANS", 1)), types=(*kernel.types, *more))
        results += [len(arguments), len(arguments) + 1]
        arguments += statistics
    arguments += [*sizes_of(folded["X"]), scalar(epsilon, DType.FLOAT64 if acc == "double" else DType.FLOAT32)]
    for tensor in folded.values():
        arguments += strides_of(tensor)
    arguments += epilogue.arguments
    flops = (cost + chain.cost) * x.size
    lowering.step(kernel, arguments, rows_items(plan, folded["X"]), results=results, flops=flops, label=op)
    unfold(lowering, folded["Y"], views[0])


# **** by neighbouring channels ****


@lowers("LRN", epilogue=True)
def response_normalization(lowering: Lowering, group: Group) -> None:
    """Lower LRN: elements divided by a power of the sum of squares over neighbouring channels."""
    x, y = lowering.dense(lowering.tensor(group.input(0))), lowering.target(group.output)
    attributes, acc = group.attributes, c_type(x.dtype).compute
    dtype = DType.FLOAT64 if acc == "double" else DType.FLOAT32
    size = int(attributes["size"])
    batch, channels = x.shape[:2]
    pixels = prod(x.shape[2:])
    defines: list[tuple[str, int | str]] = [("ACC", acc), ("SIZE", size)]
    if attributes["beta"] == 0.75:
        defines.append(("THREE_QUARTERS", 1))
    chain, operands = lowering.epilogue(group, split=2)
    kernel = KernelSource("response", "response_normalization", _LOCAL, tuple(defines), types_of(X=x, Y=y), chain)
    factors = (attributes["alpha"] / size, attributes["beta"], attributes["bias"])
    lowering.step(
        kernel,
        [y, x, np.int32(channels), np.int32(pixels), *(scalar(n, dtype) for n in factors), *operands],
        (pixels, channels, batch),
        flops=(2 * size + 60 + chain.cost) * x.size,
        label="LRN",
    )
