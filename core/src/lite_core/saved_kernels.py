"""The optional part of a backend whose kernels serve sizes that were not prepared, on devices without a compiler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from lite_core.backend import Device

__all__ = ["SavesKernels"]


@runtime_checkable
class SavesKernels(Protocol):
    """Optional part of a backend with RestoresState: kernels that a model file holds besides its plans.

    ``collecting`` returns a device that compiles as ``device`` does and remembers its kernels; ``saved_kernels``
    returns these as pieces, all of which count as code, and none if there is nothing to save. ``with_kernels`` returns
    the device that compiles any partition of the model from such pieces alone; ``device`` itself if it can compile. It
    raises LiteError for pieces that it cannot use.
    """

    def collecting(self, device: Device) -> Device: ...

    def saved_kernels(self, device: Device) -> Sequence[bytes]: ...

    def with_kernels(self, pieces: Sequence[memoryview], device: Device) -> Device: ...
