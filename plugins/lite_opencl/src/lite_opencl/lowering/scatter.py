"""Operators that store elements at indices: a copy of the data, followed by updates."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np

from lite_compiler.fusion import Group
from lite_compiler.tensors import dense_strides
from lite_core.ir import DType
from lite_opencl.addressing import address
from lite_opencl.lowering.context import Lowering
from lite_opencl.lowering.copying import same_bits
from lite_opencl.lowering.indices import check_indices, line_start
from lite_opencl.lowering.registry import lowers
from lite_opencl.lowering.steps import Argument
from lite_opencl.lowering.tables import upload_table
from lite_opencl.programs.kernel_source import KernelSource
from lite_opencl.tensors import Tensor, types_of

__all__ = ["scatter_elements", "scatter_nd"]

Array = np.ndarray[Any, Any]
Defines = list[tuple[str, int | str]]

_LOCAL = (64, 1, 1)


class _Updates(NamedTuple):
    """Updates as rows of neighbouring elements, and their destinations; see ``scatter.cl``.

    Attributes:
        rows: the number of updates.
        columns: elements of a row.
        indices: the dense indices.
        defines: macros that compute the destination of a row.
        arguments: the arguments that these macros use, beginning with the indices.
    """

    rows: int
    columns: int
    indices: Tensor
    defines: Defines
    arguments: list[Argument]


@lowers("ScatterND")
def scatter_nd(lowering: Lowering, group: Group) -> None:
    """Lower ScatterND: rows at index tuples."""
    data, value = lowering.tensor(group.input(0)), group.input(1)
    depth = value.shape[-1]
    sizes = data.shape[:depth]
    check_indices(lowering, group.head, value, sizes)
    indices = lowering.dense(lowering.tensor(value))
    strides = [prod(data.shape[d + 1 : depth]) for d in range(depth)]
    geometry = upload_table(lowering, np.array([*sizes, *strides], np.int32))
    rows, columns = prod(value.shape[:-1]), prod(data.shape[depth:])
    updates = _Updates(rows, columns, indices, [("DEPTH", depth)], [indices, geometry])
    known = lowering.known(value)
    if group.attributes["reduction"] == "none":
        is_unique = rows <= 1 or (known is not None and _all_differ(known.reshape(rows, depth), sizes))
        _write(lowering, group, updates, prod(sizes), is_unique)
    else:
        _reduce_rows(lowering, group, updates)


def _all_differ(tuples: Array, sizes: tuple[int, ...]) -> bool:
    positive = np.where(tuples < 0, tuples + np.array(sizes), tuples)
    return len(np.unique(positive, axis=0)) == len(tuples)


@lowers("ScatterElements")
def scatter_elements(lowering: Lowering, group: Group) -> None:
    """Lower ScatterElements: elements along the lines of an axis."""
    data, value = lowering.tensor(group.input(0)), group.input(1)
    axis = group.attributes["axis"] % data.rank
    check_indices(lowering, group.head, value, (data.shape[axis],))
    indices = lowering.dense(lowering.tensor(value))
    if group.attributes["reduction"] != "none":
        _reduce_lines(lowering, group, indices, axis)
        return
    shape = tuple(group.output.shape)
    result = data.view(shape, dense_strides(shape))
    line_defines, numbers = line_start("Y", result, indices.shape, axis, indices.rank)
    arguments: list[Argument] = [indices, np.int32(shape[axis]), np.int32(result.strides[axis]), *numbers]
    updates = _Updates(indices.size, 1, indices, [("ALONG_AXIS", 1), *line_defines], arguments)
    _write(lowering, group, updates, prod(shape), indices.shape[axis] <= 1)


def _write(lowering: Lowering, group: Group, updates: _Updates, destinations: int, is_unique: bool) -> None:
    """Emit updates without a reduction: the last update of each destination is stored."""
    change = lowering.dense(lowering.tensor(group.input(2)))
    target = lowering.target(group.output)
    lowering.copy(lowering.tensor(group.input(0)), target)
    if target.size == 0 or not updates.rows:
        return
    winners: list[Tensor] = []
    if not is_unique:
        winners = [lowering.allocate((destinations,), DType.INT32)]
        lowering.copy(upload_table(lowering, np.array([-1], np.int32)).expand((destinations,)), winners[0])
        elect = _kernel("elect", [("ELECT", 1), *updates.defines], I=updates.indices)
        lowering.step(elect, [winners[0], np.int32(updates.rows), *updates.arguments], (updates.rows,))
    result, change = same_bits(target, change)
    rows_first = updates.columns < updates.rows
    defines = [("WRITE", 1), *updates.defines, *([("UNIQUE", 1)] if is_unique else [])]
    if rows_first:
        defines.append(("ROWS_FIRST", 1))
    sizes = (updates.rows, updates.columns)
    kernel = _kernel("write_winners", defines, Y=result, U=change, I=updates.indices)
    arguments = [result, change, *winners, *map(np.int32, sizes), *updates.arguments]
    lowering.step(kernel, arguments, sizes if rows_first else sizes[::-1])


def _reduce_rows(lowering: Lowering, group: Group, updates: _Updates) -> None:
    target, sums, change = _reduction_tensors(lowering, group)
    defines = [("REDUCE_ROWS", 1), *updates.defines, _combine(group)]
    kernel = _kernel("reduce_rows", defines, Y=sums, U=change, I=updates.indices)
    if sums.size and updates.rows:
        numbers = map(np.int32, (updates.rows, updates.columns))
        lowering.step(kernel, [sums, change, *numbers, *updates.arguments], (updates.columns,))
    if sums is not target:
        lowering.copy(sums, target)


def _reduce_lines(lowering: Lowering, group: Group, indices: Tensor, axis: int) -> None:
    target, sums, change = _reduction_tensors(lowering, group)
    shape = [n for a, n in enumerate(indices.shape) if a != axis]
    lines = prod(shape)
    defines: Defines = [("REDUCE_LINES", 1), ("ALONG_AXIS", 1), _combine(group)]
    numbers: list[np.int32] = []
    for name, tensor in (("Y", sums), ("I", indices)):
        strides = [s for a, s in enumerate(tensor.strides) if a != axis]
        addressing, more = address(tensor.view(shape, strides), len(shape))
        parameters = "".join(f", {p}" for p in addressing.parameters(name.lower()))
        defines += [(f"{name}_PARAMETERS", parameters), (f"{name}_INDEX", f"({addressing.index(name.lower())})")]
        numbers += more
    kernel = _kernel("reduce_lines", defines, Y=sums, U=change, I=indices)
    along = map(np.int32, (lines, indices.shape[axis], indices.strides[axis]))
    sizes = map(np.int32, (sums.shape[axis], sums.strides[axis]))
    lowering.step(kernel, [sums, change, *along, indices, *sizes, *numbers], (lines if indices.size else 0,))
    if sums is not target:
        lowering.copy(sums, target)


def _reduction_tensors(lowering: Lowering, group: Group) -> tuple[Tensor, Tensor, Tensor]:
    """Return the result, a tensor with a copy of the data in which updates are combined, and the updates.

    NOTE: 16-bit floats are combined in float32; otherwise they would be rounded after every update.
    """
    data, change = lowering.tensor(group.input(0)), lowering.dense(lowering.tensor(group.input(2)))
    target = lowering.target(group.output)
    sums = lowering.allocate(target.shape, DType.FLOAT32) if target.dtype.is_half else target
    lowering.copy(data, sums)
    return target, sums, change


def _combine(group: Group) -> tuple[str, str]:
    return "COMBINE(a, b)", f"COMBINE_{group.attributes['reduction']}(a, b)"


def _kernel(name: str, defines: Defines, **tensors: Tensor) -> KernelSource:
    return KernelSource("scatter", name, _LOCAL, tuple(defines), types_of(**tensors))
