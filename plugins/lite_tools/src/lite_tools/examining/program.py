"""The program of the process that examines plugins: it imports each, asks it for all, and tries what it provides.

Whatever it calls may crash, exit or hang. So it announces each step on its standard output, as a line of JSON, before
it takes the step: the process that waits for it (:mod:`lite_tools.examining.process`) then knows with which
plugin and step it ended. After the last step with a plugin, it prints what it has found out about the plugin.

Modules that only some hooks need are imported late: `lite backends` is to be fast.
"""

from __future__ import annotations

import faulthandler
import json
import logging
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from lite_core.backend import Backend, No, ReportsFindings, Unavailable, Yes
from lite_core.errors import LiteError
from lite_core.ir import Graph
from lite_core.plugins import (
    ENTRY_POINT_GROUP,
    PluginManager,
    PluginRecord,
    available_backends,
    default_plugins,
    left_out_backends,
)
from lite_core.plugins.contracts import fault_text
from lite_core.plugins.installed import EntryPoint, installed_entry_points
from lite_core.plugins.record import record_of
from lite_core.schedule.probing import Faulty, probe
from lite_tools.examining.plain_data import backend_row, device_rows, operator_row, record_row
from lite_tools.examining.process import key_of

__all__ = ["examine", "main"]

#: Announces a step: its short name, a description, and the backend that it concerns, if any.
Announce = Callable[..., None]


def main() -> None:
    """Examine plugins as the JSON in the last argument asks, print what is found, and end the process."""
    request = json.loads(sys.argv[-1])
    announcements = _Announcements(request["timeout"])
    os.environ.pop("LITE_STRICT_PLUGINS", None)  # failures are reported, not raised
    lite = logging.getLogger("lite")
    if not lite.handlers:  # the report shows what would be logged
        lite.addHandler(logging.NullHandler())
        lite.propagate = False
    entries = {key_of(record_of(entry)): entry for entry in installed_entry_points(ENTRY_POINT_GROUP)}
    # A plugin may use what other plugins provide, and then imports them, except those that have ended a process.
    others = [entry for key, entry in entries.items() if [*key] not in request["fatal"]]
    default_plugins().entry_points = lambda: [_Announced(entry, announcements) for entry in others]
    for key in [key for key in request["plugins"] if tuple(key) in entries]:
        announcements.plugin = key
        announcements.send(plugin=key, found=examine(entries[tuple(key)], request["hooks"], announcements.announce))
    announcements.send(end=True)
    os._exit(0)  # threads and exit handlers of plugins must not delay the end


class _Announcements:
    """Announcements of this process on its standard output; text that plugins print goes to standard error instead."""

    def __init__(self, timeout: float) -> None:
        self.plugin: Sequence[str] = ()
        self._timeout = timeout
        self._results = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)
        self._log = f"{os.environ.pop('LD_DEBUG_OUTPUT', '')}.{os.getpid()}"
        os.environ.pop("LD_DEBUG", None)  # processes that plugins start must not write to the log
        self._latest: tuple[str, ...] = ()

    def announce(self, phase: str, step: str, backend: str = "") -> None:
        """Announce a step with the plugin."""
        self._latest = (phase, step, backend)
        # If the step takes too long, the process that waits shows what this writes.
        faulthandler.dump_traceback_later(self._timeout * 0.9)
        self.send(plugin=self.plugin, phase=phase, step=step, backend=backend, log_size=_size(self._log))

    @contextmanager
    def importing(self, other: Sequence[str]) -> Iterator[None]:
        """Announce that another plugin is imported, because this one uses it; then the present step again."""
        plugin, latest = self.plugin, self._latest
        self.plugin = other
        self.announce("import", "it was imported")
        yield
        self.plugin = plugin
        self.announce(*latest)

    def send(self, **event: Any) -> None:
        """Print one line."""
        print(json.dumps(event, default=str), file=self._results, flush=True)


class _Announced:
    """An entry point whose import is announced."""

    def __init__(self, entry: EntryPoint, announcements: _Announcements) -> None:
        self.name, self.value, self.dist = entry.name, entry.value, entry.dist
        self._entry, self._announcements = entry, announcements

    def load(self) -> Any:
        with self._announcements.importing(key_of(record_of(self))):
            return self._entry.load()


def examine(entry: EntryPoint, hooks: Sequence[str], announce: Announce) -> dict[str, Any]:
    """Import a plugin and try what its hooks provide.

    Args:
        entry: the plugin's entry point.
        hooks: the hooks to examine; ``report`` stands for the reports of backends, and the names of their members.
        announce: called before each step, with its short name, a description, and the name of the backend concerned.

    Returns:
        Plain data: the plugin's record, the rows of its backends, the reports of backends by name, the operators, and
        the names and short descriptions of the commands.
    """
    plugins = PluginManager(lambda: [entry])
    found: dict[str, Any] = {"backends": [], "reports": {}, "operators": [], "commands": {}}
    (record,) = plugins.discover()
    announce("import", "it was imported")
    plugins.records()
    for hook, try_items in _HOOKS.items():
        if hook in hooks:
            announce(hook, f"it was asked for {hook}")
            plugins.ask(hook)
            try:
                try_items(plugins, record, found, announce, hooks)
            except BaseException as error:
                plugins.reject(record, hook, fault_text(error))
    return {"record": record_row(record), **found}


