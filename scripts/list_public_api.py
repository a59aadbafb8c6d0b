"""The lists of public names in tests/public_api, and the tables of public modules: blocks of docs/api-stability.md.

    python scripts/list_public_api.py             report what is gone, changed and new
    python scripts/list_public_api.py --write     add what is new; what is gone or changed stays in the list as it was

``make docs`` writes them, too. The line of a name that no release has had may be removed by hand.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from markdown_tables import code, table
from public_changes import changes, merged, name_of
from public_modules import LISTS, PublicList, present

__all__ = ["BLOCKS", "files"]


def files() -> dict[Path, str]:
    """Return each list with new names added; incompatible changes are not made, and tests/test_public_api.py fails."""
    return {
        one.file: "\n".join([one.header, *_grouped(merged(one.committed, present()[name]), one)]) + "\n"
        for name, one in LISTS.items()
    }


def _grouped(lines: Sequence[str], one: PublicList) -> list[str]:
    """Return lines with an empty line before each module."""
    grouped: list[str] = []
    last = None
    for line in lines:
        module = max((m for m in one.modules if name_of(line).startswith(f"{m}.")), key=len, default="")
        grouped += ([""] if module != last else []) + [line]
        last = module
    return grouped


def modules_of(name: str) -> str:
    """Return a table of the public modules of a list."""
    rows = []
    for module, chosen in LISTS[name].modules.items():
        rows.append(
            (f"`{module}`", code(chosen.split()) or "all of `__all__`", summary(import_module(module).__doc__ or ""))
        )
    return table(("module", "public names", "contents"), rows)


def summary(docstring: str) -> str:
    """Return the first sentence of a docstring in Markdown."""
    sentence = re.split(r"\.\s", " ".join(docstring.split()) + " ")[0].rstrip(": ")
    return re.sub(r":\w+:`~?([\w.]+)`", r"`\1`", sentence).replace("``", "`")


BLOCKS = {
    "public modules for plugins": lambda: modules_of("plugins"),
    "public modules for programs": lambda: modules_of("programs"),
    "public modules of libraries": lambda: modules_of("libraries"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="add what is new")
    is_to_write = parser.parse_args().write
    broken = 0
    for name, one in LISTS.items():
        found = changes(one.committed, present()[name])
        broken += len(found.incompatible)
        for line in found.incompatible:
            print(f"incompatible: {line}")
        for line in found.compatible:
            print(f"{'added' if is_to_write else 'new'}: {line}")
    if is_to_write:
        for file, text in files().items():
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
    if broken:
        sys.exit(f"{broken} incompatible change(s): restore them, or raise the version (docs/api-stability.md)")


if __name__ == "__main__":
    main()
