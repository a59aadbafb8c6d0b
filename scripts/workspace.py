"""The distributions of this workspace, found by their folders: none has to be listed anywhere.

``python scripts/workspace.py demo`` and ``python scripts/workspace.py test`` print a requirements file that installs
them from here, all at once, so that pip takes none of them from an index. ``demo`` means the distributions with an
extra ``demo``, with this extra, and the distributions of the workspace they need. ``test`` means every distribution,
with its extras ``demo`` and ``test`` if it has them.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:  # in a new environment, which has only pip
    from pip._vendor import tomli as tomllib

__all__ = ["ROOT", "Distribution", "distributions", "distributions_for_demo", "parse_toml", "requirements"]

ROOT = Path(__file__).parents[1]


def parse_toml(text: str) -> dict[str, Any]:
    """Return what a text in TOML contains."""
    content: dict[str, Any] = tomllib.loads(text)
    return content


@dataclass(frozen=True)
class Distribution:
    """A folder of the workspace that is built into a distribution.

    Attributes:
        folder: the folder with its pyproject.toml.
    """

    folder: Path

    @cached_property
    def pyproject(self) -> dict[str, Any]:
        return parse_toml((self.folder / "pyproject.toml").read_text(encoding="utf-8"))

    @property
    def name(self) -> str:
        """The name, such as ``lite-x86``."""
        name: str = self.pyproject["project"]["name"]
        return name

    @property
    def package(self) -> str:
        """The package it contains, such as ``lite_x86``."""
        return self.name.replace("-", "_")

    @property
    def sources(self) -> Path:
        """The source folder of that package."""
        return self.folder / "src" / self.package

    @property
    def description(self) -> str:
        text: str = self.pyproject["project"]["description"]
        return text

    @property
    def extras(self) -> dict[str, list[str]]:
        """The requirements of each extra."""
        extras: dict[str, list[str]] = self.pyproject["project"].get("optional-dependencies", {})
        return extras

    @property
    def all_requirements(self) -> list[str]:
        """The requirements, those of every extra included."""
        required: list[str] = self.pyproject["project"].get("dependencies", [])
        return [*required, *(requirement for listed in self.extras.values() for requirement in listed)]

    @property
    def about_lite(self) -> dict[str, Any]:
        """The table ``[tool.lite]`` with the backends, commands and formats of the distribution."""
        table: dict[str, Any] = self.pyproject.get("tool", {}).get("lite", {})
        return table

    def required(self, *extras: str) -> set[str]:
        """Return the names of the distributions that it requires, including the requirements of these extras.

        A requirement with an extra of another distribution of the workspace includes the requirements of that extra.
        """
        listed = [*self.pyproject["project"].get("dependencies", ()), *(r for e in extras for r in self.extras[e])]
        found: set[str] = set()
        for name, asked in map(_name_and_extras, listed):
            found.add(name)
            for other in distributions() if asked else ():
                if other.name == name:
                    found.update(_name_and_extras(r)[0] for extra in asked for r in other.extras[extra])
        return found


def _name_and_extras(requirement: str) -> tuple[str, list[str]]:
    """Split ``lite-core[narrow]>=0.1`` into ``lite-core`` and its extras, here ``narrow``."""
    match = re.match(r"([\w.-]+)(?:\[([^]]*)\])?", requirement)
    if match is None:
        raise ValueError(f"{requirement!r} does not begin with the name of a distribution")
    return match[1].lower().replace("_", "-"), [extra.strip() for extra in (match[2] or "").split(",") if extra.strip()]


def distributions() -> list[Distribution]:
    """Return every distribution of the workspace, sorted by name."""
    files = [*ROOT.glob("*/pyproject.toml"), *ROOT.glob("plugins/*/pyproject.toml")]
    return sorted((Distribution(file.parent) for file in files), key=lambda distribution: distribution.name)


def distributions_for_demo() -> list[Distribution]:
    """Return the distributions with an extra ``demo``, and those of the workspace they need, directly or not."""
    by_name = {distribution.name: distribution for distribution in distributions()}
    needed: dict[str, Distribution] = {}
    pending = [distribution.name for distribution in by_name.values() if "demo" in distribution.extras]
    while pending:
        name = pending.pop()
        if name in by_name and name not in needed:
            needed[name] = by_name[name]
            pending += by_name[name].required(*({"demo"} & by_name[name].extras.keys()))
    return sorted(needed.values(), key=lambda distribution: distribution.name)


def requirements(found: Sequence[Distribution], *extras: str) -> str:
    """Return the lines that install distributions from their folders, each with those of the extras that it has.

    NOTE: the folders come first and without extras: pip 23 does not recognise a folder with extras alone as the
    distribution that others require without them, and looks in the index.
    """
    folders = [f"-e ./{distribution.folder.relative_to(ROOT).as_posix()}" for distribution in found]
    asked = [(distribution, [extra for extra in extras if extra in distribution.extras]) for distribution in found]
    return "\n".join([*folders, *(f"{distribution.name}[{','.join(there)}]" for distribution, there in asked if there)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("purpose", choices=("demo", "test"))
    if parser.parse_args().purpose == "demo":
        print(requirements(distributions_for_demo(), "demo"))
    else:
        print(requirements(distributions(), "demo", "test"))


if __name__ == "__main__":
    main()
