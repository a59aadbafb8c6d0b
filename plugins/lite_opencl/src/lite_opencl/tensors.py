"""Tensors of a partition: strided views of device memory.

Most tensors are dense, in the order of their dimensions; a reshape, slice, transposition or broadcast is another view
of the same storage and costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lite_compiler import tensors as strided
from lite_compiler.tensors import StridedTensor
from lite_core.ir import DType
from lite_opencl.device.memory import Allocation

__all__ = ["Storage", "Tensor", "accepts_any", "collapse", "types_of"]


@dataclass(eq=False, slots=True)
class Storage:
    """A piece of device memory.

    Attributes:
        bytes: its size.
        memory: the memory that holds it: the allocation of a constant, the number of an argument of the partition
            (inputs, then outputs), or None for the arena.
        offset: bytes from the beginning of the arena, set when memory is planned; 0 outside the arena.
    """

    bytes: int
    memory: Allocation | int | None = None
    offset: int = 0


class Tensor(StridedTensor[Storage]):
    """A strided view of device memory."""

    __slots__ = ()


def accepts_any(destination: Tensor) -> bool:
    """Return True: a step that takes strides can write to every destination. See ``Lowering.target``."""
    return True


def collapse(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return views of tensors of one shape with the fewest dimensions that all of them can be walked in together.

    The views have at least one dimension. Neighbouring dimensions are merged; their order is kept.
    """
    sizes, strides = strided.collapse(tensors)
    return [tensor.view(sizes, own) for tensor, own in zip(tensors, strides)]


def types_of(**tensors: Tensor) -> tuple[tuple[str, DType], ...]:
    """Return the ``types`` of a :class:`KernelSource`: the element types of tensors by the kernel's names for them."""
    return tuple((name, tensor.dtype) for name, tensor in tensors.items())
