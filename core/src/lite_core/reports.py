"""Reports of executables about themselves: times of kernels, use of memory, and the types that they compute in."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

__all__ = ["Interval", "KernelTime", "MemoryUse", "StatesPrecision"]


class KernelTime(NamedTuple):
    """The measured time of one kernel of a partition in one run.

    Attributes:
        name: the kernel's name.
        nodes: names of the nodes that it computes; several if the backend fused them.
        seconds: its run time.
        flops: floating-point operations, two for a multiply-add; 0 if not counted.
        bytes: bytes read and written, each tensor once; 0 if not counted.
        peak_share: achieved share, 0 to 1, of the device's peak arithmetic or memory bandwidth, whichever is the limit.
    """

    name: str
    nodes: tuple[str, ...]
    seconds: float
    flops: float = 0.0
    bytes: float = 0.0
    peak_share: float | None = None


class Interval(NamedTuple):
    """The lifetime of ``size`` bytes of memory: written by step ``first``, last read by step ``last``."""

    size: int
    first: int
    last: int


class MemoryUse(NamedTuple):
    """The memory that a compiled partition uses.

    Attributes:
        arena_bytes: size of the memory that tensors inside the partition share during a run.
        intervals: lifetimes of the tensors in the arena, counted in kernels; empty if unknown.
        scratch_bytes: scratch memory of the kernels beside the arena, for all threads together.
        weight_bytes: size of the constants as the kernels read them, including packing.
    """

    arena_bytes: int
    intervals: tuple[Interval, ...]
    scratch_bytes: int
    weight_bytes: int


@runtime_checkable
class StatesPrecision(Protocol):
    """Optional part of an executable: the types that it computes in, in words, such as ``8 of 9 products in bfloat16``.

    The text may be empty while it is not known: the shapes inside the partition depend on data, and it has not run.
    """

    @property
    def computes(self) -> str: ...
