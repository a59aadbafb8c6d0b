"""Tests of the list of policies in the documentation: the cases that it names exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lite_conformance.cases.case import Settings
from lite_conformance.cases.catalogue import all_cases
from lite_conformance.cases.patterns import matches

_PAGE = Path(__file__).parents[2] / "docs" / "conformance.md"


def rows() -> list[list[str]]:
    """Return the cells of each row of the table of policies."""
    section = _PAGE.read_text(encoding="utf-8").partition("\n## Policies\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def test_every_policy_says_what_onnx_numpy_and_hardware_do() -> None:
    assert rows()
    for row in rows():
        assert len(row) == 6, row[0]
        assert all(row), row[0]


@pytest.mark.full("conformance")
def test_every_policy_names_cases_that_exist() -> None:
    names = [case.name for case in all_cases(Settings("host"))]
    for question, *_, cases in rows():
        patterns = re.findall(r"`([^`]+)`", cases)
        assert patterns, f"no case holds the policy {question!r}"
        for pattern in patterns:
            assert any(matches(pattern, name) for name in names), f"{question}: no case is called {pattern}"
