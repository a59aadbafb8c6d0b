"""Layout of the tables that templates share with generated code; every field is a 64-bit integer."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["INSTRUCTION_FIELDS", "FillField", "LifeField", "Operation"]

#: Fields of an instruction: the operation, and the positions of its result and its two operands among the numbers.
INSTRUCTION_FIELDS = 4


class Operation(IntEnum):
    """An instruction of a recipe. Division and remainder are those of Python; comparisons give 1 or 0."""

    ADD = 0
    SUBTRACT = 1
    MULTIPLY = 2
    DIVIDE = 3
    REMAINDER = 4
    LARGEST = 5
    SMALLEST = 6
    EQUAL = 7
    LESS = 8
    AT_MOST = 9
    CHOOSE = 10  #: sets the result to the right operand unless the left one is 0
    NEARBY = 11  #: the left operand, rounded as by :func:`lite_cpu.kernels.shares.nearby`
    EXPECT = 12  #: ends the recipe unless both operands are equal; it has no result


class FillField(IntEnum):
    """The fields that ``lite_fill`` fills: positions in the block are counted in integers from its start."""

    OUTPUTS = 0  #: number of outputs of the recipe
    SOURCES = 1  #: address of the position of each output among the numbers
    TARGETS = 2  #: address of its position in the block
    STEP_COUNT = 3
    STEPS = 4  #: position of the table of steps
    TASKS = 5  #: position of the work items of each step
    GRAINS = 6  #: position of the maximum grains
    POINTER_COUNT = 7
    POINTERS = 8  #: position of the table of pointers
    OFFSETS = 9  #: position of the offsets in their storages
    STARTS = 10  #: address of the start of each pointer's storage, unless it is in the arena
    LIVES = 11  #: address of the number of the life of each pointer's storage, or that of lives
    LIFE_COUNT = 12
    BYTES = 13  #: position of the bytes of each life
    LIFETIMES = 14  #: address of a :class:`LifeField` for each life
    NEIGHBOURS = 15  #: address of the lives that share a moment with each life
    MOMENTS = 16  #: number of moments when a life begins or has ended
    PACKINGS = 17  #: number of packings after which the later limit holds
    WORK = 18  #: address of memory to work in: seven integers for each life, one for each moment


class LifeField(IntEnum):
    """A life of a storage in the arena."""

    FIRST = 0  #: the first moment
    END = 1  #: the first moment after it
    BEGIN = 2  #: position of its first neighbour
    COUNT = 3  #: number of neighbours
