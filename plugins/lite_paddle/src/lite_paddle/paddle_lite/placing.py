"""Choice of a kernel for each operator of a draft, for the targets that the user lists.

Paddle-Lite scores every kernel by the order of the targets; the best score wins. The same comes out of a simpler rule:
of the kernels for the operator's element type, take the first target of the list that has one, then the host, which is
part of every list. Among the kernels of a target, one for the exact type goes before one that takes any type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lite_core.errors import InputError, OperatorProblem, UnsupportedOperatorError

from ..source import SourceOp, SourceValue
from .draft import Draft, element_type
from .half_precision import MARKED, half_choice
from .kernels import Kernel, Layout, Precision, Target, kernels_of
from .limits import limit
from .locations import Choice, Location, bring
from .opencl import opencl_choice
from .program import KERNEL_ATTRIBUTE, Attribute, AttributeKind
from .schemas import schema_of, typed

__all__ = ["TARGET_NAMES", "Placer", "Targets", "parse_targets"]

_NAMED = {
    "host": (),
    "x86": (Target.X86,),
    "arm": (Target.ARM,),
    "opencl": (Target.OPENCL, Target.ARM),
    "x86_opencl": (Target.OPENCL, Target.X86),
}
#: Values of ``--valid_targets`` that a Paddle-Lite file can be written for.
TARGET_NAMES = tuple(_NAMED)

# The slots whose element types decide about the kernel, where it is not the first one.
_DECIDING = {
    "gather": ("Index", "Axis"),
    "lookup_table": ("Ids",),
    "lookup_table_v2": ("Ids",),
    "scatter": ("Ids",),
    "scatter_nd_add": ("X", "Index"),
}


@dataclass(frozen=True, slots=True)
class Targets:
    """The processors that a file is written for.

    Attributes:
        names: as the user lists them.
        order: in order of preference, without the host.
        fp16: prefer kernels that compute in float16 on ARM.
    """

    names: tuple[str, ...]
    order: tuple[Target, ...]
    fp16: bool = False

    def __contains__(self, target: Target) -> bool:
        return target in self.order or target is Target.HOST


def parse_targets(names: Sequence[str], *, fp16: bool = False) -> Targets:
    """Return the targets of a list of names.

    Raises:
        InputError: a name is unknown, or x86 and ARM are both named.
    """
    unknown = [name for name in names if name not in _NAMED]
    if unknown or not names:
        raise InputError(
            f"Paddle-Lite files are written for {', '.join(TARGET_NAMES)}, not for {', '.join(map(repr, unknown))}. "
            "Leave these targets out"
        )
    listed = [target for name in names for target in _NAMED[name]]
    if "x86" in names:  # beside opencl, it names the processor that runs the rest
        listed = [target for target in listed if target is not Target.ARM or "arm" in names]
    order = tuple(sorted(dict.fromkeys(listed), key=lambda target: target is not Target.OPENCL))
    if Target.X86 in order and Target.ARM in order:
        raise InputError(
            "the targets x86 and arm exclude each other: a Paddle-Lite file runs on one kind of processor; "
            "convert the model once for each"
        )
    if fp16 and Target.ARM not in order:
        raise InputError("Paddle-Lite computes in float16 on ARM and OpenCL only, where OpenCL decides itself")
    return Targets(tuple(names), order, fp16)


class Placer:
    """Chooses kernels for the operators of a draft.

    Args:
        targets: the processors.
    """

    def __init__(self, targets: Targets) -> None:
        self.targets = targets
        self._problems: dict[tuple[str, str], list[SourceOp]] = {}

    def place(self, draft: Draft, subject: str) -> None:
        """Record a kernel in each operator, and insert the operators that bring values to where they are read.

        Raises:
            UnsupportedOperatorError: operators have no kernel, or lack what Paddle-Lite needs; all are listed.
        """
        # Blocks of loops and conditionals share variables with the main block, which have to stay where they are.
        is_flat = all(not op.blocks for op in draft.block.ops)
        choices: dict[SourceOp, Choice] = {}
        used = set(draft.users())
        for block in draft.blocks():
            for op in block.ops:
                choice = self._choice(draft, op, used, is_flat=is_flat)
                if choice is not None:
                    choices[op] = choice
                    op.attrs[KERNEL_ATTRIBUTE] = Attribute(AttributeKind.STRING, str(choice.kernel))
        if self._problems:
            raise UnsupportedOperatorError(subject, [self._problem(*key, ops) for key, ops in self._problems.items()])
        if is_flat:
            _mark_constants(draft, choices)
            bring(draft, choices)

    def candidates(self, op: SourceOp) -> list[Kernel]:
        """Return the kernels that can compute an operator, the preferred one first; OpenCL's are not among them."""
        deciding = _decided_by(op)
        elements = ",".join(element_type(value) for value in deciding)
        is_array = any(value.type is not None and value.type.is_array for value in deciding)
        has_arrays = any(kernel.is_array_kernel for kernel in kernels_of(op.type))
        found = []
        for kernel in kernels_of(op.type):
            if kernel.target is Target.OPENCL or kernel.target not in self.targets:
                continue
            if kernel.precision in (Precision.INT8, Precision.FP16) or kernel.layout is Layout.NHWC:
                continue
            if has_arrays and kernel.is_array_kernel != is_array:
                continue
            if elements and not kernel.takes(elements):
                continue
            found.append(kernel)
        return sorted(found, key=lambda k: (self._position(k.target), k.element_type is None, k.alias != "def"))

    def _position(self, target: Target) -> int:
        return self.targets.order.index(target) if target in self.targets.order else len(self.targets.order)

    def _choice(self, draft: Draft, op: SourceOp, used: set[SourceValue], *, is_flat: bool) -> Choice | None:
        reason = _misfit(op) or limit(draft, op, used)
        if is_flat and not reason:
            choice = opencl_choice(draft, op) if Target.OPENCL in self.targets else None
            if choice is None and self.targets.fp16:
                choice = half_choice(draft, op)
            if choice is not None:
                return choice
        found = self.candidates(op)
        if not found or reason:
            self._report(op, reason if found else self._why_not(op))
            return None
        return Choice(found[0])

    def _why_not(self, op: SourceOp) -> str:
        kernels = kernels_of(op.type)
        if not kernels:
            return "Paddle-Lite does not have this operator"
        here = [kernel for kernel in kernels if kernel.target in self.targets and kernel.target is not Target.OPENCL]
        if not here:
            others = sorted({kernel.target.name.lower() for kernel in kernels})
            if Target.OPENCL in self.targets and others == ["opencl"]:
                return "only OpenCL has a kernel for it, for float32 tensors of known rank up to 4"
            return f"it has kernels for {', '.join(others)} only, not for {', '.join(self.targets.names)}"
        found = " and ".join(element_type(value) for value in _decided_by(op))
        types = sorted({str(kernel.element_type).replace(",", " and ") for kernel in here})
        return f"its kernels compute {', '.join(types)}, not {found}"

    def _report(self, op: SourceOp, reason: str) -> None:
        self._problems.setdefault((op.type, reason), []).append(op)

    def _problem(self, type_: str, reason: str, ops: list[SourceOp]) -> OperatorProblem:
        remedy = "Lite itself runs it: write a .lite file with --optimize_out_type=lite"
        return OperatorProblem(type_, reason, tuple(f"{type_}#{op.index}" for op in ops), remedy)


