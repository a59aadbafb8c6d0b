"""Lowering of CumSum, a running sum."""

from __future__ import annotations

import numpy as np

from lite_compiler.fusion import Group
from lite_opencl.lowering.context import Lowering
from lite_opencl.lowering.registry import lowers
from lite_opencl.lowering.rows import (
    fold,
    rows_first,
    rows_items,
    rows_kernel,
    single_plan,
    strides_of,
    sum_type,
    unfold,
)
from lite_opencl.lowering.steps import Argument

__all__ = ["running_sum"]


@lowers("CumSum", needs_numbers=True)
def running_sum(lowering: Lowering, group: Group) -> None:
    """Lower CumSum; for the reverse order, both tensors are walked from their ends."""
    source, target = lowering.tensor(group.input(0)), lowering.target(group.output)
    if not source.size:
        return
    axis = int(lowering.always_known(group.input(1)).reshape(-1)[0]) % source.rank
    tensors = [target, source]
    if group.attributes["reverse"]:
        last = source.shape[axis] - 1
        tensors = [t.slice(axis, last, last + 1, -1) for t in tensors]
    views = [rows_first(t, [axis]) for t in tensors]
    y, x = fold(lowering, views, source.rank - 1, results=1)
    plan = single_plan(lowering.device, x)
    defines: dict[str, int | str] = {"EXCLUSIVE": 1} if group.attributes["exclusive"] else {}
    acc = sum_type(source.dtype)
    kernel = rows_kernel("scan", "running_sum", "CumSum", plan, {"Y": y, "X": x}, acc, defines)
    arguments: list[Argument] = [y, x, np.int32(x.shape[1]), np.int32(x.shape[3]), *strides_of(y), *strides_of(x)]
    lowering.step(kernel, arguments, rows_items(plan, x), flops=source.size, label="CumSum")
    unfold(lowering, y, views[0])
