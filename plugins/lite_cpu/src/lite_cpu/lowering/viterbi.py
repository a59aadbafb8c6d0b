"""Lowering of ViterbiDecode. Sizes: N sequences, L steps, C tags."""

from __future__ import annotations

from lite_compiler.fusion import Group
from lite_core.ir import DType, Node, Value
from lite_cpu.kernels.viterbi import Viterbi
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.indices import check_bounds
from lite_cpu.lowering.products import with_contiguous_rows
from lite_cpu.lowering.registry import lowers
from lite_cpu.lowering.shape import input_of, required_input
from lite_cpu.tensors import Tensor

F32 = DType.FLOAT32

#: Positions of the optional inputs start, stop and lengths.
_OPTIONAL = (2, 3, 4)


def refuse_viterbi(node: Node) -> str | None:
    dtype = required_input(node).dtype
    return None if dtype is F32 else f"{node.op} on {dtype}: the CPU kernels compute in float32"


@lowers("lite.ViterbiDecode", refuse=refuse_viterbi)
def viterbi(lowering: Lowering, group: Group) -> None:
    """Emit the search for the best path of each sequence."""
    node = group.head
    emissions = with_contiguous_rows(lowering, lowering.tensor(required_input(node)))
    batch, steps, tags = emissions.shape
    scores, path = (_target(lowering, node, number, emissions) for number in (0, 1))
    lengths = input_of(node, _OPTIONAL[-1])
    if lengths is not None:
        message = lowering.text(lambda: f"{node.describe()}: length {{}} is out of range, it must be from 0 to {steps}")
        check_bounds(lowering, lengths, [(0, steps + 1)], message)
    if not batch or not tags:
        return
    given = [input_of(node, index) for index in _OPTIONAL]
    optional = [lowering.dense(lowering.tensor(value)) for value in given if value is not None]
    padded = Viterbi.padded(lowering.machine, tags)
    transitions = _padded_rows(lowering, required_input(node, 1), padded)
    params = [steps, tags, padded, *emissions.strides[:2], *scores.strides, *path.strides]
    lowering.step(
        Viterbi(*(value is not None for value in given)),
        [emissions, transitions, scores, path, *optional],
        params,
        batch,
        flops=2 * batch * steps * tags * tags,
        scratch_bytes=Viterbi.scratch_bytes(lowering.machine, steps, tags),
    )


def _target(lowering: Lowering, node: Node, number: int, emissions: Tensor) -> Tensor:
    """Return the destination of an output; an unused one gets temporary memory."""
    value: Value | None = node.outputs[number] if number < len(node.outputs) else None
    if value is not None:
        return lowering.target(value)
    return lowering.allocate(emissions.shape[: 1 + number], DType.INT64 if number else F32)


def _padded_rows(lowering: Lowering, transitions: Value, padded: int) -> Tensor:
    """Return the transitions [C, C] in rows of whole vectors; the elements added are never part of a result."""
    tensor = lowering.tensor(transitions)
    tags = tensor.shape[0]
    wider = lowering.allocate((tags, padded), F32)
    lowering.copy(tensor, wider.slice(1, 0, tags))
    return wider
