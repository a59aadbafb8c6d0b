"""The pages of the Python API: a page for each public module, with a directive for each name of tests/public_api.

mkdocstrings replaces a directive, ``::: lite_core.load``, by the signature and the docstring, which it reads from the
sources without importing them. So the site needs no package of Lite, and no package that Lite needs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["GROUPS", "PublicModule", "linked", "navigation", "pages", "public_modules"]

ROOT = Path(__file__).parents[1]
FOLDER = "api"
#: The lists of public names, and what their names are for.
_LISTS = {
    "programs-*.txt": "For programs",
    "plugins-*.txt": "For plugins",
    "libraries-*.txt": "Libraries for backends",
}
GROUPS = tuple(_LISTS.values())
#: A line of a list: the name, and the name of which it is another, if it is.
_LINE = re.compile(r"(?P<name>[\w.]+)(?: = (?P<other>lite_[\w.]+)$)?(?P<rest>.*)")


@dataclass
class PublicModule:
    """A public module.

    Attributes:
        name: such as ``lite_core.session``.
        group: what it is for.
        names: its public names, each with the names of its public members.
        others: public names that are defined in other modules, each with the name there.
    """

    name: str
    group: str
    names: dict[str, list[str]] = field(default_factory=dict)
    others: dict[str, str] = field(default_factory=dict)

    @property
    def page(self) -> str:
        return f"{FOLDER}/{self.name}.md"


def public_modules() -> list[PublicModule]:
    """Return the public modules, in the order of the lists."""
    found: list[PublicModule] = []
    for pattern, group in _LISTS.items():
        (file,) = (ROOT / "tests/public_api").glob(pattern)
        for part in file.read_text(encoding="utf-8").split("\n\n")[1:]:
            found.append(_module(part.splitlines(), group))
    return found


def pages() -> dict[str, str]:
    """Return the text of each page by its path below docs/."""
    return {module.page: "\n".join(_page(module)) for module in public_modules()}


def navigation() -> list[Mapping[str, list[Mapping[str, str]]]]:
    """Return the entries of the navigation."""
    groups: dict[str, list[Mapping[str, str]]] = {}
    for module in public_modules():
        groups.setdefault(module.group, []).append({module.name: module.page})
    return [{group: entries} for group, entries in groups.items()]


def linked(text: str) -> str:
    """Return the text of docs/api.md in which each name leads to its entry."""
    modules = {module.name: module for module in public_modules()}
    current = ""

    def link(match: re.Match[str]) -> str:
        nonlocal current
        if match["module"]:
            current = match["module"]
            return match[0]
        full = modules[current].others.get(match["name"], f"{current}.{match['name']}")
        page = next((m.page for m in modules.values() if full.removeprefix(f"{m.name}.") in m.names), None)
        has_entry = page and match["name"] != "__version__"
        return f"| [`{match['name']}`]({page}#{full}) |" if has_entry else match[0]

    return re.sub(r"^### (?P<module>lite_\S+)$|^\| `(?P<name>\w+)` \|", link, text, flags=re.MULTILINE)


def _module(lines: list[str], group: str) -> PublicModule:
    matches = [match for line in lines if (match := _LINE.match(line))]
    # Members of classes follow their classes, so the first line is a name of the module itself.
    module = PublicModule(matches[0]["name"].rpartition(".")[0], group)
    for match in matches:
        name, *member = match["name"].removeprefix(f"{module.name}.").split(".")
        if match["other"] and not member:
            module.others[name] = match["other"]
        elif member:
            module.names.setdefault(name, []).append(member[0])
        else:
            module.names.setdefault(name, [])
    return module


def _page(module: PublicModule) -> Iterator[str]:
    yield f"---\ntitle: {module.name}\n---\n\n# `{module.name}`\n"
    yield f"::: {module.name}"
    yield "    options: {members: [], show_root_heading: false, show_root_toc_entry: false}\n"
    for name, members in module.names.items():
        if name != "__version__":
            yield f"::: {module.name}.{name}"
            yield f"    options: {{members: [{', '.join(members)}]}}\n"
    if module.others:
        yield "## Names of other modules\n"
        yield from (f"- `{module.name}.{name}` is [`{other}`][{other}]" for name, other in module.others.items())
