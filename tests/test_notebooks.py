"""The notebooks in examples/notebooks: what is stored in the files, and that their cells run and still show it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from execute_notebooks import NOTEBOOKS, executed

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)

#: The tag of cells that print the same on every machine.
SAME = "same-output"


def cells(notebook: Mapping[str, Any], kind: str = "code") -> list[Any]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == kind]


def joined(text: str | Iterable[str]) -> str:
    """Return a text of a notebook, which files store as a list of lines."""
    return "".join(text)


def kinds(cell: Mapping[str, Any]) -> list[set[str]]:
    """Return what a cell shows: the kinds of each output but errors' and logs' texts."""
    shown = [output for output in cell["outputs"] if output.get("name") != "stderr"]
    return [{*output.get("data", {"text": None})} for output in shown]


def texts(cell: Mapping[str, Any]) -> list[str]:
    """Return what a cell prints and returns, without pictures."""
    shown = [output.get("text") or output["data"]["text/plain"] for output in cell["outputs"]]
    return list(map(joined, shown))


@every_notebook
def test_outputs_are_stored_and_name_no_machine(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    found = cells(notebook)
    assert [cell["execution_count"] for cell in found] == [*range(1, len(found) + 1)], "execute_notebooks.py runs them"
    assert sum(bool(cell["outputs"]) for cell in found) > len(found) / 2
    for cell in found:
        assert all(output["output_type"] != "error" for output in cell["outputs"])
        shown = json.dumps([{**output, "data": without_pictures(output)} for output in cell["outputs"]])
        assert not re.search(r"/(home|root|tmp|usr|Users|work|var)/|[A-Z]:\\\\|site-packages|\\u001b", shown), shown


def without_pictures(output: Mapping[str, Any]) -> dict[str, Any]:
    return {kind: data for kind, data in output.get("data", {}).items() if not kind.startswith("image/")}


@every_notebook
def test_links_lead_somewhere(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    links = re.findall(r"\]\(([^)#]+)", "\n".join(joined(cell["source"]) for cell in cells(notebook, "markdown")))
    assert links
    assert not [link for link in links if "://" not in link and not (path.parent / link).exists()]


@every_notebook
@pytest.mark.full("examples")
@pytest.mark.skipif(find_spec("nbclient") is None, reason="nbclient is not installed; make test-full installs it")
def test_cells_show_what_is_stored(path: Path, tmp_path: Path) -> None:
    """Run a notebook; times and pictures may differ, but not the kinds of what its cells show."""
    stored, fresh = cells(json.loads(path.read_text(encoding="utf-8"))), cells(executed(path, tmp_path))
    assert list(map(kinds, fresh)) == list(map(kinds, stored))
    same = [(texts(a), texts(b)) for a, b in zip(fresh, stored) if SAME in b["metadata"].get("tags", [])]
    assert same
    assert [now for now, _ in same] == [before for _, before in same]
