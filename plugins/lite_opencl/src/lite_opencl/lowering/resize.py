"""Resize: tables of neighbours, then one step that picks elements, or passes that interpolate."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from lite_compiler.fusion import Group
from lite_core import ops
from lite_core.ir import DType, Node
from lite_opencl.chains import Chain
from lite_opencl.lowering.axis_gather import OUTSIDE, pick
from lite_opencl.lowering.chaining import Epilogue
from lite_opencl.lowering.context import Lowering
from lite_opencl.lowering.copying import same_bits
from lite_opencl.lowering.registry import lowers
from lite_opencl.lowering.resize_tables import AxisTable, axis_table
from lite_opencl.lowering.tables import upload_table
from lite_opencl.programs.kernel_source import KernelSource
from lite_opencl.tensors import Tensor, types_of

__all__ = ["resize"]

Array = np.ndarray[Any, Any]

_LOCAL = (64, 1, 1)

#: Elements that one pass may add up for each result; more are split into a pass for each dimension.
_MOST_TAPS = 16


def _refuse(node: Node) -> str | None:
    x, mode = node.inputs[0], ops.get(node).attributes_of(node)["mode"]
    if mode == "nearest" or x is None or x.dtype.is_floating:
        return None
    return f"{mode} interpolation of {x.dtype} is cut off, which needs float64; it is implemented for floating types"


@lowers("Resize", refuse=_refuse, epilogue=True, known=(1, 2, 3))
def resize(lowering: Lowering, group: Group) -> None:
    """One step where elements are picked; else passes over one or two neighbouring axes, the last axes first."""
    made = group.head.outputs[0]
    assert made is not None
    source, target = lowering.tensor(group.input(0)), lowering.target(group.output)
    if target.size == 0:
        return
    attributes, shape = group.attributes, tuple(made.shape)
    tables = [t for t in _tables(lowering, group, shape) if t.moves_something(source.shape[t.axis])]
    filler = float(attributes["extrapolation_value"])
    if attributes["mode"] == "nearest" or not tables:
        _pick(lowering, group, source, target, tables, filler)
        return
    passes = _plan_passes(tables)
    for number, some in enumerate(passes):
        if number == len(passes) - 1:
            _interpolate(lowering, source, target, some, filler, lowering.epilogue(group, some[0].axis))
            return
        sizes = list(source.shape)
        for table in some:
            sizes[table.axis] = table.size
        between = lowering.allocate(sizes, _computed(source.dtype))
        _interpolate(lowering, source, between, some, filler, Epilogue(Chain(between.dtype), []))
        source = between


def _tables(lowering: Lowering, group: Group, new: tuple[int, ...]) -> list[AxisTable]:
    shape, axes = tuple(group.input(0).shape), group.attributes["axes"]
    places = range(len(shape)) if axes is None else [a % len(shape) for a in axes]
    known = [lowering.known(group.optional(i)) for i in (1, 2, 3)]
    if group.attributes["coordinate_transformation_mode"] != "tf_crop_and_resize":
        known[0] = None
    old = [shape[axis] for axis in places]
    return [axis_table(group.head, i, axis, old, new[axis], known) for i, axis in enumerate(places)]


def _pick(
    lowering: Lowering, group: Group, source: Tensor, target: Tensor, tables: list[AxisTable], filler: float
) -> None:
    """Every element of the result is one of the input's."""
    indices = [np.arange(n) for n in source.shape]
    for table in tables:
        indices[table.axis] = table.indices[0]
    beyond = upload_table(lowering, np.array([filler]).astype(source.dtype.numpy))
    if group.tail:
        pick(lowering, source, target, indices, beyond, lambda split: lowering.epilogue(group, split))
    else:
        target, source, beyond = same_bits(target, source, beyond)
        pick(lowering, source, target, indices, beyond)


def _computed(dtype: DType) -> DType:
    """The element type of the sums: float32 for 16-bit floats."""
    return DType.FLOAT32 if dtype.is_half else dtype


def _plan_passes(tables: list[AxisTable]) -> list[list[AxisTable]]:
    """Tables by passes, the innermost axes first; two neighbours go together while their taps are few."""
    waiting = sorted(tables, key=lambda t: t.axis)
    passes = []
    while waiting:
        some = [waiting.pop()]
        if waiting and waiting[-1].axis + 1 == some[0].axis and waiting[-1].taps * some[0].taps <= _MOST_TAPS:
            some.insert(0, waiting.pop())
        passes.append(some)
    return passes


def _interpolate(
    lowering: Lowering, source: Tensor, target: Tensor, tables: list[AxisTable], filler: float, epilogue: Epilogue
) -> None:
    """One pass into a dense tensor, whose dimensions before the first table's axis are the epilogue's rows."""
    first, last = tables[0].axis, tables[-1].axis
    source = lowering.dense(source)
    outer, inner = prod(source.shape[:first]), prod(source.shape[last + 1 :])
    # With one table there is one row.
    one_row = AxisTable(first, np.zeros((1, 1), np.int64), np.ones((1, 1)))
    row, column = tables if len(tables) == 2 else (one_row, tables[0])
    computed = _computed(source.dtype)
    sums = upload_table(lowering, np.array([filler], computed.numpy))
    indices = [upload_table(lowering, _inside(t)) for t in (row, column)]
    weights = [upload_table(lowering, _with_nan(t).astype(computed.numpy)) for t in (row, column)]
    is_cropped = any((t.indices == OUTSIDE).any() for t in (row, column))
    taps = row.taps * column.taps
    defines: list[tuple[str, int | str]] = [("TAPS_Y", row.taps), ("TAPS_X", column.taps)]
    defines.append(("UNROLL", column.taps if taps <= _MOST_TAPS else 1))
    defines += [(name, 1) for name, is_so in (("ONE_INSIDE", inner == 1), ("CROPPED", is_cropped)) if is_so]
    kernel = KernelSource(
        "resize", "interpolate", _LOCAL, tuple(defines), types_of(X=source, Y=target, W=sums), epilogue.chain
    )
    sizes = [outer, row.size, column.size, inner, source.size // outer, source.shape[last] * inner]
    lowering.step(
        kernel,
        [target, source, *indices, *weights, sums, *map(np.int32, sizes), *epilogue.arguments],
        (column.size * inner, row.size, outer),
        flops=(2 * taps + epilogue.chain.cost) * target.size,
    )


def _inside(table: AxisTable) -> Array:
    return np.where(table.indices == OUTSIDE, 0, table.indices).astype(np.int32)


def _with_nan(table: AxisTable) -> Array:
    return np.where(table.indices == OUTSIDE, np.nan, table.weights)
