"""The table of choices: stored in a file, shared by processes, ignored if damaged or stale."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from lite_compiler.tournaments.choice import Choice
from lite_compiler.tournaments.table import ChoiceTable

CHOICE = Choice("fast", 1e-6, "usual", 2e-6)


def table_in(folder: Path | None) -> ChoiceTable:
    return ChoiceTable("a device", lambda: "version 1", folder, logging.getLogger("lite.test.tuning"))


def test_choices_of_other_processes_are_merged(tmp_path: Path) -> None:
    one, other = table_in(tmp_path), table_in(tmp_path)
    one.add("a", CHOICE)
    other.add("b", CHOICE)
    one.add("c", CHOICE)
    again = table_in(tmp_path)
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
    table_in(tmp_path).add("a", CHOICE)
    (file,) = tmp_path.iterdir()
    file.write_text(spoil(file.read_text()))
    with caplog.at_level(logging.INFO, "lite.test.tuning"):
        table = table_in(tmp_path)
        assert table.find("a", ["fast"]) is None
    assert str(file) in caplog.text
    table.add("b", CHOICE)
    again = table_in(tmp_path)
    assert again.find("b", ["fast"]) == CHOICE
    assert again.find("a", ["fast"]) is None


def test_choices_stay_in_memory_without_cache_folder() -> None:
    table = table_in(None)
    table.add("a", CHOICE)
    assert table.find("a", ["fast"]) == CHOICE


def test_unwritable_folder_does_not_fail(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    table = table_in(tmp_path / "file")
    table.add("a", CHOICE)
    assert table.find("a", ["fast"]) == CHOICE


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="this system has no user ids")
@pytest.mark.parametrize("unsafe", ["folder", "file"])
def test_table_that_others_can_change_is_ignored(tmp_path: Path, unsafe: str) -> None:
    table_in(tmp_path / "own").add("a", CHOICE)
    (file,) = shutil.copytree(tmp_path / "own", tmp_path / "planted").iterdir()
    assert table_in(tmp_path / "own").find("a", ["fast"]) == CHOICE
    (file if unsafe == "file" else file.parent).chmod(0o777)
    assert table_in(tmp_path / "planted").find("a", ["fast"]) is None


def test_own_measurements_are_preferred_to_those_of_a_file() -> None:
    table = table_in(None)
    table.offer({"a": CHOICE, "b": CHOICE})
    table.add("a", CHOICE._replace(name="slow"))
    assert table.find("a", ["fast", "slow"]) == CHOICE._replace(name="slow")
    assert table.find("b", ["fast", "slow"]) == CHOICE
