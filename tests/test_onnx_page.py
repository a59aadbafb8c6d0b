"""The list of operators in docs/onnx.md is what lite-onnx registers."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("onnx", reason="the operators are those of lite-onnx")

SCRIPT = Path(__file__).parents[1] / "docs/list_onnx_operators.py"


def test_the_operators_are_those_that_are_lowered() -> None:
    specification = importlib.util.spec_from_file_location("list_onnx_operators", SCRIPT)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    text = module.PAGE.read_text()
    assert module.page(text) == text, "run python docs/list_onnx_operators.py"
