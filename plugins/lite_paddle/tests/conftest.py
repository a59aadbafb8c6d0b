"""Helpers beside the tests can be imported; models exported by Paddle are shared by a module's tests."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from paddle_cases import exported, paddle_is_installed


@pytest.fixture(scope="module")
def paddle_models(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Kind of file -> the directory with every case of the module; skips where Paddle is not installed."""
    if not paddle_is_installed():
        pytest.skip("PaddlePaddle is not installed; it exports the models and computes what is expected")
    directories: dict[str, Path] = {}

    def directory(kind: str) -> Path:
        if kind not in directories:
            directories[kind] = exported(request.path, tmp_path_factory.mktemp("paddle"), kind)
        return directories[kind]

    return directory
