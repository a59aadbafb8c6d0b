"""Compatibility of plugins with this lite-core: the distribution's requirement, before import, and the API version."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from installed_plugins import GOOD, install, plugins_of

from lite_core import __version__
from lite_core.backend import API_VERSION
from lite_core.errors import PluginError
from lite_core.plugins import available_backends
from lite_core.plugins.versions import api_problem, requirement_problem


@pytest.mark.parametrize(
    ("requirement", "wanted"),
    [
        ("lite-core<0.4,>=0.3", "<0.4,>=0.3"),
        ("Lite_Core >=0.3", ">=0.3"),
        ("lite.core[extra]>=0.3", ">=0.3"),
        ("lite-core (>=0.3)", ">=0.3"),
        ("lite-core>0.2.1", ">0.2.1"),
        ("lite-core<0.2.1.0", "<0.2.1.0"),
        ("lite--core>=0.2,<0.2.1", "<0.2.1,>=0.2"),
    ],
)
def test_unmet_requirement_names_both_versions(requirement: str, wanted: str) -> None:
    problem = requirement_problem(["numpy>=99", requirement], "0.2.1")
    assert f"lite-core {wanted}," in problem
    assert "0.2.1" in problem.removeprefix(f"requires lite-core {wanted}")


@pytest.mark.parametrize(
    "requirement",
    [
        "lite-core",
        "lite-core>=0.2,<0.3",
        "lite-core<=0.2.1",
        "lite-core[narrow]<0.3,>=0.2",
        "lite-core>=0.2.1.0",
        "Lite_Core >0.2,<0.10",
        "lite-core>=0.2.1rc1",
        "lite-core-extras>=9",
        "numpy>=9",
        'lite-core>=9; extra == "new"',
        "lite-core @ https://example.org/lite_core.whl",
        "!",
    ],
)
def test_requirements_that_are_met(requirement: str) -> None:
    assert requirement_problem([requirement], "0.2.1") == ""


def test_a_plugin_that_requires_another_core_is_recorded_and_not_imported(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(site, "good", GOOD, requires=[f"lite-core=={__version__}", "numpy"])
    install(site, "newer", "raise RuntimeError('imported')\n", requires=["numpy", "lite-core<10,>=9"])
    plugins = plugins_of(site)
    assert "good" in available_backends(plugins)
    record = next(r for r in plugins.records() if r.name == "newer")
    assert record.phase == "version"
    assert all(word in record.error for word in ("lite-core <10,>=9", __version__))
    assert "lite_newer_plugin" not in sys.modules
    monkeypatch.setenv("LITE_STRICT_PLUGINS", "1")
    with pytest.raises(PluginError, match=r"'newer' \(lite-newer 1\.0\).* version"):
        available_backends(plugins_of(site))


@pytest.mark.parametrize("stated", [API_VERSION, (API_VERSION, API_VERSION), (0, API_VERSION), (API_VERSION, 99)])
def test_api_versions_that_fit(stated: object) -> None:
    assert api_problem(stated) == ""


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        (None, "LITE_API_VERSION"),
        (2, "API 2,"),
        ((2, 3), "API 2 to 3,"),
        ((-1, 0), "API -1 to 0,"),
        *(
            (wrong, f"LITE_API_VERSION = {wrong!r}")
            for wrong in ("1", 1.0, True, [1, 2], (1,), (1, 2, 3), (2, 1), (0, 1.5), ("0", "1"))
        ),
    ],
)
def test_api_versions_that_do_not_fit(stated: Any, message: str) -> None:
    assert message in api_problem(stated)


def test_a_plugin_for_a_range_of_versions(site: Path) -> None:
    install(site, "ranged", GOOD.replace("LITE_API_VERSION = 1", "LITE_API_VERSION = (1, 2)"))
    install(site, "later", GOOD.replace("LITE_API_VERSION = 1", "LITE_API_VERSION = (2, 3)"))
    plugins = plugins_of(site)
    assert "ranged" in available_backends(plugins)
    later = next(r for r in plugins.records() if r.name == "later")
    assert later.phase == "version"
    assert "API 2 to 3" in later.error
