"""The tensors of cases, described by shape, element type and initializer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from lite_conformance.judge.tolerances import smallest_normal
from lite_core.ir import DType

__all__ = [
    "Array",
    "Initializer",
    "Tensor",
    "as_type",
    "big",
    "const",
    "distinct",
    "integers",
    "ints",
    "largest_finite",
    "normal",
    "positive",
    "short_name",
    "special",
    "t",
    "tiny",
    "uniform",
    "values",
]

Array = np.ndarray[Any, Any]

#: Generates the elements of a tensor of a shape and element type.
Initializer = Callable[[np.random.Generator, tuple[int, ...], DType], Array]

_SHORT = {"float": "f", "bfloat": "bf", "int": "i", "uint": "u"}


def short_name(dtype: DType | str) -> str:
    """Return the short name of an element type: ``f32``, ``bf16``, ``i64``, ``u8``, ``bool``."""
    name = str(dtype)
    letters = name.rstrip("0123456789")
    return _SHORT.get(letters, letters) + name[len(letters) :]


# **** initializers ****


def normal(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return standard normal numbers; small integers, with negative ones in signed types; random booleans."""
    if dtype.is_floating:
        return as_type(random.standard_normal(shape), dtype)
    if dtype is DType.BOOL:
        return np.asarray(random.integers(0, 2, shape)).astype(bool)
    return as_type(random.integers(-5 if dtype.is_signed else 0, 8, shape), dtype)


def uniform(low: float, high: float) -> Initializer:
    """Return an initializer of uniform numbers from ``low`` to ``high`` (integers: without ``high``)."""

    def initialize(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
        """Return uniform numbers."""
        if dtype.is_floating:
            return as_type(random.uniform(low, high, shape), dtype)
        return as_type(random.integers(int(low), int(high), shape), dtype)

    return initialize


def integers(low: int, high: int) -> Initializer:
    """Return an initializer of integers from ``low`` to ``high - 1``, in any element type: indices, sizes, ties."""

    def initialize(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
        return as_type(random.integers(low, high, shape), dtype)

    return initialize


#: Positive numbers away from zero, for roots, logarithms and divisors.
positive: Initializer = uniform(0.5, 4)


def distinct(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return distinct elements (as far as the element type has that many): sorting and ArgMax have one answer."""
    count = int(np.prod(shape))
    numbers = random.permutation(count).reshape(shape)
    return as_type((numbers - count // 2) / 4 if dtype.is_floating else numbers, dtype)


def big(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return large magnitudes whose products still fit the element type."""
    if dtype.is_floating:
        exponent = {DType.FLOAT16: 1.3, DType.FLOAT64: 140.0}.get(dtype, 17.0)
        return as_type(np.clip(random.standard_normal(shape), -3, 3) * 10.0**exponent, dtype)
    if dtype is DType.BOOL:
        return normal(random, shape, dtype)
    most = int(np.sqrt(float(np.iinfo(dtype.numpy).max)))
    return as_type(random.integers(-most if dtype.is_signed else 0, most + 1, shape), dtype)


def tiny(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return small magnitudes whose products are still normal numbers (integers: -1, 0 and 1)."""
    if dtype.is_floating:
        exponent = {DType.FLOAT16: -1.5, DType.FLOAT64: -140.0}.get(dtype, -17.0)
        numbers = random.uniform(0.5, 2, shape) * random.choice([-1.0, 1.0], shape)
        return as_type(numbers * 10.0**exponent, dtype)
    if dtype is DType.BOOL:
        return normal(random, shape, dtype)
    return as_type(random.integers(-1 if dtype.is_signed else 0, 2, shape), dtype)


def special(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return standard normal numbers mixed with NaN, infinities, both zeros and extremes; integers with extremes."""
    array = normal(random, shape, dtype)
    if dtype is DType.BOOL:
        return array
    if dtype.is_floating:
        largest = largest_finite(dtype)
        chosen = [np.nan, np.inf, -np.inf, 0.0, -0.0, largest, -largest, smallest_normal(dtype)]
    else:
        info = np.iinfo(dtype.numpy)
        chosen = [info.min, info.max, 0, 1]
    flat = array.reshape(-1)
    positions = random.permutation(flat.size)[: max(1, flat.size // 2)] if flat.size else np.zeros(0, int)
    for number, position in enumerate(positions):
        flat[position] = np.asarray(chosen[number % len(chosen)]).astype(array.dtype)
    return flat.reshape(shape)


def largest_finite(dtype: DType) -> float:
    """Return the largest finite number of a floating type."""
    return 3.3895313892515355e38 if dtype is DType.BFLOAT16 else float(np.finfo(dtype.numpy).max)


def as_type(array: Any, dtype: DType) -> Array:
    """Convert numbers to an element type; numbers out of range overflow without a warning."""
    with np.errstate(all="ignore"):
        return np.asarray(array).astype(dtype.numpy)


# **** tensors ****


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input of a case.

    Attributes:
        shape: its shape.
        initializer: generates its elements.
        dtype: its element type; None for that of the case.
        constant: True for a constant of the graph, False for a run-time input.
    """

    shape: tuple[int, ...]
    initializer: Initializer = normal
    dtype: str | None = None
    constant: bool = False

    def make(self, random: np.random.Generator, dtype: DType) -> Array:
        """Generate the elements for a case of this element type."""
        return np.ascontiguousarray(
            self.initializer(random, self.shape, DType.of(self.dtype) if self.dtype else dtype)
        ).reshape(self.shape)


def t(*shape: int, init: Initializer = normal, dtype: str | None = None) -> Tensor:
    """Return a run-time tensor, by default standard normal."""
    return Tensor(shape, init, dtype)


def const(*shape: int, init: Initializer = normal, dtype: str | None = None) -> Tensor:
    """Return a constant of the graph, such as weights, by default standard normal."""
    return Tensor(shape, init, dtype, constant=True)


def values(elements: Any, dtype: str | None = None, *, constant: bool = False) -> Tensor:
    """Return a tensor with exactly these elements."""
    array = np.asarray(elements)

    def initialize(random: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
        return as_type(array, dtype)

    return Tensor(array.shape, initialize, dtype, constant)


def ints(*elements: int) -> Tensor:
    """Return a constant int64 vector: axes, shapes, pads."""
    return values(np.array(elements, np.int64), "int64", constant=True)
