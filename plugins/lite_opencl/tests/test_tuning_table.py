"""The table of tuning choices: stored in a file, shared by processes, ignored if damaged or stale."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from opencl_device import first_runtime

from lite_opencl.programs.binary_cache import cache_folder
from lite_opencl.tuning.table import Choice, TuningTable

CHOICE = Choice("fast", 1e-6, "usual", 2e-6)


def test_choices_of_other_processes_are_merged(tmp_path: Path) -> None:
    found = first_runtime().found
    one, other = TuningTable(found, tmp_path), TuningTable(found, tmp_path)
    one.add("a", CHOICE)
    other.add("b", CHOICE)
    one.add("c", CHOICE)
    again = TuningTable(found, tmp_path)
    assert all(again.find(problem, ["fast"]) == CHOICE for problem in "abc")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "",
        lambda text: "[]",
        lambda text: "\0" * 100,
        lambda text: text.replace('"fast"', "17"),
        lambda text: text.replace('"seconds"', '"secnds"'),
        lambda text: text.replace('"version": "', '"version": "other'),
        lambda text: text.replace('"device": "', '"device": "other'),
    ],
)
def test_damaged_or_stale_table_is_ignored(
    tmp_path: Path, spoil: Callable[[str], str], caplog: pytest.LogCaptureFixture
) -> None:
    found = first_runtime().found
    TuningTable(found, tmp_path).add("a", CHOICE)
    (file,) = tmp_path.iterdir()
    file.write_text(spoil(file.read_text()))
    with caplog.at_level(logging.INFO, "lite.opencl.tuning"):
        table = TuningTable(found, tmp_path)
        assert table.find("a", ["fast"]) is None
    assert str(file) in caplog.text
    table.add("b", CHOICE)
    again = TuningTable(found, tmp_path)
    assert again.find("b", ["fast"]) == CHOICE
    assert again.find("a", ["fast"]) is None


def test_choices_stay_in_memory_without_cache_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITE_CACHE_DIR", "off")
    assert cache_folder() is None
    table = TuningTable(first_runtime().found, cache_folder())
    table.add("a", CHOICE)
    assert table.find("a", ["fast"]) == CHOICE


def test_unwritable_folder_does_not_fail(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    table = TuningTable(first_runtime().found, tmp_path / "file")
    table.add("a", CHOICE)
    assert table.find("a", ["fast"]) == CHOICE


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="this system has no user ids")
@pytest.mark.parametrize("unsafe", ["folder", "file"])
def test_table_that_others_can_change_is_ignored(tmp_path: Path, unsafe: str) -> None:
    found = first_runtime().found
    TuningTable(found, tmp_path / "opencl").add("a", CHOICE)
    (file,) = shutil.copytree(tmp_path / "opencl", tmp_path / "planted").iterdir()
    assert TuningTable(found, tmp_path / "opencl").find("a", ["fast"]) == CHOICE
    (file if unsafe == "file" else file.parent).chmod(0o777)
    assert TuningTable(found, tmp_path / "planted").find("a", ["fast"]) is None


def test_own_measurements_are_preferred_to_those_of_a_file() -> None:
    table = TuningTable(first_runtime().found, None)
    table.offer({"a": CHOICE, "b": CHOICE})
    table.add("a", CHOICE._replace(name="slow"))
    assert table.find("a", ["fast", "slow"]) == CHOICE._replace(name="slow")
    assert table.find("b", ["fast", "slow"]) == CHOICE
