"""A case with constant operands and one with operands at run time for every operator whose other cases have none.

A backend prepares constants when it compiles, and may fold, pack or copy them: a kernel that reads an operand rightly
at run time may read it wrongly as a constant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from lite_conformance.cases.op_cases import OpCase, OpTable
from lite_conformance.cases.tensors import Tensor
from lite_core.ir import DType

__all__ = ["complete"]


def complete(table: OpTable) -> None:
    """Add the cases to a table whose operator has operands that no case gives as a constant, or at run time."""
    cases = [(dtype, case) for _, dtype, case in table.cases() if not _is_empty(case)]
    cases.sort(key=lambda item: item[0] is not DType.FLOAT32)
    _add(table, "constant-operands", cases, lambda tensor: replace(tensor, constant=True))
    _add(table, "operands-at-run-time", cases, _at_run_time)


def _add(table: OpTable, label: str, cases: list[tuple[DType, OpCase]], change: Callable[[Tensor], Tensor]) -> None:
    """Add changed copies of the first cases that have an operand that is so in no case."""
    seen = {i for _, case in cases for i, x in enumerate(case.inputs) if x is not None and change(x) == x}
    for dtype, case in cases:
        given = {i for i, x in enumerate(case.inputs) if x is not None}
        if given <= seen:
            continue
        seen |= given
        inputs = [None if x is None else change(x) for x in case.inputs]
        table(f"{label},{case.label}", *inputs, outputs=case.outputs, dtypes=[dtype], numerics=case.numerics,
              captured=case.captured, unspecified=case.unspecified, **case.attributes)  # fmt: skip


def _is_empty(case: OpCase) -> bool:
    return any(0 in tensor.shape for tensor in case.inputs if tensor is not None)


def _at_run_time(tensor: Tensor) -> Tensor:
    """Return a data operand as a run-time input; numbers that may decide about shapes stay as they are."""
    return tensor if tensor.dtype == "int64" else replace(tensor, constant=False)
