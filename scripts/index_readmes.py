"""READMEs of distributions as an index page shows them, where links to other files of the repository lead nowhere.

An index has neither the other files nor anchors of headings. Such a link leads to the public address of the file, if
the workspace states one (``pages`` in its pyproject.toml), and is plain text otherwise.
"""

from __future__ import annotations

import posixpath
import re

__all__ = ["dead_links", "for_index"]

_FENCED = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"!?\[([^\]]+)\]\(([^)\s]+)\)")
_HREF = re.compile(r'(?:href|src)="([^"]*)"')
#: The last is what an index makes for headings themselves.
_FOLLOWED = ("https://", "http://", "mailto:", "#user-content-")


def for_index(text: str, folder: str, pages: str) -> str:
    """Return a README with links that hold anywhere.

    Args:
        text: the README.
        folder: its folder in the repository, such as ``plugins/lite_x86``.
        pages: the public address below which the files of the repository are read; empty if there is none.
    """

    def link(match: re.Match[str]) -> str:
        target = match[2]
        if "://" in target:
            return match[0]
        if not pages:
            return match[1]
        path, _, anchor = target.partition("#")
        address = f"{pages.rstrip('/')}/{posixpath.normpath(posixpath.join(folder, path or 'README.md'))}"
        return f"{match[0][: match.start(2) - match.start()]}{address}{'#' if anchor else ''}{anchor})"

    parts = _FENCED.split(text)
    return "".join(part if number % 2 else _LINK.sub(link, part) for number, part in enumerate(parts))


def dead_links(html: str) -> list[str]:
    """Return the targets of a rendered README that an index page cannot follow."""
    return [target for target in _HREF.findall(html) if not target.startswith(_FOLLOWED)]
