"""The page of twenty tasks: its commands print what it shows, and its outputs are written anew by one command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lite_core.backend import Unavailable
from lite_core.plugins import available_backends
from run_first_week import PAGE, follow, refreshed, same
from worked_pages import FILES, blocks, commands

TEXT = PAGE.read_text(encoding="utf-8")
#: The sections of the tasks by their titles.
TASKS = dict(re.findall(r"^## (\d+\. .+?)\n(.*?)(?=^## |\Z)", TEXT, re.DOTALL | re.MULTILINE))


@pytest.mark.full("site")
def test_every_command_prints_what_the_page_shows(tmp_path: Path) -> None:
    for name in ("x86", "opencl", "onnxruntime"):
        if isinstance(found := available_backends()[name].probe(), Unavailable):
            pytest.skip(f"{found.reason}. {found.remedy}")
    for block, command, shown, printed in follow(PAGE, tmp_path):
        assert same(shown, printed), (
            f"line {block.line}: `{command}` printed\n{printed}\nwhere the page shows\n{shown}\n"
            "if that is right: python scripts/run_first_week.py --write"
        )


def test_there_are_twenty_tasks_and_the_table_lists_them() -> None:
    rows = re.findall(r"^\| \[(.+?)\]\(#(.+?)\) \|", TEXT, re.MULTILINE)
    assert len(TASKS) == 20
    assert [title for title, _ in rows] == list(TASKS)
    assert [anchor for _, anchor in rows] == [re.sub(r"[^\w -]", "", t.lower()).replace(" ", "-") for t in TASKS]


@pytest.mark.parametrize("task", TASKS)
def test_a_task_has_commands_and_a_page_that_says_more(task: str) -> None:
    found = blocks(TASKS[task])
    assert [block for block in found if block.language == "console" and list(commands(block))]
    assert {block.language for block in found} <= {"console", *FILES}
    assert re.search(r"\]\(\S+\)", TASKS[task].rpartition("```")[2])


def test_the_page_has_no_path_of_a_machine() -> None:
    assert not re.findall(r"/(?:tmp|home|root|work|Users)/", TEXT)


@pytest.mark.parametrize(
    ("shown", "printed", "expected"),
    [
        ("", "a\nb\n", "a\nb\n"),
        ("took 1 s\n", "took 2 s\n", "took 2 s\n"),
        ("a\n...\nlast 1\n", "a\nb\nc\nlast 2\n", "a\n...\nlast 2\n"),
        ("...\nthe end\n", "other words\nthe end\n", "...\nthe end\n"),
        ("first\nthe end\n", "first\nsomething new\nthe end\n", "first\nsomething new\nthe end\n"),
        ("first\ngone altogether\n", "first\n", "first\n"),
        ("digest ...\n", "digest 1a2b\n", "digest ...\n"),
        ("the model can run\n...\n", "the model can run here\nx\n", "the model can run here\n...\n"),
        ("a\n\nb\n", "a\n\nb\n", "a\n\nb\n"),
        ("a\n...\n", "7 of 9 cases (0 failed)\na\nb\n", "a\n...\n"),
        ("a  1\n", "", ""),
    ],
)
def test_outputs_are_written_anew_without_what_was_left_out(shown: str, printed: str, expected: str) -> None:
    assert refreshed(shown, printed) == expected
