"""The public names, each with one sentence: blocks of docs/api.md. On the site each name leads to its entry."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from importlib import import_module

from list_public_api import summary
from markdown_tables import table
from site_api import GROUPS, PublicModule, public_modules

__all__ = ["BLOCKS"]


#: What is no class and no function, and whose name does not say everything.
_ABOUT = {"API_VERSION": "The version of the contract of plugins", "__version__": "The version of the distribution"}


def names(group: str) -> str:
    """Return a heading and a table for each module of a group."""
    return "\n" + "\n".join(_tables(group)) + "\n"


def _tables(group: str) -> Iterator[str]:
    for module in public_modules():
        if module.group == group:
            yield f"### {module.name}\n\n{summary(import_module(module.name).__doc__ or '')}.\n"
            yield table(("name", "what it is"), _rows(module))


def _rows(module: PublicModule) -> Iterator[tuple[str, str]]:
    for name in sorted({*module.names, *module.others}, key=lambda name: (name.lower(), name)):
        thing = getattr(import_module(module.name), name)
        described = summary(thing.__doc__ or "") if callable(thing) else _ABOUT.get(name, "")
        yield f"`{name}`", described.replace("|", "\\|")


BLOCKS = {f"names: {group.lower()}": partial(names, group) for group in GROUPS}
