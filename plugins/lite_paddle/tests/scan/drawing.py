"""Cases of single operators, and the registry of the functions that draw them.

The functions are in the modules of ``scan/spaces``. Each describes the space of one operator, or of several that share
it: which attributes, shapes and element types Paddle takes::

    @space("leaky_relu", "elu")
    def with_alpha(draw: Draw) -> Case:
        return draw.case({"X": draw.floats(draw.shape(1, 4))}, {"alpha": draw.real(0, 2)})
"""

from __future__ import annotations

import pkgutil
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any, TypeVar

import numpy as np

__all__ = ["Array", "Case", "Draw", "draw_cases", "space", "spaces"]

Array = np.ndarray[Any, Any]
Item = TypeVar("Item")


@dataclass(frozen=True)
class Case:
    """One operator with its inputs.

    Attributes:
        name: operator, and number of the draw.
        op: legacy type.
        inputs: slot to its arrays.
        attrs: attributes in the file; element types are strings.
        outputs: slot to number of values, of those that Lite has; Paddle writes its others, too.
        lod: slot to the sequence offsets of its arrays, level by level.
        parameters: slots whose arrays are parameters of the model.
        rtol: relative tolerance; integers must be equal.
        atol: absolute tolerance.
        paddle_op: operator that Paddle runs instead, which computes the same: a newer form of one that these versions
            no longer have.
        paddle_slots: names of that operator for slots of this one.
    """

    name: str
    op: str
    inputs: Mapping[str, list[Array]]
    attrs: Mapping[str, Any]
    outputs: Mapping[str, int]
    lod: Mapping[str, Sequence[Sequence[int]]] = field(default_factory=dict)
    parameters: tuple[str, ...] = ()
    rtol: float = 1e-4
    atol: float = 1e-5
    paddle_op: str = ""
    paddle_slots: Mapping[str, str] = field(default_factory=dict)


class Draw:
    """A source of attributes, shapes and arrays for one case of an operator: the same for the same seed, everywhere.

    Only ``random`` of :class:`random.Random` is used, and the frozen generator of NumPy: their numbers are the same in
    all versions.
    """

    def __init__(self, op: str, seed: int, number: int) -> None:
        self.op = op
        self.number = number
        self._random = random.Random(f"{seed}/{op}/{number}")

    def one(self, *options: Item) -> Item:
        """Return one of the options. The first draws take them in order: common values stand first."""
        return options[int(self._random.random() * len(options))]

    def integer(self, low: int, high: int) -> int:
        """Return an integer from low to high, both included."""
        return low + int(self._random.random() * (high - low + 1))

    def integers_of(self, count: int, low: int, high: int) -> list[int]:
        """Return a list of integers from low to high, both included."""
        return [self.integer(low, high) for _ in range(count)]

    def chance(self, share: float = 0.5) -> bool:
        """Return True in this share of the draws."""
        return self._random.random() < share

    def real(self, low: float, high: float) -> float:
        """Return a number of three decimals."""
        return round(low + self._random.random() * (high - low), 3)

    def shape(self, lowest: int, highest: int, largest: int = 4) -> list[int]:
        """Return a shape with a rank from lowest to highest, and sizes up to largest."""
        return self.integers_of(self.integer(lowest, highest), 1, largest)

    def subset(self, items: Sequence[Item], least: int = 0) -> list[Item]:
        """Return some of the items, at least so many, in their order."""
        chosen = [item for item in items if self.chance()]
        return chosen if len(chosen) >= least else list(items[:least])

    def order(self, count: int) -> list[int]:
        """Return a permutation of ``range(count)``."""
        keys = [self._random.random() for _ in range(count)]
        return sorted(range(count), key=keys.__getitem__)

    def floats(self, shape: Sequence[int], low: float = -2.0, high: float = 2.0, dtype: str = "float32") -> Array:
        """Return an array of numbers between low and high."""
        return self._numpy().uniform(low, high, tuple(shape)).astype(dtype)

    def integers(self, shape: Sequence[int], low: int, high: int, dtype: str = "int64") -> Array:
        """Return an array of integers from low to high, both included."""
        return self._numpy().randint(low, high + 1, tuple(shape)).astype(dtype)

    def numbers(self, shape: Sequence[int], dtype: str) -> Array:
        """Return an array of an element type, with small numbers."""
        if dtype == "bool":
            return self.integers(shape, 0, 1).astype(bool)
        if dtype.startswith(("int", "uint")):
            return self.integers(shape, 0 if dtype[0] == "u" else -9, 9, dtype)
        return self.floats(shape, dtype=dtype)

    def distinct(self, shape: Sequence[int], dtype: str = "float32") -> Array:
        """Return an array of different numbers, between -2 and 2 if they are real."""
        count = int(np.prod(tuple(shape), dtype=int))
        order = self._numpy().permutation(count).reshape(tuple(shape))
        return (order if dtype.startswith("int") else order / max(count, 1) * 4 - 2).astype(dtype)

    def offsets(self, least: int = 1, most: int = 4, longest: int = 4) -> list[int]:
        """Return the offsets of some sequences, none of them empty."""
        lengths = self.integers_of(self.integer(least, most), 1, longest)
        return [0, *np.cumsum(lengths).tolist()]

    def case(
        self,
        inputs: Mapping[str, Any],
        attrs: Mapping[str, Any] | None = None,
        outputs: Mapping[str, int] | Sequence[str] = ("Out",),
        **options: Any,
    ) -> Case:
        """Return a case; an input is an array or a list of them."""
        listed = {slot: given if isinstance(given, list) else [given] for slot, given in inputs.items()}
        counts = outputs if isinstance(outputs, Mapping) else dict.fromkeys(outputs, 1)
        return Case(f"{self.op}-{self.number}", self.op, listed, dict(attrs or {}), counts, **options)

    def _numpy(self) -> np.random.RandomState:
        return np.random.RandomState(self.integer(0, 2**31 - 1))


DrawFunction = Callable[[Draw], Case]
_spaces: dict[str, DrawFunction] = {}


def space(*ops: str) -> Callable[[DrawFunction], DrawFunction]:
    """Register a function that draws cases of these operators."""

    def register(function: DrawFunction) -> DrawFunction:
        for op in ops:
            if op in _spaces:
                raise ValueError(f"operator {op!r} has two spaces")
            _spaces[op] = function
        return function

    return register


@cache
def spaces() -> Mapping[str, DrawFunction]:
    """Return every operator with its function, sorted."""
    package = import_module("scan.spaces")
    for found in pkgutil.iter_modules(package.__path__):
        import_module(f"scan.spaces.{found.name}")
    return dict(sorted(_spaces.items()))


def draw_cases(seed: int, count: int, ops: Sequence[str] | None = None) -> list[Case]:
    """Return so many cases of every operator, or of these."""
    chosen = {op: spaces()[op] for op in ops} if ops else spaces()
    return [function(Draw(op, seed, number)) for op, function in chosen.items() for number in range(count)]
