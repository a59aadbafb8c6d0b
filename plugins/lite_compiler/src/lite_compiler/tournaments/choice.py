"""The result of a tournament, and the description of the problem that it solves."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from lite_compiler.tensors import StridedTensor

__all__ = ["Choice", "choices_of_json", "choices_to_json", "problem"]


class Choice(NamedTuple):
    """The fastest candidate for a problem.

    Attributes:
        name: the name of the candidate.
        seconds: its time.
        usual: the candidate that is used without measuring.
        usual_seconds: the time of that one, measured alongside.
    """

    name: str
    seconds: float
    usual: str
    usual_seconds: float

    def __str__(self) -> str:
        text = f"{self.name} takes {_microseconds(self.seconds)}"
        return text if self.name == self.usual else f"{text}, {self.usual} {_microseconds(self.usual_seconds)}"

    @staticmethod
    def of_json(item: Any) -> Choice:
        """Return the choice that :meth:`_asdict` turned into a dictionary.

        Raises:
            TypeError: the item is not a choice.
        """
        choice = Choice(**item)
        if [*map(type, choice)] != [str, float, str, float]:
            raise TypeError(f"{item!r} is no choice")
        return choice


def choices_to_json(choices: Mapping[str, Choice]) -> dict[str, Any]:
    """Return choices by problem as JSON values."""
    return {problem: choice._asdict() for problem, choice in choices.items()}


def choices_of_json(items: Any) -> dict[str, Choice]:
    """Return the choices that :func:`choices_to_json` turned into JSON values.

    Raises:
        TypeError: the items are not choices by problem.
    """
    if not isinstance(items, dict):
        raise TypeError(f"{type(items).__name__} instead of choices by problem")
    return {problem: Choice.of_json(item) for problem, item in items.items()}


def problem(kind: str, tensors: Iterable[StridedTensor[Any]], **sizes: object) -> str:
    """Return the description of a problem; problems with equal descriptions have the same fastest candidate.

    Args:
        kind: the kind of problem.
        tensors: tensors whose element types matter.
        sizes: sizes by name; a pair becomes ``3x3``.
    """
    types = " ".join(str(tensor.dtype) for tensor in tensors)
    texts = {name: "x".join(map(str, size)) if isinstance(size, tuple) else size for name, size in sizes.items()}
    return f"{kind} of {types}: " + ", ".join(f"{name} {text}" for name, text in texts.items())


def _microseconds(seconds: float) -> str:
    return f"{1e6 * seconds:.1f} us" if math.isfinite(seconds) else "cannot run"
