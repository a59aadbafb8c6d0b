"""Notebooks as Markdown: texts, code, and the outputs that are stored in the file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

__all__ = ["markdown_of"]

#: The kinds of stored outputs, the best first.
_PICTURES = {"image/png": "png", "image/jpeg": "jpeg"}


def markdown_of(file: Path) -> str:
    """Return a notebook as Markdown.

    A picture becomes a data URL, so that the page is complete; an HTML output is taken as it is.
    """
    notebook = json.loads(file.read_text(encoding="utf-8"))
    parts = [part for cell in notebook["cells"] for part in _cell(cell)]
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def _cell(cell: Mapping[str, Any]) -> Iterator[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield source
    elif cell["cell_type"] == "code" and source:
        yield f"````python\n{source}\n````"
        for output in cell["outputs"]:
            yield from _output(output)


def _output(output: Mapping[str, Any]) -> Iterator[str]:
    data = output.get("data", {})
    for kind in _PICTURES:
        if kind in data:
            encoded = "".join(data[kind]).replace("\n", "")
            yield f'<img alt="the output of this cell" src="data:{kind};base64,{encoded}">'
            return
    if "text/html" in data:
        yield f'<div class="output">{"".join(data["text/html"])}</div>'
    elif text := "".join(output.get("text", data.get("text/plain", ()))):
        yield f"````text\n{text.rstrip()}\n````"
