"""Error message parts for a file that no reader recognises."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from lite_core.checks import is_there
from lite_core.formats.contract import Format
from lite_core.plugins import PluginManager
from lite_core.plugins.known import format_distribution, known_distributions

__all__ = ["describe_file", "folder_listing", "reader_hint"]

#: First bytes, one character each, of well-known files that are not models Lite reads: a description and a remedy.
_FOREIGN_FILES = Path(__file__).with_name("foreign_files.json")


def reader_hint(path: Path, plugins: PluginManager, readers: Iterable[Format]) -> str:
    """List the formats that can be read, including Lite's own, and the package to install for another one."""
    here = list(readers)
    known = "; ".join(f"{r.name} reads {', '.join(r.suffixes)}" for r in here)
    distribution = format_distribution(path)
    if distribution is None and len(here) == 1:
        readable = (f"`pip install {brings}` reads {name}" for name, brings in known_distributions("formats").items())
        missing = f" Other formats come with plugins: {', '.join(readable)}."
    elif distribution is None or any(distribution == r.distribution and not r.failed for r in plugins.records()):
        missing = ""  # no known package reads it, or the one that should is installed and did not recognise the file
    else:
        missing = f" `pip install {distribution}` reads such models."
    failed = [record.label for record in plugins.records() if record.failed]
    broken = f" Plugins that failed to load: {', '.join(failed)}; see `lite doctor`." if failed else ""
    return f"no installed plugin recognises it ({known}).{missing}{broken}"


def folder_listing(path: Path) -> str:
    """List the nearest existing folder of a path, which may be mistyped."""
    folder = next((p for p in path.absolute().parents if is_there(p) and p.is_dir()), Path("/"))
    names = sorted(p.name for p in folder.iterdir())
    shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    return f"{str(folder)!r} holds {shown or 'nothing'}"


def describe_file(path: Path) -> str:
    """Describe a file or folder by its content."""
    if path.is_dir():
        names = sorted(p.name for p in path.iterdir())[:8]
        return f"a folder without a model in it (it holds: {', '.join(names) or 'nothing'})"
    with path.open("rb") as file:
        beginning = file.read(32)
    if not beginning:
        return "an empty file"
    text = beginning.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    import json  # not at the top: needed only if a file is not a model

    for characters, meaning in json.loads(_FOREIGN_FILES.read_text(encoding="utf-8")).items():
        magic = characters.encode("latin-1")
        if beginning.startswith(magic) or beginning[4:8] == magic or text.startswith(magic):
            return str(meaning)
    return f"of an unknown format: it begins with {beginning[:16]!r}"
