"""Bringing the JSON of older format versions up to the present one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

__all__ = ["UPGRADES", "Upgrade", "upgraded"]


def _unchanged(document: Any) -> Any:
    return document


class Upgrade(NamedTuple):
    """What turns each JSON document of one format version into that of the next."""

    table: Callable[[Any], Any] = _unchanged
    graph: Callable[[Any], Any] = _unchanged
    targets: Callable[[Any], Any] = _unchanged


#: By the version that is upgraded: ``UPGRADES[1]`` makes 2 of 1. A version that is left out here cannot be read.
UPGRADES: dict[int, Upgrade] = {}


def upgraded(part: Literal["table", "graph", "targets"], document: Any, version: int, present: int) -> Any:
    """A document of format ``version`` as one of format ``present``."""
    for step in range(version, present):
        document = getattr(UPGRADES[step], part)(document)
    return document
