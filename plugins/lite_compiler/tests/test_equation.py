"""Tests of Einsum equations."""

from __future__ import annotations

import pytest

from lite_compiler.equation import Contraction, Equation


def labels(text: str) -> tuple[str, ...]:
    return tuple(text)


@pytest.mark.parametrize(
    ("equation", "ranks", "operands", "output"),
    [
        ("ij,jk->ik", (2, 2), ["ij", "jk"], "ik"),
        (" i j , j k ", (2, 2), ["ij", "jk"], "ik"),
        ("ii->", (2,), ["ii"], ""),
    ],
)
def test_letters(equation: str, ranks: tuple[int, ...], operands: list[str], output: str) -> None:
    assert Equation.parse(equation, ranks) == Equation(tuple(map(labels, operands)), labels(output))


def test_ellipsis_covers_the_dimensions_without_a_letter() -> None:
    found = Equation.parse("...ij,...jk->...ik", (4, 3))
    assert found.operands == (("...1", "...0", "i", "j"), ("...0", "j", "k"))
    assert found.output == ("...1", "...0", "i", "k")
    assert Equation.parse("...ij,jk", (3, 2)).output == ("...0", "i", "k")


def test_sizes_are_broadcast() -> None:
    found = Equation.parse("bij,bjk->bik", (3, 3))
    assert found.sizes([(1, 2, 3), (4, 3, 5)]) == {"b": 4, "i": 2, "j": 3, "k": 5}


def test_contraction_axes() -> None:
    axes = Equation.parse("bihd,bjhd->bhij", (4, 4)).contraction()
    assert axes == Contraction(labels("bihd"), labels("bjhd"), labels("bhij"))
    assert (axes.batch, axes.rows, axes.columns, axes.depth) == (labels("bh"), ("i",), ("j",), ("d",))


@pytest.mark.parametrize("equation", ["ij,ij->ij", "ij,jk->i", "ii,ij->j", "ij,jk,kl->il", "ij->ji"])
def test_other_equations_are_no_contraction(equation: str) -> None:
    ranks = [len(term) for term in equation.split("->")[0].split(",")]
    assert Equation.parse(equation, ranks).contraction() is None


def test_summed_labels() -> None:
    assert Equation.parse("ij,jk,kl->il", (2, 2, 2)).summed == ("j", "k")
