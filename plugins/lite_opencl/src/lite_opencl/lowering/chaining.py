"""Chains of element-wise nodes: read from the graph, bound to their operands, run as a kernel of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lite_core.ir import Node, Value
from lite_opencl.addressing import address
from lite_opencl.chains import Apply, Chain, Operand
from lite_opencl.programs.element_types import scalar
from lite_opencl.programs.kernel_source import KernelSource
from lite_opencl.tensors import Tensor, collapse, types_of

if TYPE_CHECKING:
    from lite_opencl.lowering.context import Argument, Lowering

__all__ = ["Epilogue", "addressed", "chain_of", "run_chain"]

#: Rows shorter than this are not worth a work group of their own.
_SHORT_ROW = 32
_LOCAL = 64


class Epilogue(NamedTuple):
    """What is done to each result of a kernel: the chain for its source, and arguments that follow its own."""

    chain: Chain
    arguments: list[Argument]


def chain_of(lowering: Lowering, start: Value, nodes: Sequence[Node]) -> tuple[Chain, list[Tensor | np.generic]]:
    """What element-wise ``nodes`` do to ``start``, and what they read beside it, in the chain's order.

    Numbers that are known are passed by value: they are then no part of the code, and cost no load.
    """
    made = {n.outputs[0] for n in nodes}
    numbers: dict[Value, int] = {start: 0}
    for node in nodes:
        for value in _operands(node):
            if value is not None and value not in numbers and value not in made:
                numbers[value] = len(numbers)
    beside = list(numbers)[1:]
    reads = [_read(lowering, value) for value in beside]
    operands = tuple(
        Operand(read.dtype if isinstance(read, Tensor) else value.dtype, None) for read, value in zip(reads, beside)
    )
    steps = []
    for node in nodes:
        output = node.outputs[0]
        assert output is not None
        inputs = tuple(None if v is None else numbers[v] for v in _operands(node))
        steps.append(Apply(node.qualified_op, inputs, output.dtype, tuple(sorted(node.attributes.items()))))
        numbers[output] = len(numbers)
    return Chain(start.dtype, operands, tuple(steps)), reads


def addressed(chain: Chain, operands: Sequence[Tensor | np.generic], shape: Sequence[int], split: int) -> Epilogue:
    """A chain whose operands know where they are read, with their arguments.

    Args:
        chain: from :func:`chain_of`.
        operands: what its operands are: tensors, which are broadcast to ``shape``, or numbers passed by value.
        shape: of the result.
        split: how many of its dimensions are rows; the others are columns.
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
    lowering: Lowering, chain: Chain, start: Tensor, operands: Sequence[Tensor | np.generic], destination: Tensor
) -> None:
    """Run a chain over all elements; tensors are broadcast to the destination's shape.

    Args:
        lowering: that the step is emitted into.
        chain: from :func:`chain_of`: how its operands are addressed is found here.
        start: what the chain starts from.
        operands: what its operands are: tensors, or numbers passed by value.
        destination: where results go; may be strided.
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
    lowering.step(
        kernel,
        [to, from_, *sizes, *y_arguments, *x_arguments, *bound.arguments],
        (rows * columns,) if is_flat else (columns, rows),
        flops=chain.cost * destination.size,
        label="elementwise" if chain.steps else "copy",
    )


def _read(lowering: Lowering, value: Value) -> Tensor | np.generic:
    array = lowering.known(value)
    return lowering.tensor(value) if array is None or array.size != 1 else scalar(array.reshape(()), value.dtype)


def _operands(node: Node) -> Sequence[Value | None]:
    """The inputs whose elements an element-wise node reads.

    NOTE: CastLike takes the element type of its second input alone, whose shape need not fit.
    """
    return node.inputs[:1] if node.qualified_op == "CastLike" else node.inputs
