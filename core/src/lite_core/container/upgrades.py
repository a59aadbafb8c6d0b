"""Upgrading the JSON of older format versions to the present one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

__all__ = ["UPGRADES", "upgrade"]

#: A JSON document of a model file.
Part = Literal["table", "graph", "targets"]


def _table_2(table: Any) -> Any:
    return {**table, "seal": "", "sections": [[*row, False] for row in table["sections"]]}


def _targets_2(targets: Any) -> Any:
    return [{**target, "plans": []} for target in targets]


#: By old version: ``UPGRADES[1]`` converts version 1 to 2, each document that differs by a function. An older version
#: without an entry cannot be read. Version 1 kept code and weights in the same sections, without a seal: its plans are
#: not used.
UPGRADES: dict[int, dict[Part, Callable[[Any], Any]]] = {1: {"table": _table_2, "targets": _targets_2}}


def upgrade(part: Part, document: Any, version: int, present: int) -> Any:
    """Convert a document from format ``version`` to format ``present``."""
    for step in range(version, present):
        document = UPGRADES[step].get(part, lambda same: same)(document)
    return document
