"""Operators that generate tensors from sizes, scalars and indices, as known values or as chains on index tables."""

from __future__ import annotations

import numpy as np

from lite_compiler.chains import Apply
from lite_compiler.fusion import Group
from lite_compiler.known_values import evaluate_known
from lite_core.ir import DType
from lite_core.ops.evaluate import evaluate_node
from lite_opencl.chains import Chain, Operand
from lite_opencl.lowering.context import Lowering
from lite_opencl.lowering.registry import lowers
from lite_opencl.lowering.tables import upload_table
from lite_opencl.programs.element_types import scalar
from lite_opencl.tensors import Tensor

__all__ = ["eye_like", "from_known", "one_hot", "trilu"]

_INT64 = DType.INT64


@lowers("ConstantOfShape", needs_numbers=True)
@lowers("Range", needs_numbers=True)
def from_known(lowering: Lowering, group: Group) -> None:
    """Lower ConstantOfShape and Range to known elements: their inputs must be known to know their size."""
    (array,) = evaluate_known(group.head, lowering.elements)
    lowering.set_known(group.output, array)


@lowers("EyeLike")
def eye_like(lowering: Lowering, group: Group) -> None:
    """Lower EyeLike to known elements, which follow from the shape."""
    x = group.input(0)
    zeros = np.broadcast_to(np.zeros((), x.dtype.numpy), tuple(x.shape))
    lowering.set_known(group.output, evaluate_node(group.head, [zeros])[0])


@lowers("Trilu")
def trilu(lowering: Lowering, group: Group) -> None:
    """Lower Trilu: keep elements whose ``column - row`` is at least (upper) or at most (lower) ``k``."""
    x, k = group.input(0), group.optional(1)
    source = lowering.tensor(x)
    rows, columns = source.shape[-2:]
    column, row = upload_table(lowering, np.arange(columns)), upload_table(lowering, np.arange(rows)[:, np.newaxis])
    diagonal: Tensor | np.generic = np.int64(0) if k is None else lowering.tensor(k).view((), ())
    keep = "GreaterOrEqual" if group.attributes["upper"] else "LessOrEqual"
    index, element = Operand(_INT64, None), Operand(source.dtype, None)
    chain = Chain(
        _INT64,
        (index, index, element, element),
        (
            Apply("Sub", (0, 1), _INT64),
            Apply(keep, (5, 2), DType.BOOL),
            Apply("Where", (6, 3, 4), source.dtype),
        ),
    )
    operands = [row, diagonal, source, scalar(0, source.dtype)]
    lowering.elementwise(chain, column, operands, lowering.target(group.output))


@lowers("OneHot", needs_numbers=True)
def one_hot(lowering: Lowering, group: Group) -> None:
    """Lower OneHot: ``on`` at the index along the new axis (from the end if negative), ``off`` elsewhere."""
    indices, shape = lowering.dense(lowering.tensor(group.input(0))), tuple(group.output.shape)
    axis = group.attributes["axis"] % len(shape)
    depth = shape[axis]
    with_axis = (*indices.shape[:axis], 1, *indices.shape[axis:])
    wide = indices.reshape(with_axis)
    assert wide is not None, "a dense tensor has a view of any shape"
    along = (-1,) + (1,) * (len(shape) - 1 - axis)
    positive = upload_table(lowering, np.arange(depth).reshape(along))
    negative = upload_table(lowering, np.arange(-depth, 0).reshape(along))
    choice = lowering.tensor(group.input(2))
    off, on = (choice.slice(0, i, 1) for i in range(2))
    index, element = Operand(_INT64, None), Operand(choice.dtype, None)
    chain = Chain(
        wide.dtype,
        (index, index, element, element),
        (
            Apply("Cast", (0,), _INT64, (("to", _INT64),)),
            Apply("Equal", (5, 1), DType.BOOL),
            Apply("Equal", (5, 2), DType.BOOL),
            Apply("Or", (6, 7), DType.BOOL),
            Apply("Where", (8, 4, 3), choice.dtype),
        ),
    )
    lowering.elementwise(chain, wide, [positive, negative, off, on], lowering.target(group.output))
