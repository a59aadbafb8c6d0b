"""Resize: tables of neighbours, then one step that gathers elements, or passes that interpolate."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from lite_compiler.fusion import Group
from lite_core import ops
from lite_core.ir import DType, Node
from lite_opencl.chains import Chain
from lite_opencl.lowering.axis_gather import OUTSIDE, gather_axes
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

#: The largest number of elements that one pass sums for each result; more are split into a pass for each dimension.
_MAX_TAPS = 16


def _refuse(node: Node) -> str | None:
    x, mode = node.inputs[0], ops.attributes_of(node)["mode"]
    if mode == "nearest" or x is None or x.dtype.is_floating:
        return None
    return f"{mode} interpolation of {x.dtype} is truncated, which needs float64; it is implemented for floating types"


@lowers("Resize", refuse=_refuse, epilogue=True, needs_numbers=True)
def resize(lowering: Lowering, group: Group) -> None:
    """Lower Resize to one step that gathers elements, or to passes over one or two neighbouring axes, last first."""
    resized = group.head.outputs[0]
    assert resized is not None
    source, target = lowering.tensor(group.input(0)), lowering.target(group.output)
    if target.size == 0:
        return
    attributes, shape = group.attributes, tuple(resized.shape)
    tables = [t for t in _tables(lowering, group, shape) if t.is_needed(source.shape[t.axis])]
    fill_value = float(attributes["extrapolation_value"])
    if attributes["mode"] == "nearest" or not tables:
        _gather(lowering, group, source, target, tables, fill_value)
        return
    passes = _plan_passes(tables)
    for number, in_pass in enumerate(passes):
        if number == len(passes) - 1:
            _interpolate(lowering, source, target, in_pass, fill_value, lowering.epilogue(group, in_pass[0].axis))
            return
        sizes = list(source.shape)
        for table in in_pass:
            sizes[table.axis] = table.size
        between = lowering.allocate(sizes, _sum_type(source.dtype))
        _interpolate(lowering, source, between, in_pass, fill_value, Epilogue(Chain(between.dtype), []))
        source = between


def _tables(lowering: Lowering, group: Group, new: tuple[int, ...]) -> list[AxisTable]:
    shape, axes = tuple(group.input(0).shape), group.attributes["axes"]
    resized = range(len(shape)) if axes is None else [a % len(shape) for a in axes]
    known = [lowering.known(group.optional(i)) for i in (1, 2, 3)]
    if group.attributes["coordinate_transformation_mode"] != "tf_crop_and_resize":
        known[0] = None
    old = [shape[axis] for axis in resized]
    return [axis_table(group.head, i, axis, old, new[axis], known) for i, axis in enumerate(resized)]


def _gather(
    lowering: Lowering, group: Group, source: Tensor, target: Tensor, tables: list[AxisTable], fill_value: float
) -> None:
    """Emit a step in which every element of the result is an element of the input, or the fill value."""
    indices = [np.arange(n) for n in source.shape]
    for table in tables:
        indices[table.axis] = table.indices[0]
    fill = upload_table(lowering, np.array([fill_value]).astype(source.dtype.numpy))
    if group.tail:
        gather_axes(lowering, source, target, indices, fill, lambda split: lowering.epilogue(group, split))
    else:
        target, source, fill = same_bits(target, source, fill)
        gather_axes(lowering, source, target, indices, fill)


def _sum_type(dtype: DType) -> DType:
    """Return the element type of the sums: float32 for 16-bit floats."""
    return DType.FLOAT32 if dtype.is_half else dtype


def _plan_passes(tables: list[AxisTable]) -> list[list[AxisTable]]:
    """Return the tables of each pass, the innermost axes first; a pass has two neighbouring axes if taps are few."""
    remaining = sorted(tables, key=lambda t: t.axis)
    passes = []
    while remaining:
        in_pass = [remaining.pop()]
        is_next = bool(remaining) and remaining[-1].axis + 1 == in_pass[0].axis
        if is_next and remaining[-1].taps * in_pass[0].taps <= _MAX_TAPS:
            in_pass.insert(0, remaining.pop())
        passes.append(in_pass)
    return passes


def _interpolate(
    lowering: Lowering, source: Tensor, target: Tensor, tables: list[AxisTable], fill_value: float, epilogue: Epilogue
) -> None:
    """Emit one pass into a dense tensor; the epilogue's rows are the dimensions before the first table's axis."""
    first, last = tables[0].axis, tables[-1].axis
    source = lowering.dense(source)
    outer, inner = prod(source.shape[:first]), prod(source.shape[last + 1 :])
    # With one table, all columns form one row.
    one_row = AxisTable(first, np.zeros((1, 1), np.int64), np.ones((1, 1)))
    row, column = tables if len(tables) == 2 else (one_row, tables[0])
    dtype = _sum_type(source.dtype)
    fill = upload_table(lowering, np.array([fill_value], dtype.numpy))
    indices = [upload_table(lowering, _valid_indices(t)) for t in (row, column)]
    weights = [upload_table(lowering, _weights_or_nan(t).astype(dtype.numpy)) for t in (row, column)]
    is_cropped = any((t.indices == OUTSIDE).any() for t in (row, column))
    taps = row.taps * column.taps
    defines: list[tuple[str, int | str]] = [("TAPS_Y", row.taps), ("TAPS_X", column.taps)]
    defines.append(("UNROLL", column.taps if taps <= _MAX_TAPS else 1))
    defines += [(name, 1) for name, is_set in (("ONE_INSIDE", inner == 1), ("CROPPED", is_cropped)) if is_set]
    kernel = KernelSource(
        "resize", "interpolate", _LOCAL, tuple(defines), types_of(X=source, Y=target, W=fill), epilogue.chain
    )
    sizes = [outer, row.size, column.size, inner, source.size // outer, source.shape[last] * inner]
    lowering.step(
        kernel,
        [target, source, *indices, *weights, fill, *map(np.int32, sizes), *epilogue.arguments],
        (column.size * inner, row.size, outer),
        flops=(2 * taps + epilogue.chain.cost) * target.size,
    )


def _valid_indices(table: AxisTable) -> Array:
    """Return the indices of a table, 0 where they are outside of the input."""
    return np.where(table.indices == OUTSIDE, 0, table.indices).astype(np.int32)


def _weights_or_nan(table: AxisTable) -> Array:
    """Return the weights of a table, NaN where the index is outside of the input."""
    return np.where(table.indices == OUTSIDE, np.nan, table.weights)
