"""Tests of the version of a package's source files."""

from __future__ import annotations

from pathlib import Path

import pytest

from lite_compiler import sources
from lite_compiler.sources import version_of_sources


@pytest.fixture
def package(tmp_path: Path) -> Path:
    (tmp_path / "package/inner/__pycache__").mkdir(parents=True)
    (tmp_path / "package/one.py").write_text("1")
    (tmp_path / "package/inner/two.py").write_text("2")
    (tmp_path / "package/inner/kernel.cl").write_text("3")
    return tmp_path / "package"


def version(package: Path, *endings: str) -> str:
    version_of_sources.cache_clear()
    return version_of_sources(str(package), endings=endings or (".py",))


def test_version_changes_with_any_source_file(package: Path) -> None:
    before = version(package)
    assert version(package) == before
    (package / "inner/two.py").write_text("4")
    assert version(package) != before
    (package / "inner/two.py").write_text("2")
    assert version(package) == before


def test_only_files_with_the_given_suffixes_count(package: Path) -> None:
    plain, both = version(package), version(package, ".py", ".cl")
    (package / "inner/kernel.cl").write_text("4")
    (package / "inner/__pycache__/two.py").write_text("not a source")
    assert version(package) == plain
    assert version(package, ".py", ".cl") != both


def test_sources_of_lite_compiler_count(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, other = version(package), package.parent / "other"
    other.mkdir()
    (other / "edited.py").write_text("5")
    monkeypatch.setattr(sources, "_OWN_FOLDER", str(other))
    assert version(package) != before
    version_of_sources.cache_clear()
