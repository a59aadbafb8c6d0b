"""The effective options of a measurement as rows: values that differ between sessions stand side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["option_rows"]


def option_rows(document: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return option, value and origin of each effective option of a document.

    The options of sessions come first: if they differ, each value is listed once, in the order of the sessions.
    """
    found: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for result in document["results"]:
        for option in result["options"]:
            values, origins = found.setdefault(option["name"], ({}, {}))
            values[option["value"]] = None
            origins[option["origin"]] = None
    rows = [(name, " / ".join(values), " / ".join(origins)) for name, (values, origins) in found.items()]
    return rows + [(option["name"], option["value"], option["origin"]) for option in document["options"]]
