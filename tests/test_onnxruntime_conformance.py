"""The conformance suite on the backend onnxruntime, by its command: all passes, and every refusal has a reason."""

from __future__ import annotations

from pathlib import Path

import pytest
from conformance_command import assert_every_letter, assert_green, cases_of

pytest.importorskip("onnxruntime", reason="ONNX Runtime has no wheel for this Python")

#: Ranges of first letters of the operators of level 2, in parts that take about the same time.
PARTS = ["A-C", "D-L", "M-Q", "R-Z"]


def test_contract(tmp_path: Path) -> None:
    assert_green("onnxruntime", ["--level", "L0-L1"], tmp_path)


@pytest.mark.full("conformance")
def test_graphs(tmp_path: Path) -> None:
    assert_green("onnxruntime", ["--level", "L3-L3"], tmp_path)


@pytest.mark.full("conformance")
@pytest.mark.parametrize("part", PARTS)
def test_operators(part: str, tmp_path: Path) -> None:
    assert_green("onnxruntime", cases_of("onnxruntime", (2, 2), part), tmp_path)


def test_no_operator_is_left_out() -> None:
    assert_every_letter(PARTS)
