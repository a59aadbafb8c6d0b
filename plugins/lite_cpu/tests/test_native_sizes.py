"""Native code calculates the numbers of recipes and fills tables as Python does."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import pytest

from lite_compiler.tracing.numbers import Tracer, at_most, computed, largest, smallest
from lite_compiler.tracing.recipe import Recipe
from lite_core.backend import Interval
from lite_core.memory.arena import plan_arena
from lite_cpu.kernels.shares import nearby
from lite_cpu.runtime.tables import ProgramTables, Step
from lite_cpu.templates.filling import Filling, TemplateTables
from lite_cpu.templates.native import SizeCode, size_code
from lite_cpu.templates.native_recipe import NativeRecipe


@pytest.fixture(scope="module")
def code() -> SizeCode:
    found = size_code()
    assert found is not None
    return found


def recorded(calculate: Callable[..., Sequence[Any]], *sizes: int) -> Recipe:
    tracer = Tracer(sizes)
    recipe = tracer.recipe(calculate(*tracer.sizes))
    tracer.close()
    return recipe


@computed
def halves(n: int) -> tuple[int, int]:
    return (n // 2, n - n // 2) if n % 3 else (n, 0)


def arithmetic(n: int, m: int) -> list[int]:
    first, second = halves(n + m)
    return [
        n + m, n - 100 * m, n * m * 7, (n - m) // 7, -n // 3, 100 // (m + 1), (n - m) % 5, (n - m) % -5, -m, abs(n - m),
        largest(n, m, 9), smallest(n, 9, m), at_most(n, m, n * 3, 5), first * 2 + n, second, halves(first - 1)[1] + m,
        12, nearby(n), nearby(n * m * 9 + 1), nearby(n << 40),
    ]  # fmt: skip


def test_arithmetic_is_that_of_python(code: SizeCode) -> None:
    recipe = recorded(arithmetic, 10, 4)
    known = recipe.numbers((10, 4))
    assert known is not None
    native, generator = NativeRecipe(recipe, known, code), random.Random(0)
    for _ in range(300):
        sizes = generator.randint(0, 40), generator.randint(0, 40)
        values = native.follow(sizes)
        assert values is not None
        assert [native.numbers.item(i) for i in recipe.outputs] == arithmetic(*sizes)


@computed
def text(n: int) -> str:
    return "x" * n


@computed
def length(words: str, n: int) -> int:
    return len(words) + n


def test_steps_in_python_use_objects_and_numbers_of_earlier_ones(code: SizeCode) -> None:
    def calculate(n: int) -> list[Any]:
        words = text(n + 1)
        first = length(words, n)
        return [words, length(words, first * 2) - 1, first, text(first % 3), "always"]

    recipe = recorded(calculate, 3)
    known = recipe.numbers([3])
    assert known is not None
    native = NativeRecipe(recipe, known, code)
    for n in (3, 8, 0):
        objects = native.follow([n])
        assert objects is not None
        assert [objects[i] if i in objects else native.numbers.item(i) for i in recipe.outputs] == calculate(n)


@pytest.mark.parametrize(
    ("calculate", "sizes"),
    [
        (lambda n: [n * 3 if n > 5 else n], [5, 6]),
        (lambda n: [n * 3 if n >= 5 else n], [4, 5]),
        (lambda n: [n * 3 if n < 5 else n], [4, 5]),
        (lambda n: [n * 3 if n == 5 else n], [4, 5]),
        (lambda n: [n * 3 if n != 5 else n], [4, 5]),
        (lambda n: [n * 3 if halves(n)[0] <= 5 else n], [5, 20]),
        (lambda n: [12 // n], [3, 0]),
        (lambda n: [12 % n], [3, 0]),
    ],
)
def test_decisions_and_divisions_by_zero_end_a_recipe(
    code: SizeCode, calculate: Callable[[int], list[int]], sizes: list[int]
) -> None:
    for own in sizes if calculate(sizes[0]) and 0 not in sizes else sizes[:1]:
        recipe = recorded(calculate, own)
        known = recipe.numbers([own])
        assert known is not None
        native = NativeRecipe(recipe, known, code)
        assert [native.follow([size]) is not None for size in sizes] == [size == own for size in sizes]


@pytest.mark.parametrize(
    "calculate", [lambda n: [n * (1 << 40)], lambda n: [n + n], lambda n: [-n - n - 1], lambda n: [nearby(n)]]
)
def test_numbers_of_more_than_64_bits_end_a_recipe(code: SizeCode, calculate: Callable[[int], list[int]]) -> None:
    recipe = recorded(calculate, 1)
    known = recipe.numbers([1])
    assert known is not None
    native = NativeRecipe(recipe, known, code)
    assert native.follow([2]) is not None
    assert native.follow([1 << 62]) is None
    with pytest.raises(OverflowError):
        native.follow([1 << 64])


def test_arenas_and_steps_are_those_that_python_plans(code: SizeCode) -> None:
    generator = random.Random(1)
    for count in [0, 1, 2, *(generator.randint(3, 60) for _ in range(40))]:
        lifetimes = [
            (first, first + generator.choice((0, 1, 1, 2, 30))) for first in generator.choices(range(50), k=count)
        ]
        tables = ProgramTables.of([Step(1, [(0, 0), (1, 0)], [0]) for _ in range(count)])
        lengths = [count, count, 2 * count, count, count, 1]
        begins = [0, *accumulate(lengths)]
        common = TemplateTables(
            np.zeros(begins[-1], np.int64),
            np.arange(begins[-1]),
            lengths,
            tables,
            np.array([0, 1 << 40] * count, np.int64),
            np.array([life for i in range(count) for life in (i, -1)], np.int64),
            lifetimes,
        )
        filling = Filling(common, range(begins[-1]), code)
        for _ in range(3):
            numbers = np.array(generator.choices((0, 1, 5, 64, 100, 1000, 4096, 1 << 20), k=begins[-1]), np.int64)
            numbers[begins[1] : begins[2]] += 1
            filled = filling.filled(numbers)
            assert filled is not None
            tasks, grains, offsets, params, sizes, _ = (numbers[a:b] for a, b in pairwise(begins))
            plan = plan_arena([Interval(size, *life) for size, life in zip(sizes.tolist(), lifetimes)])
            starts = np.array([start for offset in plan.offsets for start in (offset, 1 << 40)], np.int64)
            expected = tables.resized(tasks, grains, offsets + starts, params)
            assert filled.arena_bytes == plan.size
            np.testing.assert_array_equal(filled.numbers, numbers)
            for own, other in zip(filled.tables[:3], expected[:3]):
                np.testing.assert_array_equal(own, other)


def test_a_storage_of_negative_size_has_no_arena(code: SizeCode) -> None:
    tables = ProgramTables.of([Step(1, [(0, 0)], [])])
    nothing = np.zeros(1, np.int64)
    common = TemplateTables(np.ones(5, np.int64), np.arange(5), [1, 1, 1, 0, 1, 1], tables, nothing, nothing, [(0, 0)])
    filling = Filling(common, range(5), code)
    assert filling.filled(np.array([1, 1, 0, 64, 0])) is not None
    assert filling.filled(np.array([1, 1, 0, -64, 0])) is None
    assert filling.filled(np.array([1, 0, 0, 64, 0])) is None
