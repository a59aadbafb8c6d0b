"""Traced numbers: sizes that remember how they were computed, and every decision that was made by them."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass
from functools import cache, partial, wraps
from typing import Any, TypeVar

import numpy as np

from lite_compiler.tracing.recipe import Recipe

__all__ = [
    "Traced",
    "TracedArray",
    "Tracer",
    "at_most",
    "call",
    "computed",
    "decided",
    "is_traced",
    "largest",
    "recorded_value",
    "smallest",
]

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

#: Operations whose result is the left operand if the right one is this number.
_NEUTRAL: dict[Callable[..., Any], int] = {operator.add: 0, operator.sub: 0, operator.mul: 1, operator.floordiv: 1}


#: The tracers that record, in all threads. While there is none, functions of numbers are called directly.
_open: set[Tracer] = set()


class Tracer:
    """A recorder of calculations with some sizes, and of the decisions that depend on them.

    After :meth:`close`, the numbers that it made behave like plain ones.

    Attributes:
        sizes: the traced sizes.
        fixed: the numbers on whose exact value something depends, each with the reason.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self._entries: list[tuple[Any, ...]] = []
        self._numbers: dict[tuple[Any, ...], int] = {}
        self._guards: dict[tuple[Any, ...], Any] = {}
        self.fixed: list[tuple[Any, str]] = []
        self.is_open = True
        _open.add(self)
        self.sizes = [Traced(self, size, self._number(("size", i))) for i, size in enumerate(sizes)]

    def close(self) -> None:
        """Stop recording, and release the traced sizes, which hold the tracer."""
        self.is_open = False
        self.sizes.clear()
        self.fixed.clear()
        _open.discard(self)

    def recipe(self, outputs: Sequence[Any]) -> Recipe:
        """Return the calculation of numbers, which may be traced or plain, from other sizes."""
        return Recipe.of(self._entries, [*self._guards.items()], [self._of(number) for number in outputs])

    def apply(self, function: Callable[..., Any], *operands: Any) -> Any:
        """Return the result of a function of numbers, at least one of them traced; it must depend on nothing else."""
        value = function(*map(_value, operands))
        if not self.is_open:
            return value
        return self._traced(value, self._number((function, *map(self._of, operands))))

    def _traced(self, value: Any, number: int) -> Any:
        """Return what stands for a recorded result: a number, an array, or a tuple of them."""
        if value is None:
            return self.decide(_is_none, Traced(self, value, number)) and None
        if not isinstance(value, (tuple, list)):
            return (TracedArray if isinstance(value, np.ndarray) else Traced)(self, value, number)
        parts = [self._number((operator.getitem, number, self._of(i))) for i in range(len(value))]
        return _like(value)(*map(self._traced, value, parts))

    def decide(self, function: Callable[..., Any], *operands: Any) -> Any:
        """Return the result of a function of numbers as it is; the recipe applies to sizes with an equal result."""
        result = function(*map(_value, operands))
        if self.is_open:
            self._guards.setdefault((function, *map(self._of, operands)), result)
        return result

    def fix(self, number: Traced, reason: str) -> Any:
        """Return the value of a number as it is; the recipe applies to sizes for which it has this value."""
        if self.is_open:
            self.fixed.append((number, reason))
            self._guards.setdefault((operator.eq, number.number, self._of(number.value)), True)
        return number.value

    def _of(self, operand: Any) -> int:
        if type(operand) in _TRACED:
            if operand.tracer is self:
                return int(operand.number)
            operand = operand.value
        elif (parts := _parts(operand)) and _tracer_of(parts):
            return self._number((_like(operand), *map(self._of, parts)))
        entry = ("constant", type(operand), operand)
        try:
            return self._number(entry)
        except TypeError:  # an array is known by its identity
            return self._number(entry, ("constant", id(operand)))

    def _number(self, entry: tuple[Any, ...], key: tuple[Any, ...] | None = None) -> int:
        key = key or entry
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self._entries)
            self._entries.append(entry)
        return found


