"""Folding of tensors to rows and columns, for kernels that process all elements along some axes; see ``rows.cl``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from lite_compiler.tensors import dense_strides
from lite_core.ir import DType
from lite_opencl.chains import Chain
from lite_opencl.device.devices import FoundDevice
from lite_opencl.lowering.chaining import Epilogue
from lite_opencl.lowering.context import Lowering
from lite_opencl.programs.element_types import c_type
from lite_opencl.programs.kernel_source import KernelSource
from lite_opencl.tensors import Tensor, collapse, types_of

__all__ = [
    "RowPlan",
    "Tail",
    "choose_plan",
    "fold",
    "is_foldable",
    "row_epilogue",
    "rows_first",
    "rows_items",
    "rows_kernel",
    "single_plan",
    "sizes_of",
    "strides_of",
    "sum_type",
    "unfold",
]

#: The tail of a group and its operands, from :meth:`Lowering.chain`.
Tail = tuple[Chain, list["Tensor | np.generic"]]

#: Bytes of a vector on processors. NOTE: PoCL's compiler is known to hang on vectors of 64 bytes.
_VECTOR_BYTES = 32

#: Rows shorter than the first number do not use vectors along a row, if there are at least as many as the second.
_SHORT_ROW, _MANY_ROWS = 8, 32

#: Work items of a work group on a GPU: if several share a row, and if each has a separate row.
_GPU_SHARED, _GPU_GROUP = 256, 64

#: With fewer rows than this, a GPU uses several work items for each row, if rows are long enough.
_GPU_FEW_ROWS, _GPU_LONG_ROW, _GPU_SLICES = 16384, 64, 8


@dataclass(frozen=True, slots=True)
class RowPlan:
    """The distribution of rows over work items: the macros of ``kernels/rows.cl`` of the same names."""

    along: bool
    lanes: int
    slices: int
    group_rows: int

    @property
    def local(self) -> int:
        return self.slices * self.group_rows


def rows_first(tensor: Tensor, axes: Collection[int]) -> Tensor:
    """Return the tensor with the reduced axes after all others."""
    others = [a for a in range(tensor.rank) if a not in axes]
    return tensor.permute([*others, *sorted(axes)])


def row_epilogue(lowering: Lowering, tail: Tail, shape: Sequence[int], axes: Collection[int]) -> Epilogue:
    """Return the epilogue of a result of ``shape``, for a kernel that counts rows and columns as :func:`rows_first`."""
    chain, operands = tail
    views = [rows_first(o.expand(shape), axes) if isinstance(o, Tensor) else o for o in operands]
    sizes = [*(n for a, n in enumerate(shape) if a not in axes), *(shape[a] for a in sorted(axes))]
    return lowering.epilogue_of(chain, views, sizes, len(shape) - len(axes))


def is_foldable(tensors: Sequence[Tensor], split: int) -> bool:
    """Return True if :func:`fold` makes no copies."""
    return all(part[0].rank <= 2 for part in _collapsed(tensors, split))


def _collapsed(tensors: Sequence[Tensor], split: int) -> tuple[list[Tensor], list[Tensor]]:
    """Return the rows and the columns of tensors, each in the fewest dimensions."""
    rows = collapse([t.view(t.shape[:split], t.strides[:split]) for t in tensors])
    return rows, collapse([t.view(t.shape[split:], t.strides[split:]) for t in tensors])


def fold(lowering: Lowering, tensors: Sequence[Tensor], split: int, results: int = 0) -> list[Tensor]:
    """Return tensors of one shape as [outer rows, rows, outer columns, columns].

    If their dimensions cannot be folded, as with many dimensions that are not neighbours in memory, inputs are copied
    first, and results get temporary tensors, which :func:`unfold` copies to their destinations.

    Args:
        lowering: gets the copies.
        tensors: tensors with rows first; see :func:`rows_first`.
        split: number of dimensions that are rows.
        results: number of tensors at the beginning that are results.
    """
    shape = tensors[0].shape
    if not prod(shape):
        sizes = (1, prod(shape[:split]), 1, prod(shape[split:]))
        return [t.view(sizes, (0, 0, 0, 0)) for t in tensors]
    if not is_foldable(tensors, split):
        sizes = (1, prod(shape[:split]), 1, prod(shape[split:]))
        temporaries = [lowering.allocate(shape, t.dtype) for t in tensors[:results]]
        dense = [*temporaries, *(lowering.dense(t) for t in tensors[results:])]
        return [t.view(sizes, (0, sizes[3], 0, 1)) for t in dense]
    rows, columns = _collapsed(tensors, split)
    return [
        t.view(
            (*(1 for _ in range(2 - r.rank)), *r.shape, *(1 for _ in range(2 - c.rank)), *c.shape),
            (*(0 for _ in range(2 - r.rank)), *r.strides, *(0 for _ in range(2 - c.rank)), *c.strides),
        )
        for t, r, c in zip(tensors, rows, columns)
    ]


def unfold(lowering: Lowering, folded: Tensor, result: Tensor) -> None:
    """Copy ``folded`` to ``result``, the tensor that was folded, if :func:`fold` made it a temporary tensor."""
    if folded.storage is not result.storage:
        lowering.copy(folded.view(result.shape, dense_strides(result.shape)), result)


def single_plan(device: FoundDevice, x: Tensor) -> RowPlan:
    """Return the plan of :func:`choose_plan` for kernels that process one element at a time."""
    plan = choose_plan(device, x, _VECTOR_BYTES)
    return replace(plan, group_rows=1 if plan.along else _GPU_GROUP) if device.kind == "CPU" else plan


def choose_plan(device: FoundDevice, x: Tensor, element_bytes: int) -> RowPlan:
    """Return the distribution of the rows of a tensor over work items.

    Args:
        device: the device; processors use vectors, GPUs single elements and several work items for a row.
        x: a folded tensor; see :func:`fold`.
        element_bytes: size of the type that is computed in.
    """
    outer_rows, rows, outer_columns, columns = x.shape
    row_length = outer_columns * columns
    along = columns > 1 and not (x.strides[1] == 1 and rows > 1 and x.strides[3] != 1)
    if along and row_length < _SHORT_ROW and rows >= _MANY_ROWS:
        along = False
    if device.kind == "CPU":
        lanes = min(_VECTOR_BYTES // max(element_bytes, 4), _power_of_two(columns if along else rows))
        return RowPlan(along, max(lanes, 1), 1, 1)
    if along:
        slices = min(_power_of_two(columns), _GPU_SHARED, _power_of_two(device.largest_group))
        return RowPlan(True, 1, slices, max(1, min(_GPU_GROUP, device.largest_group) // slices))
    is_shared = outer_rows * rows < _GPU_FEW_ROWS and row_length >= _GPU_LONG_ROW
    slices = _GPU_SLICES if is_shared and device.largest_group >= _GPU_SHARED else 1
    return RowPlan(False, 1, slices, min(_GPU_SHARED // slices if slices > 1 else _GPU_GROUP, device.largest_group))


def _power_of_two(number: int) -> int:
    """Return the largest power of two up to a number."""
    return 1 << (max(number, 1).bit_length() - 1)


def rows_kernel(
    file: str,
    name: str,
    op: str,
    plan: RowPlan,
    folded: Mapping[str, Tensor],
    acc: str,
    defines: Mapping[str, int | str],
    chain: Chain | None = None,
) -> KernelSource:
    """Return a kernel of ``rows.cl``, or of another file that uses its macros for rows and strides.

    Args:
        file: the file.
        name: the name of the kernel.
        op: the operation, a macro of the file.
        plan: from :func:`choose_plan`.
        folded: tensors by the kernel's names for their types, including ``X``.
        acc: the type that is computed in.
        defines: further macros.
        chain: the epilogue, or None if the kernel has none.
    """
    given: dict[str, int | str] = {
        op: 1,
        **({"ALONG": 1} if plan.along else {}),
        "LANES": plan.lanes,
        "SLICES": plan.slices,
        "GROUP_ROWS": plan.group_rows,
        "ACC": acc,
        **({"SINGLE": 1} if acc == "float" else {}),
        **defines,
    }
    for letters, tensor in folded.items():
        given[f"{letters}_KIND"] = c_type(tensor.dtype).suffix
        for direction, stride in (("ROW", tensor.strides[1]), ("COLUMN", tensor.strides[3])):
            low = letters.lower()
            given[f"{direction}_{low}"] = stride if stride in (0, 1) else f"{low}_{direction.lower()}"
    return KernelSource(file, name, (plan.local, 1, 1), tuple(given.items()), types_of(**folded), chain)


def rows_items(plan: RowPlan, x: Tensor) -> tuple[int, int]:
    """Return the numbers of work items for the rows of a folded tensor."""
    vectors = -(-x.shape[1] // (1 if plan.along else plan.lanes))
    return -(-vectors // plan.group_rows) * plan.local, x.shape[0]


def sum_type(dtype: DType) -> str:
    """Return the type in which elements are summed; integers are summed as unsigned ones, which may wrap around."""
    if dtype.is_floating:
        return c_type(dtype).compute
    return "ulong" if dtype.itemsize == 8 else "uint"


def sizes_of(x: Tensor) -> list[np.int32]:
    """Return the arguments for rows, outer columns and columns of a folded tensor."""
    return [np.int32(n) for n in x.shape[1:]]


def strides_of(tensor: Tensor) -> list[np.int32]:
    """Return the arguments for the strides of a folded tensor."""
    return [np.int32(s) for s in tensor.strides]
