"""The worked pages work: their files are written and their commands run, block by block, in the order of the page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from worked_pages import FILES, Block, PageRunner, blocks, commands, matches, replaced, target_of

DOCS = Path(__file__).parents[1] / "docs"
PAGES = [
    DOCS / "backend-tutorial.md",
    DOCS / "plugin-operator.md",
    DOCS / "plugin-pass.md",
    DOCS / "plugin-format.md",
    DOCS / "plugin-command.md",
    DOCS / "vendor-releases.md",
]
EACH_PAGE = pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)


@pytest.mark.full("packages")
@EACH_PAGE
def test_every_block_does_what_the_page_says(path: Path, tmp_path: Path) -> None:
    runner = PageRunner(tmp_path)
    for block in blocks(path.read_text(encoding="utf-8")):
        if block.language in FILES:
            runner.write(block)
            continue
        for command, shown in commands(block):
            printed = runner.run_command(command)
            assert matches(shown, printed), (
                f"{path.name}, line {block.line}: `{command}` printed\n{printed}\nwhere the page shows\n{shown}"
            )


@EACH_PAGE
def test_every_block_is_a_file_or_commands(path: Path) -> None:
    page = path.read_text(encoding="utf-8")
    found = blocks(page)
    assert found
    assert len(found) == page.count("\n```") / 2
    for block in found:
        if block.language in FILES:
            name, part = target_of(block)
            if name.endswith(".py") and part is None:
                compile(block.text, name, "exec")
        else:
            assert block.language == "console", f"line {block.line}: unknown kind of block: {block.language!r}"
            assert list(commands(block))


@EACH_PAGE
def test_the_table_of_steps_lists_every_section_in_order(path: Path) -> None:
    page = path.read_text(encoding="utf-8")
    steps = re.findall(r"^\| \[(\d+\. .+?)\]\(#(.+?)\) \|", page, re.MULTILINE)
    sections = re.findall(r"^## (\d+\. .+)$", page, re.MULTILINE)
    assert [title for title, _ in steps] == sections
    assert [anchor for _, anchor in steps] == [re.sub(r"[^\w -]", "", s.lower()).replace(" ", "-") for s in sections]


@pytest.mark.parametrize(
    ("shown", "printed", "expected"),
    [
        ("a  b\n", "a b\n", True),
        ("a ... c\n", "a b c\n", True),
        ("a\n...\nd\n", "a\nb\nc\nd\n", True),
        ("a\n...\n", "a\n", True),
        ("a\n", "a\nb\n", False),
        ("", "a\n", False),
        ("took ... s\n", "took 1 m\n", False),
        ("a.b\n", "aXb\n", False),
    ],
)
def test_output_is_compared(shown: str, printed: str, expected: bool) -> None:
    assert matches(shown, printed) is expected


def test_one_function_is_replaced() -> None:
    source = "import os\n\n\n@cache\ndef a():\n    return 1\n\n\nclass B:\n    x = 2\n"
    new = "def a():\n    return 3\n"
    assert replaced(source, "a", new) == source.replace("@cache\ndef a():\n    return 1\n", new)
    assert replaced(source, "B", "B = 5\n") == source.replace("class B:\n    x = 2\n", "B = 5\n")


def test_one_assignment_is_replaced() -> None:
    source = 'name = "a"\nneeds: list[str] = [\n    "b[c]",\n]\nlast = 1\n'
    assert replaced(source, "needs", "needs = []\n") == 'name = "a"\nneeds = []\nlast = 1\n'
    assert replaced(source, "last", "last = 2\n") == source.replace("1", "2")


def test_block_of_a_file_names_it() -> None:
    assert target_of(Block("python", "# a/b.py\nx = 1\n", 1)) == ("a/b.py", None)
    assert target_of(Block("toml", "# a.toml, replaces `x`\nx = 1\n", 1)) == ("a.toml", "x")
    with pytest.raises(AssertionError, match="line 7: a block of a file begins with its name"):
        target_of(Block("python", "import os\n", 7))
