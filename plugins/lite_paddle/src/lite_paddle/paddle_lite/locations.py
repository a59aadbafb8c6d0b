"""Locations of the values of a program, and the operators that bring values to others.

Processors compute with arrays in main memory, in float32 or, on ARM, in float16. OpenCL computes with images.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from ..source import SourceOp, SourceType, SourceValue
from .draft import Draft
from .kernels import Kernel
from .program import KERNEL_ATTRIBUTE, Attribute, AttributeKind

__all__ = ["Choice", "Location", "bring"]


class Location(Enum):
    """The memory and form of a value."""

    HOST = "float32 in main memory"
    HALF = "float16 in main memory"
    IMAGE = "an OpenCL image with four channels in each pixel"
    FOLDER = "an OpenCL image with four columns in each pixel"


@dataclass(frozen=True, slots=True)
class Choice:
    """The kernel of an operator, and where it reads and writes.

    Attributes:
        kernel: the kernel.
        reads: where it reads computed float32 values.
        writes: where it writes float32 values.
        takes_constants: input slots whose constants the kernel reads from main memory itself.
    """

    kernel: Kernel
    reads: Location = Location.HOST
    writes: Location = Location.HOST
    takes_constants: frozenset[str] = field(default_factory=frozenset)


# (from, to) -> operators on the way, each with its kernel and the ending of the new name.
_TO_DEVICE, _TO_HOST = ("io_copy", "host_to_device/5/4/2"), ("io_copy", "device_to_host/5/4/2")
_WAYS: dict[tuple[Location, Location], tuple[tuple[str, str], ...]] = {
    (Location.HOST, Location.HALF): (("calib", "fp32_to_fp16/4/5/1"),),
    (Location.HALF, Location.HOST): (("calib", "fp16_to_fp32/4/5/1"),),
    (Location.HOST, Location.IMAGE): (_TO_DEVICE, ("layout", "NCHW_to_ImageDefault/5/4/4")),
    (Location.HOST, Location.FOLDER): (_TO_DEVICE, ("layout", "NCHW_to_ImageFolder/5/4/5")),
    (Location.IMAGE, Location.HOST): (("layout", "ImageDefault_to_NCHW/5/4/1"), _TO_HOST),
    (Location.FOLDER, Location.HOST): (("layout", "ImageFolder_to_NCHW/5/4/1"), _TO_HOST),
    (Location.IMAGE, Location.FOLDER): (("layout", "ImageDefault_to_ImageFolder/5/4/5"),),
    (Location.FOLDER, Location.IMAGE): (("layout", "ImageFolder_to_ImageDefault/5/4/4"),),
}
_ENDINGS = {"io_copy": "target_trans", "layout": "layout_trans", "calib": "precision_trans"}
# Tells the kernels that the elements in main memory are float32, whatever the device computes in.
_FLOAT32_OUTSIDE = 2


def bring(draft: Draft, choices: Mapping[SourceOp, Choice]) -> None:
    """Insert the operators that bring each value to where it is read, the program's outputs included.

    Args:
        draft: a program without inner blocks.
        choices: its operators' kernels.
    """
    located: dict[SourceValue, Location] = {}
    copies: dict[tuple[SourceValue, Location], SourceValue] = {}
    ops: list[SourceOp] = []
    for op in draft.block.ops:
        choice = choices[op]
        for slot, values in op.inputs.items():
            kept = slot in choice.takes_constants
            op.inputs[slot] = [
                value
                if not _is_float(value) or (kept and value in draft.constants)
                else _moved(value, choice.reads, located, copies, ops)
                for value in values
            ]
        for values in op.outputs.values():
            for value in values:
                if _is_float(value):
                    located[value] = choice.writes
        ops.append(op)
    outputs = [(name, _moved(value, Location.HOST, located, copies, ops)) for name, value in draft.outputs]
    draft.outputs = outputs
    draft.block.ops = ops
    for value, location in located.items():
        if location is Location.HALF and value.type is not None:
            value.type = replace(value.type, dtype="float16")


def _moved(
    value: SourceValue,
    wanted: Location,
    located: dict[SourceValue, Location],
    copies: dict[tuple[SourceValue, Location], SourceValue],
    ops: list[SourceOp],
) -> SourceValue:
    """Return a value's copy at a location; make it if there is none yet."""
    present = located.get(value, Location.HOST)
    if present is wanted:
        return value
    if (value, wanted) not in copies:
        if (present, wanted) not in _WAYS:  # by way of main memory
            source = _moved(value, Location.HOST, located, copies, ops)
            copies[value, wanted] = _moved(source, wanted, located, copies, ops)
        else:
            copies[value, wanted] = _copy(value, _WAYS[present, wanted], ops)
            located[copies[value, wanted]] = wanted
    return copies[value, wanted]


def _copy(value: SourceValue, way: Sequence[tuple[str, str]], ops: list[SourceOp]) -> SourceValue:
    crosses = len(way) > 1
    for type_, kernel in way:
        copy = SourceValue(f"{value.name}/{_ENDINGS[type_]}", value.type or SourceType("float32", None))
        op = SourceOp(type_, {"Input": [value]}, {"Out": [copy]}, {}, original_type=type_)
        op.attrs[KERNEL_ATTRIBUTE] = Attribute(AttributeKind.STRING, f"{type_}/{kernel}")
        if crosses:
            op.attrs["process_type"] = _FLOAT32_OUTSIDE
        ops.append(op)
        value = copy
    return value


def _is_float(value: SourceValue) -> bool:
    return value.type is None or value.type.dtype in ("float32", "undefined")
