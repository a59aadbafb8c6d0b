"""Upgrading the JSON of older format versions to the present one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

__all__ = ["UPGRADES", "Upgrade", "upgrade"]


def _unchanged(document: Any) -> Any:
    return document


class Upgrade(NamedTuple):
    """Functions that convert the JSON documents of one format version to the next version."""

    table: Callable[[Any], Any] = _unchanged
    graph: Callable[[Any], Any] = _unchanged
    targets: Callable[[Any], Any] = _unchanged


def _table_2(table: Any) -> Any:
    return {**table, "seal": "", "sections": [[*row, False] for row in table["sections"]]}


def _targets_2(targets: Any) -> Any:
    return [{**target, "plans": []} for target in targets]


#: By old version: ``UPGRADES[1]`` converts version 1 to 2. An older version without an entry cannot be read.
#: Version 1 kept code and weights in the same sections, without a seal: its plans are not used.
UPGRADES: dict[int, Upgrade] = {1: Upgrade(table=_table_2, targets=_targets_2)}


def upgrade(part: Literal["table", "graph", "targets"], document: Any, version: int, present: int) -> Any:
    """Convert a document from format ``version`` to format ``present``."""
    for step in range(version, present):
        document = getattr(UPGRADES[step], part)(document)
    return document
