"""Recipes: the calculation of numbers from sizes, with the decisions that must turn out as they did."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["NUMBER", "Recipe"]

#: How often a recipe is followed before it becomes a function, which takes half the time. To compile it takes 12 ms for
#: a network of 200 nodes: a model that meets a few sizes only is better off without.
_MOST_INTERPRETED = 8

#: The functions that are operators of Python, and the operators.
_INFIX: dict[Callable[..., Any], str] = {
    operator.add: "+", operator.sub: "-", operator.mul: "*", operator.floordiv: "//", operator.truediv: "/",
    operator.mod: "%", operator.eq: "==", operator.ne: "!=", operator.lt: "<", operator.le: "<=", operator.gt: ">",
    operator.ge: ">=",
}  # fmt: skip

Calculate = Callable[..., "list[Any] | None"]

#: The result of a step that is a further number.
NUMBER = object()


@dataclass(slots=True)
class Recipe:
    """A straight-line program over a list of numbers: constants, then the sizes, then the result of each operation.

    Attributes:
        constants: the first numbers.
        sizes: how many sizes follow.
        steps: functions, the positions of their operands, and the results that they must have; :data:`NUMBER` stands
            for any, which is a further number. What must have a result follows as soon as its operands are known.
        outputs: the positions of the results.
    """

    constants: tuple[Any, ...]
    sizes: int
    steps: tuple[tuple[Callable[..., Any], tuple[int, ...], Any], ...]
    outputs: tuple[int, ...]
    _used: int = field(default=0, repr=False)
    _calculate: Calculate | None = field(default=None, repr=False)

    @staticmethod
    def of(entries: Sequence[tuple[Any, ...]], guards: Sequence[tuple[Any, Any]], outputs: Sequence[int]) -> Recipe:
        """Return the recipe of recorded entries, without those that nothing needs."""
        needed = {*outputs, *(i for (_, *operands), _ in guards for i in operands)}
        for number in range(len(entries) - 1, -1, -1):
            kind = entries[number][0]
            if number in needed and callable(kind):
                needed.update(entries[number][1:])
        constants = [i for i in sorted(needed) if entries[i][0] == "constant"]
        sizes = [i for i in range(len(entries)) if entries[i][0] == "size"]
        calculated = [i for i in sorted(needed) if callable(entries[i][0])]
        position = {number: i for i, number in enumerate([*constants, *sizes, *calculated])}
        first = len(constants) + len(sizes)
        decisions: dict[int, list[tuple[Callable[..., Any], tuple[int, ...], Any]]] = {}
        for (function, *operands), result in guards:
            known = tuple([position[k] for k in operands])
            decisions.setdefault(max([first - 1, *known]), []).append((function, known, result))
        steps = [*decisions.get(first - 1, ())]
        for number in calculated:
            function, *operands = entries[number]
            steps.append((function, tuple([position[k] for k in operands]), NUMBER))
            steps += decisions.get(position[number], ())
        known = tuple([entries[i][2] for i in constants])
        return Recipe(known, len(sizes), tuple(steps), tuple([position[i] for i in outputs]))

    def results(self, sizes: Sequence[int]) -> list[Any] | None:
        """Return the outputs for other sizes; None if a decision turns out differently for them, or a step fails."""
        self._used += 1
        if self._calculate is None and self._used > _MOST_INTERPRETED:
            self._calculate = self.function()
        try:
            return self._interpreted(sizes) if self._calculate is None else self._calculate(*sizes)
        except Exception:  # the error is reported by whoever does without the recipe, as for sizes that cannot be
            return None

    def _interpreted(self, sizes: Sequence[int]) -> list[Any] | None:
        numbers = self.numbers(sizes)
        return None if numbers is None else [numbers[i] for i in self.outputs]

    def numbers(self, sizes: Sequence[int]) -> list[Any] | None:
        """Return all numbers for other sizes; None if a decision turns out differently.

        Raises:
            Exception: a step fails.
        """
        numbers = [*self.constants, *sizes]
        add = numbers.append
        for function, operands, result in self.steps:
            # Two operands are most frequent, and a loop over them takes twice as long.
            if len(operands) == 2:
                value = function(numbers[operands[0]], numbers[operands[1]])
            else:
                value = function(*[numbers[i] for i in operands])
            if result is NUMBER:
                add(value)
            elif value != result:
                return None
        return numbers

    def function(self) -> Calculate:
        """Return the same as a function of the sizes, which takes half the time."""
        known: dict[str, Any] = {}
        names: list[str] = []

        def name_of(value: Any) -> str:
            name = f"c{len(known)}"
            known[name] = value
            return name

        functions = dict.fromkeys(function for function, *_ in self.steps if function not in _INFIX)
        function_names = {function: name_of(function) for function in functions}

        def expression(function: Callable[..., Any], operands: Sequence[int]) -> str:
            given = [names[i] for i in operands]
            if function in _INFIX:
                return f"{given[0]} {_INFIX[function]} {given[1]}"
            return f"{function_names[function]}({', '.join(given)})"

        names += [str(value) if type(value) is int and value >= 0 else name_of(value) for value in self.constants]
        sizes = [f"s{i}" for i in range(self.sizes)]
        names += sizes
        lines = []
        for function, operands, result in self.steps:
            if result is NUMBER:
                lines.append(f" v{len(names)} = {expression(function, operands)}")
                names.append(f"v{len(names)}")
            else:
                lines.append(f" if ({expression(function, operands)}) != {name_of(result)}: return None")
        lines.append(f" return [{', '.join([names[i] for i in self.outputs])}]")
        # Arguments with defaults are found sooner than global names.
        head = f"def calculate({', '.join([*sizes, *(f'{name}={name}' for name in known)])}):"
        # NOTE: the text has nothing but numbers, operators and the names made here.
        exec("\n".join([head, *lines]), known)
        calculate: Calculate = known["calculate"]
        return calculate
