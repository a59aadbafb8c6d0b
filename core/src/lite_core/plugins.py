"""Finding, loading and asking plugins, each isolated from the others.

A plugin is a module named by an entry point of the group ``lite.plugins``. It states the contract it was
written for and implements hooks::

    from lite_core.plugins import hookimpl

    LITE_API_VERSION = 1

    @hookimpl
    def lite_backends():
        return [MyBackend()]

Discovery reads metadata and imports nothing. A plugin that fails at any stage is recorded with its
traceback, shown by ``lite backends`` and ``lite doctor``, and hurts nobody else;
``LITE_STRICT_PLUGINS=1`` raises instead.
"""

from __future__ import annotations

import logging
import os
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any

import pluggy

from lite_core import ops
from lite_core.backend import API_VERSION, Backend
from lite_core.errors import PluginError
from lite_core.ops import OpDef

__all__ = [
    "ENTRY_POINT_GROUP",
    "HookSpecs",
    "PluginHost",
    "PluginRecord",
    "available_backends",
    "default_host",
    "hookimpl",
    "hookspec",
]

logger = logging.getLogger("lite.plugins")

ENTRY_POINT_GROUP = "lite.plugins"

# What each item that a hook gives must have; see the contracts that HookSpecs names.
_CONTRACTS = {
    "lite_backends": ("name", "probe", "supports", "compile"),
    "lite_formats": ("name", "suffixes", "sniff", "read"),
    "lite_ops": ("name", "domain", "reference", "infer"),
    "lite_passes": ("name", "__call__"),
    "lite_commands": ("name", "callback"),
}

hookspec = pluggy.HookspecMarker("lite")
#: Marks a plugin's implementation of a hook.
hookimpl = pluggy.HookimplMarker("lite")


class HookSpecs:
    """The hooks a plugin may implement; each is called once, when it is first needed."""

    @hookspec
    def lite_backends(self) -> Iterable[Backend]:  # type: ignore[empty-body]
        """(optional) Backends, see :mod:`lite_core.backend`."""

    @hookspec
    def lite_formats(self) -> Iterable[Any]:  # type: ignore[empty-body]
        """(optional) Readers and writers of model files, see :mod:`lite_core.formats`."""

    @hookspec
    def lite_ops(self) -> Iterable[Any]:  # type: ignore[empty-body]
        """(optional) Operators (:func:`lite_core.ops.define`) in a domain of the plugin's own."""

    @hookspec
    def lite_passes(self) -> Iterable[Any]:  # type: ignore[empty-body]
        """(optional) Graph passes that run after the core's own."""

    @hookspec
    def lite_commands(self) -> Iterable[Any]:  # type: ignore[empty-body]
        """(optional) click commands for the ``lite`` command line."""


@dataclass(slots=True)
class PluginRecord:
    """What is known about one plugin.

    Attributes:
        name: the entry point's name.
        distribution: the installed distribution it belongs to.
        version: that distribution's version.
        module: the module the entry point names.
        stage: ``discovered``, ``ready``, or the stage that failed: ``duplicate``, ``import``,
            ``version``, ``register``, or the name of a hook.
        error: why it failed, one line; empty while all is well.
        traceback: the full traceback where there is one.
        provides: what its hooks gave, by hook.
    """

    name: str
    distribution: str
    version: str
    module: str
    stage: str = "discovered"
    error: str = ""
    traceback: str = ""
    provides: dict[str, list[str]] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        return bool(self.error)

    @property
    def label(self) -> str:
        return f"{self.name!r} ({self.distribution} {self.version})"