class Traced:
    """A number that is recorded. It passes for an ``int`` (or ``float``), except where C code would read its bits.

    Such code asks for ``__index__``, which fixes the number: the recipe then applies only where it is the same.
    """

    __slots__ = ("number", "tracer", "value")

    def __init__(self, tracer: Tracer, value: Any, number: int) -> None:
        self.tracer, self.value, self.number = tracer, value, number

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self.value)

    def __bool__(self) -> bool:
        return bool(self.tracer.decide(operator.ne, self, 0))

    def __index__(self) -> int:
        return operator.index(self.tracer.fix(self, "index"))

    def __int__(self) -> int:
        return int(self.tracer.fix(self, "int"))

    def __float__(self) -> float:
        return float(self.tracer.fix(self, "float"))

    def __hash__(self) -> int:
        return hash(self.tracer.fix(self, "hash"))

    def __str__(self) -> str:
        return str(self.tracer.fix(self, "text"))

    def __format__(self, form: str) -> str:
        return format(self.tracer.fix(self, "text"), form)

    def __repr__(self) -> str:
        return repr(self.tracer.fix(self, "text"))

    def __neg__(self) -> Any:
        return self.tracer.apply(operator.neg, self)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self.tracer.apply(abs, self)

    def __ceil__(self) -> Any:
        return self.tracer.apply(math.ceil, self)

    def __floor__(self) -> Any:
        return self.tracer.apply(math.floor, self)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __getattr__(self, name: str) -> Any:
        """Return an attribute, or a function that records the call of a method: not only numbers are recorded."""
        if name.startswith("__"):
            raise AttributeError(name)
        if callable(getattr(type(self.value), name, None)):
            return partial(self.tracer.apply, _method(name), self)
        return self.tracer.apply(_attribute(name), self)

    def item(self) -> Any:
        """Return the number itself, as a NumPy scalar does."""
        return self


class TracedArray:
    """An array that is recorded, with traced sizes. Whoever reads its elements fixes them, except by ``tolist``."""

    def __init__(self, tracer: Tracer, value: Any, number: int) -> None:
        self.tracer, self.value, self.number = tracer, value, number

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return np.ndarray

    @property
    def shape(self) -> tuple[Any, ...]:
        """The sizes of the dimensions."""
        return tuple([self.tracer.apply(_size, self, axis) for axis in range(self.value.ndim)])

    @property
    def size(self) -> Any:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> Any:
        """The number of bytes."""
        return self.size * self.value.itemsize

    @property
    def ndim(self) -> int:
        """The number of dimensions; it never differs."""
        return int(self.value.ndim)

    @property
    def dtype(self) -> Any:
        """The type of the elements; it never differs."""
        return self.value.dtype

    def reshape(self, *shape: Any) -> Any:
        """Return the array in another shape, as NumPy does."""
        return self.tracer.apply(np.reshape, self, shape[0] if len(shape) == 1 else shape)

    def astype(self, dtype: Any) -> Any:
        """Return the array converted to another element type, as NumPy does."""
        return self.tracer.apply(_converted, self, dtype)

    def tolist(self) -> list[Any]:
        """Return the elements of an array of one dimension as traced numbers; the recipe applies to as many."""
        if self.value.ndim != 1:
            return list(self._fixed().tolist())
        return [self.tracer.apply(_element, self, i) for i in range(*self.shape)]

    def __array__(self, *arguments: Any, **options: Any) -> Any:
        return np.array(self._fixed(), *arguments, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._fixed(), name)

    def __len__(self) -> int:
        return len(self._fixed())

    def __getitem__(self, index: Any) -> Any:
        return self._fixed()[index]

    def _fixed(self) -> Any:
        """Return the array as it is; the recipe applies to sizes for which it is equal."""
        if self.tracer.is_open:
            self.tracer.fixed.append((self, "elements"))
            self.tracer.decide(_content, self)
        return self.value


_TRACED = (Traced, TracedArray)


def _size(array: Any, axis: int) -> int:
    return int(array.shape[axis])


def _converted(array: Any, dtype: Any) -> Any:
    return array.astype(dtype)


def _element(array: Any, index: int) -> Any:
    return array[index].item()


def _content(array: Any) -> tuple[Any, ...]:
    return array.shape, str(array.dtype), array.tobytes()


def _is_none(value: Any) -> bool:
    return value is None


def _value(operand: Any) -> Any:
    if type(operand) in _TRACED:
        return operand.value
    if (parts := _parts(operand)) and _tracer_of(parts):
        return _like(operand)(*map(_value, parts))
    return operand


def _parts(operand: Any) -> Sequence[Any]:
    """Return what a tuple or a data class consists of."""
    if isinstance(operand, (tuple, list)):
        return operand
    return [getattr(operand, field.name) for field in fields(operand)] if is_dataclass(operand) else ()


def _like(operand: Any) -> Callable[..., Any]:
    """Return the function that makes a tuple, or a data class, of the type of another from its parts."""
    plain: dict[type, Callable[..., Any]] = {tuple: _as_tuple, list: _as_list}
    return plain.get(type(operand), type(operand))


