"""docs/troubleshooting.md has every error class, and quotes messages that are really produced."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path

import pytest
from provoked_messages import PROVOKED
from tiers import in_part

import lite_conformance
import lite_core
import lite_tools
from lite_core.errors import LiteError
from worked_pages import matches

PAGE = (Path(__file__).parents[1] / "docs/troubleshooting.md").read_text(encoding="utf-8")
#: The sections by their titles.
SECTIONS = dict(re.findall(r"^##+ (.+?)\n(.*?)(?=^##|\Z)", PAGE, re.DOTALL | re.MULTILINE))
#: They start processes, or a package that takes long to import.
SLOW = ("PackageCasesError", "UnavailableError", "WorkerDiedError")
MESSAGES = [(name, number) for name, provoked in PROVOKED.items() for number in range(len(provoked))]


def quoted(section: str) -> list[str]:
    return re.findall(r"^```text\n(.*?)^```$", SECTIONS[section], re.DOTALL | re.MULTILINE)


def error_classes() -> set[str]:
    """Return the names of the public error classes of the core, the tools and the suite."""
    for package in (lite_core, lite_tools, lite_conformance):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.endswith(("__main__", "graphviz_process", "templates")):
                importlib.import_module(module.name)
    found: set[type] = set()
    pending: list[type] = [Exception]
    while pending:
        for below in pending.pop().__subclasses__():
            if below not in found:
                found.add(below)
                pending.append(below)
    ours = ("lite_core", "lite_tools", "lite_conformance")
    return {
        one.__name__
        for one in found
        if one.__module__.split(".")[0] in ours and one.__name__.endswith("Error") and one.__name__[0] != "_"
    } - {LiteError.__name__}


def test_every_error_class_has_an_entry() -> None:
    assert error_classes() <= SECTIONS.keys()


def test_every_quoted_message_is_provoked() -> None:
    assert {name: len(quoted(name)) for name in SECTIONS if quoted(name)} == {
        name: len(provoked) for name, provoked in PROVOKED.items()
    }


@pytest.mark.parametrize("message", in_part("site", MESSAGES, [one for one in MESSAGES if one[0] not in SLOW]), ids=str)
def test_message(message: tuple[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    section, number = message
    monkeypatch.chdir(tmp_path)
    if section.endswith("Error"):
        with pytest.raises(Exception) as caught:
            PROVOKED[section][number](monkeypatch)
        assert section in [one.__name__ for one in type(caught.value).__mro__]
        printed = str(caught.value)
    else:
        printed = PROVOKED[section][number](monkeypatch)
    assert matches(quoted(section)[number], printed), printed
