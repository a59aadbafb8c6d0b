"""Legacy attributes whose value is a tensor (Paddle 2.4 and later): the input slot where each is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .attributes import BOOKKEEPING

_REDUCTIONS = "sum mean max min prod all any amax amin"


@dataclass(frozen=True, slots=True)
class _Place:
    """Slots for one tensor and for a list of one-element tensors, and the operators that look there."""

    operators: frozenset[str]
    single: str
    listed: str = ""


def _place(operators: str, single: str, listed: str = "") -> _Place:
    return _Place(frozenset(operators.split()), single, listed)


_PLACES: dict[str, tuple[_Place, ...]] = {
    "axis": (
        _place("concat split cumsum arg_max arg_min", "AxisTensor"),
        _place("gather", "Axis"),
    ),
    "dim": (
        _place(
            "frobenius_norm " + " ".join(f"reduce_{name}" for name in _REDUCTIONS.split()),
            "AxisTensor",
            "AxisTensorList",
        ),
    ),
    "axes": (_place("squeeze squeeze2 unsqueeze unsqueeze2", "AxesTensor", "AxesTensorList"),),
    "dropout_prob": (_place("dropout", "DropoutProbTensor"),),
    "ksize": (_place("pool2d pool3d lp_pool2d", "KernelSizeTensor", "KernelSizeTensorList"),),
    "output_size": (
        _place(
            "conv2d_transpose depthwise_conv2d_transpose conv3d_transpose",
            "OutputSizeTensor",
            "OutputSizeTensorList",
        ),
        _place("unpool", "OutputSizeTensor"),
    ),
    "num_rows": (_place("eye", "NumRowsTensor"),),
    "num_columns": (_place("eye", "NumColumnsTensor"),),
    "shifts": (_place("roll", "ShiftsTensor", "ShiftsTensorList"),),
    "pad_value": (_place("pad", "PadValueTensor"),),
    "value": (_place("fill_any_like", "ValueTensor"),),
    "factor": (_place("pow", "FactorTensor"),),
    "scale": (_place("scale", "ScaleTensor"),),
    "k": (_place("top_k top_k_v2", "K"),),
    "depth": (_place("one_hot one_hot_v2", "depth_tensor"),),
    "shape": (_place("fill_constant", "ShapeTensor", "ShapeTensorList"),),
}

#: Starts the slot of an attribute whose tensor no lowering can read; the rest is the attribute's name.
UNREADABLE = "@"


def run_time_slots(op_type: str, named: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """The input slots of the attributes whose values are variables.

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
    """The attributes among an operator's slots that are tensors, but that its lowering cannot read as such."""
    return sorted(slot.removeprefix(UNREADABLE) for slot in slots if slot.startswith(UNREADABLE))


def _slot(op_type: str, attribute: str, count: int) -> str:
    for place in _PLACES.get(attribute, ()):
        slot = place.single if count == 1 else place.listed
        if op_type in place.operators and slot:
            return slot
    return UNREADABLE + attribute
