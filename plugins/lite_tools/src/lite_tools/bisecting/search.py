"""Search for the smallest part of a sequence that has a property, with few questions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

__all__ = ["shortest_prefix", "smallest_set"]

T = TypeVar("T")
#: Is told the largest number of questions that are left.
Left = Callable[[int], None]


def shortest_prefix(low: int, high: int, ask: Callable[[int], bool | None], left: Left) -> tuple[int, int]:
    """Return two neighbouring lengths: prefixes of the first lack a property, those of the second have it.

    Args:
        low: a length whose prefix lacks the property.
        high: a larger length whose prefix has it.
        ask: returns whether the prefix of a length has the property; None if that cannot be told.
        left: is told the largest number of questions that are left, before each of them.

    Returns:
        The two lengths. They differ by more than 1 only if ``ask`` answers None for all between them.
    """
    while high - low > 1:
        left((high - low - 1).bit_length())
        answers = ((middle, ask(middle)) for middle in _from_middle(low, high))
        found = next(((middle, answer) for middle, answer in answers if answer is not None), None)
        if found is None:
            break
        low, high = (low, found[0]) if found[1] else (found[0], high)
    return low, high


def smallest_set(units: Sequence[T], ask: Callable[[frozenset[T]], bool | None], left: Left) -> list[T]:
    """Return a set of units that has a property, and loses it without any one of them, in the order of ``units``.

    The shortest prefix of the units with the property is found by bisection: its last unit is needed. The search goes
    on among the units before it, with the needed ones always included, until these alone have the property. A single
    unit takes log2(n) + 1 questions, k units together about k (log2(n) + 2).

    Args:
        units: the units; together they have the property, and the empty set lacks it.
        ask: returns whether a set of units has the property; None if that cannot be told, which counts as no in the
            end.
        left: is told the largest number of questions that are left if one more unit is needed.
    """
    needed: list[T] = []
    rest = list(units)

    def ask_prefix(length: int) -> bool | None:
        return ask(frozenset([*needed, *rest[:length]]))

    while rest:
        low, high = shortest_prefix(0, len(rest), ask_prefix, lambda questions: left(questions + 1))
        needed, rest = [*rest[low:high], *needed], rest[:low]
        left(1)
        if rest and ask(frozenset(needed)):
            break
    if len(needed) > 1:
        for number, unit in enumerate(list(needed)):
            left(len(needed) - number)
            without = [other for other in needed if other is not unit]
            if without and ask(frozenset(without)):
                needed = without
    return needed


def _from_middle(low: int, high: int) -> Iterator[int]:
    """Yield the numbers between two others, those in the middle first."""
    middle = (low + high) // 2
    yield from sorted(range(low + 1, high), key=lambda number: (abs(number - middle), number))
