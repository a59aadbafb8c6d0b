"""Chains of element-wise nodes: reading them from the graph, binding their operands, running them as kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from lite_compiler.chains import read_chain
from lite_core.ir import Node, Value
from lite_opencl.addressing import address
from lite_opencl.chains import Chain, Operand
from lite_opencl.lowering.steps import Argument, StepEmitter
from lite_opencl.programs.kernel_source import KernelSource
from lite_opencl.tensors import Tensor, collapse, types_of

__all__ = ["Epilogue", "addressed", "chain_of", "run_chain"]

#: Rows shorter than this are not worth a separate work group.
_SHORT_ROW = 32
_LOCAL = 64


class Epilogue(NamedTuple):
    """The epilogue of a kernel: the chain for its source, and the arguments that follow the kernel's own."""

    chain: Chain
    arguments: list[Argument]


def chain_of(
    start: Value, nodes: Sequence[Node], read: Callable[[Value], Tensor | np.generic]
) -> tuple[Chain, list[Tensor | np.generic]]:
    """Return the chain of element-wise ``nodes``, and its operands in order.

    Args:
        start: the value that the first node reads.
        nodes: the nodes; each reads the result of the previous one.
        read: returns an operand: a tensor, or a number that is passed by value.
    """
    values, steps = read_chain(start, nodes)
    reads = [read(value) for value in values]
    operands = tuple(
        Operand(given.dtype if isinstance(given, Tensor) else value.dtype, None) for given, value in zip(reads, values)
    )
    return Chain(start.dtype, operands, steps), reads


def addressed(chain: Chain, operands: Sequence[Tensor | np.generic], shape: Sequence[int], split: int) -> Epilogue:
    """Return a chain with the addressing of its operands, and their arguments.

    Args:
        chain: from :func:`chain_of`.
        operands: its operands: tensors, which are broadcast to ``shape``, or numbers passed by value.
        shape: the shape of the result.
        split: the number of its dimensions that are rows; the others are columns.
    """
    bound: list[Operand] = []
    arguments: list[Argument] = []
    for operand, given in zip(chain.operands, operands):
        if isinstance(given, Tensor):
            tensor = given.expand(shape)
            addressing, more = address(tensor, split)
            bound.append(Operand(operand.dtype, addressing))
            arguments += [tensor, *more]
        else:
            bound.append(Operand(operand.dtype, None))
            arguments.append(given)
    return Epilogue(chain._replace(operands=tuple(bound)), arguments)


def run_chain(
    emitter: StepEmitter, chain: Chain, start: Tensor, operands: Sequence[Tensor | np.generic], destination: Tensor
) -> None:
    """Run a chain over all elements; tensors are broadcast to the destination's shape.

    Args:
        emitter: the emitter of the step.
        chain: from :func:`chain_of`; its operands are addressed here.
        start: the tensor that the chain starts from.
        operands: its operands: tensors, or numbers passed by value.
        destination: the tensor of the results; it may be strided.
    """
    if destination.size == 0:
        return
    tensors = [o.expand(destination.shape) for o in operands if isinstance(o, Tensor)]
    to, from_, *walked = collapse([destination, start.expand(destination.shape), *tensors])
    remaining = iter(walked)
    split = to.rank - 1
    columns = to.shape[-1]
    rows = to.size // columns
    y, y_arguments = address(to, split)
    x, x_arguments = address(from_, split)
    bound = addressed(chain, [next(remaining) if isinstance(o, Tensor) else o for o in operands], to.shape, split)
    defines: list[tuple[str, int | str]] = [
        ("Y_PARAMETERS", "".join(f", {p}" for p in y.parameters("y"))),
        ("X_PARAMETERS", "".join(f", {p}" for p in x.parameters("x"))),
        ("Y_INDEX", f"({y.index('y')})"),
        ("X_INDEX", f"({x.index('x')})"),
    ]
    is_flat = columns < _SHORT_ROW and rows > 1
    if is_flat:
        defines.append(("FLAT", 1))
    kernel = KernelSource(
        "elementwise", "elementwise", (_LOCAL, 1, 1), tuple(defines), types_of(X=start, Y=destination), bound.chain
    )
    sizes = [np.int32(rows), np.int32(columns)]
    emitter.step(
        kernel,
        [to, from_, *sizes, *y_arguments, *x_arguments, *bound.arguments],
        (rows * columns,) if is_flat else (columns, rows),
        flops=chain.cost * destination.size,
        label="elementwise" if chain.steps else "copy",
    )
