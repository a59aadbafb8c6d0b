"""Attention as one step: a second stage of fusion, after :mod:`.fusion` has made groups.

Rules:
    1. A product whose left operand is a softmax over the last axis, itself of a group that begins with a product,
       runs as one step, if nothing else reads the scores or the shares.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from lite_compiler.fusion import Group
from lite_core import ops
from lite_core.ir import DType, Node, Value
from lite_cpu.kernels.attention import Attention, AttentionShape
from lite_cpu.kernels.packing import Contiguous
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.products import rows_contiguous
from lite_cpu.tensors import Tensor, collapse

__all__ = ["AttentionGroup", "attention", "group_attention"]

F32 = DType.FLOAT32


@dataclass(eq=False, kw_only=True)
class AttentionGroup(Group):
    """A group whose head is the product with the values.

    Attributes:
        scores: the product of queries and keys, and what is done to it.
        softmax: over the scores.
    """

    scores: Group
    softmax: Node

    @property
    def nodes(self) -> list[Node]:
        return [*self.scores.nodes, self.softmax, self.head, *self.tail]


def group_attention(groups: Sequence[Group], uses: Mapping[Value, int]) -> list[Group]:
    """Put groups together that are attention, by the rules above; ``uses`` says how often each value is read."""
    made = {group.output: group for group in groups}
    found: list[Group] = []
    absorbed: set[Group] = set()
    for group in groups:
        fused = _attention_of(group, made, uses)
        if fused is not None:
            absorbed.update((made[fused.scores.output], made[fused.softmax.outputs[0]]))  # type: ignore[index]
        found.append(fused or group)
    return [g for g in found if g not in absorbed]


def _attention_of(group: Group, made: dict[Value, Group], uses: Mapping[Value, int]) -> AttentionGroup | None:
    shares = _only_user(group.head, "MatMul", made, uses)
    if shares is None or shares.head.op != "Softmax" or shares.tail:
        return None
    axis = ops.get(shares.head).attributes_of(shares.head)["axis"]
    scores = _only_user(shares.head, "Softmax", made, uses)
    if scores is None or type(scores) is not Group or scores.head.op != "MatMul" or scores.head.domain:
        return None
    operands = [v for n in (scores.head, group.head) for v in n.inputs]
    if any(v is None or v.dtype is not F32 or len(v.shape) < 2 for v in [*operands, scores.output]):
        return None
    # Without keys there is nothing to divide by: such a result is 0.
    if axis not in (-1, len(scores.output.shape) - 1) or scores.output.shape[-1] == 0:
        return None
    return AttentionGroup(group.head, group.position, group.tail, scores=scores, softmax=shares.head)


def _only_user(node: Node, op: str, made: dict[Value, Group], uses: Mapping[Value, int]) -> Group | None:
    """The group that makes the first operand of ``node``, where nothing else reads it."""
    if node.op != op or node.domain:
        return None
    value = node.inputs[0]
    return made.get(value) if value is not None and uses[value] == 1 else None


def attention(lowering: Lowering, group: AttentionGroup) -> None:
    """Emit attention. The result is laid out so that putting the heads side by side again is free."""
    q, keys = (lowering.tensor(v) for v in group.scores.head.inputs if v is not None)
    values = lowering.tensor(group.head.inputs[1])  # type: ignore[arg-type]
    shape, score_shape = tuple(group.output.shape), tuple(group.scores.output.shape)
    scores, score_operands = lowering.epilogue(group.scores, score_shape, len(score_shape) - 1)
    tail, operands = lowering.epilogue(group, shape, len(shape) - 1)
    rank = len(shape)
    order = [*range(rank - 3), rank - 2, rank - 3, rank - 1] if rank > 3 else None
    target = lowering.target(group.output, order)
    if target.size == 0:
        return
    c = target
    if c.strides[-1] != 1 and c.shape[-1] != 1:
        c = lowering.allocate(shape, c.dtype, order)
    batch = shape[:-2]
    q = rows_contiguous(lowering, q)
    q, keys, values, *score_operands = (t.expand((*batch, *t.shape[-2:])) for t in (q, keys, values, *score_operands))
    tensors = [q, keys, values, c, *score_operands, *operands]
    sizes, strides = collapse([_batch_of(t) for t in (c, *tensors)])
    strides = strides[1:]
    *outer, batches, heads = [1, 1, *sizes] if len(sizes) == 1 else [1, *sizes]
    levels = [(s[-2] if len(s) > 1 else 0, s[-1]) for s in strides]
    (q_, k_, v_, c_), operand_levels = levels[:4], levels[4:]
    at = AttentionShape(
        batches=batches, heads=heads, rows=shape[-2], tokens=keys.shape[-1], depth=q.shape[-1], columns=shape[-1],
        q_batch=q_[0], q_head=q_[1], q_row=q.strides[-2],
        k_batch=k_[0], k_head=k_[1], k_depth=keys.strides[-2], k_token=keys.strides[-1],
        v_batch=v_[0], v_head=v_[1], v_token=values.strides[-2], v_column=values.strides[-1],
        c_batch=c_[0], c_head=c_[1], c_row=c.strides[-2],
    )  # fmt: skip
    item_rows, score_rows = at.blocks(lowering.machine, lowering.options.threads)
    operand_strides = [(*level, t.strides[-2]) for level, t in zip(operand_levels, tensors[4:])]
    kernel = Attention(scores, tail, Contiguous.of(*keys.strides[-2:]), Contiguous.of(*values.strides[-2:]))
    for index in product(*map(range, outer)):
        moved = [
            t.view(t.shape, t.strides, t.offset + sum(i * n for i, n in zip(index[1:], s)))
            for t, s in zip(tensors, strides)
        ]
        lowering.step(
            kernel, moved, at.params(item_rows, score_rows, operand_strides), at.items(item_rows),
            flops=at.flops, scratch_bytes=at.scratch_bytes(lowering.machine, score_rows),
        )  # fmt: skip
    if c is not target:
        lowering.copy(c, target)


def _batch_of(tensor: Tensor) -> Tensor:
    return tensor.view(tensor.shape[:-2], tensor.strides[:-2])
