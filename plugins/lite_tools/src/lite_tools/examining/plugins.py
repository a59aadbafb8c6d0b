"""Examining plugins in separate processes, so that one that crashes, exits or hangs ends neither Lite nor the report.

One process examines all plugins. If it ends, or does not answer in time, the plugin that it was busy with is examined
again alone, to be sure that no other plugin is to blame, and another process examines those that are left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lite_core.errors import LiteError
from lite_core.plugins import PluginManager, PluginRecord, default_plugins
from lite_core.plugins.claims import refused_claims
from lite_core.plugins.record import PluginFailure
from lite_tools import plugin as plugin_of_tools
from lite_tools.commands.progress import set_progress
from lite_tools.examining.plain_data import backend_row, record_of_row
from lite_tools.examining.process import Course, Key, key_of, run

__all__ = ["ExaminedPlugin", "examine_plugins", "qualified_name"]

#: What the items of a hook are called, where no two plugins may provide items of the same name.
_NAMED = {"lite_backends": "backend", "lite_formats": "format", "lite_ops": "operator", "lite_commands": "command"}


@dataclass
class ExaminedPlugin:
    """Everything that is known about a plugin after it was examined.

    Attributes:
        record: the record of the plugin. If it has ended its process, its last failure says how and at which step, and
            has as traceback the last lines that the process has written, and the native libraries that it has loaded.
        backends: a row for each device of its backends, or for each backend without a device.
        reports: the reports of its backends, by their names.
        operators: its operators as plain data.
        commands: short descriptions of its commands, by their names.
        facts: what it is made of and how long it takes to load, see :func:`lite_tools.examining.program.examine`; empty
            if it has ended its process.
        validation: findings of the hook ``validate``; empty without it.
        has_ended_a_process: True if the process that examined it crashed, exited, or did not answer in time.
    """

    record: PluginRecord
    backends: list[dict[str, Any]] = field(default_factory=list)
    reports: dict[str, list[str]] = field(default_factory=dict)
    operators: list[dict[str, Any]] = field(default_factory=list)
    commands: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    validation: dict[str, Any] = field(default_factory=dict)
    has_ended_a_process: bool = False


def examine_plugins(
    *hooks: str, plugins: PluginManager | None = None, first: str = "", site: str = ""
) -> list[ExaminedPlugin]:
    """Examine installed plugins in a separate process.

    Args:
        hooks: the hooks whose items are tried; ``report`` stands for the reports of backends.
        plugins: finds the plugins, which are not imported here; by default all that are installed.
        first: the distribution whose plugins are imported first, so that they are not faster because of others.
        site: a folder with further packages, which come before installed ones.

    Raises:
        InputError: LITE_PROBE_TIMEOUT is not a number of seconds.
        LiteError: no process can be started that imports Lite.
    """
    found: dict[Key, ExaminedPlugin] = {}
    discovered = sorted((plugins or default_plugins()).discover(), key=lambda record: record.distribution != first)
    records = {key_of(record): record for record in discovered}
    set_progress("asking the plugins what they provide")
    while waiting := [key for key in records if key not in found]:
        fatal = [key for key in found if found[key].has_ended_a_process]
        course = run(waiting, hooks, fatal, site)
        found.update({key: _examined(data) for key, data in course.found.items()})
        if course.has_ended_well:
            elsewhere = "it is installed in the working folder only, from which the examining process imports nothing"
            lost = [key for key in waiting if key not in found]
            found |= {key: ExaminedPlugin(_failed(records[key], PluginFailure("import", elsewhere))) for key in lost}
            break
        key = course.plugin
        if key is None or key not in records:
            raise LiteError(f"the process that examines plugins could not begin: {course.end}\n{course.output}")
        others = [records[other].label for other in course.found]
        alone = run([key], hooks, fatal, site) if others and not course.has_hung else course
        if alone.has_ended_well:
            found[key] = _examined(alone.found[key])
            found[key].record.warnings.append(
                f"{course.end}, while {course.step}; but not in a process without {', '.join(others)}"
            )
        else:
            found[key] = _verdict(records[key], alone)
    examined = [found[key] for key in records]
    _settle_names(examined)
    return examined


def _examined(data: dict[str, Any]) -> ExaminedPlugin:
    return ExaminedPlugin(record_of_row(data["record"]), **{name: data[name] for name in data if name != "record"})


def _verdict(record: PluginRecord, course: Course) -> ExaminedPlugin:
    """Return what is known about the plugin that has ended its process."""
    error = f"{course.end}, while {course.step}"
    details = [course.output]
    if course.libraries:
        details += ["It had loaded these libraries. If one belongs to a driver, update or remove the driver:"]
        details += [f"  {library}" for library in course.libraries]
    state = "no answer" if course.has_hung else "died"
    rows = [backend_row(course.backend, state, error)] if course.backend else []
    failed = _failed(record, PluginFailure(course.phase, error, "\n".join(details).strip()))
    return ExaminedPlugin(failed, rows, has_ended_a_process=True)


def _failed(record: PluginRecord, failure: PluginFailure) -> PluginRecord:
    """Return a copy of a discovered plugin's record with a failure."""
    return replace(record, failures=[failure], provides={}, warnings=[])


def _settle_names(examined: Sequence[ExaminedPlugin]) -> None:
    """Record the names that several plugins claim, and leave out what they stand for, as sessions do."""
    own = {name for plugin in examined if plugin.record.module == plugin_of_tools.__name__ for name in plugin.commands}
    for plugin in examined:
        if plugin.record.module != plugin_of_tools.__name__:
            for name in plugin.commands.keys() & own:
                _leave_out(plugin, "lite_commands", name, "")
                taken = f"the command name {name!r} is taken by lite-tools"
                plugin.record.fail(PluginFailure("lite_commands", taken))
    for hook, kind in _NAMED.items():
        claims = [(plugin, name) for plugin in examined for name in _names(plugin, hook)]
        refused = refused_claims([(plugin.record, name) for plugin, name in claims])
        for position, (reason, is_fault) in refused.items():
            plugin, name = claims[position]
            _leave_out(plugin, hook, name, reason)
            text = f"{kind} {name!r}: {reason}"
            if is_fault:
                plugin.record.fail(PluginFailure(hook, text))
            elif text not in plugin.record.warnings:
                plugin.record.warnings.append(text)


def _names(plugin: ExaminedPlugin, hook: str) -> list[str]:
    if hook == "lite_ops":
        return [qualified_name(row) for row in plugin.operators]
    return list(plugin.commands) if hook == "lite_commands" else plugin.record.provides.get(hook, [])


def _leave_out(plugin: ExaminedPlugin, hook: str, name: str, reason: str) -> None:
    if hook == "lite_backends":
        rows = [row for row in plugin.backends if row["backend"] != name]
        plugin.backends = [*rows, backend_row(name, "left out", reason)]
    if hook == "lite_ops":
        plugin.operators = [row for row in plugin.operators if qualified_name(row) != name]
    if hook == "lite_commands":
        plugin.commands.pop(name, None)
        plugin.record.provides["lite_commands"] = [*plugin.commands]


def qualified_name(operator: dict[str, Any]) -> str:
    """Return the name of an operator with its domain."""
    return f"{operator['domain']}.{operator['name']}" if operator["domain"] else str(operator["name"])
