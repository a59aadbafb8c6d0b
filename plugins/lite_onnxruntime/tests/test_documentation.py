"""The page about foreign runtimes shows the code as it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/foreign-runtime.md"
SOURCES = [file.read_text() for file in sorted((ROOT / "plugins/lite_onnxruntime/src").rglob("*.py"))]
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS)
def test_what_is_shown_is_there(block: str) -> None:
    assert any(block in source for source in SOURCES)


def test_there_is_something_to_see() -> None:
    assert len(BLOCKS) >= 5
