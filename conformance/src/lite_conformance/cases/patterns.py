"""Patterns of names, with the wildcards ``*`` and ``?``; everything else, brackets included, is literal."""

from __future__ import annotations

import re
from functools import cache

__all__ = ["literal_start", "matches"]


def matches(pattern: str, name: str) -> bool:
    """Return True if a name matches a pattern; case-sensitive."""
    return _compiled(pattern).fullmatch(name) is not None


def literal_start(pattern: str) -> str:
    """Return the pattern up to its first wildcard."""
    return re.split(r"[*?]", pattern, maxsplit=1)[0]


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile("".join({"*": ".*", "?": "."}.get(c, re.escape(c)) for c in pattern))
