"""Operators with one constant number: they become scales, and scales of scales become one."""

from __future__ import annotations

from ...source import SourceOp
from ..draft import Draft, element_type, rank
from .patterns import Chains, single_number

__all__ = ["merge_scales", "order_operands", "scales_from_constants"]


def scales_from_constants(draft: Draft) -> None:
    """Replace sums, differences and products with one constant number by scales."""
    for block in draft.blocks():
        for op in block.ops:
            if op.type in ("elementwise_add", "elementwise_sub", "elementwise_mul", "elementwise_div"):
                _to_scale(draft, op)


def order_operands(draft: Draft) -> None:
    """Put the larger operand of sums and products first: the kernels broadcast the second one."""
    for op in draft.block.walk():
        if op.type in ("elementwise_add", "elementwise_mul") and op.attrs.get("axis", -1) == -1:
            first, second = op.inputs["X"][0].type, op.inputs["Y"][0].type
            if first is None or second is None or first.shape is None or second.shape is None:
                continue
            pairs = list(zip(first.shape, second.shape))
            if len(first.shape) == len(second.shape) and all(n in (1, m) for n, m in pairs) and first != second:
                op.inputs = {"X": op.inputs["Y"], "Y": op.inputs["X"]}


def merge_scales(draft: Draft) -> None:
    """Replace a scale whose only reader is a scale by one scale."""
    for block in draft.blocks():
        chains = Chains(draft, block)
        for op in block.ops:
            while not chains.is_absorbed(op) and _is_scale(op):
                following = chains.next(op.outputs["Out"][0])
                if following is None or not _is_scale(following):
                    break
                (factor, term), (factor2, term2) = _numbers(op), _numbers(following)
                op.attrs = {"scale": factor * factor2, "bias": term * factor2 + term2, "bias_after_scale": True}
                chains.absorb(following, "Out", op, "Out")
        chains.finish()


def _to_scale(draft: Draft, op: SourceOp) -> None:
    for slot, other in (("Y", "X"), ("X", "Y")):
        value = op.inputs[other][0]
        constant = draft.constant(op, slot)
        number = single_number(constant)
        if number is None or constant is None or value in draft.constants or element_type(value) != "float32":
            continue
        known = rank(value)
        if constant.ndim > 1 and (known is None or known < constant.ndim):
            continue  # the constant adds dimensions
        factor, term = 1.0, 0.0
        if op.type == "elementwise_add":
            term = number
        elif op.type == "elementwise_sub":
            factor, term = (1.0, -number) if slot == "Y" else (-1.0, number)
        elif op.type == "elementwise_mul":
            factor = number
        elif slot == "Y" and number != 0:
            factor = 1 / number
        else:
            return
        op.type, op.inputs = "scale", {"X": [value]}
        op.attrs = {"scale": factor, "bias": term, "bias_after_scale": True}
        return


def _is_scale(op: SourceOp) -> bool:
    return (
        op.type == "scale"
        and list(op.inputs) == ["X"]
        and element_type(op.inputs["X"][0]) == "float32"
        and not op.attrs.get("activation_type")
    )


def _numbers(op: SourceOp) -> tuple[float, float]:
    factor, term = float(op.attrs["scale"]), float(op.attrs["bias"])
    return factor, term if op.attrs.get("bias_after_scale", True) else term * factor
