"""Operators that find extreme elements along an axis: ArgMax, ArgMin, Hardmax and TopK."""

from __future__ import annotations

import numpy as np

from lite_compiler.fusion import Group
from lite_core.ir import DType
from lite_opencl.lowering.context import Lowering
from lite_opencl.lowering.registry import lowers
from lite_opencl.lowering.rows import (
    RowPlan,
    fold,
    rows_first,
    rows_items,
    rows_kernel,
    single_plan,
    strides_of,
    unfold,
)
from lite_opencl.lowering.steps import Argument
from lite_opencl.programs.kernel_source import KernelSource
from lite_opencl.tensors import Tensor

__all__ = ["ranks_are_counted"]

#: The longest rows in which GPUs count ranks: the work grows with the square of the length.
_LONGEST_COUNTED = 8192
_GROUP = 64

_LARGER, _SMALLER = "((a) > (b))", "((a) < (b))"


@lowers("ArgMax", "ArgMin")
def arg_extreme(lowering: Lowering, group: Group) -> None:
    """Lower ArgMax and ArgMin: the index of the largest or the smallest element along an axis."""
    source, target = lowering.tensor(group.input(0)), lowering.target(group.output)
    if not target.size:
        return
    (folded,) = fold(lowering, [rows_first(source, [group.attributes["axis"] % source.rank])], source.rank - 1)
    plan = single_plan(lowering.device, folded)
    defines: dict[str, int | str] = {"EXTREME(a, b)": _LARGER if group.head.op == "ArgMax" else _SMALLER}
    if group.attributes["select_last_index"]:
        defines["LAST"] = 1
    kernel = _kernel("arg_extreme", "ArgExtreme", plan, {"X": folded, "Y": target.view((1,) * 4, (0,) * 4)}, defines)
    lowering.step(
        kernel,
        [target, folded, *_sizes(folded), *strides_of(folded)],
        rows_items(plan, folded),
        flops=source.size,
        label=group.head.op,
    )


@lowers("Hardmax")
def hardmax(lowering: Lowering, group: Group) -> None:
    """Lower Hardmax: 1 at the first of the largest elements along an axis, 0 at the others."""
    source, target = lowering.tensor(group.input(0)), lowering.target(group.output)
    if not target.size:
        return
    views = [rows_first(t, [group.attributes["axis"] % source.rank]) for t in (target, source)]
    y, x = fold(lowering, views, source.rank - 1, results=1)
    plan = single_plan(lowering.device, x)
    kernel = _kernel("arg_extreme", "Hardmax", plan, {"X": x, "Y": y}, {"EXTREME(a, b)": _LARGER})
    arguments: list[Argument] = [y, x, *_sizes(x), *strides_of(x), *strides_of(y)]
    lowering.step(kernel, arguments, rows_items(plan, x), flops=source.size, label="Hardmax")
    unfold(lowering, y, views[0])


@lowers("TopK", needs_numbers=True)
def top_k(lowering: Lowering, group: Group) -> None:
    """Lower TopK: the k most extreme elements along an axis, the most extreme first, and their indices."""
    source = lowering.dense(lowering.tensor(group.input(0)))
    axis = group.attributes["axis"] % source.rank
    count = int(lowering.always_known(group.input(1)).reshape(-1)[0])
    shape = (*source.shape[:axis], count, *source.shape[axis + 1 :])
    outputs = (*group.head.outputs, None)[:2]
    targets = [None if v is None else lowering.target(v) for v in outputs]
    if not source.size or not count:
        return
    # The kernel compares elements in the results' memory, where they must not be rounded.
    results = [
        t if t is not None and t.dtype is dtype else lowering.allocate(shape, dtype)
        for t, dtype in zip(targets, (source.dtype, DType.INT64))
    ]
    # Results differ from the input's shape only in the size of the axis, of which only the stride is used.
    views = [rows_first(t.view(source.shape, t.strides), [axis]) for t in results]
    values, indices, x = fold(lowering, [*views, rows_first(source, [axis])], source.rank - 1)
    largest = bool(group.attributes["largest"])
    defines: dict[str, int | str] = {"EXTREME(a, b)": _LARGER if largest else _SMALLER}
    if not largest:
        defines["NAN_LEAST"] = 1
    outer_rows, rows, _, columns = x.shape
    arguments: list[Argument] = [values, indices, x, *_sizes(x), np.int32(count)]
    arguments += [n for t in (values, indices, x) for n in strides_of(t)]
    by_rank = ranks_are_counted(lowering, columns)
    plan = RowPlan(False, 1, 1, _GROUP if by_rank else 1)
    kernel = _kernel(
        "top_k_by_rank" if by_rank else "top_k_by_heap",
        "TopK",
        plan,
        {"X": x, "VALUES": values, "INDICES": indices},
        defines,
    )
    items = (columns, rows, outer_rows) if by_rank else (rows, outer_rows)
    lowering.step(kernel, arguments, items, results=(0, 1), flops=source.size, label="TopK")
    for target, result in zip(targets, results):
        if target is not None and target is not result:
            lowering.copy(result, target)


def ranks_are_counted(lowering: Lowering, columns: int) -> bool:
    """Return True if each element counts the elements that beat it, instead of one work item scanning the row."""
    return lowering.device.kind != "CPU" and columns <= _LONGEST_COUNTED


def _kernel(
    name: str, op: str, plan: RowPlan, folded: dict[str, Tensor], defines: dict[str, int | str]
) -> KernelSource:
    return rows_kernel("search", name, op, plan, folded, "int", defines)


def _sizes(x: Tensor) -> list[np.int32]:
    """Return the arguments for rows and columns of a folded tensor."""
    return [np.int32(x.shape[1]), np.int32(x.shape[3])]
