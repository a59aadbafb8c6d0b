"""Run the notebooks in examples/notebooks from their beginning, and store what their cells return.

    python scripts/execute_notebooks.py [NOTEBOOK ...]

The outputs are part of the notebooks, so that they can be read without being run. Run this after a change of a notebook
or of what its cells show, when the machine has nothing else to do: the notebooks show times. It needs
requirements-examples.txt.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from workspace import ROOT

__all__ = ["NOTEBOOKS", "executed"]

NOTEBOOKS = sorted((ROOT / "examples/notebooks").glob("*.ipynb"))
_MOST_SECONDS = 300  # for a cell
_COLOUR = re.compile(r"\x1b\[[\d;]*m")


def executed(path: Path, folder: Path) -> Any:
    """Run a notebook as a newcomer does, with nothing in Lite's cache, and return it with its outputs.

    Args:
        path: the notebook, which is not changed.
        folder: the working folder of the cells, which may write files into it, and of the cache.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell failed.
    """
    import nbformat  # not at the top: most of the workspace does not need notebooks
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=_MOST_SECONDS, record_timing=False, coalesce_streams=True)
    variables = {
        **os.environ,
        "LITE_CACHE_DIR": str(folder / "cache"),
        # The commands of this environment, as after its activation.
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
    }
    with client.setup_kernel(cwd=str(folder), env=variables):
        for number, cell in enumerate(notebook.cells):
            client.execute_cell(cell, number)
    for output in (output for cell in notebook.cells for output in cell.get("outputs", [])):
        if "text" in output:  # of a command; the kernel tells them that it shows colours, but other readers do not
            output["text"] = _COLOUR.sub("", output["text"])
    return notebook


def main(arguments: Sequence[str] | None = None) -> int:
    """Run notebooks and write their outputs into them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("notebooks", nargs="*", type=Path, default=NOTEBOOKS, help="default: all")
    import nbformat

    for path in parser.parse_args(arguments).notebooks:
        print(f"running {path.name}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            nbformat.write(executed(path, Path(folder)), path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
