"""Batched matrix products of strided operands, shared by MatMul, Gemm, Einsum and recurrent layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, NamedTuple

import numpy as np

from lite_compiler.tournaments.choice import problem
from lite_core.ir import DType, Value
from lite_opencl.addressing import address
from lite_opencl.lowering.chaining import Epilogue
from lite_opencl.lowering.context import Lowering
from lite_opencl.lowering.product_choice import ProductForm, ProductShape, product_forms
from lite_opencl.lowering.vectors import Defines, sum_defines, vector_defines
from lite_opencl.programs.kernel_source import KernelSource
from lite_opencl.tensors import Tensor, collapse, types_of

__all__ = ["Matrices", "emit_product", "matrices_of"]

Array = np.ndarray[Any, Any]

#: Independent sums of a work item of ``matmul_dot``.
_CHAINS = 4


@dataclass(frozen=True, slots=True)
class Matrices:
    """An operand of a product.

    Attributes:
        tensor: [*batch, rows, columns], strided; to copy a broadcast view costs as much as its broadcast size.
        array: the same elements if they are known before the run, as a view of ``source``.
        source: the constant; packed panels are found again by its identity.
    """

    tensor: Tensor
    array: Array | None = None
    source: Array | None = None

    @property
    def batch(self) -> tuple[int, ...]:
        return self.tensor.shape[:-2]

    def permute(self, order: Sequence[int]) -> Matrices:
        """Return the operand with its dimensions in another order."""
        array = None if self.array is None else self.array.transpose(order)
        return replace(self, tensor=self.tensor.permute(order), array=array)

    def swap(self) -> Matrices:
        """Return the transposed matrices."""
        rank = self.tensor.rank
        return self.permute([*range(rank - 2), rank - 1, rank - 2])

    def add_axis(self, axis: int) -> Matrices:
        """Return the operand with a dimension of size 1 inserted at ``axis``."""
        shape, strides = list(self.tensor.shape), list(self.tensor.strides)
        shape.insert(axis, 1)
        strides.insert(axis, 0)
        array = None if self.array is None else np.expand_dims(self.array, axis)
        return replace(self, tensor=self.tensor.view(shape, strides), array=array)


def matrices_of(lowering: Lowering, value: Value) -> Matrices:
    """Return a value as an operand, without a copy."""
    array = lowering.known(value)
    return Matrices(lowering.tensor(value), array, array)


def emit_product(
    lowering: Lowering, a: Matrices, b: Matrices, y: Tensor, epilogue: Epilogue, label: str = "matmul"
) -> None:
    """Emit ``y = epilogue(a @ b)``.

    Args:
        lowering: gets the steps.
        a: [*batch, rows, depth]; batches are broadcast.
        b: [*batch, depth, columns].
        y: dense, [*batch, rows, columns] or another shape of as many elements.
        epilogue: starts from the sums; its rows are the rows of all matrices of the batch.
        label: the name of the step in profiles.
    """
    if y.size == 0:
        return
    batch = np.broadcast_shapes(a.batch, b.batch)
    a, b = _merged(a, b, batch)
    if prod(b.batch) == 1 and len(a.batch) == 0:
        batch = ()
    if not a.tensor.shape[-1]:
        # NOTE: an empty tensor may have no memory to pass; the result stands in for it and is not read.
        a, b = (Matrices(y.view(m.tensor.shape, m.tensor.strides)) for m in (a, b))
    shape, summed, is_constant = ProductShape.of(a.tensor, b.tensor), epilogue.chain.start, b.array is not None

    def emit(emitter: Lowering, form: ProductForm) -> None:
        call = _call(emitter, form, shape, a.tensor, b, summed)
        a_defines, a_strides = _batch_offset("A", a.tensor, len(a.batch), batch)
        b_defines, b_strides = _batch_offset("B", call.b, len(b.batch), batch)
        kernel = KernelSource(
            form.kernel,
            form.kernel,
            form.local,
            (*call.defines, *a_defines, *b_defines),
            types_of(A=a.tensor, B=call.b, Y=y),
            epilogue.chain,
        )
        emitter.step(
            kernel,
            [y, a.tensor, call.b, *map(np.int32, call.sizes), *a_strides, *b_strides, *epilogue.arguments],
            (*call.items, prod(batch)),
            flops=(2 * shape.depth + epilogue.chain.cost) * y.size,
            label=label,
        )

    lowering.choose(
        problem(
            "product",
            [a.tensor, b.tensor, y],
            batch=prod(batch),
            rows=shape.rows,
            columns=shape.columns,
            depth=shape.depth,
            layout="".join("1" if stride == 1 else "n" for stride in shape.strides),
            constant=is_constant,
        ),
        product_forms(shape, summed, lowering.device, is_constant=is_constant),
        emit,
    )


def _merged(a: Matrices, b: Matrices, batch: Sequence[int]) -> tuple[Matrices, Matrices]:
    """Merge the left batch into one matrix if all use the same right operand, which is then read once."""
    if prod(b.batch) != 1:
        return a, b
    expanded = a.tensor.expand((*batch, *a.tensor.shape[-2:]))
    (rows,) = collapse([expanded.view(expanded.shape[:-1], expanded.strides[:-1])])
    if rows.rank > 1:
        return a, b
    left = expanded.view((rows.size, expanded.shape[-1]), (rows.strides[0], expanded.strides[-1]))
    return Matrices(left), b


# **** arguments of the kernels ****


class _Call(NamedTuple):
    """The parameters of a kernel call.

    Attributes:
        defines: macros.
        sizes: the sizes and strides among the arguments.
        items: numbers of work items.
        b: the right operand, packed or copied if the kernel needs that.
    """

    defines: Defines
    sizes: Sequence[int]
    items: tuple[int, int]
    b: Tensor


def _call(lowering: Lowering, form: ProductForm, shape: ProductShape, a: Tensor, b: Matrices, summed: DType) -> _Call:
    if form.kernel == "matmul_panels":
        return _panels_call(lowering, form, shape, b, summed)
    sizes = [shape.rows, shape.columns, shape.depth, *shape.strides]
    defines = sum_defines(summed, form.width)
    if form.kernel == "matmul_dot":
        defines += [("CHAINS", _CHAINS), *vector_defines(summed, form.width, [("A", a.dtype), ("B", b.tensor.dtype)])]
        return _Call(
            defines, [*sizes[:3], shape.a_row, shape.b_column], (shape.columns * form.local[0], shape.rows), b.tensor
        )
    if form.kernel == "matmul_split":
        return _Call([*defines, ("ROWS", form.rows)], sizes[1:], (shape.columns, form.local[1]), b.tensor)
    if form.kernel == "matmul_local":
        defines += [("ROWS", form.rows), ("COLUMNS", form.vectors), ("DEPTH", form.depth)]
        defines += [("A_ALONG_DEPTH", 1)] if shape.a_depth == 1 else []
        defines += [("B_ALONG_DEPTH", 1)] if shape.b_depth == 1 and shape.b_column != 1 else []
        return _Call(defines, sizes, (-(-shape.columns // form.vectors), -(-shape.rows // form.rows)), b.tensor)
    return _Call(defines, sizes, (shape.columns, shape.rows), b.tensor)


def _panels_call(lowering: Lowering, form: ProductForm, shape: ProductShape, b: Matrices, summed: DType) -> _Call:
    columns = form.vectors * form.width
    if b.array is not None and b.source is not None:
        tensor, b_depth = _packed(lowering, b.array, b.source, columns), columns
    else:
        tensor = b.tensor if shape.b_column == 1 else lowering.dense(b.tensor)
        b_depth = tensor.strides[-2]
    defines: Defines = [("ROWS", form.rows), ("COLUMNS", columns), ("VECTORS", form.vectors)]
    defines += sum_defines(summed, form.width) + vector_defines(summed, form.width, [("B", tensor.dtype)])
    defines += [("PACKED", 1)] if b.array is not None else []
    sizes = [shape.rows, shape.columns, shape.depth, shape.a_row, shape.a_depth, b_depth]
    return _Call(defines, sizes, (-(-shape.rows // form.rows), -(-shape.columns // columns)), tensor)


def _packed(lowering: Lowering, array: Array, source: Array, columns: int) -> Tensor:
    """Pack a constant right operand as panels [*batch, panels, depth, columns]; the last ones may overlap."""

    def pack() -> Array:
        firsts = np.minimum(np.arange(0, array.shape[-1], columns), array.shape[-1] - columns)
        panels = array[..., firsts[:, None] + np.arange(columns)]
        return np.ascontiguousarray(np.moveaxis(panels, -2, -3))

    return lowering.constant(("matmul panels", columns, array.shape, array.strides), [source], pack)


def _batch_offset(name: str, tensor: Tensor, rank: int, batch: Sequence[int]) -> tuple[Defines, list[np.int32]]:
    """Define ``<name>_BATCH(row)``, the first element of a matrix of the batch, and return the strides that it needs.

    Args:
        name: the kernel's name for the operand.
        tensor: the operand.
        rank: the number of its batch dimensions before broadcasting.
        batch: the shape that they are broadcast to.
    """
    in_batch = tensor.view(tensor.shape[:rank], tensor.strides[:rank])
    addressing, arguments = address(in_batch.expand(batch) if batch else in_batch.view((), ()), len(batch))
    parameters = "".join(f", {p}" for p in addressing.parameters(name.lower()))
    index = addressing.index(name.lower())
    return [(f"{name}_PARAMETERS", parameters), (f"{name}_BATCH(row)", f"({index})")], arguments
