"""What a compiled partition enqueues: kernels by the keys of their programs, and where their arguments lie.

Launches are plain data: an executable binds them to memory, a model file stores them.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Launch", "Location", "Space", "launch_from_json", "launch_to_json"]

Size = tuple[int, int, int]


class Space(enum.IntEnum):
    """In which memory a tensor lies: a constant's, an argument's of the partition, or the arena."""

    CONSTANT = 0
    ARGUMENT = 1
    ARENA = 2


class Location(NamedTuple):
    """The first element of a tensor.

    Attributes:
        space: which memory it is in.
        number: of the constant, or of the argument: inputs, then outputs; 0 for the arena.
        offset: bytes from the beginning of that memory.
        itemsize: of an element: kernels count elements.
    """

    space: Space
    number: int
    offset: int
    itemsize: int


class Launch(NamedTuple):
    """A call of a kernel.

    Attributes:
        program: key of the program.
        kernel: its function.
        local_size, global_size: work items of a work group, and of all.
        arguments: in the kernel's order; a location becomes two, buffer and offset.
        label: what profiles call it.
        nodes: names of the nodes that it computes.
        flops, bytes: that it does and moves.
    """

    program: str
    kernel: str
    local_size: Size
    global_size: Size
    arguments: tuple[Location | np.generic, ...]
    label: str
    nodes: tuple[str, ...]
    flops: int
    bytes: int


def launch_to_json(launch: Launch) -> list[Any]:
    """A launch as JSON takes it; numbers as their bytes, so that nothing is rounded."""
    arguments = [list(a) if isinstance(a, Location) else [a.dtype.str, a.tobytes().hex()] for a in launch.arguments]
    return [*launch._replace(arguments=()), arguments]


def launch_from_json(item: Sequence[Any]) -> Launch:
    """The launch that :func:`launch_to_json` was given."""
    program, kernel, local_size, global_size, _, label, nodes, flops, moved, listed = item
    arguments = tuple(
        Location(Space(a[0]), *a[1:])
        if len(a) == len(Location._fields)
        else np.frombuffer(bytes.fromhex(a[1]), a[0])[0]
        for a in listed
    )
    return Launch(program, kernel, tuple(local_size), tuple(global_size), arguments, label, tuple(nodes), flops, moved)
