"""The code blocks of the page on foreign runtimes are in the source code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/foreign-runtime.md"
SOURCES = [file.read_text() for file in sorted((ROOT / "plugins/lite_onnxruntime/src").rglob("*.py"))]
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS)
def test_code_block_is_in_the_source(block: str) -> None:
    assert any(block in source for source in SOURCES)


def test_page_has_code_blocks() -> None:
    assert BLOCKS
