"""Shared fixtures."""

from __future__ import annotations

from pathlib import Path

import pytest
from runtime_models import RuntimeModels


@pytest.fixture
def models(tmp_path: Path) -> RuntimeModels:
    """Models that are run with ONNX Runtime and with Lite to compare the results."""
    return RuntimeModels(tmp_path)
