"""Pools over windows, and MaxUnpool."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from lite_compiler.fusion import Group
from lite_core.ir import DType, Node
from lite_core.ops.helpers import WindowAxis, windows_of
from lite_core.ops.spatial import WindowAttributes
from lite_opencl.chains import Chain
from lite_opencl.device.devices import FoundDevice
from lite_opencl.lowering.chaining import Epilogue
from lite_opencl.lowering.context import Lowering
from lite_opencl.lowering.indices import check_ranges
from lite_opencl.lowering.registry import lowers
from lite_opencl.lowering.steps import Argument
from lite_opencl.programs.element_types import c_type, literal
from lite_opencl.programs.kernel_source import KernelSource
from lite_opencl.tensors import types_of

__all__ = ["pool"]

_LOCAL = (64, 1, 1)

#: A missing spatial dimension.
_ONE = WindowAxis(kernel=1, stride=1, dilation=1, begin=0, end=0, size=1, count=1)

_SPATIAL = 3

#: Minimum length of the lines of ``pooling_lines.cl``: one vector.
_SHORTEST_LINE = 8


def refuse_pool(node: Node) -> str | None:
    """Return the reason why a pool is not supported, or None."""
    spatial = len(node.attributes["kernel_shape"])  # type: ignore[arg-type]
    return f"it has {spatial} spatial dimensions, more than {_SPATIAL}" if spatial > _SPATIAL else None


@lowers("MaxPool", "AveragePool", "LpPool", refuse=refuse_pool, epilogue=True)
def pool(lowering: Lowering, group: Group) -> None:
    """Lower MaxPool, AveragePool and LpPool to one step over all windows of all images."""
    attributes, op = group.attributes, group.head.op
    x, y = lowering.dense(lowering.tensor(group.input(0))), group.head.outputs[0]
    axes = _volume(windows_of(group.head))
    indices = group.head.outputs[1] if len(group.head.outputs) > 1 else None
    shape = (*x.shape[:2], *(a.count for a in axes))
    results = [lowering.allocate(shape, x.dtype) if y is None else lowering.target(group.output)]
    epilogue = Epilogue(Chain(x.dtype), []) if y is None else lowering.epilogue(group, split=2)
    acc = c_type(x.dtype).compute
    defines: dict[str, int | str] = {"ACC": acc}
    if op == "MaxPool":
        lowest = literal(-np.inf, acc) if x.dtype.is_floating else str(np.iinfo(x.dtype.numpy).min)
        defines |= {"MAXIMUM": 1, "LOWEST": f"({lowest})"}
    elif op == "AveragePool":
        defines["AVERAGE"] = 1
        if attributes["count_include_pad"]:
            defines["COUNT_PADDING"] = 1
    else:
        defines["POWER"] = int(attributes["p"])
    if indices is not None:
        results.append(lowering.target(indices))
        defines["INDICES"] = 1
        if attributes["storage_order"]:
            defines["COLUMN_MAJOR"] = 1
    planes, counts = prod(x.shape[:2]), [a.count for a in axes]
    geometry = [(a.size, a.count, a.begin, a.end) for a in axes]
    numbers = [planes, *(n for column in zip(*geometry) for n in column)]
    types = types_of(X=x, Y=results[0])
    if takes_lines(lowering.device, x.dtype, counts[-1]) and indices is None:
        for axis, name in zip(axes, "DHW"):
            defines |= {f"KERNEL_{name}": axis.kernel, f"STRIDE_{name}": axis.stride, f"DILATION_{name}": axis.dilation}
        source = KernelSource("pooling_lines", "pool_lines", (1, 1, 1), tuple(defines.items()), types, epilogue.chain)
        items: tuple[int, ...] = (planes * prod(counts[:-1]),)
    else:
        numbers += [n for column in zip(*((a.kernel, a.stride, a.dilation) for a in axes)) for n in column]
        source = KernelSource("pooling", "pool", _LOCAL, tuple(defines.items()), types, epilogue.chain)
        items = (prod(counts), planes)
    lowering.step(
        source,
        [*results, x, *(np.int32(n) for n in numbers), *epilogue.arguments],
        items,
        results=range(len(results)),
        flops=planes * prod(counts) * (prod(a.kernel for a in axes) + epilogue.chain.cost),
        label=op,
    )


def takes_lines(device: FoundDevice, dtype: DType, width: int) -> bool:
    """Return True if a work item computes a line with vectors: fast on processors, if lines are long enough."""
    return device.kind == "CPU" and dtype is DType.FLOAT32 and width >= _SHORTEST_LINE


def _volume(axes: Sequence[WindowAxis]) -> list[WindowAxis]:
    return [*(_ONE for _ in range(_SPATIAL - len(axes))), *axes]


# **** MaxUnpool ****


@lowers("MaxUnpool", refuse=refuse_pool, needs_numbers=True)
def unpool(lowering: Lowering, group: Group) -> None:
    """Lower MaxUnpool: elements stored at indices, in three steps; see ``kernels/unpooling.cl``."""
    x, kernel = lowering.dense(lowering.tensor(group.input(0))), group.attributes["kernel_shape"]
    window = WindowAttributes.read(group.attributes, len(kernel))
    sizes = [
        (size - 1) * stride + taps - begin - end
        for size, taps, stride, (begin, end) in zip(x.shape[2:], kernel, window.strides, window.pads)
    ]
    y = lowering.target(group.output)
    count = prod(x.shape[:2]) * prod(sizes)
    check_ranges(lowering, group.head, group.input(1), "index", [range(count)])
    indices = lowering.dense(lowering.tensor(group.input(1)))
    winners = lowering.allocate((max(count, 1),), DType.INT32)
    number = np.int32(count)
    lowering.step(KernelSource("unpooling", "clear_winners", _LOCAL), [winners, number], (count,))
    elect = KernelSource("unpooling", "elect_winners", _LOCAL)
    lowering.step(elect, [winners, indices, np.int32(x.size), number], (x.size,))
    ones = (1,) * (_SPATIAL - len(kernel))
    natural = [*x.shape[:2], *ones, *sizes]
    result = [y.shape[1], *ones, *y.shape[2:]]
    arguments: list[Argument] = [y, x, winners, *(np.int32(n) for n in (*natural, *result))]
    take = KernelSource("unpooling", "take_winners", _LOCAL, types=types_of(X=x, Y=y))
    lowering.step(take, arguments, (prod(y.shape[2:]), y.shape[1], y.shape[0]), label="MaxUnpool")
