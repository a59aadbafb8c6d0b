"""Shared fixtures."""

from __future__ import annotations

from pathlib import Path

import pytest
from browsers import browser
from installed_plugins import site

from lite_core.builder import GraphBuilder
from lite_tools.writing import write_model

__all__ = ["browser", "relu_model", "site"]


@pytest.fixture
def relu_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model file without targets: a Relu, and an Identity that the passes remove."""
    b = GraphBuilder("relu")
    b.output(b.add("Identity", [b.add("Relu", [b.input("x", "float32", [2, 3])])]), "y")
    path = tmp_path_factory.mktemp("model") / "relu.lite"
    write_model(path, b.build(), optimized=False)
    return path
