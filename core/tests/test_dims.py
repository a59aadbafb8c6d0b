"""Symbolic dimensions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lite_core.ir import Dim, SymbolicDim, evaluate_shape, fresh_dim
from lite_core.ir.dims import broadcast, maximum, quotient

h, w, n = (SymbolicDim.named(name) for name in "hwn")


def value(dim: Dim, **bindings: int) -> int:
    return dim.evaluate(bindings) if isinstance(dim, SymbolicDim) else dim


@pytest.mark.parametrize(
    ("dim", "text"),
    [
        (h + 1, "h + 1"),
        (1 + h - h, "1"),
        (2 * h * w - 3, "2*h*w - 3"),
        (3 - h, "-h + 3"),
        ((h + 1) // 2, "(h + 1)//2"),
        ((2 * h + 3) // 2, "h + 1"),
        ((4 * h) // (2 * h), "(4*h)//(2*h)"),
        (quotient(4 * h, 2 * h), "2"),
        ((h + 1) // (h + 1), "1"),
        (-(h // 2), "-(h//2)"),
        (2 * (h // 2), "2*(h//2)"),
        (6 * (h % 4), "6*(h%4)"),
        (2 * maximum(h, w), "2*max(h, w)"),
        ((h // 2) // 2, "h//4"),
        (((h + 1) // 2 + 1) // 2, "(h + 3)//4"),
        ((6 * h + 3) // 9, "(2*h + 1)//3"),
        (quotient(h * w, w), "h"),
        (h % 1, "0"),
        (maximum(h, h + 2), "h + 2"),
        (maximum(h, w), "max(h, w)"),
        (broadcast(h, 1), "h"),
        (broadcast(h, 7), "7"),
        (broadcast(w, h), "broadcast(h, w)"),
    ],
)
def test_printed_form(dim: Dim, text: str) -> None:
    assert str(dim) == text


def test_expression_without_symbols_is_an_int() -> None:
    assert type(h - h) is int
    assert type((h + 4) - h) is int
    assert type(h * 0) is int


def test_equal_expressions_are_equal_and_hash_alike() -> None:
    assert (h + w) * 2 == 2 * w + h + h
    assert hash((h + w) * 2) == hash(2 * w + h + h)
    assert h != w
    assert h != 3


def test_truth_value_of_a_symbol_is_an_error() -> None:
    with pytest.raises(TypeError, match="dimension h"):
        bool(h)


def test_broadcast_of_different_sizes_is_an_error() -> None:
    with pytest.raises(ValueError, match="3 and 4"):
        broadcast(3, 4)


@pytest.mark.parametrize(("a", "b"), list(itertools.product([0, 1, 5], repeat=2)))
def test_broadcast_expression_follows_numpy(a: int, b: int) -> None:
    if a == b or 1 in (a, b):
        assert value(broadcast(h, w), h=a, w=b) == (b if a == 1 else a)


def test_huge_expressions_become_unknown() -> None:
    power: Dim = SymbolicDim.named("n")
    nested: Dim = SymbolicDim.named("n")
    for _ in range(60):
        power = power * power
        nested = maximum(nested // 3, nested // 5)
    assert len(str(power)) < 20_000
    assert len(str(nested)) < 20_000
    n = SymbolicDim.named("n")
    assert str((n + 1) * (n + 2)) == "n*n + 3*n + 2"


def test_substitute_keeps_other_symbols() -> None:
    assert ((h + 2 * w) // 2).substitute({"h": 4}) == w + 2
    assert (h * w).substitute({"h": n}) == n * w


def test_evaluate() -> None:
    assert evaluate_shape((n, 3, (h + 1) // 2), {"n": 2, "h": 7}) == (2, 3, 4)
    with pytest.raises(KeyError):
        h.evaluate({})


@pytest.mark.parametrize("dim", [h // w, h % w, w // w, w % w])
def test_division_by_zero_gives_zero_like_the_operators(dim: Dim) -> None:
    assert value(dim, h=3, w=0) == 0
    assert (h // w).substitute({"w": 0}) == 0
    assert h // 0 == 0


def test_fresh_symbols_differ() -> None:
    assert fresh_dim() != fresh_dim()
    with pytest.raises(ValueError, match="symbol's name"):
        SymbolicDim.named(str(fresh_dim()))


def test_fresh_symbols_survive_substitution() -> None:
    fresh = fresh_dim()
    assert (fresh * h).substitute({"h": 2}) == 2 * fresh


@pytest.mark.parametrize("name", ["x_0", "x.0", "unknown_7", "seq len + 1"])
def test_symbols_keep_their_names(name: str) -> None:
    assert str(SymbolicDim.named(name)) == name


@pytest.mark.parametrize("name", ["", " ", "a?1", 3])
def test_invalid_names_of_symbols_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="symbol's name"):
        SymbolicDim.named(name)


def test_operands_must_be_integers() -> None:
    for operation in ("+", "-", "*", "//", "%"):
        for left, right in ((h, 2.5), (2.5, h)):
            with pytest.raises(TypeError):
                apply(operation, left, right)  # type: ignore[arg-type]
    assert [str(d) for d in h * np.array([1, 2])] == ["h", "2*h"]
    assert h // np.int64(2) == h // 2
    assert type(maximum(np.int64(3), 2)) is int


OPERATIONS = ["+", "-", "*", "//", "%", "max"]


@st.composite
def expressions(draw: st.DrawFn) -> tuple[Dim, object]:
    """A dimension, and the steps that compute it from integers with Python's arithmetic."""
    symbol, number = draw(st.sampled_from("hw")), draw(st.integers(1, 9))
    dim: Dim = SymbolicDim.named(symbol)
    steps: list[tuple[str, object]] = []
    for _ in range(draw(st.integers(1, 5))):
        operation = draw(st.sampled_from(OPERATIONS))
        other = draw(st.sampled_from(["h", "w"])) if operation in "+-*" and draw(st.booleans()) else number
        operand: Dim = SymbolicDim.named(other) if isinstance(other, str) else other
        dim = apply(operation, dim, operand)
        steps.append((operation, other))
    return dim, (symbol, steps)


def apply(operation: str, a: Dim, b: Dim) -> Dim:
    if operation == "max":
        return maximum(a, b)
    return {
        "+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b, "//": lambda: a // b, "%": lambda: a % b
    }[operation]()  # fmt: skip


@given(expressions(), st.integers(0, 50), st.integers(0, 50))
def test_expressions_agree_with_integer_arithmetic(made: tuple[Dim, object], hv: int, wv: int) -> None:
    dim, (symbol, steps) = made  # type: ignore[misc]
    bindings = {"h": hv, "w": wv}
    expected: Dim = bindings[symbol]
    for operation, other in steps:
        expected = apply(operation, expected, bindings[other] if isinstance(other, str) else other)
    assert value(dim, **bindings) == expected
    printed = {"max": max, "broadcast": lambda a, b: b if a == 1 else a, **bindings}
    assert eval(str(dim), printed) == expected
