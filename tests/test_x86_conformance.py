"""The conformance suite on the backend x86, by its command: all passes, and every refusal has a reason."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest
from conformance_command import COMMON_TYPES, assert_every_letter, assert_green, cases_of

from lite_conformance.cli import run_command_line

pytestmark = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64"), reason="the backend x86 needs an x86-64 processor"
)

#: Ranges of first letters of the operators of level 2, in parts that take about the same time.
PARTS = ["A-C", "D-L", "M-Q", "R-Z"]


def test_contract(tmp_path: Path) -> None:
    assert_green("x86", ["--level", "L0-L1"], tmp_path)


def test_graphs_and_models(tmp_path: Path) -> None:
    assert_green("x86", cases_of("x86", (3, 4), types={"f32"}), tmp_path)


@pytest.mark.parametrize("part", PARTS)
def test_operators(part: str, tmp_path: Path) -> None:
    assert_green("x86", cases_of("x86", (2, 2), part, types=COMMON_TYPES, untyped=False), tmp_path)


@pytest.mark.full("conformance")
@pytest.mark.parametrize("part", PARTS)
def test_operators_in_all_types(part: str, tmp_path: Path) -> None:
    assert_green("x86", cases_of("x86", (2, 2), part), tmp_path)


@pytest.mark.full("conformance")
@pytest.mark.parametrize("level", [3, 5])
def test_graphs_and_stress(level: int, tmp_path: Path) -> None:
    assert_green("x86", cases_of("x86", (level, level)), tmp_path)


@pytest.mark.full("conformance")
@pytest.mark.parametrize("profile", ["bfloat16", "float16", "int8", "weights8", "weights4"])
def test_profiles_are_green(profile: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["profiles", profile, "-b", "x86", "-q"]) == 0, capsys.readouterr().out
    assert "green" in capsys.readouterr().out


def test_no_operator_is_left_out() -> None:
    assert_every_letter(PARTS)
