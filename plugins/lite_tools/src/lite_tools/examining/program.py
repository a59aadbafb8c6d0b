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
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
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
        hooks: the hooks to examine; ``report`` stands for the reports of backends, and the names of their members,
            ``validate`` for what `lite plugins validate` looks at besides.
        announce: called before each step, with its short name, a description, and the name of the backend concerned.

    Returns:
        Plain data: the plugin's record, the rows of its backends, the reports of backends by name, the operators, the
        names and short descriptions of the commands, and ``facts``: the ``api_version`` that it states, the ``hooks``
        that it implements, and ``seconds`` by step: ``import``, and each hook. With ``validate``, ``validation``: the
        ``effects`` of loading it, and the problems of its ``hooks`` and ``objects``.
    """
    watch = _watch if "validate" in hooks else _without_watching
    effects: list[Any] = []
    timed = _Timed(entry)
    plugins = PluginManager(lambda: [timed])
    found: dict[str, Any] = {"backends": [], "reports": {}, "operators": [], "commands": {}, "facts": timed.facts}
    if "validate" in hooks:
        found["validation"] = {"effects": effects, "hooks": [], "objects": []}
    (record,) = plugins.discover()
    announce("import", "it was imported")
    with watch("import", effects):
        plugins.records()
    for hook, try_items in _HOOKS.items():
        if hook in hooks:
            announce(hook, f"it was asked for {hook}")
            start = time.perf_counter()
            with watch(hook, effects):
                plugins.ask(hook)
            if hook in timed.facts["hooks"]:
                timed.facts["seconds"][hook] = time.perf_counter() - start
            if "validate" in hooks:
                announce("validate", f"what {hook} returns was inspected")
                found["validation"]["objects"] += _object_problems(plugins, hook)
            try:
                try_items(plugins, record, found, announce, hooks)
            except BaseException as error:
                plugins.reject(record, hook, fault_text(error), cause=error)
    if "validate" in hooks and timed.plugin is not None:
        found["validation"]["hooks"] += _hook_problems(timed.plugin)
    return {"record": record_row(record), **found}


@contextmanager
def _without_watching(step: str, effects: list[Any]) -> Iterator[None]:
    yield


def _watch(step: str, effects: list[Any]) -> AbstractContextManager[None]:
    from lite_tools.examining.watching import watched

    return watched(step, effects)


def _object_problems(plugins: PluginManager, hook: str) -> list[tuple[str, str, str]]:
    from lite_tools.examining.inspection import object_problems

    return object_problems(plugins, hook)


def _hook_problems(plugin: object) -> list[tuple[str, str, str]]:
    from lite_tools.examining.inspection import hook_problems

    return hook_problems(plugin)


class _Timed:
    """An entry point whose import is timed, and whose plugin is described."""

    def __init__(self, entry: EntryPoint) -> None:
        self.name, self.value, self.dist = entry.name, entry.value, entry.dist
        self._entry = entry
        self.plugin: Any = None
        self.facts: dict[str, Any] = {"api_version": None, "hooks": [], "seconds": {}}

    def load(self) -> Any:
        start = time.perf_counter()
        try:
            self.plugin = plugin = self._entry.load()
        finally:
            self.facts["seconds"]["import"] = time.perf_counter() - start
        with suppress(Exception):  # of a plugin whose attributes raise
            self.facts["hooks"] = [hook for hook in _HOOKS if hasattr(getattr(plugin, hook, None), "lite_impl")]
            self.facts["api_version"] = getattr(plugin, "LITE_API_VERSION", None)
        return plugin


class _Probed:
    """A backend that keeps the exception that its ``probe`` raised."""

    def __init__(self, backend: Backend) -> None:
        self.name, self._backend = backend.name, backend
        self.error: BaseException | None = None

    def probe(self) -> Any:
        try:
            return self._backend.probe()
        except BaseException as error:
            self.error = error
            raise


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
    probed: Any = _Probed(backend)
    devices = probe(probed, f"{record.distribution} {record.version}")
    found["backends"] += device_rows(backend.name, devices)
    if isinstance(devices, Faulty):
        plugins.reject(record, "probe", f"backend {backend.name!r}: {devices.reason}", cause=probed.error)
    if isinstance(devices, Unavailable):
        return
    announce("supports", f"its backend {backend.name!r} was asked if it supports a node", backend.name)
    who, cause = f"backend {backend.name!r}: its supports()", None
    try:
        answer: object = backend.supports(_small_graph().nodes[0], devices[0])
        fault = "" if isinstance(answer, (Yes, No)) else f"answered {answer!r}, expected Yes() or No(reason)"
    except BaseException as error:
        fault, cause = f"failed with {fault_text(error)}", error
    if fault:
        plugins.reject(record, "supports", f"{who} {fault}", cause=cause)


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
            problem = f"command {command.name!r}: {fault_text(error)}"
            plugins.reject(record, "lite_commands", problem, command, error)


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
