"""Einsum: a matrix product of views with reordered axes if possible, else a sum by the definition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from lite_compiler.equation import Contraction, Equation, Labels
from lite_compiler.fusion import Group
from lite_core.ir import Value
from lite_opencl.addressing import address
from lite_opencl.lowering.context import Lowering
from lite_opencl.lowering.products import Matrices, emit_product
from lite_opencl.lowering.registry import lowers
from lite_opencl.lowering.steps import Argument
from lite_opencl.lowering.vectors import Defines, sum_type
from lite_opencl.programs.kernel_source import KernelSource
from lite_opencl.tensors import Tensor, collapse, types_of

__all__ = ["einsum"]

_LOCAL = (64, 1, 1)


@lowers("Einsum", epilogue=True)
def einsum(lowering: Lowering, group: Group) -> None:
    """Lower Einsum to a batched matrix product, or to a sum by the definition."""
    values = [group.input(i) for i in range(len(group.head.inputs))]
    equation = Equation.parse(group.attributes["equation"], [len(v.shape) for v in values])
    sizes = equation.sizes([v.shape for v in values])
    contraction = equation.contraction()
    if contraction is None or not (contraction.rows or contraction.columns):
        _by_definition(lowering, group, equation, sizes, values)
    else:
        _as_product(lowering, group, contraction, sizes, values)


# **** batched matrix products ****


def _as_product(
    lowering: Lowering, group: Group, axes: Contraction, sizes: Mapping[str, int], values: Sequence[Value]
) -> None:
    left = _arranged(lowering, values[0], axes.left, (axes.batch, axes.rows, axes.depth), sizes)
    right = _arranged(lowering, values[1], axes.right, (axes.batch, axes.depth, axes.columns), sizes)
    result = group.head.outputs[0]
    assert result is not None
    order = (*axes.batch, *axes.rows, *axes.columns)
    target = lowering.target(group.output)
    if order == axes.output:
        epilogue = lowering.epilogue(group, split=len(axes.batch) + len(axes.rows))
        emit_product(lowering, left, right, target, epilogue, label="einsum")
        return
    # The tail of the group runs in the step that reorders the axes of the result.
    product = lowering.allocate([sizes[n] for n in order], result.dtype)
    plain, _ = lowering.chain(result, [])
    emit_product(lowering, left, right, product, lowering.epilogue_of(plain, [], product.shape, 0), label="einsum")
    chain, operands = lowering.chain(result, group.tail)
    lowering.elementwise(chain, product.permute([order.index(n) for n in axes.output]), operands, target)


def _arranged(
    lowering: Lowering, value: Value, labels: Labels, kinds: Sequence[Labels], sizes: Mapping[str, int]
) -> Matrices:
    """Return an operand as [*batch, rows, columns], where rows and columns merge all labels of their kind."""
    order = [label for kind in kinds for label in kind]
    permutation = [labels.index(label) for label in order]
    tensor = lowering.tensor(value).permute(permutation).expand([sizes[n] for n in order])
    batch = [sizes[n] for n in kinds[0]]
    shape = [*batch, *(prod(sizes[n] for n in kind) for kind in kinds[1:])]
    strides = _merged(tensor, len(batch), len(kinds[1]))
    if strides is None:
        dense = lowering.dense(tensor).reshape(shape)
        assert dense is not None
        return Matrices(dense)
    array = lowering.known(value)
    matrices = tensor.view(shape, strides)
    if array is None or list(value.shape) != [sizes[n] for n in labels] or any(len(kind) != 1 for kind in kinds[1:]):
        return Matrices(matrices)
    return Matrices(matrices, array.transpose(permutation), array)


def _merged(tensor: Tensor, batch: int, rows: int) -> list[int] | None:
    """Return the strides after merging the dimensions after the batch into two, or None if that needs a copy."""
    strides = list(tensor.strides[:batch])
    for part in (slice(batch, batch + rows), slice(batch + rows, tensor.rank)):
        (merged,) = collapse([tensor.view(tensor.shape[part], tensor.strides[part])])
        if merged.rank > 1:
            return None
        strides.append(merged.strides[0])
    return strides


# **** sums by the definition ****


def _by_definition(
    lowering: Lowering, group: Group, equation: Equation, sizes: Mapping[str, int], values: Sequence[Value]
) -> None:
    result = group.head.outputs[0]
    assert result is not None
    summed = equation.summed
    order = (*equation.output, *summed)
    y = lowering.target(group.output)
    tensors: dict[str, Tensor] = {}
    parameters: list[str] = []
    arguments: list[Argument] = []
    factors: list[str] = []
    for number, (value, labels) in enumerate(zip(values, equation.operands)):
        tensor = lowering.tensor(value)
        strides = dict.fromkeys(order, 0)
        for label, size, stride in zip(labels, tensor.shape, tensor.strides):
            # A label that occurs twice selects the diagonal.
            strides[label] += stride if size != 1 else 0
        walked = tensor.view([sizes[n] for n in order], [strides[n] for n in order])
        addressing, more = address(walked, len(equation.output))
        name = f"x{number}"
        tensors[name.upper()] = tensor
        parameters += [f"INPUT({name.upper()}_TYPE, {name})", *addressing.parameters(name)]
        arguments += [walked, *more]
        factors.append(f"(SUM)LOAD_{name.upper()}(POINTER({name}), {addressing.index(name)})")
    defines: Defines = [
        ("SUM", sum_type(result.dtype)),
        ("OPERANDS", "".join(f", {p}" for p in parameters)),
        ("FACTORS", " * ".join(factors)),
    ]
    epilogue = lowering.epilogue(group, split=len(equation.output))
    kernel = KernelSource("einsum", "einsum", _LOCAL, tuple(defines), types_of(Y=y, **tensors), epilogue.chain)
    terms = prod(sizes[n] for n in summed)
    lowering.step(
        kernel,
        [y, np.int32(y.size), np.int32(terms), *arguments, *epilogue.arguments],
        (y.size,),
        flops=(len(values) * terms + epilogue.chain.cost) * y.size,
    )
