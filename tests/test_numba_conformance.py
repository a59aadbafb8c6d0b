"""The conformance suite on the backend numba, by its command: all passes, and every refusal has a reason."""

from __future__ import annotations

from pathlib import Path

import pytest
from conformance_command import assert_every_letter, assert_green, cases_of

pytest.importorskip("numba", reason="Numba has no wheel for this Python")

#: Ranges of first letters of the operators of level 2, in parts that take about the same time.
PARTS = ["A-C", "D-L", "M-Q", "R-Z"]


def test_contract(tmp_path: Path) -> None:
    assert_green("numba", ["--level", "L0-L1"], tmp_path)


@pytest.mark.full("conformance")
@pytest.mark.parametrize("part", PARTS)
def test_operators(part: str, tmp_path: Path) -> None:
    assert_green("numba", cases_of("numba", (2, 2), part), tmp_path)


@pytest.mark.full("conformance")
@pytest.mark.parametrize("level", [3, 5])
def test_graphs_and_stress(level: int, tmp_path: Path) -> None:
    assert_green("numba", cases_of("numba", (level, level)), tmp_path)


def test_no_operator_is_left_out() -> None:
    assert_every_letter(PARTS)
