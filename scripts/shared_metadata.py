"""Write what all distributions state alike into each of them: version, classifiers, addresses, bounds of each other.

It is stated once, in the table ``[tool.workspace]`` of the pyproject.toml of this workspace. Each distribution holds a
copy, because it must build from its folder alone. ``python scripts/shared_metadata.py`` writes the copies, and so does
``make docs``; ``--version 0.2.0`` changes the version first, for the first step of a release; ``--check`` only lists
the files that differ.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

from workspace import ROOT, distributions, parse_toml

__all__ = ["Shared", "files", "shared"]

WORKSPACE = ROOT / "pyproject.toml"

_VERSION = re.compile(r'^version = "[^"]*"$', re.MULTILINE)
_DUNDER_VERSION = re.compile(r'^__version__ = "[^"]*"$', re.MULTILINE)
#: The end of the list of classifiers: the line that begins it, and what is replaced.
_CLASSIFIERS = re.compile(r"( +# [^\n]*: written by make docs\n)[^]]*(?=\])")
#: The table of addresses with the empty line behind it, and the table that it stands before.
_URLS = re.compile(r"^\[project\.urls\]\n(?:[^\[\n].*\n)*\n", re.MULTILINE)
_NEXT_TABLE = re.compile(r"^\[(?:project\.|tool\.)", re.MULTILINE)
_REQUIREMENT = re.compile(r"(?<![\w-])(lite-[a-z0-9-]+(?:\[[\w,-]+\])?)>=[\d.]+,<[\d.]+")
#: A list of requirements in a page.
_LISTED = re.compile(r"^[a-z]+ = \[.*\]$", re.MULTILINE)


@dataclass(frozen=True)
class Shared:
    """The statements that all distributions share.

    Attributes:
        version: the version of all of them: they are released together.
        classifiers: classifiers of each of them.
        urls: public addresses of the project, by the label that an index page shows.
        pages: the public address below which the files of the repository are read; empty if there is none.
    """

    version: str
    classifiers: list[str] = field(default_factory=list)
    urls: dict[str, str] = field(default_factory=dict)
    pages: str = ""

    @property
    def bounds(self) -> str:
        """The bounds of distributions on each other: this minor version, such as ``>=0.1,<0.2``."""
        major, minor = (int(number) for number in self.version.split(".")[:2])
        return f">={major}.{minor},<{major}.{minor + 1}"

    def in_requirements(self, text: str) -> str:
        """Return a text in which every bounded requirement of a distribution of the workspace has these bounds."""
        own = {distribution.name for distribution in distributions()}

        def bounded(match: re.Match[str]) -> str:
            return f"{match[1]}{self.bounds}" if match[1].partition("[")[0] in own else match[0]

        return _REQUIREMENT.sub(bounded, text)

    def in_pyproject(self, text: str) -> str:
        """Return the pyproject.toml of a distribution with all of it."""
        listed = "".join(f"    {json.dumps(classifier)},\n" for classifier in self.classifiers)
        text = _VERSION.sub(f'version = "{self.version}"', self.in_requirements(text), count=1)
        text = _URLS.sub("", _CLASSIFIERS.sub(lambda match: match[1] + listed, text))
        if self.urls:
            lines = "".join(f"{_key(label)} = {json.dumps(url)}\n" for label, url in self.urls.items())
            text = _NEXT_TABLE.sub(lambda match: f"[project.urls]\n{lines}\n{match[0]}", text, count=1)
        return text

    def in_page(self, text: str) -> str:
        """Return a page of the documentation, with the bounds in its examples of a pyproject.toml."""
        return _LISTED.sub(lambda match: self.in_requirements(match[0]), text)


def _key(label: str) -> str:
    return label if re.fullmatch(r"[\w-]+", label) else json.dumps(label)


def shared() -> Shared:
    """Return what is stated in the pyproject.toml of the workspace."""
    return Shared(**parse_toml(WORKSPACE.read_text(encoding="utf-8"))["tool"]["workspace"])


def files(stated: Shared | None = None) -> dict[Path, str]:
    """Return every file that has a copy of it, with its expected content."""
    stated = stated or shared()
    found = {}
    for distribution in distributions():
        pyproject = distribution.folder / "pyproject.toml"
        found[pyproject] = stated.in_pyproject(pyproject.read_text(encoding="utf-8"))
        for source in (distribution.sources / "__init__.py", distribution.sources / "version.py"):
            text = source.read_text(encoding="utf-8") if source.exists() else ""
            if _DUNDER_VERSION.search(text):
                found[source] = _DUNDER_VERSION.sub(f'__version__ = "{stated.version}"', text)
    for example in ROOT.glob("examples/*/pyproject.toml"):
        found[example] = stated.in_requirements(example.read_text(encoding="utf-8"))
    for page in ROOT.glob("docs/*.md"):
        text = page.read_text(encoding="utf-8")
        if _REQUIREMENT.search(text):
            found[page] = stated.in_page(text)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", help="the version that all distributions get, such as 0.2.0")
    parser.add_argument("--check", action="store_true", help="write nothing, fail if something differs")
    options = parser.parse_args()
    if options.version:
        if not re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", options.version):
            sys.exit(f"{options.version!r} is no version of the form 0.2.0 or 0.2.0rc1")
        text = WORKSPACE.read_text(encoding="utf-8")
        WORKSPACE.write_text(_VERSION.sub(f'version = "{options.version}"', text, count=1), encoding="utf-8")
    different = {path: text for path, text in files().items() if path.read_text(encoding="utf-8") != text}
    for path, text in different.items():
        print(path.relative_to(ROOT).as_posix())
        if not options.check:
            path.write_text(text, encoding="utf-8")
    if options.check and different:
        sys.exit("these files differ from [tool.workspace] in pyproject.toml; run: python scripts/shared_metadata.py")


if __name__ == "__main__":
    main()