def _mark_constants(draft: Draft, choices: Mapping[SourceOp, Choice]) -> None:
    """Ask the device to convert the float32 constants that float16 kernels read."""
    for op, choice in choices.items():
        if choice.reads is Location.HALF and op.type in MARKED:
            for value in [value for values in op.inputs.values() for value in values if value in draft.constants]:
                op.attrs[f"{value.name}_fp16"] = Attribute(AttributeKind.STRING, "fp16")


def _decided_by(op: SourceOp) -> list[SourceValue]:
    """Return the values whose element types a kernel of the operator must take; none if it reads nothing."""
    if op.type in _DECIDING:
        return [op.inputs[slot][0] for slot in _DECIDING[op.type] if op.inputs.get(slot)]
    schema = schema_of(op.type)
    return [op.inputs[slot][0] for slot in (schema.inputs if schema else ()) if op.inputs.get(slot)][:1]


def _misfit(op: SourceOp) -> str:
    """Return what of an operator Paddle-Lite's operator of that name lacks, empty if nothing."""
    schema = schema_of(op.type)
    if schema is None:
        return "Paddle-Lite does not have this operator"
    extra = [slot for slot in op.inputs if slot not in schema.inputs]
    if extra:
        return f"Paddle-Lite's operator has no input {', '.join(slot.removeprefix('@') for slot in extra)}"
    missing = [slot for slot, needed in schema.inputs.items() if needed and slot not in op.inputs]
    if missing:
        return f"it has no input {', '.join(missing)}, which Paddle-Lite's operator needs"
    layout = op.attrs.get("data_format", op.attrs.get("data_layout", "NCHW"))
    if layout in ("NHWC", "NDHWC") and "data_format" not in schema.attributes:
        return f"its tensors are in the layout {layout}; Paddle-Lite computes NCHW"
    for name, (kind, needed) in schema.attributes.items():
        value = op.attrs.get(name, schema.defaults.get(name))
        if value is None and needed and name != "sub_block":
            return f"it has no attribute {name}, which Paddle-Lite's operator needs"
        if value is not None and not isinstance(value, Attribute):
            try:
                typed(kind, value)
            except (ValueError, TypeError, KeyError):
                return f"its attribute {name} is {str(value)[:40]!r}, which Paddle-Lite cannot store as {kind.name}"
    return ""
