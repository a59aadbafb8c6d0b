"""Level 0: the backend is found, has a valid name and members, and lists its devices."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from lite_conformance.cases.case import Case, Context
from lite_conformance.drive.backend_call import backend_call
from lite_conformance.drive.stack import checked_stack
from lite_conformance.judge.outcome import Failure, Outcome
from lite_core.backend import Device, RestoresState, Unavailable
from lite_core.ir import DType, Node, TensorType, Value
from lite_core.plugins import PluginRecord
from lite_core.plugins.contracts import Kind
from lite_core.stack import DescribesStack
from lite_tools.checking import misspelt_members, undefined_members

__all__ = ["cases", "require_well_spelt"]

_CHECKED = Outcome(examples=0)


def cases() -> Iterator[Case]:
    """Yield the cases of level 0."""
    checks = (_registration, _member_names, _devices, _repeatable, _unknown_operator, _stack)
    for check in checks:
        yield Case(f"probe[{check.__name__.strip('_').replace('_', '-')}]", 0, "probe", check)


def _registration(context: Context) -> Outcome:
    """Require a name that is usable on a command line, and the methods of the contract."""
    backend = context.subject.backend
    if (
        not isinstance(backend.name, str)
        or not backend.name.replace("_", "").isalnum()
        or backend.name.lower() != backend.name
    ):
        raise Failure(f"name must be made of lower-case letters, digits and underscores, is {backend.name!r}")
    for member, method in {"probe": backend.probe, "supports": backend.supports, "compile": backend.compile}.items():
        if not callable(method):
            raise Failure(f"the backend has no method {member}(); see lite_core/backend.py")
    if isinstance(backend, RestoresState) and not callable(backend.restore):
        raise Failure("restore is optional, but must be a method where it is there")
    failed = [r for r in context.subject.plugins.records() if r.failed and backend.name in _names(r)]
    if failed:
        raise Failure(f"its plugin {failed[0].label} failed at {failed[0].phase}: {failed[0].error}")
    return _CHECKED


def _names(record: PluginRecord) -> set[str]:
    return {record.name, *(name for given in record.provides.values() for name in given)}


def _member_names(context: Context) -> Outcome:
    """Require that no member of the backend or its memory looks like a misspelt optional member."""
    subject = context.subject
    require_well_spelt(subject.backend, "backend", "the backend")
    require_well_spelt(subject.memory, "memory", f"the memory {subject.memory.space!r}")
    return _CHECKED


def require_well_spelt(thing: object, kind: Kind, what: str) -> None:
    """Raise a Failure if a member looks like a misspelt optional member of the contract, or is that of a Protocol."""
    found = misspelt_members(thing, kind)
    for member in undefined_members(thing, kind):
        meant = ", ".join(name for name, intended in found if intended == member)
        asked = f" ({meant}?)" if meant else ""
        raise Failure(
            f"{what}: {member}() is the Protocol's own: your class does not define it{asked}; "
            "define it, or take the Protocol out of the bases"
        )
    if found:
        pairs = ", and ".join(
            f"{name!r}, which looks like a misspelt {meant}{'()' if callable(getattr(thing, name, None)) else ''}"
            for name, meant in found
        )
        each = "it" if len(found) == 1 else "each"
        raise Failure(f"{what} has {pairs}: rename {each}, or begin it with an underscore if it is your own")


def _devices(context: Context) -> Outcome:
    """Require a valid description of each device, and distinct device numbers."""
    backend = context.subject.backend
    with backend_call("probe()"):
        devices = backend.probe()
    if isinstance(devices, Unavailable):
        raise Failure(f"probe() found devices before and says now that there is none: {devices.reason}")
    if not isinstance(devices, Sequence):
        raise Failure(f"probe() must give a list of devices or Unavailable, gave {type(devices).__name__}")
    for device in devices:
        if not isinstance(device, Device):
            raise Failure(f"probe() gave {device!r}, which is not a Device")
        if device.backend != backend.name:
            raise Failure(f"device {device.label!r} must say backend={backend.name!r}, says {device.backend!r}")
        if not isinstance(device.index, int) or device.index < 0:
            raise Failure(f"a device's index must be a number of at least 0, is {device.index!r}")
        if not isinstance(device.name, str) or not device.name:
            raise Failure(f"device {device.label!r} must have a readable name, has {device.name!r}")
        if not all(isinstance(text, str) for pair in dict(device.details).items() for text in pair):
            raise Failure(f"the details of device {device.label!r} must be texts by name, are {device.details!r}")
        if not isinstance(device.score, (int, float)) or not math.isfinite(device.score):
            raise Failure(f"device {device.label!r} has score {device.score!r}, which is not a finite number")
    indices = [device.index for device in devices]
    if len(set(indices)) != len(indices):
        raise Failure(f"two devices have the same index: {indices}")
    return _CHECKED


def _repeatable(context: Context) -> Outcome:
    """Require that a second probe() returns the same devices."""
    backend = context.subject.backend
    with backend_call("probe()"):
        first, again = backend.probe(), backend.probe()
        changed = isinstance(first, Unavailable) or isinstance(again, Unavailable) or list(first) != list(again)
    if changed:
        raise Failure(f"probe() gave {first!r}, and {again!r} when called again")
    return _CHECKED


def _unknown_operator(context: Context) -> Outcome:
    """Require a No, not an exception, for a node of an unknown operator."""
    for shape in ((2, 3), None):
        type = TensorType(DType.FLOAT32, shape)
        node = Node("NoSuchOperator", [Value("x", type)], [Value("y", type)], domain="unknown", name="unknown")
        if not context.subject.refusals([node]):
            raise Failure("supports() answered Yes for an operator that does not exist (unknown.NoSuchOperator)")
    return _CHECKED


def _stack(context: Context) -> Outcome:
    """Require that stack(), if there is one, gives texts by name, and the same ones again."""
    subject = context.subject
    first = checked_stack(subject.backend, subject.device)
    if not isinstance(subject.backend, DescribesStack):
        return Outcome(examples=0, note="the backend has no stack(): reports do not name its driver and compiler")
    if (again := checked_stack(subject.backend, subject.device)) != first:
        raise Failure(f"stack() gave {first!r}, and {again!r} when called again")
    return _CHECKED
