"""The entry points of installed distributions, read from the metadata folders on ``sys.path``.

The standard library's :mod:`importlib.metadata` gives the same result, but importing it, with the packages for e-mail
and archives, takes longer than all the rest of loading plugins. It is used only if distributions may be elsewhere than
in folders: in archives, in the ``.egg-info`` of old installers, or known to finders added by other packages.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import reduce
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from importlib import metadata

__all__ = ["EntryPoint", "installed_entry_points", "tool"]

#: The module of the standard library's finder, and of its backport, which packages such as Dask import.
_FINDERS_IN_FOLDERS = ("_frozen_importlib_external", "importlib_metadata")


class EntryPoint(Protocol):
    """The part of :class:`importlib.metadata.EntryPoint` that Lite uses."""

    @property
    def name(self) -> str: ...
    @property
    def value(self) -> str: ...
    @property
    def dist(self) -> metadata.Distribution | _InstalledDistribution | None: ...
    def load(self) -> Any: ...


def installed_entry_points(group: str) -> Iterable[EntryPoint]:
    """Return the entry points of a group. If a distribution is on the path twice, the first one counts."""
    found = None if _has_other_finders() else _entry_points_in_folders(group)
    if found is None:
        from importlib import metadata

        return metadata.entry_points(group=group)
    return found


def tool(name: str) -> Any:
    """Return a function of lite-tools that the core calls, by the name of its entry point; None without lite-tools."""
    return next((entry.load() for entry in installed_entry_points("lite.tools") if entry.name == name), None)


def _has_other_finders() -> bool:
    return any(hasattr(f, "find_distributions") and f.__module__ not in _FINDERS_IN_FOLDERS for f in sys.meta_path)


def _entry_points_in_folders(group: str) -> list[EntryPoint] | None:
    """Return the entry points in metadata folders, or None if archives or ``.egg-info`` must be searched, too."""
    found: list[EntryPoint] = []
    seen: set[str] = set()
    for folder in sys.path:
        try:
            names = sorted(os.listdir(folder or "."))
        except FileNotFoundError:
            continue
        except OSError:  # for example an archive
            return None
        for name in names:
            if name.endswith((".egg-info", ".egg")) and os.path.exists(os.path.join(folder, name, "entry_points.txt")):
                return None
            # The metadata folder is NAME-VERSION.dist-info, with different spellings of the name.
            distribution = re.sub(r"[-_.]+", "-", name.partition("-")[0]).lower()
            if name.endswith(".dist-info") and distribution not in seen:
                seen.add(distribution)
                found += _entry_points_of(Path(folder, name), group)
    return found


def _entry_points_of(folder: Path, group: str) -> Iterator[EntryPoint]:
    section = ""
    for line in map(str.strip, _text(folder / "entry_points.txt").splitlines()):
        if line.startswith("["):
            section = line.strip("[]").strip()
        elif section == group and "=" in line and not line.startswith(("#", ";")):
            name, _, value = line.partition("=")
            yield _InstalledEntryPoint(name.strip(), value.strip(), _distribution_in(folder))


class _InstalledDistribution(NamedTuple):
    name: str
    version: str
    requires: list[str]


def _distribution_in(folder: Path) -> _InstalledDistribution:
    """Return the distribution with its metadata in ``folder``; its name only, if the file METADATA is missing."""
    fields: dict[str, list[str]] = {"name": [], "version": [], "requires-dist": []}
    for line in _text(folder / "METADATA").partition("\n\n")[0].splitlines():  # the description follows
        field, _, value = line.partition(":")
        fields.get(field.lower(), []).append(value.strip())
    names, versions, requires = fields.values()
    return _InstalledDistribution([*names, folder.stem.partition("-")[0]][0], [*versions, "-"][0], requires)


def _text(file: Path) -> str:
    """Return the content of a file; empty if it cannot be read."""
    with suppress(OSError):
        return file.read_text(encoding="utf-8", errors="replace")
    return ""


class _InstalledEntryPoint(NamedTuple):
    """An entry point; ``value`` is ``module`` or ``module:attribute``."""

    name: str
    value: str
    dist: _InstalledDistribution

    def load(self) -> Any:
        """Import the module, and return the attribute or the module itself."""
        module, _, attributes = self.value.partition("[")[0].partition(":")
        return reduce(getattr, filter(None, attributes.strip().split(".")), import_module(module.strip()))
