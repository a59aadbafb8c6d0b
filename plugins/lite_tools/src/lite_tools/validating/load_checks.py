"""Checks of loading a package's plugins, from what a separate process has found out about them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal

from lite_core.backend import API_VERSION
from lite_tools.examining.plugins import ExaminedPlugin
from lite_tools.examining.remedies import missing_requirement
from lite_tools.validating.findings import Finding

__all__ = ["load_findings"]

#: The level of each effect of loading, and what to do about it.
_EFFECTS: dict[str, tuple[Literal["error", "warning"], str]] = {
    "imports": ("warning", "import it in the function that needs it: every command of Lite loads the plugin"),
    "output": ("error", "log with logging.getLogger() instead: it breaks the JSON that commands print"),
    "threads": ("warning", "start them when a session needs them: a fork while they run leaves their locks closed"),
    "environment": ("warning", "other plugins and the program see it: pass settings to the library itself"),
    "folder": ("error", "leave it: relative paths of the program would change"),
    "signals": ("warning", "leave them to the program"),
    "numpy": ("warning", "use numpy.errstate() where it is needed"),
    "path": ("warning", "import from the package itself"),
    "logging": ("warning", "leave logging.basicConfig() to the program"),
}
_AUTHORS = {
    "version": "correct LITE_API_VERSION, or the requirement of lite-core",
    "import": "correct the module",
    "register": "correct the hooks: their names and parameters are those of lite_core/plugins/hooks.py",
    "probe": "return Unavailable(reason, remedy) where something is missing; never raise",
    "supports": "return Yes() or No(reason); never raise",
    "sniff": "return True or False for every file; never raise",
}


def load_findings(plugins: Iterable[ExaminedPlugin]) -> Iterator[Finding]:
    """Check how a package's plugins load: failures, effects on the process, hooks, and what they provide."""
    for plugin in plugins:
        yield from _failures(plugin)
        yield from _api(plugin)
        found: dict[str, Any] = plugin.validation or {"effects": [], "hooks": [], "objects": []}
        for kind, step, text in found["effects"]:
            level, remedy = _EFFECTS[kind]
            when = "when it is imported" if step == "import" else f"when {step} is called"
            yield Finding(level, "imports", f"plugin {plugin.record.name!r}", f"it {text} {when}", remedy)
        for level, name, text in found["hooks"]:
            problem, _, remedy = text.partition(": ")
            yield Finding(level, "hooks", name, problem, remedy)
        for where, text, remedy in found["objects"]:
            yield Finding("error", "objects", where, text, remedy)
        for warning in plugin.record.warnings:
            yield Finding("warning", "objects", f"plugin {plugin.record.name!r}", warning, "correct it")


def _failures(plugin: ExaminedPlugin) -> Iterator[Finding]:
    record = plugin.record
    unknown = {name for level, name, _ in plugin.validation.get("hooks", ()) if level == "error"}
    for failure in record.failures:
        if failure.phase == "register" and any(repr(name) in failure.error for name in unknown):
            continue  # the check of hooks says it more clearly
        check = {"version": "api", "import": "load", "register": "hooks"}.get(failure.phase, "objects")
        remedy = missing_requirement(record, failure) or _AUTHORS.get(failure.phase, "correct what the hook returns")
        where = f"plugin {record.name!r}, {failure.phase}"
        yield Finding("error", check, where, failure.error, remedy, failure.traceback)


def _api(plugin: ExaminedPlugin) -> Iterator[Finding]:
    version = plugin.facts.get("api_version")
    where = f"plugin {plugin.record.name!r}"
    if isinstance(version, list) and len(version) == 2 and isinstance(version[1], int) and version[1] > API_VERSION:
        text = f"LITE_API_VERSION says that it works with version {version[1]}; the newest one is {API_VERSION}"
        yield Finding("warning", "api", where, text, f"LITE_API_VERSION = {API_VERSION}")
    if plugin.facts and not plugin.facts["hooks"] and not plugin.record.failed:
        text = "it implements no hook, so it provides nothing"
        yield Finding("error", "hooks", where, text, "mark its hooks with @hookimpl")
