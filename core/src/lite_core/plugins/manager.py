"""The plugin manager: loads plugins from entry points and calls their hooks, each isolated from the others."""

from __future__ import annotations

import logging
import os
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import pluggy

from lite_core import ops
from lite_core.errors import PluginError
from lite_core.forking import new_lock, undivided
from lite_core.plugins.claims import refused_claims
from lite_core.plugins.contracts import checked_items, fault_text
from lite_core.plugins.hooks import ENTRY_POINT_GROUP, HookSpecs
from lite_core.plugins.installed import EntryPoint, installed_entry_points
from lite_core.plugins.record import PluginFailure, PluginRecord, record_of
from lite_core.plugins.versions import api_problem, requirement_problem

__all__ = ["PluginManager", "default_plugins"]

# LITE_TRACE_PLUGINS=1 enables all messages, see lite_core.log.
logger = logging.getLogger("lite.plugins")

#: Hooks whose items need different names, and what the items are. lite-tools settles the names of commands.
_EXCLUSIVE = {"lite_backends": "backend", "lite_formats": "format", "lite_ops": "operator"}


class _StrictError(PluginError):
    """A failure of a plugin while ``LITE_STRICT_PLUGINS=1`` is set; a plugin cannot raise it itself."""


class PluginManager:
    """Loader of plugins, which calls their hooks and isolates the plugins from each other. Thread-safe.

    Args:
        entry_points: returns the entry points of plugins; by default the installed ones of the group ``lite.plugins``.
            The attribute of this name can be replaced until plugins are discovered.
    """

    def __init__(self, entry_points: Callable[[], Iterable[EntryPoint]] | None = None) -> None:
        self.entry_points = entry_points or (lambda: installed_entry_points(ENTRY_POINT_GROUP))
        self._lock = new_lock()
        self._records: list[PluginRecord] | None = None
        self._pending: list[tuple[PluginRecord, EntryPoint]] = []
        self._loaded: list[tuple[PluginRecord, Any]] = []
        self._answers: dict[str, list[tuple[PluginRecord, Any]]] = {}
        self._loading = False
        #: By hook, the names that no plugin provides because several packages claim them, with the reason.
        self.refused: dict[str, dict[str, str]] = {}

    def discover(self) -> list[PluginRecord]:
        """Return the record of every installed plugin, from metadata alone; nothing is imported."""
        with undivided(), self._lock:
            if self._records is None:
                start = perf_counter()
                found = [(record_of(entry), entry) for entry in self.entry_points()]
                # A distribution that occurs twice on sys.path counts once.
                unique = {(r.distribution, r.name, r.module): (r, entry) for r, entry in reversed(found)}
                self._pending = [unique[key] for key in sorted(unique)]
                self._records = [record for record, _ in self._pending]
                labels = ", ".join(record.label for record in self._records)
                logger.debug("%d plugins found in %s: %s", len(self._records), _elapsed(start), labels)
            return self._records

    def records(self) -> list[PluginRecord]:
        """Load all plugins, and return the record of every installed plugin."""
        self._load()
        return self.discover()

    def ask(self, hook: str) -> list[tuple[PluginRecord, Any]]:
        """Return the items that the plugins provide for a hook, each with its plugin's record.

        An item that lacks a required member, or whose name another package claims, too, is recorded as a failure and
        omitted; see :attr:`refused`.
        """
        with undivided(), self._lock:
            if hook not in self._answers:
                self._load()
                answers = [(r, item) for r, hooks in self._loaded for item in self._ask_one(hook, r, hooks)]
                if self._loading:
                    return answers  # called by a plugin during loading: the result is incomplete and not cached
                self._answers[hook] = self._without_refused(hook, answers) if hook in _EXCLUSIVE else answers
            return list(self._answers[hook])

    def _without_refused(self, hook: str, answers: list[tuple[PluginRecord, Any]]) -> list[tuple[PluginRecord, Any]]:
        claims = [(record, item.qualified_name if hook == "lite_ops" else item.name) for record, item in answers]
        refused = refused_claims(claims)
        self.refused[hook] = {claims[position][1]: reason for position, (reason, _) in refused.items()}
        for position, (reason, is_fault) in refused.items():
            record, name = claims[position]
            if is_fault:
                self._fail(record, hook, f"{_EXCLUSIVE[hook]} {name!r}: {reason}")
            else:
                record.warnings.append(f"{_EXCLUSIVE[hook]} {name!r}: {reason}")
        return [answer for position, answer in enumerate(answers) if position not in refused]

    def suspects(self, hook: str) -> list[tuple[str, str]]:
        """Return the failures because of which a hook may lack an item: each as a sentence, with its distribution."""
        found = [
            (r, f) for r in self.records() for f in r.failures if f.phase in ("version", "import", "register", hook)
        ]
        return [(f"plugin {r.label} may have it, but failed: {f.error}", r.distribution) for r, f in found]

    def register(self, plugin: object, name: str, distribution: str = "this process") -> PluginRecord:
        """Add a plugin that is not installed: a module or object with hooks, for tests and notebooks."""
        with undivided(), self._lock:
            self._load()
            record = PluginRecord(name, distribution, "-", getattr(plugin, "__name__", type(plugin).__name__))
            self.discover().append(record)
            self._register(record, plugin)
            self._answers.clear()
            self._add_operators()
            return record

    def reject(self, record: PluginRecord, phase: str, error: str, item: Any = None, cause: Any = None) -> None:
        """Record that an item of a plugin cannot be used; ``ask`` no longer returns ``item``.

        Args:
            record: the plugin.
            phase: see :class:`PluginFailure`, as for ``error``.
            error: the reason.
            item: an item of the hook ``phase``.
            cause: the exception, if the reason is one.
        """
        with undivided(), self._lock:
            if item is not None and phase in self._answers:
                self._answers[phase] = [pair for pair in self._answers[phase] if pair[1] is not item]
            self._fail(record, phase, error, cause)

    # **** loading ****

    def _load(self) -> None:
        with undivided(), self._lock:
            self.discover()
            if self._loading or not self._pending:
                return
            self._loading = True
            try:
                while self._pending:
                    self._import(*self._pending.pop(0))
            finally:
                self._loading = False
            self._add_operators()

    def _import(self, record: PluginRecord, entry: EntryPoint) -> None:
        if not self._fits(record, lambda: requirement_problem((entry.dist and entry.dist.requires) or ())):
            return
        with self._isolated(record, "import"):
            # Logged before and after: if importing a plugin ends the process, its name is in the last line.
            logger.debug("plugin %s: importing %s", record.label, record.module)
            start = perf_counter()
            plugin = entry.load()
            logger.debug("plugin %s: %s imported in %s", record.label, record.module, _elapsed(start))
            self._register(record, plugin)

    def _fits(self, record: PluginRecord, find_problem: Callable[[], str]) -> bool:
        """Return True if a plugin is written for this lite-core; else its failure is recorded."""
        with self._isolated(record, "version"):
            if problem := find_problem():
                self._fail(record, "version", problem)
        return not record.failed

    @contextmanager
    def _isolated(self, record: PluginRecord, phase: str) -> Iterator[None]:
        """Record any exception of a plugin, including SystemExit, instead of raising it."""
        try:
            yield
        except _StrictError:
            raise
        except BaseException as error:
            self._fail(record, phase, fault_text(error), error)

    def _add_operators(self) -> None:
        """Add the operators of plugins to the opset."""
        for record, definition in self.ask("lite_ops"):
            try:
                ops.add(definition, (record.distribution, record.version))
            except ValueError as error:
                self.reject(record, "lite_ops", str(error), definition)
        ops.left_out.update(self.refused.get("lite_ops", {}))
        ops.suspects[:] = self.suspects("lite_ops")

    def _register(self, record: PluginRecord, plugin: object) -> None:
        if not self._fits(record, lambda: api_problem(getattr(plugin, "LITE_API_VERSION", None))):
            return
        with self._isolated(record, "register"):
            manager = pluggy.PluginManager("lite")  # for each plugin one: a faulty plugin does not remain in it
            manager.add_hookspecs(HookSpecs)
            manager.register(plugin)
            manager.check_pending()
            record.state = "ready"
            self._loaded.append((record, manager.hook))

    def _ask_one(self, hook: str, record: PluginRecord, hooks: Any) -> list[Any]:
        if not (implementations := getattr(hooks, hook).get_hookimpls()):
            return []
        accepted: list[Any] = []
        logger.debug("plugin %s: asked for %s", record.label, hook)
        start = perf_counter()
        with self._isolated(record, hook):
            # Called without pluggy, which drops a result None: the author has forgotten the ``return``.
            checked = checked_items(hook, implementations[0].function())
            accepted += [item for item, problem in checked if not problem]
            for problem in [problem for _, problem in checked if problem]:
                self._fail(record, hook, problem)
        if accepted:
            record.provides[hook] = [item.name for item in accepted]
        given = ", ".join(record.provides.get(hook, ())) or "nothing"
        logger.debug("plugin %s: %s gave %s in %s", record.label, hook, given, _elapsed(start))
        return accepted

    def _fail(self, record: PluginRecord, phase: str, error: str, cause: BaseException | None = None) -> None:
        trace = cause and "".join(traceback.format_exception(type(cause), cause, cause.__traceback__))
        is_new = record.fail(PluginFailure(phase, error, trace or ""))
        what = f"plugin {record.label} failed at {phase}"
        if os.environ.get("LITE_STRICT_PLUGINS") == "1":
            raise _StrictError(f"{what}: {error}") from cause
        if is_new:
            logger.warning("%s, its contribution there is ignored: %s (`lite plugins` shows what to do)", what, error)


def _elapsed(start: float) -> str:
    return f"{(perf_counter() - start) * 1e3:.1f} ms"


_default = PluginManager()


def default_plugins() -> PluginManager:
    """Return the plugin manager of this process."""
    return _default
