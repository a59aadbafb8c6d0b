"""Write all generated files and blocks or, with ``--check``, report the stale ones; ``make docs`` calls it.

Generated are the drawing of the packages, the charts of the benchmarks, the core's file of known distributions, the
lists of public names, the JSON Schemas, what all distributions state alike, and blocks of pages between

    <!-- begin NAME: written by make docs -->
    <!-- end NAME -->

The content of a block comes from the function of that name in the ``BLOCKS`` of a script ``list_*.py`` beside this one.
A new list needs one such script, and the two lines in a page.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import draw_architecture
import json_schemas
import known_distributions
import list_public_api
import list_results
import shared_metadata
from workspace import ROOT

__all__ = ["generated", "pages", "stale", "writers"]

_BLOCK = re.compile(r"(<!-- begin (.+): written by make docs -->\n).*?(<!-- end \2 -->)", re.DOTALL)


def generated() -> dict[Path, str]:
    """Return every file that is generated in whole or in part, with its expected content."""
    files = {
        known_distributions.FILE: known_distributions.text(),
        draw_architecture.FILE: draw_architecture.drawing(),
        **list_results.charts(),
        **list_public_api.files(),
        **json_schemas.files(),
        **shared_metadata.files(),
    }
    return files | {page: with_blocks(files.get(page) or page.read_text(encoding="utf-8")) for page in pages()}


def pages() -> list[Path]:
    """Return the pages that have generated blocks."""
    every = sorted(
        {*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("*/README.md"), *ROOT.glob("plugins/*/*.md")}
    )
    return [page for page in every if _BLOCK.search(page.read_text(encoding="utf-8"))]


def with_blocks(text: str) -> str:
    """Return a page with up-to-date blocks."""
    return _BLOCK.sub(lambda match: f"{match[1]}{writers()[match[2]]()}{match[3]}", text)


def writers() -> dict[str, Callable[[], str]]:
    """Return the function that writes each block, by the name of the block."""
    scripts = sorted(Path(__file__).parent.glob("list_*.py"))
    return {name: writer for script in scripts for name, writer in import_module(script.stem).BLOCKS.items()}


def stale() -> list[str]:
    """Return the generated files that are not up to date."""
    texts = generated().items()
    wrong = [file for file, text in texts if not file.exists() or file.read_text(encoding="utf-8") != text]
    return [file.relative_to(ROOT).as_posix() for file in wrong]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing, fail if something is stale")
    if parser.parse_args().check:
        if found := stale():
            sys.exit(f"stale: {', '.join(found)}; run: make docs")
        return
    for file, text in generated().items():
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
            print(f"written: {file.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
