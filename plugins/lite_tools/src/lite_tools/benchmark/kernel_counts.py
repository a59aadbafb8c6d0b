"""Kernels that a backend found in its cache and kernels that it compiled."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol, runtime_checkable

from lite_core.backend import Backend

__all__ = ["CountsKernels", "KernelCounts", "kernel_counts"]


class KernelCounts(NamedTuple):
    """Numbers of kernels that became ready in this process.

    Attributes:
        found: kernels found in the cache or in a model file.
        compiled: kernels compiled, because nothing had them.
        seconds: the time spent compiling, summed over threads.
    """

    found: int = 0
    compiled: int = 0
    seconds: float = 0.0

    def __sub__(self, earlier: KernelCounts) -> KernelCounts:
        """Return the counts since an earlier moment."""
        return KernelCounts(*(now - then for now, then in zip(self, earlier)))  # type: ignore[arg-type]


@runtime_checkable
class CountsKernels(Protocol):
    """Optional part of a backend that compiles: ``kernel_counts`` returns the counts of this process so far.

    They are the attributes of :class:`KernelCounts` in this order. A kernel that a session needs and that an earlier
    session of the process made ready is not counted again.
    """

    def kernel_counts(self) -> tuple[int, int, float]: ...


def kernel_counts(backends: Iterable[Backend]) -> dict[str, KernelCounts]:
    """Return the counts of the backends that count, by their names."""
    return {b.name: KernelCounts(*b.kernel_counts()) for b in backends if isinstance(b, CountsKernels)}
