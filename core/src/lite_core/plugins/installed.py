"""The entry points of installed distributions, read from the metadata folders on ``sys.path``.

The standard library's :mod:`importlib.metadata` finds the same, but to import it, with the packages for e-mail and
archives that it needs, takes longer than all the rest of loading plugins. It is asked where something else than
folders can hold distributions: archives, the ``.egg-info`` of old installers, finders that others have added.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cached_property
from importlib import import_module
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any, Protocol

__all__ = ["Distribution", "EntryPoint", "installed_entry_points"]


class Distribution(Protocol):
    """What is used of a distribution; :class:`importlib.metadata.Distribution` has it."""

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def requires(self) -> list[str] | None: ...


class EntryPoint(Protocol):
    """What is used of an entry point; :class:`importlib.metadata.EntryPoint` has it."""

    @property
    def name(self) -> str: ...
    @property
    def value(self) -> str: ...
    @property
    def dist(self) -> Distribution | None: ...
    def load(self) -> Any: ...


def installed_entry_points(group: str) -> Iterable[EntryPoint]:
    """The entry points of a group; of a distribution that is on the path twice, those of the first."""
    found = None if _has_other_finders() else _entry_points_in_folders(group)
    if found is None:
        from importlib import metadata

        return metadata.entry_points(group=group)
    return found


def _has_other_finders() -> bool:
    return any(hasattr(finder, "find_distributions") and finder is not PathFinder for finder in sys.meta_path)


def _entry_points_in_folders(group: str) -> list[EntryPoint] | None:
    """None where there is more to search than folders of current installers."""
    found: list[EntryPoint] = []
    seen: set[str] = set()
    for place in sys.path:
        try:
            names = sorted(os.listdir(place or "."))
        except FileNotFoundError:
            continue
        except OSError:  # an archive
            return None
        for name in names:
            if name.endswith((".egg-info", ".egg")) and os.path.exists(os.path.join(place, name, "entry_points.txt")):
                return None
            # The folder is called NAME-VERSION.dist-info, in different spellings of the name.
            distribution = re.sub(r"[-_.]+", "-", name.partition("-")[0]).lower()
            if name.endswith(".dist-info") and distribution not in seen:
                seen.add(distribution)
                found += _entry_points_of(_InstalledDistribution(Path(place, name)), group)
    return found


def _entry_points_of(distribution: _InstalledDistribution, group: str) -> Iterator[EntryPoint]:
    try:
        text = (distribution.folder / "entry_points.txt").read_text(encoding="utf-8")
    except OSError:
        return
    section = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            section = line.strip("[]").strip()
        elif section == group and "=" in line and not line.startswith(("#", ";")):
            name, _, value = line.partition("=")
            yield _InstalledEntryPoint(name.strip(), value.strip(), distribution)


class _InstalledDistribution:
    """A distribution whose metadata lie in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def name(self) -> str:
        return next(iter(self._values("Name")), self.folder.stem.partition("-")[0])

    @property
    def version(self) -> str:
        return next(iter(self._values("Version")), "-")

    @property
    def requires(self) -> list[str]:
        return self._values("Requires-Dist")

    @cached_property
    def _fields(self) -> list[str]:
        """The lines before the description; none where the file is missing."""
        try:
            text = (self.folder / "METADATA").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return []
        return text.partition("\n\n")[0].splitlines()

    def _values(self, field: str) -> list[str]:
        start = f"{field.lower()}:"
        return [line[len(start) :].strip() for line in self._fields if line.lower().startswith(start)]


class _InstalledEntryPoint:
    """An entry point; ``value`` is ``module`` or ``module:attribute``."""

    def __init__(self, name: str, value: str, dist: Distribution) -> None:
        self.name, self.value, self.dist = name, value, dist

    def load(self) -> Any:
        """Import the module and give the attribute, or the module itself."""
        module, _, attributes = self.value.partition("[")[0].partition(":")
        loaded: Any = import_module(module.strip())
        for attribute in filter(None, attributes.strip().split(".")):
            loaded = getattr(loaded, attribute)
        return loaded
