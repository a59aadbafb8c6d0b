"""The installed packages of plugins as plain data: what their metadata states, and what examining them has found."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from lite_core.plugins import ENTRY_POINT_GROUP, PluginRecord
from lite_core.plugins.installed import EntryPoint, installed_entry_points
from lite_core.plugins.record import record_of
from lite_tools.examining.plain_data import record_row
from lite_tools.examining.plugins import ExaminedPlugin
from lite_tools.examining.process import key_of

__all__ = ["GROUPS", "of_package", "plugin_rows"]

#: Groups of entry points with which packages extend other parts of Lite.
GROUPS = ("lite.tools", "lite.conformance")


def plugin_rows(
    plugins: Iterable[ExaminedPlugin], entry_points: Iterable[EntryPoint] | None = None
) -> list[dict[str, Any]]:
    """Return a row for each plugin. ``entry_points`` are those of the plugins; by default all that are installed.

    Its items are those of :func:`~lite_tools.examining.plain_data.record_row`, and:
        hooks: the hooks that it implements.
        api_version: the LITE_API_VERSION that it states; None if it states none or could not be imported.
        requires: its requirement of lite-core, such as ``lite-core>=0.1,<0.2``; empty if it states none.
        seconds: the time of the import and of each hook.
        other_entry_points: name to module of the package's entry points in other groups, by group.
        operators: qualified names of the operators that it provides.
    """
    points = installed_entry_points(ENTRY_POINT_GROUP) if entry_points is None else entry_points
    entries = {key_of(record_of(entry)): entry for entry in points}
    others = {group: list(installed_entry_points(group)) for group in GROUPS}
    return [_row(plugin, entries.get(key_of(plugin.record)), others) for plugin in plugins]


def _row(plugin: ExaminedPlugin, entry: EntryPoint | None, others: dict[str, list[EntryPoint]]) -> dict[str, Any]:
    package = plugin.record.distribution
    named = {
        group: {e.name: e.value for e in found if e.dist and e.dist.name == package} for group, found in others.items()
    }
    row = record_row(plugin.record)
    row["provides"] = {hook: names for hook, names in row["provides"].items() if names}
    if plugin.operators:
        row["provides"]["lite_ops"] = [f"{op['domain']}.{op['name']}" for op in plugin.operators]
    facts = plugin.facts or {"api_version": None, "hooks": [], "seconds": {}}
    return {
        **row,
        **{name: facts[name] for name in ("hooks", "api_version", "seconds")},
        "requires": _requirement((entry and entry.dist and entry.dist.requires) or ()),
        "other_entry_points": {group: found for group, found in named.items() if found},
    }


def _requirement(requirements: Iterable[str]) -> str:
    on_core = (text for text in requirements if re.match(r"lite[-_.]core(?![\w-])", text, re.I) and ";" not in text)
    return next(on_core, "")


def of_package(records: Iterable[PluginRecord], name: str) -> list[PluginRecord]:
    """Return the plugins of a package, by the name of the distribution or of one of its plugins."""
    found = [*records]
    by_package = [record for record in found if _normal(record.distribution) == _normal(name)]
    return by_package or [record for record in found if record.name == name]


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
