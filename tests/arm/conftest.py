"""Fixtures of the tests under emulation."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from emulated import EmulatedPython

from workspace import ROOT

#: The variable with the seed of samples; the same seed draws the same cases.
SEED = "LITE_TEST_SEED"

MakePython = Callable[..., EmulatedPython]


@pytest.fixture
def arm(request: pytest.FixtureRequest, tmp_path: Path) -> MakePython:
    """A function that makes an emulated Python: ``arm("cortex-a53")``, ``arm(compiles=True)``."""
    environment = Path(request.config.getoption("--arm")).resolve()
    return lambda processor="cortex-a76", compiles=False: EmulatedPython(
        environment, tmp_path / "cache", processor, compiles
    )


@pytest.fixture
def seed() -> int:
    """The seed of samples."""
    return int(os.environ.get(SEED, "0"))


@pytest.fixture
def reports(request: pytest.FixtureRequest) -> Path:
    """The folder for the conformance report of a test, ``out/arm``; ``scripts/conformance_results.py`` records them."""
    folder = ROOT / "out/arm" / re.sub(r"\W+", "-", request.node.name).strip("-")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
