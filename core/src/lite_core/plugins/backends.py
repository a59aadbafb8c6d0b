"""The backends that plugins provide, and the selection of allowed backends by ``LITE_BACKENDS``."""

from __future__ import annotations

import os
from types import ModuleType

from lite_core.backend import API_VERSION, Backend
from lite_core.builtin import HostBackend, NullBackend
from lite_core.errors import PluginError
from lite_core.plugins.hooks import hookimpl
from lite_core.plugins.manager import PluginManager, default_plugins
from lite_core.version import __version__

__all__ = [
    "allowed_backends",
    "available_backends",
    "backend_sources",
    "installed_backends",
    "left_out_backends",
    "plugins_with",
]


def installed_backends(plugins: PluginManager | None = None) -> dict[str, Backend]:
    """Return every backend by name: the built-in ones, then the plugins'.

    A backend with the name of a built-in one is recorded as a failure and omitted.
    """
    provided = [backend for _, backend in (plugins or default_plugins()).ask("lite_backends")]
    return {backend.name: backend for backend in (HostBackend(), NullBackend(), *provided)}


def backend_sources(plugins: PluginManager | None = None) -> dict[str, str]:
    """Return the distribution and version of each backend by its name: ``"lite-x86 0.1.0"``."""
    provided = (plugins or default_plugins()).ask("lite_backends")
    sources = {backend.name: f"{record.distribution} {record.version}" for record, backend in reversed(provided)}
    return {**sources, **dict.fromkeys(("host", "null"), f"lite-core {__version__}")}


def allowed_backends() -> frozenset[str] | None:
    """Return the backends that ``LITE_BACKENDS=x86,opencl`` allows; None if it is not set: then all are allowed.

    ``host`` is always allowed; if the variable is empty, ``host`` is the only one.
    """
    listed = os.environ.get("LITE_BACKENDS")
    if listed is None:
        return None
    return frozenset({"host", *(name.strip() for name in listed.split(",") if name.strip())})


def available_backends(plugins: PluginManager | None = None) -> dict[str, Backend]:
    """Return the backends that may be used, by name: the installed ones that ``LITE_BACKENDS`` allows."""
    allowed = allowed_backends()
    return {name: b for name, b in installed_backends(plugins).items() if allowed is None or name in allowed}


def left_out_backends(plugins: PluginManager | None = None) -> dict[str, str]:
    """Return the installed backends that must not be used, with the reason and the remedy."""
    plugins = plugins or default_plugins()
    installed, allowed = installed_backends(plugins), allowed_backends()
    listed = f"LITE_BACKENDS={os.environ.get('LITE_BACKENDS')} leaves it out: add it there, or unset the variable"
    left_out = {name: why for name, why in plugins.refused.get("lite_backends", {}).items() if name not in installed}
    return left_out | {name: listed for name in installed if allowed is not None and name not in allowed}


def plugins_with(*backends: Backend) -> PluginManager:
    """Return a plugin manager for tests: it has these backends and the built-in ones, and no installed plugins.

    Example::

        session = lite.load(graph, backend="toy", fallback="never", plugins=plugins_with(backend))

    Raises:
        PluginError: a backend lacks a required member, or its name is taken.
    """
    plugins, given = PluginManager(list), ModuleType("given")
    given.__dict__.update(LITE_API_VERSION=API_VERSION, lite_backends=hookimpl(lambda: backends))
    record = plugins.register(given, "plugins_with")
    installed_backends(plugins)
    if record.failed:
        raise PluginError(f"these backends cannot be used: {record.error}")
    return plugins
