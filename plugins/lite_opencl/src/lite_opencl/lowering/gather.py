"""Operators that load elements at indices."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from lite_compiler.fusion import Group
from lite_compiler.views import gather_view
from lite_opencl.chains import Chain
from lite_opencl.lowering.chaining import Epilogue
from lite_opencl.lowering.context import Lowering
from lite_opencl.lowering.copying import same_bits
from lite_opencl.lowering.elementwise import pass_view
from lite_opencl.lowering.indices import check_indices, check_ranges, line_start, row_items
from lite_opencl.lowering.registry import lowers
from lite_opencl.lowering.tables import upload_table
from lite_opencl.programs.kernel_source import KernelSource
from lite_opencl.tensors import Tensor, types_of

__all__ = ["gather", "gather_elements", "gather_nd", "reverse_sequence"]

Array = np.ndarray[Any, Any]

_LOCAL = (64, 1, 1)


@lowers("Gather", epilogue=True)
def gather(lowering: Lowering, group: Group) -> None:
    """Lower Gather to a view if the indices are known and evenly spaced, else to copies of rows."""
    indices, source = group.input(1), lowering.tensor(group.input(0))
    axis = group.attributes["axis"] % source.rank
    size = source.shape[axis]
    check_indices(lowering, group.head, indices, (size,))
    known = lowering.known(indices)
    view = None if known is None else gather_view(source, axis, known)
    if view is not None:
        pass_view(lowering, group, view)
        return
    outer, row = prod(source.shape[:axis]), prod(source.shape[axis + 1 :])
    selection = _RowSelection(outer, prod(indices.shape), 0, [size], [row], split=axis + len(indices.shape))
    _gather_rows(lowering, group, source, selection)


@lowers("GatherND", epilogue=True)
def gather_nd(lowering: Lowering, group: Group) -> None:
    """Lower GatherND: rows at index tuples, one batch entry after another."""
    indices, source = group.input(1), lowering.tensor(group.input(0))
    batch, depth = group.attributes["batch_dims"], indices.shape[-1]
    sizes = source.shape[batch : batch + depth]
    check_indices(lowering, group.head, indices, sizes)
    strides = [prod(source.shape[d + 1 :]) for d in range(batch, batch + depth)]
    tuples, index_outer = prod(indices.shape[batch:-1]), prod(indices.shape[batch:])
    outer, split = prod(source.shape[:batch]), len(indices.shape) - 1
    _gather_rows(lowering, group, source, _RowSelection(outer, tuples, index_outer, sizes, strides, split))


class _RowSelection(NamedTuple):
    """The rows that are gathered; see ``gather_rows`` in ``gather.cl``.

    Attributes:
        outer: number of entries of the source.
        tuples: number of index tuples for each entry.
        index_outer: number of indices from the tuples of one entry to those of the next; 0 if entries share them.
        sizes, strides: sizes and strides of the dimensions that a tuple addresses.
        split: number of dimensions of the result that count tuples of all entries.
    """

    outer: int
    tuples: int
    index_outer: int
    sizes: Sequence[int]
    strides: Sequence[int]
    split: int


def _gather_rows(lowering: Lowering, group: Group, source: Tensor, selection: _RowSelection) -> None:
    """Emit the copy of the selected rows of a tensor."""
    source, result, epilogue = _views_and_epilogue(
        lowering, group, lowering.dense(source), lowering.target(group.output), selection.split
    )
    if result.size == 0:
        return
    outer, tuples, index_outer, sizes, strides, _ = selection
    indices = lowering.dense(lowering.tensor(group.input(1)))
    source_outer = source.size // outer
    rows, columns = outer * tuples, source_outer // prod(sizes)
    flat, items = row_items(rows, columns)
    kernel = KernelSource(
        "gather",
        "gather_rows",
        _LOCAL,
        (("GATHER_ROWS", 1), ("DEPTH", len(sizes)), *flat),
        types_of(X=source, I=indices, Y=result),
        epilogue.chain,
    )
    geometry = upload_table(lowering, np.array([*sizes, *strides], np.int32))
    numbers = map(np.int32, (rows, columns, tuples, source_outer, index_outer))
    lowering.step(kernel, [result, source, indices, geometry, *numbers, *epilogue.arguments], items)


def _views_and_epilogue(
    lowering: Lowering, group: Group, source: Tensor, result: Tensor, split: int
) -> tuple[Tensor, Tensor, Epilogue]:
    """Return source, result and epilogue of a kernel; elements are moved as bits if the group has no tail."""
    if group.tail:
        return source, result, lowering.epilogue(group, split)
    source, result = same_bits(source, result)
    return source, result, Epilogue(Chain(source.dtype), [])


@lowers("GatherElements", epilogue=True)
def gather_elements(lowering: Lowering, group: Group) -> None:
    """Lower GatherElements: one element for each index, from the index's line along the axis."""
    axis_of = group.attributes["axis"]
    split = max(len(group.output.shape) - 1, 0)
    source, target = lowering.tensor(group.input(0)), lowering.target(group.output)
    source, result, epilogue = _views_and_epilogue(lowering, group, source, target, split)
    axis = axis_of % source.rank
    check_indices(lowering, group.head, group.input(1), (source.shape[axis],))
    indices = lowering.dense(lowering.tensor(group.input(1)))
    rows, columns = prod(result.shape[:split]), prod(result.shape[split:])
    flat, items = row_items(rows, columns)
    line_defines, arguments = line_start("X", source, indices.shape, axis, split)
    kernel = KernelSource(
        "gather",
        "gather_elements",
        _LOCAL,
        (("GATHER_ELEMENTS", 1), *flat, *line_defines),
        types_of(X=source, I=indices, Y=result),
        epilogue.chain,
    )
    numbers = map(np.int32, (rows, columns, source.shape[axis], source.strides[axis]))
    lowering.step(kernel, [result, source, indices, *numbers, *arguments, *epilogue.arguments], items)


@lowers("ReverseSequence")
def reverse_sequence(lowering: Lowering, group: Group) -> None:
    """Lower ReverseSequence: the first time steps of each batch entry in reverse order, the others unchanged."""
    source, result = same_bits(lowering.dense(lowering.tensor(group.input(0))), lowering.target(group.output))
    longest = source.shape[group.attributes["time_axis"]]
    check_ranges(lowering, group.head, group.input(1), "sequence length", [range(longest + 1)])
    lengths = lowering.dense(lowering.tensor(group.input(1)))
    rows, columns = prod(source.shape[:2]), prod(source.shape[2:])
    flat, items = row_items(rows, columns)
    first = [("TIME_FIRST", 1)] if group.attributes["time_axis"] == 0 else []
    kernel = KernelSource(
        "gather", "reverse_sequence", _LOCAL, (("REVERSE", 1), *first, *flat), types_of(X=source, Y=result)
    )
    numbers = map(np.int32, (rows, columns, source.shape[1]))
    lowering.step(kernel, [result, source, lengths, *numbers], items)