class PluginHost:
    """Loads plugins from entry points and asks their hooks, isolating each plugin.

    Args:
        entry_points: where plugins come from; the environment's ``lite.plugins`` group by default.
    """

    def __init__(self, entry_points: Callable[[], Iterable[metadata.EntryPoint]] | None = None) -> None:
        self._entry_points = entry_points or (lambda: metadata.entry_points(group=ENTRY_POINT_GROUP))
        self._lock = threading.RLock()
        self._records: list[PluginRecord] | None = None
        self._pending: list[tuple[PluginRecord, metadata.EntryPoint]] = []
        self._manager = pluggy.PluginManager("lite")
        self._manager.add_hookspecs(HookSpecs)
        self._loaded: list[tuple[PluginRecord, object]] = []
        self._answers: dict[str, list[tuple[PluginRecord, Any]]] = {}
        self._loading = False

    def discover(self) -> list[PluginRecord]:
        """Every installed plugin, from metadata alone; nothing is imported."""
        with self._lock:
            if self._records is None:
                found = [(_record(entry), entry) for entry in self._entry_points()]
                found.sort(key=lambda pair: (pair[0].distribution, pair[0].name))
                owners: dict[str, PluginRecord] = {}
                duplicates: list[PluginRecord] = []
                self._records = []
                for record, entry in found:
                    owner = owners.setdefault(record.name, record)
                    if owner is record:
                        self._pending.append((record, entry))
                    elif (owner.module, owner.distribution) == (record.module, record.distribution):
                        continue  # one distribution seen twice on sys.path
                    else:
                        duplicates.append(record)
                    self._records.append(record)
                for record in duplicates:
                    taken = f"the name is taken by {owners[record.name].label}, uninstall one"
                    self._fail(record, "duplicate", taken)
            return self._records

    def records(self) -> list[PluginRecord]:
        """Every installed plugin after loading all that can be loaded."""
        self._load()
        return self.discover()

    def ask(self, hook: str) -> list[tuple[PluginRecord, Any]]:
        """What the plugins give for a hook, each item with the plugin it comes from.

        An item that lacks a part of its contract is recorded and left out.
        """
        with self._lock:
            if hook not in self._answers:
                self._load()
                answers = [(r, item) for r, plugin in self._loaded for item in self._ask_one(hook, r, plugin)]
                if self._loading:
                    return answers  # a plugin asks while plugins are being loaded: not the whole answer yet
                self._answers[hook] = answers
            return list(self._answers[hook])

    def register(self, plugin: object, name: str, distribution: str = "this process") -> PluginRecord:
        """Add a plugin by hand: a module or object with hooks, for tests and notebooks."""
        with self._lock:
            self._load()
            record = PluginRecord(name, distribution, "-", getattr(plugin, "__name__", type(plugin).__name__))
            self.discover().append(record)
            self._register(record, plugin)
            self._answers.clear()
            self._add_operators()
            return record

    def reject(self, record: PluginRecord, stage: str, error: str, item: object = None) -> None:
        """Record that something a plugin gave cannot be used; ``item`` is not given out again."""
        with self._lock:
            if item is not None and stage in self._answers:
                self._answers[stage] = [pair for pair in self._answers[stage] if pair[1] is not item]
            self._fail(record, stage, error)

    # **** loading ****

    def _load(self) -> None:
        with self._lock:
            self.discover()
            if self._loading or not self._pending:
                return
            self._loading = True
            try:
                while self._pending:
                    record, entry = self._pending.pop(0)
                    with self._isolated(record, "import"):
                        self._register(record, entry.load())
            finally:
                self._loading = False
            self._add_operators()

    @contextmanager
    def _isolated(self, record: PluginRecord, stage: str) -> Iterator[None]:
        """Whatever a plugin raises here, SystemExit included, is recorded and hurts nobody else."""
        try:
            yield
        except (KeyboardInterrupt, PluginError):
            raise
        except BaseException as error:
            self._fail(record, stage, f"{type(error).__name__}: {error}", error)

    def _add_operators(self) -> None:
        """Extend the opset by what plugins declare; each operator needs a domain of the plugin's own."""
        for record, definition in self.ask("lite_ops"):
            if not isinstance(definition, OpDef):
                self._fail(record, "lite_ops", f"{definition!r} is not an OpDef")
            elif definition.domain in ("", "lite"):
                self._fail(record, "lite_ops", f"{definition.qualified_name} is in a domain that is Lite's own")
            elif ops.find(definition.name, definition.domain) not in (None, definition):
                self._fail(record, "lite_ops", f"operator {definition.qualified_name} is already defined")
            else:
                ops.add(definition)

    def _register(self, record: PluginRecord, plugin: object) -> None:
        with self._isolated(record, "version"):
            version = getattr(plugin, "LITE_API_VERSION", None)
            if version != API_VERSION:
                stated = "states no LITE_API_VERSION" if version is None else f"is written for API {version!r}"
                self._fail(
                    record,
                    "version",
                    f"{stated}, this lite-core speaks API {API_VERSION}; "
                    f"install versions of lite-core and {record.distribution} that fit",
                )
        if record.failed:
            return
        with self._isolated(record, "register"):
            try:
                self._manager.register(plugin, name=f"{record.distribution}:{record.name}")
                self._manager.check_pending()
            except BaseException:
                if self._manager.is_registered(plugin):
                    self._manager.unregister(plugin)
                raise
            record.stage = "ready"
            self._loaded.append((record, plugin))
            logger.debug("plugin %s is ready", record.label)

    def _ask_one(self, hook: str, record: PluginRecord, plugin: object) -> list[Any]:
        others = [p for _, p in self._loaded if p is not plugin]
        accepted: list[Any] = []
        with self._isolated(record, hook):
            for result in self._manager.subset_hook_caller(hook, remove_plugins=others)():
                for item in result:
                    missing = [m for m in _CONTRACTS[hook] if not hasattr(item, m)]
                    if missing:
                        self._fail(record, hook, f"{item!r} lacks {', '.join(missing)}")
                    elif not isinstance(item.name, str):
                        self._fail(record, hook, f"the name of {item!r} is not a string")
                    else:
                        accepted.append(item)
        if accepted:
            record.provides[hook] = [item.name for item in accepted]
        return accepted

    def _fail(self, record: PluginRecord, stage: str, error: str, cause: BaseException | None = None) -> None:
        record.stage, record.error = stage, error
        if cause is not None:
            record.traceback = "".join(traceback.format_exception(type(cause), cause, cause.__traceback__))
        message = f"plugin {record.label} failed at {stage}, what it gives there is left out: {error}"
        if os.environ.get("LITE_STRICT_PLUGINS") == "1":
            raise PluginError(message) from cause
        logger.warning("%s (`lite doctor` shows the details)", message)


def _record(entry: metadata.EntryPoint) -> PluginRecord:
    distribution = entry.dist
    name = distribution.name if distribution else "unknown"
    return PluginRecord(entry.name, name, distribution.version if distribution else "-", entry.value)


_default = PluginHost()


def default_host() -> PluginHost:
    """The process's plugins."""
    return _default


def available_backends(host: PluginHost | None = None) -> dict[str, Backend]:
    """Every usable backend by name: the built-in ones, then the plugins'.

    A backend whose name is taken is recorded and left out.
    """
    from lite_core.builtin import HostBackend, NullBackend

    host = host or default_host()
    backends: dict[str, Backend] = {}
    owners: dict[str, str] = {}
    for builtin in (HostBackend(), NullBackend()):
        backends[builtin.name] = builtin
        owners[builtin.name] = "lite-core itself"
    for record, backend in host.ask("lite_backends"):
        if backend.name in backends:
            taken = f"the backend name {backend.name!r} is taken by {owners[backend.name]}"
            host.reject(record, "lite_backends", taken, backend)
        else:
            backends[backend.name] = backend
            owners[backend.name] = record.label
    return backends