def _try_backends(
    plugins: PluginManager, record: PluginRecord, found: dict[str, Any], announce: Announce, hooks: Sequence[str]
) -> None:
    available, left_out = available_backends(plugins), left_out_backends(plugins)
    found["backends"] += [backend_row(name, "left out", why) for name, why in left_out.items() if name != "null"]
    for name, backend in available.items():
        if any(backend is own for _, own in plugins.ask("lite_backends")):
            _try_backend(plugins, record, found, backend, announce)
            if "report" in hooks:
                record.warnings += _misspelt_members(backend)
            if "report" in hooks and isinstance(backend, ReportsFindings):
                announce("report", f"its backend {name!r} was asked for its report", name)
                found["reports"][name] = _report(backend)


def _try_backend(
    plugins: PluginManager, record: PluginRecord, found: dict[str, Any], backend: Backend, announce: Announce
) -> None:
    announce("probe", f"its backend {backend.name!r} was asked for devices", backend.name)
    devices = probe(backend, f"{record.distribution} {record.version}")
    found["backends"] += device_rows(backend.name, devices)
    if isinstance(devices, Faulty):
        plugins.reject(record, "probe", f"backend {backend.name!r}: {devices.reason}")
    if isinstance(devices, Unavailable):
        return
    announce("supports", f"its backend {backend.name!r} was asked if it supports a node", backend.name)
    try:
        answer: object = backend.supports(_small_graph().nodes[0], devices[0])
        fault = "" if isinstance(answer, (Yes, No)) else f"answered {answer!r}, expected Yes() or No(reason)"
    except BaseException as error:
        fault = f"failed with {fault_text(error)}"
    if fault:
        plugins.reject(record, "supports", f"backend {backend.name!r}: its supports() {fault}")


def _misspelt_members(backend: Backend) -> list[str]:
    from lite_tools.checking import misspelt_members

    return [
        f"backend {backend.name!r} has {member!r}, which is never used: it looks like a misspelt {meant!r}"
        for member, meant in misspelt_members(backend, "backend")
    ]


def _report(backend: ReportsFindings) -> list[str]:
    try:
        return [str(line) for line in backend.report()]
    except BaseException as error:  # a broken backend may fail in report(), too
        return [f"report() failed with {fault_text(error)}"]


def _try_formats(plugins: PluginManager, record: PluginRecord, *_: Any) -> None:
    from lite_core.formats import find_model

    with tempfile.TemporaryDirectory(prefix="lite-") as folder:
        empty, text, inner = Path(folder, "empty"), Path(folder, "text"), Path(folder, "folder")
        empty.touch()
        text.write_text("This is the text of a file that is no model.\n" * 2)
        inner.mkdir()
        for path in (empty, text, inner):
            with suppress(LiteError):  # a failure of sniff() is recorded
                model = find_model(path, plugins)
                record.warnings.append(f"format {model.reader.name!r} recognises {path.name!r}, which is no model")


def _try_operators(plugins: PluginManager, record: PluginRecord, found: dict[str, Any], *_: Any) -> None:
    for _record, definition in plugins.ask("lite_ops"):
        found["operators"].append(operator_row(definition))


def _try_passes(plugins: PluginManager, *_: Any) -> None:
    from lite_core.session import make_ready

    make_ready(_small_graph(), plugins)  # a pass that fails is recorded


def _try_commands(plugins: PluginManager, record: PluginRecord, found: dict[str, Any], *_: Any) -> None:
    import click

    for _record, command in plugins.ask("lite_commands"):
        if not isinstance(command, click.Command):
            plugins.reject(record, "lite_commands", f"{command!r} is not a click.Command", command)
            continue
        try:
            found["commands"][str(command.name)] = command.get_short_help_str(100)
            list(command.params)
        except BaseException as error:
            plugins.reject(record, "lite_commands", f"command {command.name!r}: {fault_text(error)}", command)


_HOOKS: dict[str, Callable[..., None]] = {
    "lite_backends": _try_backends,
    "lite_formats": _try_formats,
    "lite_ops": _try_operators,
    "lite_passes": _try_passes,
    "lite_commands": _try_commands,
}


def _small_graph() -> Graph:
    from lite_core.builder import GraphBuilder

    builder = GraphBuilder("small")
    x = builder.input("x", "float32", [1, 4])
    builder.output(builder.add("Relu", [x]), "y")
    return builder.build()


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0
