"""Attention as one step, fused from the groups of :mod:`lite_compiler.fusion`.

Rules:
    1. A product, the softmax over the last axis that computes its left operand, and the group of the product that
       computes the softmax's input run as one step, if nothing else reads the scores or the softmax's result.
    2. Conversions of queries, keys and values to float32 that nothing else reads are part of that step, and so is a
       conversion of the softmax's result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from lite_compiler.fusion import Group
from lite_core import ops
from lite_core.ir import DType, Node, Value
from lite_cpu.kernels.attention import Attention, AttentionShape
from lite_cpu.kernels.packing import Contiguous
from lite_cpu.lowering.context import Lowering
from lite_cpu.lowering.products import with_contiguous_rows
from lite_cpu.tensors import Tensor, collapse

__all__ = ["AttentionGroup", "attention", "group_attention"]

#: Element types of queries, keys, values and scores.
_ELEMENTS = (DType.FLOAT32, DType.FLOAT16, DType.BFLOAT16)


@dataclass(eq=False, kw_only=True)
class AttentionGroup(Group):
    """A group that computes attention; its head is the product with the values.

    Attributes:
        scores: the product of queries and keys, with the element-wise nodes after it.
        softmax: the softmax of the scores.
        operands: queries, keys and values.
        conversions: the conversions that are part of the step.
    """

    scores: Group
    softmax: Node
    operands: tuple[Value, Value, Value]
    conversions: list[Group] = field(default_factory=list)

    @property
    def nodes(self) -> list[Node]:
        conversions = [group.head for group in self.conversions]
        return [*conversions, *self.scores.nodes, self.softmax, self.head, *self.tail]


def group_attention(groups: Sequence[Group], uses: Mapping[Value, int]) -> list[Group]:
    """Merge groups that compute attention, by the rules above; ``uses`` tells how often each value is read."""
    producers = {group.output: group for group in groups}
    fused_groups: list[Group] = []
    absorbed: set[Group] = set()
    for group in groups:
        fused = _fuse(group, producers, uses)
        if fused is not None:
            absorbed.update((producers[fused.scores.output], producers[fused.softmax.outputs[0]]))  # type: ignore[index]
            absorbed.update(fused.conversions)
        fused_groups.append(fused or group)
    return [g for g in fused_groups if g not in absorbed]


def _fuse(group: Group, producers: dict[Value, Group], uses: Mapping[Value, int]) -> AttentionGroup | None:
    """Return a group's product fused with the softmax and the scores before it; None if the rules do not apply."""
    conversions: list[Group] = []
    shares = _exclusive_producer(group.head, "MatMul", producers, uses)
    softmax = shares
    if shares is not None and _is_conversion(shares):
        conversions.append(shares)
        softmax = _exclusive_producer(shares.head, "Cast", producers, uses)
    if softmax is None or softmax.head.op != "Softmax" or softmax.tail:
        return None
    axis = ops.attributes_of(softmax.head)["axis"]
    scores = _exclusive_producer(softmax.head, "Softmax", producers, uses)
    if scores is None or type(scores) is not Group or scores.head.op != "MatMul" or scores.head.domain:
        return None
    operands = [scores.input(0), scores.input(1), group.input(1)]
    if any(v.dtype not in _ELEMENTS or len(v.shape) < 2 for v in [*operands, scores.output]):
        return None
    # Without keys the softmax is empty and the result is 0, which the fused kernel does not handle.
    if axis not in (-1, len(scores.output.shape) - 1) or scores.output.shape[-1] == 0:
        return None
    for number, value in enumerate(operands):
        producer = producers.get(value)
        if producer is not None and uses[value] == 1 and _is_conversion(producer) and producer.input(0).dtype.is_half:
            conversions.append(producer)
            operands[number] = producer.input(0)
    q, keys, values = operands
    return AttentionGroup(
        group.head, group.position, group.tail, scores=scores, softmax=softmax.head, operands=(q, keys, values),
        conversions=conversions,
    )  # fmt: skip


def _is_conversion(group: Group) -> bool:
    """Return True if a group only converts floats to another type that attention reads."""
    if group.head.qualified_op != "Cast" or group.tail:
        return False
    return group.input(0).dtype in _ELEMENTS and group.output.dtype in _ELEMENTS


def _exclusive_producer(node: Node, op: str, producers: dict[Value, Group], uses: Mapping[Value, int]) -> Group | None:
    """Return the group that computes the first operand of ``node``, an ``op``, if no other node reads that operand."""
    if node.op != op or node.domain:
        return None
    value = node.inputs[0]
    return producers.get(value) if value is not None and uses[value] == 1 else None


def attention(lowering: Lowering, group: AttentionGroup) -> None:
    """Emit attention. The result is laid out so that concatenating the heads needs no copy."""
    q, keys, values = (lowering.tensor(value) for value in group.operands)
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
    q = with_contiguous_rows(lowering, q)
    q, keys, values, *score_operands = (t.expand((*batch, *t.shape[-2:])) for t in (q, keys, values, *score_operands))
    tensors = [q, keys, values, c, *score_operands, *operands]
    sizes, strides = collapse([_batch_of(t) for t in (c, *tensors)])
    strides = strides[1:]
    *outer, batches, heads = [1, 1, *sizes] if len(sizes) == 1 else [1, *sizes]
    levels = [(s[-2] if len(s) > 1 else 0, s[-1]) for s in strides]
    (q_, k_, v_, c_), operand_levels = levels[:4], levels[4:]
    attention_shape = AttentionShape(
        batches=batches, heads=heads, rows=shape[-2], tokens=keys.shape[-1], depth=q.shape[-1], columns=shape[-1],
        q_batch=q_[0], q_head=q_[1], q_row=q.strides[-2],
        k_batch=k_[0], k_head=k_[1], k_depth=keys.strides[-2], k_token=keys.strides[-1],
        v_batch=v_[0], v_head=v_[1], v_token=values.strides[-2], v_column=values.strides[-1],
        c_batch=c_[0], c_head=c_[1], c_row=c.strides[-2],
    )  # fmt: skip
    item_rows, score_rows = attention_shape.blocks(lowering.machine, lowering.options.threads)
    operand_strides = [(*level, t.strides[-2]) for level, t in zip(operand_levels, tensors[4:])]
    params = attention_shape.params(item_rows, score_rows, operand_strides)
    layouts = (Contiguous.of(*keys.strides[-2:]), Contiguous.of(*values.strides[-2:]))
    dtypes = (q.dtype, keys.dtype, values.dtype)
    pairs = lowering.machine.bf16_dot and {*dtypes} == {DType.BFLOAT16} and attention_shape.reads_pairs(layouts[0])
    # The values would be pairs along the tokens, whose number may be odd.
    of_values = Contiguous.NEITHER if pairs and layouts[1] is Contiguous.DEPTH else layouts[1]
    kernel = Attention(scores, tail, layouts[0], of_values, dtypes, pairs)
    for index in product(*map(range, outer)):
        moved = [
            t.view(t.shape, t.strides, t.offset + sum(i * n for i, n in zip(index[1:], s)))
            for t, s in zip(tensors, strides)
        ]
        lowering.step(
            kernel, moved, params, attention_shape.items(item_rows), flops=attention_shape.flops,
            scratch_bytes=attention_shape.scratch_bytes(lowering.machine, score_rows, kernel),
        )  # fmt: skip
    if c is not target:
        lowering.copy(c, target)


def _batch_of(tensor: Tensor) -> Tensor:
    """Return a view of the batch dimensions of a stack of matrices."""
    return tensor.view(tensor.shape[:-2], tensor.strides[:-2])
