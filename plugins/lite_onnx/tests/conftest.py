"""Fixtures that several files of tests share."""

from __future__ import annotations

from pathlib import Path

import pytest
from runtime_models import RuntimeModels


@pytest.fixture
def models(tmp_path: Path) -> RuntimeModels:
    """Models that ONNX Runtime and Lite run, to compare their results."""
    return RuntimeModels(tmp_path)
