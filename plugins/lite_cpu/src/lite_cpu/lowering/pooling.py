"""Lowering of pooling over windows."""

from __future__ import annotations

import numpy as np

from lite_compiler.fusion import Group
from lite_compiler.tracing.numbers import computed, largest
from lite_core.ir import Node
from lite_core.ops import attributes_of
from lite_core.ops.helpers import WindowAxis, windows_of
from lite_cpu.kernels.pooling import AVERAGE, MAXIMUM, NORMS, WINDOW_NUMBERS, Pool
from lite_cpu.lowering.context import Lowering, channels_last_order
from lite_cpu.lowering.registry import lowers
from lite_cpu.lowering.shape import required_input
from lite_cpu.lowering.window import as_image, with_contiguous_channels
from lite_cpu.tensors import Tensor

#: Maximum number of elements of a window that is unrolled.
_MAX_UNROLLED = 9

#: Minimum number of elements of a work item.
_ITEM_ELEMENTS = 8192

_ONE_ROW = WindowAxis(kernel=1, stride=1, dilation=1, begin=0, end=0, size=1, count=1)


def refuse_pool(node: Node) -> str | None:
    if len(node.outputs) > 1 and node.outputs[1] is not None:
        return "MaxPool with indices: the CPU kernels give only the maxima"
    spatial = len(node.attributes.get("kernel_shape", ()))  # type: ignore[arg-type]
    if spatial > 2:
        return f"{node.op} over {spatial} spatial dimensions: the CPU kernels have one or two"
    if node.op == "LpPool" and node.attributes.get("p", 2) not in NORMS:
        return f"LpPool of order p={node.attributes['p']}: the CPU kernels have orders 1 and 2"
    return None


@lowers("MaxPool", "AveragePool", "LpPool", refuse=refuse_pool)
def pool(lowering: Lowering, group: Group) -> None:
    """Emit one step for all windows of all images."""
    node, y = group.head, group.output
    x = required_input(node)
    attributes = attributes_of(node)
    axes = windows_of(node)
    if len(axes) == 1:
        axes = (_ONE_ROW, *axes)
    source = with_contiguous_channels(lowering, lowering.tensor(x))
    wanted = lowering.target(y, channels_last_order(len(y.shape)))
    target = wanted
    if wanted.shape[1] > 1 and wanted.strides[1] != 1:
        target = lowering.allocate(wanted.shape, wanted.dtype, channels_last_order(wanted.rank))
    kind = {"MaxPool": MAXIMUM, "AveragePool": AVERAGE}.get(node.op) or NORMS[attributes["p"]]
    _emit(lowering, kind, axes, as_image(source), as_image(target), bool(attributes.get("count_include_pad")))
    if target is not wanted:
        lowering.copy(target, wanted)


def _emit(
    lowering: Lowering, kind: str, axes: tuple[WindowAxis, ...], x: Tensor, y: Tensor, include_padding: bool
) -> None:
    batch, channels, height, width = y.shape
    rows, columns = (lowering.constant(_windows(axis, include_padding)) for axis in axes)
    elements = axes[0].kernel * axes[1].kernel
    taps = (axes[0].kernel, axes[1].kernel) if elements <= _MAX_UNROLLED else (0, 0)
    strides = [t.strides[a] for t in (x, y) for a in (0, 2, 3)]
    params = [channels, height, width, *strides, axes[0].dilation, axes[1].dilation]
    lowering.step(
        Pool(kind, x.dtype, taps),
        [x, y, rows, columns],
        params,
        batch * height if y.size else 0,
        largest(1, _ITEM_ELEMENTS // largest(1, width * channels * elements)),
        flops=y.size * elements,
    )


@computed
def _windows(axis: WindowAxis, include_padding: bool) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Return for each window its first input element, its number of input elements, and the divisor of an average."""
    kernel, stride, dilation, begin, size = axis.kernel, axis.stride, axis.dilation, axis.begin, axis.size
    table = np.empty((axis.count, WINDOW_NUMBERS), np.int64)
    table[:, 0] = np.arange(-begin, axis.count * stride - begin, stride)
    table[:, 1:] = kernel
    first_beyond = max(0, (size - 1 - (kernel - 1) * dilation + begin) // stride + 1)
    # The windows at the ends, which are few: NumPy would take longer.
    for i in {*range(min(axis.count, -(-begin // stride))), *range(first_beyond, axis.count)}:
        start = i * stride - begin
        first, end = max(0, -(start // dilation)), min((size - 1 - start) // dilation + 1, kernel)
        inside = max(end - first, 0)
        counted = max(min((size + axis.end - 1 - start) // dilation + 1, kernel), 0) if include_padding else inside
        table[i] = start + first * dilation if inside else 0, inside, counted
    return table
