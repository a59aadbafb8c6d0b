"""Batched matrix products of strided operands: what MatMul, Gemm, Einsum and recurrent layers have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, NamedTuple

import numpy as np

from lite_core.ir import DType, Value
from lite_opencl.addressing import address
from lite_opencl.kernel_source import KernelSource
from lite_opencl.lowering.context import Epilogue, Lowering, types_of
from lite_opencl.lowering.product_choice import ProductShape, choose_kernel, panel_tile, widest_vector
from lite_opencl.lowering.vectors import Defines, sum_defines, vector_defines
from lite_opencl.tensors import Tensor, collapse

__all__ = ["Matrices", "emit_product", "matrices_of"]

Array = np.ndarray[Any, Any]

#: The work group of ``matmul_split``.
_SPLIT = (32, 8, 1)
#: The work group of ``matmul_local``, rows and columns that one of its work items computes, and steps of the depth.
_LOCAL, _LOCAL_TILE, _LOCAL_DEPTH = (16, 16, 1), 4, 16
#: Sums that a work item of ``matmul_dot`` keeps.
_CHAINS = 4


@dataclass(frozen=True, slots=True)
class Matrices:
    """An operand of a product.

    Attributes:
        tensor: [*batch, rows, columns], strided; a copy of a view costs as much as the view is large.
        array: the same, where it is known before the run, as a view of ``source``.
        source: the constant: what is packed of it is found again by its identity.
    """

    tensor: Tensor
    array: Array | None = None
    source: Array | None = None

    @property
    def batch(self) -> tuple[int, ...]:
        return self.tensor.shape[:-2]

    def permute(self, order: Sequence[int]) -> Matrices:
        """Dimensions in another order."""
        array = None if self.array is None else self.array.transpose(order)
        return replace(self, tensor=self.tensor.permute(order), array=array)

    def swap(self) -> Matrices:
        """Rows as columns."""
        rank = self.tensor.rank
        return self.permute([*range(rank - 2), rank - 1, rank - 2])

    def add_axis(self, axis: int) -> Matrices:
        """A dimension of size 1 before another, or at the end."""
        shape, strides = list(self.tensor.shape), list(self.tensor.strides)
        shape.insert(axis, 1)
        strides.insert(axis, 0)
        array = None if self.array is None else np.expand_dims(self.array, axis)
        return replace(self, tensor=self.tensor.view(shape, strides), array=array)


def matrices_of(lowering: Lowering, value: Value) -> Matrices:
    """A value as it lies."""
    array = lowering.known(value)
    return Matrices(lowering.tensor(value), array, array)


def emit_product(
    lowering: Lowering, a: Matrices, b: Matrices, y: Tensor, epilogue: Epilogue, label: str = "matmul"
) -> None:
    """Emit ``y = epilogue(a @ b)``.

    Args:
        lowering: where the steps go.
        a: [*batch, rows, depth]; batches are broadcast.
        b: [*batch, depth, columns].
        y: dense, [*batch, rows, columns] or another shape of as many elements.
        epilogue: starts from the sums; its rows are those of all matrices of the batch.
        label: what profiles call the step.
    """
    if y.size == 0:
        return
    batch = np.broadcast_shapes(a.batch, b.batch)
    a, b = _merged(a, b, batch)
    if prod(b.batch) == 1 and len(a.batch) == 0:
        batch = ()
    if not a.tensor.shape[-1]:
        # NOTE: an empty tensor may have no memory to pass; what stands in its place is not read.
        a, b = (Matrices(y.view(m.tensor.shape, m.tensor.strides)) for m in (a, b))
    form = _form(lowering, a.tensor, b, epilogue.chain.start)
    a_defines, a_strides = _place_in_batch("A", a.tensor, len(a.batch), batch)
    b_defines, b_strides = _place_in_batch("B", form.b, len(b.batch), batch)
    kernel = KernelSource(
        form.kernel,
        form.kernel,
        form.local,
        (*form.defines, *a_defines, *b_defines),
        types_of(A=a.tensor, B=form.b, Y=y),
        epilogue.chain,
    )
    lowering.step(
        kernel,
        [y, a.tensor, form.b, *map(np.int32, form.sizes), *a_strides, *b_strides, *epilogue.arguments],
        (*form.items, prod(batch)),
        flops=(2 * a.tensor.shape[-1] + epilogue.chain.cost) * y.size,
        label=label,
    )


def _merged(a: Matrices, b: Matrices, batch: Sequence[int]) -> tuple[Matrices, Matrices]:
    """All matrices of the left batch as one, where the right operand is the same for all: it is then read once."""
    if prod(b.batch) != 1:
        return a, b
    spread = a.tensor.expand((*batch, *a.tensor.shape[-2:]))
    (rows,) = collapse([spread.view(spread.shape[:-1], spread.strides[:-1])])
    if rows.rank > 1:
        return a, b
    left = spread.view((rows.size, spread.shape[-1]), (rows.strides[0], spread.strides[-1]))
    return Matrices(left), b


# **** what the kernels are given ****


class _Form(NamedTuple):
    """A kernel for a product: its name and file, work group and macros; sizes among its arguments, and work items.

    ``b`` is the right operand as this kernel reads it.
    """

    kernel: str
    local: tuple[int, int, int]
    defines: Defines
    sizes: Sequence[int]
    items: tuple[int, int]
    b: Tensor


def _form(lowering: Lowering, a: Tensor, b: Matrices, summed: DType) -> _Form:
    shape = ProductShape.of(a, b.tensor)
    kernel = choose_kernel(shape, lowering.device, is_constant=b.array is not None)
    if kernel == "matmul_panels":
        return _panels_form(lowering, shape, b, summed)
    if kernel == "matmul_dot":
        return _dot_form(shape, a, b.tensor, summed, (64, 1, 1) if lowering.device.is_gpu else (1, 1, 1))
    sizes = [shape.rows, shape.columns, shape.depth, *shape.strides]
    defines = sum_defines(summed, 1)
    if kernel == "matmul_split":
        defines += [("ROWS", shape.rows)]
        return _Form(kernel, _SPLIT, defines, sizes[1:], (shape.columns, _SPLIT[1]), b.tensor)
    if kernel == "matmul_local":
        defines += [("ROWS", _LOCAL_TILE), ("COLUMNS", _LOCAL_TILE), ("DEPTH", _LOCAL_DEPTH)]
        defines += [("A_ALONG_DEPTH", 1)] if shape.a_depth == 1 else []
        defines += [("B_ALONG_DEPTH", 1)] if shape.b_depth == 1 and shape.b_column != 1 else []
        items = (-(-shape.columns // _LOCAL_TILE), -(-shape.rows // _LOCAL_TILE))
        return _Form(kernel, _LOCAL, defines, sizes, items, b.tensor)
    local = (min(64, 1 << (shape.columns - 1).bit_length()), 1, 1)
    return _Form(kernel, local, defines, sizes, (shape.columns, shape.rows), b.tensor)


def _panels_form(lowering: Lowering, shape: ProductShape, b: Matrices, summed: DType) -> _Form:
    rows, vectors, width = panel_tile(shape, summed)
    columns = vectors * width
    if b.array is not None and b.source is not None:
        tensor, b_depth = _packed(lowering, b.array, b.source, columns), columns
    else:
        tensor = b.tensor if shape.b_column == 1 else lowering.dense(b.tensor)
        b_depth = tensor.strides[-2]
    defines: Defines = [("ROWS", rows), ("COLUMNS", columns), ("VECTORS", vectors), *sum_defines(summed, width)]
    defines += vector_defines(summed, width, [("B", tensor.dtype)])
    defines += [("PACKED", 1)] if b.array is not None else []
    sizes = [shape.rows, shape.columns, shape.depth, shape.a_row, shape.a_depth, b_depth]
    items = (-(-shape.rows // rows), -(-shape.columns // columns))
    return _Form("matmul_panels", (1, 1, 1), defines, sizes, items, tensor)


def _packed(lowering: Lowering, array: Array, source: Array, columns: int) -> Tensor:
    """A constant right operand as panels [*batch, panels, depth, columns]; the last one begins where it still fits."""

    def pack() -> Array:
        firsts = np.minimum(np.arange(0, array.shape[-1], columns), array.shape[-1] - columns)
        panels = array[..., firsts[:, None] + np.arange(columns)]
        return np.ascontiguousarray(np.moveaxis(panels, -2, -3))

    return lowering.constant(("matmul panels", columns, array.shape, array.strides), [source], pack)


def _dot_form(shape: ProductShape, a: Tensor, b: Tensor, summed: DType, local: tuple[int, int, int]) -> _Form:
    width = widest_vector(summed)
    defines: Defines = [("CHAINS", _CHAINS), *sum_defines(summed, width)]
    defines += vector_defines(summed, width, [("A", a.dtype), ("B", b.dtype)])
    sizes = [shape.rows, shape.columns, shape.depth, shape.a_row, shape.b_column]
    return _Form("matmul_dot", local, defines, sizes, (shape.columns * local[0], shape.rows), b)


def _place_in_batch(name: str, tensor: Tensor, rank: int, batch: Sequence[int]) -> tuple[Defines, list[np.int32]]:
    """``<name>_BATCH(row)``, the element at which a matrix of the batch begins, and the strides that it needs.

    Args:
        name: the kernel's for the operand.
        tensor: the operand.
        rank: how many of its dimensions are the batch, before broadcasting.
        batch: what they are broadcast to.
    """
    own = tensor.view(tensor.shape[:rank], tensor.strides[:rank])
    addressing, arguments = address(own.expand(batch) if batch else own.view((), ()), len(batch))
    parameters = "".join(f", {p}" for p in addressing.parameters(name.lower()))
    index = addressing.index(name.lower())
    return [(f"{name}_PARAMETERS", parameters), (f"{name}_BATCH(row)", f"({index})")], arguments
