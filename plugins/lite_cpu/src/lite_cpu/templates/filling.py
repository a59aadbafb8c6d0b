"""The tables of a template's program, filled by native code with the numbers of a recipe."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lite_core.memory.arena import MANY_COMPARISONS
from lite_cpu.addresses import address_of
from lite_cpu.runtime.tables import Int64Array, ProgramTables
from lite_cpu.templates.layout import FillField
from lite_cpu.templates.native import SizeCode

__all__ = ["FilledTables", "Filling", "TemplateTables"]


class TemplateTables(NamedTuple):
    """The part that all programs of a template have in common.

    Attributes:
        numbers: the numbers that depend on sizes, one table after another, with 0 for those that are calculated.
        positions: the positions of these.
        lengths: of the tables: work items and maximum grains of steps, offsets of pointers in their storages,
            parameters, sizes of the storages in the arena, scratch memory, and the shape of each output.
        tables: the steps.
        starts: of each pointer, the address of its storage; 0 in the arena, and for an array that is made from sizes.
        lives: of each pointer, the number of its storage among those in the arena, or -1.
        lifetimes: the first and the last step that uses each storage in the arena.
    """

    numbers: Int64Array
    positions: Int64Array
    lengths: Sequence[int]
    tables: ProgramTables
    starts: Int64Array
    lives: Int64Array
    lifetimes: Sequence[tuple[int, int]]


class FilledTables(NamedTuple):
    """The tables of a program, the size of its arena, and the numbers that were filled in."""

    tables: ProgramTables
    arena_bytes: int
    numbers: Int64Array


class Filling:
    """Fills the tables of one template. Not thread-safe: it has one memory to work in.

    Args:
        template: the tables.
        sources: for each position to fill, the position among a recipe's numbers.
        code: the native code.
    """

    def __init__(self, template: TemplateTables, sources: Sequence[int], code: SizeCode) -> None:
        self._code, self._template = code, template
        steps, pointers = template.tables.steps, template.tables.pointers
        self._count, self._steps_end = len(template.numbers), len(template.numbers) + steps.size
        self._block = np.concatenate([template.numbers, steps.ravel(), pointers.ravel()])
        begins = np.cumsum([0, *template.lengths]).tolist()
        self._params = slice(begins[3], begins[4])
        lives, neighbours, moments, packings = _lives(template.lifetimes)
        count = len(template.lifetimes)
        arrays = {
            FillField.SOURCES: np.array(sources, np.int64),
            FillField.TARGETS: template.positions,
            FillField.STARTS: template.starts,
            FillField.LIVES: np.where(template.lives < 0, count, template.lives).astype(np.int64),
            FillField.LIFETIMES: lives,
            FillField.NEIGHBOURS: neighbours,
            FillField.WORK: np.zeros(7 * count + moments + 1, np.int64),
        }
        numbers = {
            FillField.OUTPUTS: len(sources),
            FillField.STEP_COUNT: len(steps),
            FillField.STEPS: self._count,
            FillField.TASKS: begins[0],
            FillField.GRAINS: begins[1],
            FillField.POINTER_COUNT: len(pointers),
            FillField.POINTERS: self._steps_end,
            FillField.OFFSETS: begins[2],
            FillField.LIFE_COUNT: count,
            FillField.BYTES: begins[4],
            FillField.MOMENTS: moments,
            FillField.PACKINGS: packings,
        }
        known = numbers | {field: address_of(array) for field, array in arrays.items()}
        self._layout = np.array([known[field] for field in FillField], np.int64)
        self._address = address_of(self._layout)
        self._arrays = tuple(arrays.values())  # the layout has their addresses

    def filled(self, numbers: Int64Array) -> FilledTables | None:
        """Return the tables with a recipe's numbers; None if a step or a storage would have a negative size."""
        block = self._block.copy()
        arena_bytes = self._code.fill(self._address, address_of(numbers), address_of(block))
        if arena_bytes < 0:
            return None
        steps = block[self._count : self._steps_end].reshape(self._template.tables.steps.shape)
        pointers = block[self._steps_end :].reshape(-1, 2)
        tables = ProgramTables(steps, pointers, block[self._params], self._template.tables.labels)
        return FilledTables(tables, arena_bytes, block[: self._count])


def _lives(lifetimes: Sequence[tuple[int, int]]) -> tuple[Int64Array, Int64Array, int, int]:
    """Return the lives, their neighbours, the number of moments, and the packings after which the late limit holds."""
    moments = sorted({moment for first, last in lifetimes for moment in (first, last + 1)})
    number = {moment: i for i, moment in enumerate(moments)}
    neighbours = [
        [j for j, (begin, end) in enumerate(lifetimes) if j != i and begin <= last and first <= end]
        for i, (first, last) in enumerate(lifetimes)
    ]
    begins = np.cumsum([0, *map(len, neighbours)]).tolist()
    rows = [
        [number[first], number[last + 1], begin, len(near)]
        for (first, last), begin, near in zip(lifetimes, begins, neighbours)
    ]
    lives = np.array(rows, np.int64).reshape(-1, 4)
    flat = np.array([i for near in neighbours for i in near], np.int64)
    return lives, flat, len(moments), -(-MANY_COMPARISONS // max(1, begins[-1]))
