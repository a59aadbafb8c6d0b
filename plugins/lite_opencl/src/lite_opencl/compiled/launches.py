"""Launches of a compiled partition: kernels by the keys of their programs, and the locations of their arguments.

Launches are plain data: an executable binds them to memory, a model file stores them.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

__all__ = ["ImageLocation", "Launch", "Location", "Space", "launch_from_json", "launch_to_json"]

Size = tuple[int, int, int]


class Space(enum.IntEnum):
    """The kind of memory that holds a tensor: a constant, an argument of the partition, or the arena."""

    CONSTANT = 0
    ARGUMENT = 1
    ARENA = 2


class Location(NamedTuple):
    """The location of a tensor's first element.

    Attributes:
        space: the kind of memory.
        number: number of the constant, or of the argument (inputs, then outputs); 0 for the arena.
        offset: bytes from the beginning of that memory.
        itemsize: bytes of an element; kernels take offsets in elements.
    """

    space: Space
    number: int
    offset: int
    itemsize: int


class ImageLocation(NamedTuple):
    """A constant that a kernel reads as an image.

    Attributes:
        number: number of the constant.
        dtype: name of its element type.
    """

    number: int
    dtype: str


class Launch(NamedTuple):
    """A call of a kernel.

    Attributes:
        program: key of the program.
        kernel: name of the kernel function.
        local_size, global_size: work items of a work group, and in total.
        arguments: in the kernel's order; a location becomes two arguments, buffer and offset, an image one.
        label: its name in profiles.
        nodes: names of the nodes that it computes.
        flops, bytes: floating-point operations that it performs, and bytes that it loads and stores.
    """

    program: str
    kernel: str
    local_size: Size
    global_size: Size
    arguments: tuple[Location | ImageLocation | np.generic, ...]
    label: str
    nodes: tuple[str, ...]
    flops: int
    bytes: int


def launch_to_json(launch: Launch) -> list[Any]:
    """Return a launch as JSON data; numbers are written as their bytes, so that nothing is rounded."""
    return [*launch._replace(arguments=()), [_argument_to_json(a) for a in launch.arguments]]


def launch_from_json(item: Sequence[Any]) -> Launch:
    """Return the launch that :func:`launch_to_json` converted."""
    program, kernel, local_size, global_size, _, label, nodes, flops, moved, listed = item
    arguments = tuple(map(_argument_from_json, listed))
    return Launch(program, kernel, tuple(local_size), tuple(global_size), arguments, label, tuple(nodes), flops, moved)


def _argument_to_json(argument: Location | ImageLocation | np.generic) -> dict[str, Any]:
    if isinstance(argument, Location):
        return {"location": [*argument]}
    if isinstance(argument, ImageLocation):
        return {"image": [*argument]}
    return {"number": [argument.dtype.str, argument.tobytes().hex()]}


def _argument_from_json(item: dict[str, Any]) -> Location | ImageLocation | np.generic:
    ((kind, fields),) = item.items()
    if kind == "location":
        space, *others = fields
        return Location(Space(space), *others)
    if kind == "image":
        return ImageLocation(*fields)
    dtype, content = fields
    number: np.generic = np.frombuffer(bytes.fromhex(content), dtype)[0]
    return number
