"""The conformance suite on the backend onnxruntime, by its own command: green, and reasons for what it leaves out."""

from __future__ import annotations

from pathlib import Path

import pytest
from conformance_command import assert_every_letter, assert_green

from lite_conformance.cases.case import Settings
from lite_conformance.cases.catalogue import all_cases

pytest.importorskip("onnxruntime", reason="ONNX Runtime has no wheel for this Python")

#: First letters of the operators of level 2, in parts that take about the same time.
PARTS = ["A-C", "D-L", "M-Q", "R-Z"]


def of_operators(part: str) -> list[str]:
    """The options that choose the cases of level 2 whose operators have these first letters."""
    first, last = part.split("-")
    cases = [case.name for case in all_cases(Settings("onnxruntime")) if case.level == 2]
    operators = {name.partition("[")[0] for name in cases if first <= name[0].upper() <= last}
    return ["--level=L2", *(f"--case={operator}[*" for operator in sorted(operators))]


@pytest.mark.parametrize("level", ["L0-L1", "L3-L3"])
def test_a_level(level: str, tmp_path: Path) -> None:
    assert_green("onnxruntime", ["--level", level], tmp_path)


@pytest.mark.parametrize("part", PARTS)
def test_operators(part: str, tmp_path: Path) -> None:
    assert_green("onnxruntime", of_operators(part), tmp_path)


def test_no_operator_is_left_out() -> None:
    assert_every_letter(PARTS)
