"""Tensors of a partition on a device: views of pieces of its memory, and what kernels are told of them.

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

__all__ = ["Storage", "Tensor", "anywhere", "collapse", "types_of"]


@dataclass(eq=False, slots=True)
class Storage:
    """A piece of device memory.

    Attributes:
        bytes: its size.
        place: where it is: an allocation for a constant, the number of an argument of the partition (inputs, then
            outputs), or None for the arena.
        offset: bytes from the beginning of the arena, decided when memory is planned; 0 elsewhere.
    """

    bytes: int
    place: Allocation | int | None = None
    offset: int = 0


class Tensor(StridedTensor[Storage]):
    """A strided view of device memory."""

    __slots__ = ()


def anywhere(place: Tensor) -> bool:
    """Whether a step that takes strides can write to a tensor: it can; see ``Lowering.target``."""
    return True


def collapse(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Views of tensors of one shape with the fewest dimensions in which all of them can be walked together.

    At least one dimension. Neighbours in the dimensions' own order are merged; their order is kept.
    """
    sizes, strides = strided.collapse(tensors)
    return [tensor.view(sizes, mine) for tensor, mine in zip(tensors, strides)]


def types_of(**tensors: Tensor) -> tuple[tuple[str, DType], ...]:
    """What :class:`KernelSource` takes as its types: those in which tensors lie in memory, by the kernel's names."""
    return tuple((name, tensor.dtype) for name, tensor in tensors.items())