def _as_tuple(*parts: Any) -> tuple[Any, ...]:
    return parts


def _as_list(*parts: Any) -> list[Any]:
    return [*parts]


@cache
def _attribute(name: str) -> Callable[..., Any]:
    return operator.attrgetter(name)


@cache
def _method(name: str) -> Callable[..., Any]:
    return lambda self, *operands: getattr(self, name)(*operands)


def _plain(other: Any) -> Any:
    """Return the other operand of an operation as a number; None if it is none."""
    if type(other) in (Traced, int, float, bool):
        return other
    if isinstance(other, np.generic):
        return other.item()
    return None


def _binary(function: Callable[[Any, Any], Any]) -> tuple[Callable[..., Any], Callable[..., Any]]:
    neutral = _NEUTRAL.get(function)

    def forward(self: Traced, other: Any) -> Any:
        plain = _plain(other)
        if plain is None:
            return NotImplemented
        if type(plain) is int and plain == neutral:
            return self
        return self.tracer.apply(function, self, plain)

    def reflected(self: Traced, other: Any) -> Any:
        plain = _plain(other)
        if plain is None:
            return NotImplemented
        if type(plain) is int and plain == neutral and function in (operator.add, operator.mul):
            return self
        return self.tracer.apply(function, plain, self)

    return forward, reflected


for _name in ("add", "sub", "mul", "floordiv", "truediv", "mod", "pow", "lshift", "rshift"):
    _forward, _reflected = _binary(getattr(operator, _name))
    setattr(Traced, f"__{_name}__", _forward)
    setattr(Traced, f"__r{_name}__", _reflected)
for _name in ("and_", "or_", "xor"):
    _forward, _reflected = _binary(getattr(operator, _name))
    setattr(Traced, f"__{_name.strip('_')}__", _forward)
    setattr(Traced, f"__r{_name.strip('_')}__", _reflected)


def _comparison(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    of_same = function(0, 0)

    def compare(self: Traced, other: Any) -> Any:
        plain = _plain(other)
        if plain is None:
            return NotImplemented
        if type(plain) is Traced and plain.number == self.number and plain.tracer is self.tracer:
            return of_same
        return self.tracer.decide(function, self, plain)

    return compare


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Traced, f"__{_name}__", _comparison(getattr(operator, _name)))


def _tracer_of(operands: Iterable[Any]) -> Tracer | None:
    """Return the open tracer of the first traced number among operands and their parts."""
    for operand in operands:
        tracer = operand.tracer if type(operand) in _TRACED else _tracer_of(_parts(operand))
        if tracer is not None and tracer.is_open:
            return tracer
    return None


def computed(function: F) -> F:
    """Decorate a function of numbers that returns a number and depends on nothing else: traced numbers call it whole.

    What it decides on the way then need not be the same for other sizes.
    """

    @wraps(function)
    def recorded(*operands: Any) -> Any:
        return call(function, *operands) if _open else function(*operands)

    return recorded  # type: ignore[return-value]


def decided(function: F) -> F:
    """Decorate a function of numbers whose result is a choice that must be the same for other sizes."""

    @wraps(function)
    def recorded(*operands: Any) -> Any:
        tracer = _tracer_of(operands) if _open else None
        return function(*operands) if tracer is None else tracer.decide(function, *operands)

    return recorded  # type: ignore[return-value]


def call(function: Callable[..., Any], *operands: Any) -> Any:
    """Return the result of a function of numbers and arrays, recorded if an operand is."""
    tracer = _tracer_of(operands) if _open else None
    return function(*operands) if tracer is None else tracer.apply(function, *operands)


def is_traced(*operands: Any) -> bool:
    """Return True if one of the operands, or a part of one, is recorded."""
    return bool(_open) and _tracer_of(operands) is not None


#: ``max`` and ``min``, without the decision which of the numbers it is.
largest, smallest = computed(max), computed(min)


def at_most(number: int, limit: int, chosen: T, otherwise: T) -> T:
    """Return ``chosen`` if a number is at most the limit, else ``otherwise``. Both are known: nothing is decided."""
    tracer = _tracer_of((number, limit, chosen, otherwise)) if _open else None
    if tracer is None:
        return chosen if number <= limit else otherwise
    found: T = tracer.apply(at_most, number, limit, chosen, otherwise)
    return found


def recorded_value(operand: Any) -> Any:
    """Return what a number, an array or another object was for the sizes of the recording; nothing is fixed."""
    return _value(operand)
