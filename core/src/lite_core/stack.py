"""The optional part of a backend that names the software below it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from lite_core.backend import Device

__all__ = ["DescribesStack"]


@runtime_checkable
class DescribesStack(Protocol):
    """Optional part of a backend: the software below it, which reports of tests and measurements name.

    ``stack`` returns versions by name, such as ``{"driver": "24.2", "compiler": "LLVM 15.0"}``, without slow calls.
    """

    def stack(self, device: Device) -> Mapping[str, str]: ...
