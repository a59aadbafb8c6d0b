"""The software below a backend, which the header of a report names."""

from __future__ import annotations

from collections.abc import Mapping

from lite_conformance.drive.backend_call import backend_call
from lite_conformance.judge.outcome import Failure
from lite_core.backend import Backend, Device
from lite_core.stack import DescribesStack

__all__ = ["checked_stack", "stack_of"]


def checked_stack(backend: Backend, device: Device) -> dict[str, str]:
    """Return the names and versions of the software below a backend; empty if it does not have this optional part.

    Raises:
        Failure: ``stack()`` raised, or returned something else than texts by name.
    """
    if not isinstance(backend, DescribesStack):
        return {}
    with backend_call("stack()"):
        stack = backend.stack(device)
        is_valid = isinstance(stack, Mapping) and all(isinstance(text, str) for pair in stack.items() for text in pair)
    if not is_valid:
        raise Failure(f"stack() must give texts by name, such as {{'driver': '24.2'}}, gave {stack!r}")
    return dict(stack)


def stack_of(backend: Backend, device: Device) -> dict[str, str]:
    """Return the names and versions for the header; a case of level 0 reports what is wrong with them."""
    try:
        return checked_stack(backend, device)
    except Failure as failure:
        return {"stack()": failure.reason}
