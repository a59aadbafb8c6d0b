"""An extension of griffe for what docstrings have of reStructuredText: references and literal blocks, ``::``."""

from __future__ import annotations

import re
from typing import Any

import griffe

__all__ = ["References"]

_ROLE = re.compile(r":(?:class|func|meth|attr|mod|data|exc|obj):`(?P<tilde>~?)(?P<name>[^`]+)`")


class References(griffe.Extension):  # type: ignore[misc]  # griffe is not in the environment of mypy
    """Replaces references by elements of mkdocs-autorefs, links if the name is on the site, and ``::`` by nothing.

    What is indented after ``::`` is code in Markdown as well.
    """

    def on_object(self, *, obj: griffe.Object, **named: Any) -> None:
        """Rewrite the docstring of a member of a package."""
        _rewrite(obj)

    def on_package(self, *, pkg: griffe.Module, **named: Any) -> None:
        """Rewrite the docstring of a package itself."""
        _rewrite(pkg)


def _rewrite(obj: griffe.Object) -> None:
    if obj.docstring is not None:
        text = re.sub(r"^::\n|(?<=\w:):$", "", obj.docstring.value, flags=re.MULTILINE)
        obj.docstring.value = _ROLE.sub(lambda match: _link(obj, match), text)


def _link(obj: griffe.Object, match: re.Match[str]) -> str:
    name = match["name"].strip()
    shown = name.rpartition(".")[2] if match["tilde"] else name
    try:
        full = obj.resolve(name)
    except griffe.NameResolutionError:
        full = name
    return f'<autoref identifier="{full}" optional><code>{shown}</code></autoref>'
