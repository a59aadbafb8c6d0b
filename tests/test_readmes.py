"""The READMEs in English and Chinese say the same, those of distributions hold on an index, installing is complete."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from index_readmes import dead_links, for_index
from workspace import ROOT, Distribution, distributions

ENGLISH = (ROOT / "README.md").read_text(encoding="utf-8")
CHINESE = (ROOT / "README.zh.md").read_text(encoding="utf-8")
INSTALLING = (ROOT / "docs/installing.md").read_text(encoding="utf-8")

each_distribution = pytest.mark.parametrize("distribution", distributions(), ids=lambda one: one.name)


def sections(text: str) -> list[str]:
    return re.split(r"^## .*$", text, flags=re.MULTILINE)


def headings(text: str) -> list[str]:
    return re.findall(r"^(#+) ", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)


def links(text: str) -> list[str]:
    found = (link.replace(".zh.md", ".md") for link in re.findall(r"\]\(([^)]+)\)", text))
    return sorted(set(found) - {"README.md"})


def commands(text: str) -> list[str]:
    """Return the indented lines, and the code in tables and sentences that is a command or an option."""
    inline = re.findall(r"`((?:lite|pip|make|lite-conformance) [^`]*|--[\w-]+)`", text)
    return sorted([*re.findall(r"^    .*$", text, re.MULTILINE), *inline])


def figures(text: str) -> list[str]:
    """Return the numbers of a section, without those in links and code."""
    prose = re.sub(r"```.*?```|`[^`]*`|\]\([^)]*\)|<!--.*?-->", "", text, flags=re.DOTALL)
    return sorted(re.findall(r"\d+(?:[.,]\d+)*(?:e-?\d+)?", prose))


def outputs(text: str) -> list[str]:
    """Return the fenced blocks without comments, which are translated."""
    return [re.sub(r" *#.*", "", block) for block in re.findall(r"```.*?```", text, re.DOTALL)]


def test_the_readmes_link_to_each_other() -> None:
    assert "[中文](README.zh.md)" in ENGLISH
    assert "[English](README.md)" in CHINESE


@pytest.mark.parametrize("what", [headings, links, commands, outputs])
def test_both_readmes_have_the_same(what: object) -> None:
    assert callable(what)
    assert what(CHINESE) == what(ENGLISH)
    assert what(ENGLISH)


def test_both_readmes_have_the_same_figures_in_each_section() -> None:
    for chinese, english in zip(sections(CHINESE), sections(ENGLISH), strict=True):
        assert figures(chinese) == figures(english), english.strip()[:80]


def test_the_figures_of_a_section() -> None:
    assert figures("A is 1.5 s, `lite -n 7`, [two](page2.md) 3e-5, 1,024") == ["1,024", "1.5", "3e-5"]


# What an index shows.


@each_distribution
def test_no_link_of_a_distribution_s_readme_is_dead_on_an_index(distribution: Distribution) -> None:
    text = (distribution.folder / "README.md").read_text(encoding="utf-8")
    where = distribution.folder.relative_to(ROOT).as_posix()
    targets = re.findall(r"\]\(([^)\s]+)\)", for_index(text, where, ""))
    assert all(target.startswith("https://") for target in targets), targets
    public = "https://example.org/lite/blob/main/"
    moved = [target for target in re.findall(r"\]\(([^)\s]+)\)", for_index(text, where, public)) if public in target]
    missing = [t for t in moved if not (ROOT / t.removeprefix(public).partition("#")[0]).exists()]
    assert not missing


def test_links_for_an_index() -> None:
    text = "See [the page](../../docs/a.md#part), ![x](b.png), [c](#c), [web](https://example.org).\n```\n[d](e)\n```\n"
    assert (
        for_index(text, "plugins/lite_x", "") == "See the page, x, c, [web](https://example.org).\n```\n[d](e)\n```\n"
    )
    assert for_index(text, "plugins/lite_x", "https://h/r") == (
        "See [the page](https://h/r/docs/a.md#part), ![x](https://h/r/plugins/lite_x/b.png), "
        "[c](https://h/r/plugins/lite_x/README.md#c), [web](https://example.org).\n```\n[d](e)\n```\n"
    )
    assert dead_links('<a href="docs/a.md">a</a> <a href="https://h">b</a> <img src="c.png">') == ["docs/a.md", "c.png"]


# Installing from a checkout.


def folders_in(command: str) -> set[str]:
    """Return the folders of the workspace that a command or a requirements file names."""
    words = (word.partition("[")[0] for word in shlex.split(command, comments=True))
    return {str(Path(word)) for word in words if word.startswith("./") and not word.endswith("*")}


def missing_from(folders: set[str]) -> set[str]:
    """Return the distributions of the workspace that those in the folders require and that are not among them."""
    found = [one for one in distributions() if one.folder.relative_to(ROOT).as_posix() in folders]
    assert len(found) == len(folders), folders
    needed = {Requirement(text).name for one in found for text in one.pyproject["project"]["dependencies"]} & {
        one.name for one in distributions()
    }
    return needed - {one.name for one in found}


def install_commands() -> list[str]:
    """Return the folders of each row of the table in docs/installing.md, with the two that each row adds to."""
    rows = re.findall(r"^\| .* \| (.*) \|$", INSTALLING.partition("| for | add |")[2], re.MULTILINE)
    added = [" ".join(re.findall(r"`([^`]*)`", row)) for row in rows if "./" in row]
    return [f"./core ./plugins/lite_tools {row}" for row in added] + re.findall(
        r"^    pip install (\./.*)$", INSTALLING, re.M
    )


@pytest.mark.parametrize("command", install_commands())
def test_folders_that_are_installed_together_are_complete(command: str) -> None:
    assert not missing_from(folders_in(command)), "pip would look for these in an index"


def test_the_requirements_of_this_machine_are_complete() -> None:
    text = (ROOT / "requirements.txt").read_text(encoding="utf-8").replace(" ; ", " # ")
    assert not missing_from(folders_in(text))


def test_every_distribution_is_in_the_table_of_the_readme_and_can_be_installed_from_its_folder() -> None:
    table = ENGLISH.partition("| distribution | contents |")[2]
    folders = folders_in(" ".join(install_commands()))
    for distribution in distributions():
        assert f"`{distribution.name}`" in table
        assert distribution.folder.relative_to(ROOT).as_posix() in folders
