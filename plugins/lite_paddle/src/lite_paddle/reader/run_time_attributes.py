"""Legacy attributes whose value is a tensor (Paddle 2.4 and later), and the input slot that receives each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .attributes import BOOKKEEPING

_REDUCTIONS = "sum mean max min prod all any amax amin"


@dataclass(frozen=True, slots=True)
class _InputSlots:
    """The slots of an attribute for a tensor and for a list of one-element tensors, and the operators with them."""

    operators: frozenset[str]
    single: str
    listed: str = ""


def _input_slots(operators: str, single: str, listed: str = "") -> _InputSlots:
    return _InputSlots(frozenset(operators.split()), single, listed)


_INPUT_SLOTS: dict[str, tuple[_InputSlots, ...]] = {
    "axis": (
        _input_slots("concat split cumsum arg_max arg_min", "AxisTensor"),
        _input_slots("gather", "Axis"),
    ),
    "dim": (
        _input_slots(
            "frobenius_norm " + " ".join(f"reduce_{name}" for name in _REDUCTIONS.split()),
            "AxisTensor",
            "AxisTensorList",
        ),
    ),
    "axes": (_input_slots("squeeze squeeze2 unsqueeze unsqueeze2", "AxesTensor", "AxesTensorList"),),
    "dropout_prob": (_input_slots("dropout", "DropoutProbTensor"),),
    "ksize": (_input_slots("pool2d pool3d lp_pool2d", "KernelSizeTensor", "KernelSizeTensorList"),),
    "output_size": (
        _input_slots(
            "conv2d_transpose depthwise_conv2d_transpose conv3d_transpose",
            "OutputSizeTensor",
            "OutputSizeTensorList",
        ),
        _input_slots("unpool", "OutputSizeTensor"),
    ),
    "num_rows": (_input_slots("eye", "NumRowsTensor"),),
    "num_columns": (_input_slots("eye", "NumColumnsTensor"),),
    "shifts": (_input_slots("roll", "ShiftsTensor", "ShiftsTensorList"),),
    "pad_value": (_input_slots("pad", "PadValueTensor"),),
    "value": (_input_slots("fill_any_like", "ValueTensor"),),
    "factor": (_input_slots("pow", "FactorTensor"),),
    "scale": (_input_slots("scale", "ScaleTensor"),),
    "k": (_input_slots("top_k top_k_v2", "K"),),
    "depth": (_input_slots("one_hot one_hot_v2", "depth_tensor"),),
    "shape": (_input_slots("fill_constant", "ShapeTensor", "ShapeTensorList"),),
}

#: Prefix of the slot of an attribute whose tensor no lowering can read; the rest is the attribute's name.
UNREADABLE = "@"


def run_time_slots(op_type: str, named: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Return the input slots of the attributes whose values are variables.

    Args:
        op_type: Legacy operator type.
        named: Attribute -> names of its variables.

    Returns:
        Slot -> names. An attribute that the operator's lowering cannot read as a tensor is in the slot ``@name``.
    """
    result: dict[str, list[str]] = {}
    for attribute, names in named.items():
        if attribute not in BOOKKEEPING and names:
            result[_slot(op_type, attribute, len(names))] = names
    return result


def unreadable_attributes(slots: Iterable[str]) -> list[str]:
    """Return the attributes in an operator's slots that are tensors although their lowering needs constants."""
    return sorted(slot.removeprefix(UNREADABLE) for slot in slots if slot.startswith(UNREADABLE))


def _slot(op_type: str, attribute: str, count: int) -> str:
    for slots in _INPUT_SLOTS.get(attribute, ()):
        slot = slots.single if count == 1 else slots.listed
        if op_type in slots.operators and slot:
            return slot
    return UNREADABLE + attribute
