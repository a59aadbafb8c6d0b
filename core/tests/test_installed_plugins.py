"""Entry points are found in metadata folders as :mod:`importlib.metadata` finds them."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from lite_core.plugins.installed import EntryPoint, installed_entry_points

METADATA = """Metadata-Version: 2.1
Name: Some.Plugin
Version: 1.2
Requires-Dist: numpy>=1.26
Requires-Dist: lite-core<0.2,>=0.1

Name: this is the description
"""
ENTRY_POINTS = """[console_scripts]
other = nothing:here

[a.group]
# a comment
first = json
second = json.decoder:JSONDecoder.decode
"""


def install(folder: Path, info: str = "some_plugin-1.2.dist-info", entry_points: str = ENTRY_POINTS) -> None:
    (folder / info).mkdir(parents=True)
    (folder / info / "METADATA").write_text(METADATA)
    (folder / info / "entry_points.txt").write_text(entry_points)


def facts(entries: list[EntryPoint]) -> list[tuple[object, ...]]:
    return [(e.name, e.value, e.load(), e.dist and (e.dist.name, e.dist.version, e.dist.requires)) for e in entries]


def test_entry_points_equal_those_of_the_standard_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "a")
    install(tmp_path / "b", "Some_Plugin-1.3.dist-info", ENTRY_POINTS.replace("json", "csv"))
    monkeypatch.setattr(sys, "path", [str(tmp_path / "a"), str(tmp_path / "missing"), str(tmp_path / "b")])
    found = facts(list(installed_entry_points("a.group")))
    assert [name for name, *_ in found] == ["first", "second"]
    assert found == facts(list(metadata.entry_points(group="a.group")))


@pytest.mark.parametrize("info", ["old.egg-info", "old.egg"])
def test_egg_folders_are_read_by_the_standard_library(
    info: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, info)
    asked = []
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(metadata, "entry_points", lambda group: asked.append(group) or [])
    assert list(installed_entry_points("a.group")) == []
    assert asked == ["a.group"]


def test_archive_on_the_path_is_read_by_the_standard_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "packages.zip"
    archive.write_bytes(b"")
    asked = []
    monkeypatch.setattr(sys, "path", [str(archive)])
    monkeypatch.setattr(metadata, "entry_points", lambda group: asked.append(group) or [])
    assert list(installed_entry_points("a.group")) == []
    assert asked == ["a.group"]


def test_plugin_without_metadata_has_the_name_of_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path)
    (tmp_path / "some_plugin-1.2.dist-info" / "METADATA").unlink()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    first, _ = installed_entry_points("a.group")
    assert first.dist is not None
    assert (first.dist.name, first.dist.version, first.dist.requires) == ("some_plugin", "-", [])


def test_the_backport_of_the_standard_library_finds_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("importlib_metadata", reason="importlib_metadata is not installed")
    install(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(metadata, "entry_points", lambda group: pytest.fail("the slow way was taken"))
    assert len([*installed_entry_points("a.group")]) == 2


def test_finding_plugins_imports_no_email() -> None:
    program = (
        "import sys; from lite_core.plugins import PluginManager; PluginManager().discover(); "
        "print('importlib.metadata' in sys.modules, 'email' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["False", "False"], done.stderr
