"""Events of mkdocs: the pages outside docs/, the pages of the Python API, and links that also work on the site."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # mkdocs loads this file by its path

from mkdocs.structure.files import File

import site_api
import site_pages

__all__ = ["on_config", "on_files", "on_page_markdown"]

ROOT = Path(__file__).parents[1]
#: The entry of the navigation in mkdocs.yml that stands for the pages of the Python API.
_API = "The pages of the API"


def on_config(config: Any) -> Any:
    """Add the pages of the Python API to the navigation."""
    config.nav = _with_api(config.nav)
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are generated, and those outside docs/."""
    for name, text in site_api.pages().items():
        files.append(File.generated(config, name, content=text))
    for path, name in site_pages.pages().items():
        is_page = name.endswith(".md")
        given = {"content": site_pages.text_of(path)} if is_page else {"abs_src_path": str(ROOT / path)}
        files.append(File.generated(config, name, **given))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Rewrite the links of a page that is in the repository."""
    path = _paths().get(page.file.src_uri, f"docs/{page.file.src_uri}")
    if not (ROOT / path).exists():  # a page of the Python API
        return markdown
    text = site_pages.rewritten(path, markdown)
    return site_api.linked(text) if path == "docs/api.md" else text


def _with_api(entries: Any) -> Any:
    if isinstance(entries, dict):
        return {name: _with_api(below) for name, below in entries.items()}
    if isinstance(entries, list):
        listed: list[Any] = []
        for entry in entries:
            listed += site_api.navigation() if entry == _API else [_with_api(entry)]
        return listed
    return entries


@cache
def _paths() -> dict[str, str]:
    """Return the paths in the repository of the pages outside docs/, by their places on the site."""
    return {name: path for path, name in site_pages.pages().items()}
