"""Input shapes in which some dimensions stand for several sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

from lite_core.errors import InputError

__all__ = ["MOST_SHAPES", "AnySize", "single_shapes"]

#: The most shapes of one input: each results in a plan for every target and number of threads.
MOST_SHAPES = 256
#: A size, or several of them.
AnySize = int | Sequence[int]


def single_shapes(shapes: Mapping[str, Sequence[AnySize]]) -> Iterator[Mapping[str, Sequence[int]]]:
    """Yield the mappings that a mapping with several sizes in some dimensions stands for.

    The dimensions of one input are combined in every way, the last one changes fastest. The first shapes of all inputs
    belong together, then the second ones, and so on; an input with a single shape has that shape in all mappings.

    Raises:
        InputError: inputs have different numbers of shapes, or one has too many.
    """
    several = {name: _shapes_of(name, shape) for name, shape in shapes.items()}
    count = max(map(len, several.values()), default=1)
    uneven = [f"{name} {len(each)}" for name, each in several.items() if len(each) not in (1, count)]
    if uneven:
        raise InputError(
            f"shapes: each input needs one shape, or {count} like the others; given are {', '.join(uneven)}"
        )
    for number in range(count):
        yield {name: each[min(number, len(each) - 1)] for name, each in several.items()}


def _shapes_of(name: str, shape: Any) -> list[Sequence[int]]:
    if not isinstance(shape, Sequence):
        return [shape]  # an error, which is reported with the model's inputs
    lists = [list(dim) if isinstance(dim, Sequence) else [dim] for dim in shape]
    count = prod(map(len, lists))
    if not 1 <= count <= MOST_SHAPES:
        raise InputError(f"shapes: input {name!r} has {count} shapes, expected 1 to {MOST_SHAPES}")
    return [*product(*lists)]
