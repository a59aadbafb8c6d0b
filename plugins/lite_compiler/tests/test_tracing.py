"""Traced numbers pass for numbers, and recipes calculate the same from other sizes, or say that they cannot."""

from __future__ import annotations

import gc
import math
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

from lite_compiler.tracing.numbers import (
    Tracer,
    at_most,
    call,
    computed,
    decided,
    is_traced,
    largest,
    recorded_value,
    smallest,
)
from lite_compiler.tracing.recipe import Recipe


def recorded(calculate: Callable[..., Any], *sizes: int) -> Recipe:
    """Record a calculation of a number, or of a list of them."""
    tracer = Tracer(sizes)
    found = calculate(*tracer.sizes)
    recipe = tracer.recipe(found if isinstance(found, list) else [found])
    tracer.close()
    return recipe


def results(recipe: Recipe, *sizes: int) -> list[Any] | None:
    """Return what a recipe gives, which is the same as that of its function."""
    found, compiled = recipe.results(sizes), recipe.function()(*sizes)
    assert repr(found) == repr(compiled)
    return found


@pytest.mark.parametrize(
    "calculate",
    [
        lambda n: n + 1,
        lambda n: 3 - n * 2,
        lambda n: -(-n // 7) % 5,
        lambda n: 100 // n + 100 % n + n**2,
        lambda n: math.ceil(n / 3) + math.prod([2, n, n]) + sum([n, n]),
        lambda n: int(np.int64(3) * 2) * n + np.int64(4) * n,
        lambda n: (n << 2 | 1) ^ (n & 6) ^ abs(-n) >> 1,
        lambda n: list(divmod(n, 4)) + list(divmod(99, n)),
        lambda n: [n.bit_length(), n * 1, n + 0, n // 1],
    ],
)
def test_arithmetic_is_recorded(calculate: Callable[[int], Any]) -> None:
    recipe = recorded(calculate, 10)
    for size in (1, 3, 10, 1001):
        plain = calculate(size)
        assert results(recipe, size) == (plain if isinstance(plain, list) else [plain])


def test_a_decision_limits_a_recipe_to_sizes_for_which_it_is_the_same() -> None:
    recipe = recorded(lambda n, m: n * 2 if n < m else n + m, 3, 8)
    assert results(recipe, 4, 5) == [8]
    assert results(recipe, 5, 5) is None


@pytest.mark.parametrize(
    "use",
    [
        lambda n: list(range(n)),
        lambda n: [0] * n,
        lambda n: {n: 1},
        lambda n: f"{n}",
        lambda n: repr(n),
        lambda n: np.zeros(n),
        lambda n: np.array([n, 2], np.int64),
        lambda n: "abcdefghijkl"[n],
        lambda n: float(n),
    ],
)
def test_what_reads_a_number_otherwise_fixes_it(use: Callable[[int], Any]) -> None:
    def calculate(n: int) -> int:
        use(n)
        return n * 2

    recipe = recorded(calculate, 10)
    assert results(recipe, 10) == [20]
    assert results(recipe, 11) is None


def test_traced_numbers_pass_for_numbers() -> None:
    tracer = Tracer([4])
    (n,) = tracer.sizes
    assert isinstance(n, int)
    assert isinstance(n / 2, float)
    assert (n == 4, n != 4, n > 3, n == n, n < n) == (True, False, True, True, False)
    tracer.close()
    assert (n + 1).bit_length() == 3
    assert type(n + 1) is int, "a tracer that is closed records nothing"


def test_a_size_of_zero_where_there_was_none_is_no_error() -> None:
    assert results(recorded(lambda n: 12 // n, 4), 3) == [4]
    assert recorded(lambda n: 12 // n, 4).results([0]) is None


class Pair(NamedTuple):
    first: int
    second: int


@dataclass(frozen=True, slots=True)
class Shape:
    rows: int
    columns: int

    @property
    def size(self) -> int:
        return self.rows * self.columns

    def padded(self, unit: int) -> int:
        return -(-self.size // unit) * unit


@computed
def halves(shape: Shape) -> Pair:
    return Pair(shape.rows // 2, 7) if shape.rows > 5 else Pair(shape.rows, 8)


@decided
def kind(shape: Shape) -> str:
    return "wide" if shape.columns > shape.rows else "tall"


@computed
def shape_of(rows: int) -> Shape:
    return Shape(rows, 3 if rows < 10 else 4)


def test_a_computed_function_may_decide_otherwise() -> None:
    recipe = recorded(lambda n: [*halves(Shape(n, 3)), largest(n, 4), smallest(n, 4)], 4)
    assert [results(recipe, n) for n in (4, 6)] == [[4, 8, 4, 4], [3, 7, 6, 4]]


def test_a_decided_function_must_decide_the_same() -> None:
    recipe = recorded(lambda n: n + len(kind(Shape(n, 9))), 4)
    assert results(recipe, 8) == [12]
    assert results(recipe, 9) is None


def test_objects_can_be_recorded() -> None:
    recipe = recorded(lambda n: [shape_of(n).size, shape_of(n).padded(16), shape_of(n).columns], 4)
    assert results(recipe, 20) == [80, 80, 4]


def test_a_choice_between_numbers_is_recorded_and_not_decided() -> None:
    recipe = recorded(lambda n: [at_most(n, 5, n * 2, 7), at_most(5, n, 1, 0)], 4)
    assert [results(recipe, n) for n in (5, 6)] == [[10, 1], [7, 1]]
    assert at_most(3, 4, "low", "high") == "low"


def test_arrays_are_recorded_with_their_sizes_and_elements() -> None:
    def calculate(n: int) -> list[Any]:
        array = call(np.arange, n * 2)
        shape = call(np.array, (n, 5))
        return [
            array,
            array.shape[0],
            array.size,
            array.nbytes,
            *shape.tolist(),
            array.reshape(2, n).astype(np.float32),
        ]

    found = recorded(calculate, 4).results([6])
    assert found is not None
    array, *numbers, converted = found
    assert np.array_equal(array, np.arange(12))
    assert numbers == [12, 12, 96, 6, 5]
    assert (converted.dtype, converted.shape) == (np.float32, (2, 6))


def test_reading_the_elements_of_an_array_fixes_them() -> None:
    def calculate(n: int) -> int:
        signs = call(np.sign, call(np.arange, n))
        assert isinstance(signs, np.ndarray)
        return n + int(np.asarray(signs).max())

    recipe = recorded(calculate, 4)
    assert recipe.results([4]) == [5]
    assert recipe.results([5]) is None, "it has another element"


def test_nothing_is_traced_without_a_tracer() -> None:
    assert not is_traced(3, Shape(1, 2))
    tracer = Tracer([3])
    assert is_traced(1, Shape(tracer.sizes[0], 2))
    assert not is_traced(1, Shape(3, 2))
    assert recorded_value(tracer.sizes[0] + 1) == 4
    tracer.close()
    assert not is_traced(3)


def test_a_closed_tracer_is_freed_at_once() -> None:
    gc.disable()
    try:
        tracer = Tracer([3, 4])
        assert tracer.sizes[0] + tracer.sizes[1] == 7
        tracer.fix(tracer.sizes[0], "test")
        kept = weakref.ref(tracer)
        tracer.close()
        del tracer
        assert kept() is None
    finally:
        gc.enable()
