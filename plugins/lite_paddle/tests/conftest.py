"""Makes helpers beside the tests importable, and shares models exported by Paddle within a test module."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from paddle_cases import export_cases, paddle_is_installed


@pytest.fixture(scope="module")
def paddle_models(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return a function from a kind of file to the folder with all cases of the module; skip without Paddle."""
    if not paddle_is_installed():
        pytest.skip("PaddlePaddle is not installed; it exports the models and computes what is expected")
    directories: dict[str, Path] = {}

    def directory(kind: str) -> Path:
        if kind not in directories:
            directories[kind] = export_cases(request.path, tmp_path_factory.mktemp("paddle"), kind)
        return directories[kind]

    return directory


@pytest.fixture(scope="session")
def paddle_lite_python() -> Path:
    """Return the interpreter of the environment with Paddle-Lite's wheel, which ``make paddle-lite`` makes."""
    python = Path(__file__).parents[3] / ".venv-bench-paddle-lite/bin/python"
    if not python.exists():
        pytest.skip("the environment with Paddle-Lite is missing: `make paddle-lite`, which needs Python 3.10")
    return python
