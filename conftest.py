"""What all tests share: helper modules of every distribution, the tiers of tests, and settings of Hypothesis."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import hypothesis
import pytest

ROOT = Path(__file__).parent
OWN = [ROOT / name for name in ("tests", "tests/models", "tests/faults", "tests/reliability", "tests/arm", "scripts")]
for folder in (*ROOT.glob("*/tests"), *ROOT.glob("plugins/*/tests"), *OWN):
    sys.path.insert(0, str(folder))

from full_tests import PARTS  # noqa: E402 - found by the lines above

# Examples that take long to draw are no failure: the machine may be busy with other things.
hypothesis.settings.register_profile(
    "lite", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow], print_blob=True
)
hypothesis.settings.load_profile("lite")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--part``, which selects tests of the full tier, and ``--arm``, which adds those under emulation."""
    parser.addoption(
        "--part",
        default="",
        choices=["", "all", *PARTS],
        help="run the tests of this part of the full tier instead of those that `make test` runs; all: both tiers",
    )
    parser.addoption(
        "--arm",
        metavar="FOLDER",
        type=Path,
        help="collect tests/arm, which `make test-arm` runs in this environment (scripts/arm_environment.py)",
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the tests under emulation without ``--arm``, and those of the frozen package, which a test runs."""
    left_out = [ROOT / "tests/api_v1", *([] if config.getoption("--arm") else [ROOT / "tests/arm"])]
    return True if collection_path in left_out else None


#: The configuration of the tests, with the key of the files that they convert; processes of xdist inherit it.
_CONFIGURATION = tempfile.TemporaryDirectory(prefix="lite-tests-")


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark of the full tier, and leave the user's configuration alone."""
    os.environ.setdefault("LITE_CONFIG_DIR", _CONFIGURATION.name)
    config.addinivalue_line("markers", "full(part): run by `make test-full`, in this part, and not by `make test`")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of the tier that is run; report the others as deselected."""
    wanted = config.getoption("--part")
    if wanted == "all":
        return
    chosen, others = [], []
    for item in items:
        (chosen if _part(item) == wanted else others).append(item)
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = chosen


def _part(item: pytest.Item) -> str:
    """The part of the full tier that a test belongs to; empty for those that `make test` runs."""
    mark = item.get_closest_marker("full")
    if mark is None:
        return ""
    part = mark.args[0]
    if part not in PARTS:
        raise pytest.UsageError(f"{item.nodeid} is marked full({part!r}); the parts are: {', '.join(PARTS)}")
    return str(part)
