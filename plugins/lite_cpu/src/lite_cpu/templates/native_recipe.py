"""Recipes whose whole numbers native code calculates; only functions of objects are called from Python."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lite_compiler.tracing.numbers import at_most
from lite_compiler.tracing.recipe import NUMBER, Recipe
from lite_cpu.addresses import address_of
from lite_cpu.kernels.shares import nearby
from lite_cpu.runtime.tables import Int64Array
from lite_cpu.templates.layout import INSTRUCTION_FIELDS, Operation
from lite_cpu.templates.native import SizeCode

__all__ = ["NativeRecipe"]

#: Operations of two operands whose instruction has these operands, and those where they change positions.
_FORWARD: dict[Callable[..., Any], Operation] = {
    operator.add: Operation.ADD, operator.sub: Operation.SUBTRACT, operator.mul: Operation.MULTIPLY,
    operator.floordiv: Operation.DIVIDE, operator.mod: Operation.REMAINDER, operator.eq: Operation.EQUAL,
    operator.lt: Operation.LESS, operator.le: Operation.AT_MOST,
}  # fmt: skip
_REFLECTED: dict[Callable[..., Any], Operation] = {operator.gt: Operation.LESS, operator.ge: Operation.AT_MOST}
_MANY: dict[Callable[..., Any], Operation] = {max: Operation.LARGEST, min: Operation.SMALLEST}
_nearby = nearby.__wrapped__  # type: ignore[attr-defined]
_OTHERS = (operator.neg, operator.abs, abs, operator.ne, at_most, _nearby)

_Step = tuple[Callable[..., Any], tuple[int, ...], Any]


class _Phase(NamedTuple):
    """Instructions, and steps in Python which follow them.

    Attributes:
        instructions: int64[count, 4].
        address: their address.
        steps: the steps as a function of the next two, which returns what the last two name, or None if a decision
            turns out differently; None if there are none.
        fetched: positions of the whole numbers that the steps read.
        earlier: positions of the objects that they read, and that earlier phases made.
        given: positions of the numbers.
        made: positions of the objects.
    """

    instructions: Int64Array
    address: int
    steps: Callable[..., list[Any] | None] | None
    fetched: Int64Array
    earlier: tuple[int, ...]
    given: Int64Array
    made: tuple[int, ...]


class NativeRecipe:
    """A recipe that runs as native code as far as possible. Not thread-safe: it has one table of numbers.

    Args:
        recipe: the recipe.
        known: all its numbers for some sizes, as :meth:`Recipe.numbers` returns them: they tell which are whole.
        code: the native code.

    Attributes:
        numbers: the whole numbers after :meth:`follow`, in the positions of the recipe.
    """

    def __init__(self, recipe: Recipe, known: Sequence[Any], code: SizeCode) -> None:
        self._code = code
        compiler = _Compiler(recipe, known)
        self._phases = compiler.phases()
        self._constants = {i: recipe.constants[i] for i in recipe.outputs if i < len(recipe.constants)}
        self.numbers = np.array(compiler.numbers, np.int64)
        self._sizes = self.numbers[len(recipe.constants) :][: recipe.sizes]
        self._address = address_of(self.numbers)

    def follow(self, sizes: Sequence[int]) -> dict[int, Any] | None:
        """Calculate the numbers for other sizes; None if a decision turns out differently, or a number is too large.

        Returns:
            The outputs that are objects, by their positions in the recipe. All others are in :attr:`numbers`.

        Raises:
            Exception: a step in Python failed, or a size or result is no whole number of 64 bits as it was before.
        """
        numbers, objects = self.numbers, self._constants.copy()
        self._sizes[:] = sizes
        for instructions, address, steps, fetched, earlier, given, made in self._phases:
            if not self._code.follow(address, len(instructions), self._address):
                return None
            if steps is None:
                continue
            results = steps(*numbers[fetched].tolist(), *[objects[i] for i in earlier])
            if results is None:
                return None
            count = len(given)
            numbers[given] = [operator.index(number) for number in results[:count]]
            objects.update(zip(made, results[count:]))
        return objects


class _Compiler:
    """Divides the steps of a recipe among phases, and translates those of whole numbers into instructions."""

    def __init__(self, recipe: Recipe, known: Sequence[Any]) -> None:
        self._recipe = recipe
        self._is_whole = [type(value) is int and abs(value) < 1 << 62 for value in known]
        #: The numbers: those of the recipe, then further constants, then results between two instructions.
        self.numbers: list[int] = [value if whole else 0 for value, whole in zip(known, self._is_whole)]
        self._constants: dict[int, int] = {}
        self._instructions: list[list[tuple[int, int, int, int]]] = []
        self._steps: list[list[tuple[_Step, int]]] = []
        #: What instructions read, or the caller; and the results of steps in Python.
        self._read: set[int] = set()
        self._in_python: set[int] = set()

    def phases(self) -> tuple[_Phase, ...]:
        """Return the phases."""
        recipe = self._recipe
        first = len(recipe.constants) + recipe.sizes
        #: In which phase a number is known to instructions, and to steps in Python.
        to_native, to_python = [0] * len(self._is_whole), [0] * len(self._is_whole)
        position = first
        for step in recipe.steps:
            function, operands, result = step
            is_instruction = self._is_translated(function, operands) and (
                self._is_whole[position] if result is NUMBER else type(result) is bool
            )
            known = to_native if is_instruction else to_python
            phase = max((known[i] for i in operands), default=0)
            while len(self._steps) <= phase:
                self._steps.append([])
                self._instructions.append([])
            if is_instruction:
                self._read.update(operands)
                self._translate(self._instructions[phase], function, operands, result, position)
            else:
                self._steps[phase].append((step, position))
                self._in_python.update([position] if result is NUMBER else [])
            if result is NUMBER:
                to_native[position] = to_python[position] = phase
                to_native[position] += not is_instruction
                position += 1
        #: The objects that a phase must make for later ones, which are therefore completed first, and for the caller.
        wanted = {i for i in recipe.outputs if not self._is_whole[i]}
        self._read.update(recipe.outputs)
        phases = [self._phase(*both, wanted) for both in zip(self._instructions[::-1], self._steps[::-1])]
        return tuple(phases[::-1])

    def _phase(
        self,
        instructions: Sequence[tuple[int, int, int, int]],
        steps: Sequence[tuple[_Step, int]],
        wanted: set[int],
    ) -> _Phase:
        """Return a phase, and add what it needs of earlier ones to what is wanted."""
        table = np.array(instructions, np.int64).reshape(-1, INSTRUCTION_FIELDS)
        constants = self._recipe.constants
        results = dict.fromkeys(position for (*_, result), position in steps if result is NUMBER)
        operands = dict.fromkeys(i for (_, own, _), _ in steps for i in own)
        fixed = [i for i in operands if i < len(constants)]
        inputs = [i for i in operands if i >= len(constants) and i not in results]
        earlier = [i for i in inputs if i in self._in_python]
        fetched = [i for i in inputs if i not in self._in_python]
        given = [i for i in results if i in self._read and self._is_whole[i]]
        made = [i for i in results if i in wanted]
        wanted.update(earlier)
        place = {number: i for i, number in enumerate([*fixed, *fetched, *earlier, *results])}
        own = Recipe(
            tuple([constants[i] for i in fixed]),
            len(inputs),
            tuple([(function, tuple([place[i] for i in known]), result) for (function, known, result), _ in steps]),
            tuple([place[i] for i in (*given, *made)]),
        )
        return _Phase(
            table,
            address_of(table),
            own.function() if steps else None,
            np.array(fetched, np.int64),
            tuple(earlier),
            np.array(given, np.int64),
            tuple(made),
        )

    def _is_translated(self, function: Callable[..., Any], operands: Sequence[int]) -> bool:
        if not all(self._is_whole[i] for i in operands):
            return False
        if function in _MANY:
            return len(operands) > 1
        return function in _FORWARD or function in _REFLECTED or function in _OTHERS

    def _translate(
        self,
        instructions: list[tuple[int, int, int, int]],
        function: Callable[..., Any],
        operands: Sequence[int],
        result: Any,
        position: int,
    ) -> None:
        """Append the instructions of a step whose result has a position, or must be ``result``."""
        is_number = result is NUMBER
        if function is operator.ne:  # only decided: as the opposite of "equal"
            function, result = operator.eq, not result
        if function is operator.eq and result is True:
            instructions.append((Operation.EXPECT, 0, *operands))  # type: ignore[arg-type]
            return
        target = position if is_number else self._further(0)
        if function in _FORWARD:
            instructions.append((_FORWARD[function], target, *operands))  # type: ignore[arg-type]
        elif function in _REFLECTED:
            instructions.append((_REFLECTED[function], target, operands[1], operands[0]))
        elif function in _MANY:
            instructions.append((_MANY[function], target, *operands[:2]))  # type: ignore[arg-type]
            instructions += [(_MANY[function], target, target, other) for other in operands[2:]]
        elif function is _nearby:
            instructions.append((Operation.NEARBY, target, operands[0], operands[0]))
        elif function is at_most:
            self._translate_choice(instructions, operands, target)
        else:
            instructions.append((Operation.SUBTRACT, target, self._constant(0), operands[0]))
            if function is not operator.neg:
                instructions.append((Operation.LARGEST, target, target, operands[0]))
        if not is_number:
            instructions.append((Operation.EXPECT, 0, target, self._constant(int(result))))

    def _translate_choice(
        self, instructions: list[tuple[int, int, int, int]], operands: Sequence[int], target: int
    ) -> None:
        less, more, chosen, otherwise = operands
        condition = self._further(0)
        instructions.append((Operation.AT_MOST, condition, less, more))
        instructions.append((Operation.ADD, target, otherwise, self._constant(0)))
        instructions.append((Operation.CHOOSE, target, condition, chosen))

    def _constant(self, value: int) -> int:
        if value not in self._constants:
            self._constants[value] = self._further(value)
        return self._constants[value]

    def _further(self, value: int) -> int:
        self.numbers.append(value)
        return len(self.numbers) - 1
