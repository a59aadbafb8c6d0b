"""The cache folder, its limit and the configuration: settings are found, and failures do not raise."""

from __future__ import annotations

import json
import math
import os
import re
from pathlib import Path
from typing import Any

import platformdirs
import pytest

from lite_core import storage
from lite_core.storage import cache_folder, cache_limit, configuration, configuration_folder

has_users = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="this system has no user ids")

MIB = 2**20


@pytest.mark.parametrize("home", ["/home/me", "/", ""])
@pytest.mark.parametrize("named", [None, "", "/elsewhere"])  # older platformdirs take relative ones as they are
def test_the_folders_are_those_of_platformdirs(monkeypatch: pytest.MonkeyPatch, home: str, named: str | None) -> None:
    """On Linux they are found without importing it."""
    monkeypatch.setenv("HOME", home)
    for variable in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False) if named is None else monkeypatch.setenv(variable, named)
    for variable in ("LITE_CONFIG_DIR", "LITE_CACHE_DIR"):
        monkeypatch.delenv(variable, raising=False)
    assert configuration_folder() == Path(platformdirs.user_config_dir("lite", appauthor=False))
    assert cache_folder("kernels") == Path(platformdirs.user_cache_dir("lite", appauthor=False), "kernels")


@pytest.fixture(autouse=True)
def limit(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setenv("LITE_CACHE_LIMIT", "1")
    monkeypatch.setenv("LITE_CONFIG_DIR", str(tmp_path_factory.mktemp("configuration")))


def test_the_limit_is_read_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert cache_limit() == MIB
    monkeypatch.setenv("LITE_CACHE_LIMIT", "off")
    assert math.isinf(cache_limit())
    monkeypatch.delenv("LITE_CACHE_LIMIT")
    assert cache_limit() == 1024 * MIB
    assert not caplog.records
    monkeypatch.setenv("LITE_CACHE_LIMIT", "a lot")
    assert cache_limit() == cache_limit() == 1024 * MIB
    assert caplog.text.count("LITE_CACHE_LIMIT=a lot") == 1


@pytest.mark.parametrize(("setting", "expected"), [("", None), ("off", None), ("here", Path("here/things"))])
def test_the_environment_chooses_the_folder(
    monkeypatch: pytest.MonkeyPatch, setting: str, expected: Path | None
) -> None:
    monkeypatch.setenv("LITE_CACHE_DIR", setting)
    assert cache_folder("things") == expected


def configure(settings: dict[str, Any]) -> None:
    (configuration_folder() / "config.json").write_text(json.dumps(settings))


def test_missing_configuration_is_empty() -> None:
    assert dict(configuration()) == {}


def test_environment_takes_precedence_over_the_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LITE_CACHE_DIR", raising=False)
    configure({"cache_folder": str(tmp_path), "cache_limit_mib": 3})
    assert cache_folder("kernels") == tmp_path / "kernels"
    assert cache_limit() == MIB
    monkeypatch.delenv("LITE_CACHE_LIMIT")
    assert cache_limit() == 3 * MIB
    monkeypatch.setenv("LITE_CACHE_DIR", "off")
    assert cache_folder("kernels") is None


@pytest.mark.parametrize("text", ["{", "[]", '"cache"', "\0"])
def test_damaged_configuration_is_logged_and_ignored(text: str, caplog: pytest.LogCaptureFixture) -> None:
    file = configuration_folder() / "config.json"
    file.write_text(text)
    assert dict(configuration()) == {}
    assert str(file) in caplog.text


@has_users
def test_configuration_that_others_can_change_is_ignored(caplog: pytest.LogCaptureFixture) -> None:
    configuration_folder().chmod(0o777)
    assert dict(configuration()) == {}
    assert not caplog.records, "there is no file to warn of"
    storage._read_configuration.cache_clear()
    configure({"cache_folder": "/elsewhere"})
    assert dict(configuration()) == {}
    assert str(configuration_folder()) in caplog.text
    assert "chmod go-w" in caplog.text


def test_setting_of_the_wrong_type_is_logged(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.delenv("LITE_CACHE_DIR", raising=False)
    monkeypatch.delenv("LITE_CACHE_LIMIT")
    configure({"cache_folder": 5, "cache_limit_mib": [1]})
    assert cache_folder("kernels") is not None
    assert cache_limit() == 1024 * MIB
    assert "cache_folder" in caplog.text
    assert re.search(r"cache_limit_mib.*\[1\]", caplog.text)
