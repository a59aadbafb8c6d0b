"""Progress below the cell of a notebook: it is shown while work goes on, and gone in the end."""

from __future__ import annotations

import pytest

CELL = """
import time
from lite_core.log import tracked
from lite_tools.commands import progress, shown_progress

shown, show = [], progress._NotebookLine.show
progress._NotebookLine.show = lambda line, text: (shown.append(text), show(line, text))
with shown_progress() as say:
    say("loading")
    for _ in tracked(range(3), "counting"):
        time.sleep(0.7)
print(shown[-1])
"""


@pytest.mark.full("commands")
def test_progress_in_a_notebook() -> None:
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
    nbclient.NotebookClient(notebook, kernel_name="python3", timeout=120).execute()
    line, printed = notebook.cells[0].outputs
    assert line["data"] == {"text/plain": "", "text/html": ""}
    assert printed["text"].startswith("loading: counting, 2 of 3")
