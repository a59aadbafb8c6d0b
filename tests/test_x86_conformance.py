"""The conformance suite on the backend x86, by its own command: all green, and a reason for all it does not run."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest
from conformance_command import assert_every_letter, assert_green

from lite_conformance.cases.case import Settings
from lite_conformance.cases.catalogue import all_cases

pytestmark = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="the backend x86 needs an x86-64 processor"
)

#: First letters of the operators of level 2, in parts that take about the same time.
PARTS = ["A-C", "D-L", "M-Q", "R-Z"]


def of_operators(part: str) -> list[str]:
    """The options that choose the cases of level 2 whose operators have these first letters."""
    first, last = part.split("-")
    cases = [case.name for case in all_cases(Settings("x86")) if case.level == 2]
    operators = {name.partition("[")[0] for name in cases if first <= name[0].upper() <= last}
    return [f"--case={operator}[*" for operator in sorted(operators)]


@pytest.mark.parametrize("levels", ["L0-L1", "L3-L3", "L4-L5"])
def test_a_level(levels: str, tmp_path: Path) -> None:
    assert_green("x86", ["--level", levels], tmp_path)


@pytest.mark.parametrize("part", PARTS)
def test_operators(part: str, tmp_path: Path) -> None:
    assert_green("x86", of_operators(part), tmp_path)


def test_no_operator_is_left_out() -> None:
    assert_every_letter(PARTS)
