"""Fixtures that several test files share."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on ``sys.path`` to install plugins into; what is imported from it is forgotten at the end."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv("LITE_STRICT_PLUGINS", raising=False)
    yield tmp_path
    for name in [n for n, m in sys.modules.items() if str(tmp_path) in (getattr(m, "__file__", None) or "")]:
        del sys.modules[name]
