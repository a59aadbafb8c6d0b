"""Lowering of recurrent layers whose hidden units are divided among threads.

One thread computes a sequence in one direction (:mod:`lite_cpu.kernels.recurrent`). If there are fewer sequences than
threads, the threads can share the units of each turn instead (:mod:`lite_cpu.kernels.divided_recurrent`). Each of them
then also reads only its part of the weights in every turn, which is more likely to stay in its caches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lite_compiler.tracing.numbers import computed
from lite_core.ir import DType
from lite_cpu.kernels.divided_recurrent import BeginTurns, NextTurn, UnitsOfTurn, states_of_row
from lite_cpu.kernels.recurrent import Recurrent
from lite_cpu.lowering.context import Lowering
from lite_cpu.tensors import Tensor

__all__ = ["emit_divided", "vectors_of_chunk"]


def vectors_of_chunk(lowering: Lowering, kernel: Recurrent, items: int, steps: int, hidden: int) -> int:
    """Return the vectors of units that a thread takes at a time if the units are divided; 0 if they should not be.

    Args:
        lowering: the lowering context.
        kernel: the kernel of the undivided layer.
        items: number of its work items.
        steps: number of time steps.
        hidden: number of hidden units.
    """
    machine, threads, passes = lowering.machine, lowering.options.threads, len(kernel.passes)
    if threads == 1:
        return 0
    operations = 2 * kernel.gates * kernel.rows * hidden * hidden // kernel.products_of_lane
    blocks, meeting = -(-hidden // machine.lanes()), machine.tuning.parallel_operations / 2
    return _vectors_of_chunk(items, operations, blocks, steps, passes, threads, meeting)


@computed
def _vectors_of_chunk(
    items: int, operations: int, blocks: int, steps: int, passes: int, threads: int, meeting: float
) -> int:
    """Return what :func:`vectors_of_chunk` does, by the operations that one thread computes after another.

    The estimate is cautious, since threads that other programs interrupt keep the others waiting: one sequence through
    an LSTM of 128 units takes 0.69 of the time if two threads divide it, through one of 96 units, which stays whole,
    0.8 to 1.3 (Zen 4).

    Args:
        items: number of work items of the undivided layer.
        operations: operations of an item in a time step, in units of those on float32.
        blocks: number of vectors of units.
        steps: number of time steps.
        passes: the times that threads meet in a time step; they also meet once before the first one.
        threads: number of threads.
        meeting: the price of a meeting of threads, in operations.
    """
    total = items * operations
    chunks = min(threads, items * blocks, int(total / max(1.0, passes * meeting)))
    undivided = -(-items // threads) * operations * steps
    if chunks < 2 or total * steps / chunks + (passes * steps + 1) * meeting >= undivided:
        return 0
    return -(-items * blocks // chunks)


def emit_divided(
    lowering: Lowering,
    kernel: Recurrent,
    tensors: Mapping[str, Tensor],
    params: Sequence[int],
    strides: Mapping[str, Sequence[int]],
    items: int,
    vectors: int,
    flops: int,
) -> None:
    """Emit the steps of a layer with at least one time step.

    Args:
        lowering: the lowering context.
        kernel: the kernel of the undivided layer.
        tensors: its tensors by name.
        params: its parameters before the strides.
        strides: its strides of each tensor.
        items: number of its work items.
        vectors: see :func:`vectors_of_chunk`.
        flops: the operations of all time steps.
    """
    steps, _, hidden, _ = params
    lanes = lowering.machine.lanes()
    blocks = -(-hidden // lanes)
    states = lowering.allocate((items * kernel.rows, states_of_row(kernel), blocks * lanes), DType.FLOAT32)
    turn = lowering.allocate((1,), DType.INT64)

    def arguments(names: Sequence[str]) -> tuple[list[Tensor], list[int]]:
        return [*(tensors[n] for n in names), states, turn], [*params, *(s for n in names for s in strides[n])]

    begin = BeginTurns(kernel)
    lowering.step(begin, *arguments(begin.tensors), items, items)
    first = len(lowering.steps)
    for number, gates in enumerate(kernel.passes):
        units = UnitsOfTurn(kernel, number)
        lowering.step(
            units, *arguments(units.tensors), items * blocks, vectors,
            flops=flops * len(gates) // kernel.gates, scratch_bytes=units.scratch_bytes(lowering.machine, hidden),
        )  # fmt: skip
    lowering.step(NextTurn(), [lowering.allocate((1,), DType.INT64), turn], [steps], 1)
    lowering.steps[-1].jump = first - (len(lowering.steps) - 1)
