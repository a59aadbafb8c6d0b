"""Tables and texts about plugins, which `lite plugins`, `lite doctor` and `lite backends` print."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from lite_core.plugins import PluginRecord
from lite_tools.commands.printing import console, milliseconds, table
from lite_tools.examining.remedies import remedies_of

__all__ = ["print_failures", "print_plugin", "print_plugins"]

_KINDS = {
    "lite_backends": "backends",
    "lite_formats": "formats",
    "lite_ops": "operators",
    "lite_passes": "passes",
    "lite_commands": "commands",
}
#: Beginnings of remedies that are commands, which come before sentences.
_COMMANDS = ("pip ", "lite ", "export ")
_MOST_NAMED = 4  # names in a line of the table of all plugins


def print_failures(record: PluginRecord, *, with_traceback: bool) -> None:
    """Print every failure of a plugin with what to do about it, and optionally the tracebacks.

    For a plugin that has ended its process, the last lines of the process take the place of the traceback.
    """
    for failure in record.failures:
        console.print(f"\nplugin {record.label} failed at {failure.phase}: {failure.error}", markup=False)
        if with_traceback and failure.traceback:
            console.print(failure.traceback.rstrip(), markup=False)
        remedies = sorted(remedies_of(record, failure), key=lambda remedy: not remedy.startswith(_COMMANDS))
        console.print("next: " + "\n  or: ".join(remedies), markup=False)


def print_plugins(rows: Iterable[Mapping[str, Any]]) -> None:
    """Print a line for each plugin, see :func:`lite_tools.cli.plugins.command` for the rows."""
    columns = ("package", "version", "state", "loads in", "provides")
    table(columns, [(r["distribution"], r["version"], _state(r), _total(r), _provides(r)) for r in rows])


def print_plugin(row: Mapping[str, Any]) -> None:
    """Print all that is known about one plugin, except its failures."""
    facts = {
        "package": f"{row['distribution']} {row['version']}",
        "plugin": f"{row['name']} = {row['module']}",
        "state": _state(row),
        "requires": row["requires"] or "no version of lite-core",
        "API version": _api(row["api_version"]),
    }
    facts |= {
        group: ", ".join(f"{k} = {v}" for k, v in named.items()) for group, named in row["other_entry_points"].items()
    }
    table(("about", ""), facts.items())
    if row["seconds"]:
        console.print()
        table(("step", "time", "provides"), [_step(row, step) for step in row["seconds"]])


def _step(row: Mapping[str, Any], step: str) -> tuple[str, str, str]:
    return step, milliseconds(row["seconds"][step]), ", ".join(row["provides"].get(step, ())) or "-"


def _state(row: Mapping[str, Any]) -> str:
    phases = dict.fromkeys(failure["phase"] for failure in row["failures"])
    return f"failed: {', '.join(phases)}" if phases else "ready"


def _total(row: Mapping[str, Any]) -> str:
    return milliseconds(sum(row["seconds"].values())) if row["seconds"] else "-"


def _provides(row: Mapping[str, Any]) -> str:
    listed = [f"{_KINDS[hook]}: {_shortened(names)}" for hook, names in row["provides"].items() if names]
    return "; ".join(listed) or "-"


def _shortened(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def _api(version: Any) -> str:
    if isinstance(version, (list, tuple)) and len(version) == 2:
        return f"{version[0]} to {version[1]}"
    return "none" if version is None else str(version)
