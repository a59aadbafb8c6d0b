"""Finding, loading and asking plugins, each isolated from the others.

A plugin is a module named by an entry point of the group ``lite.plugins``. It states the contract it was
written for and implements hooks::

    from lite_core.plugins import hookimpl

    LITE_API_VERSION = 1

    @hookimpl
    def lite_backends():
        return [MyBackend()]

Discovery reads metadata and imports nothing. A plugin that fails at any stage is recorded with its
traceback, shown by ``lite backends`` and ``lite doctor``, and hurts nobody else.

From outside: ``LITE_STRICT_PLUGINS=1`` raises instead, ``LITE_TRACE_PLUGINS=1`` shows every step, and
``LITE_BACKENDS=x86,opencl`` names the backends that may be used.
"""

from lite_core.plugins.backends import (
    allowed_backends,
    available_backends,
    backend_sources,
    installed_backends,
    left_out_backends,
    plugins_with,
)
from lite_core.plugins.hooks import ENTRY_POINT_GROUP, HookSpecs, hookimpl, hookspec
from lite_core.plugins.manager import PluginManager, default_plugins
from lite_core.plugins.record import PluginRecord

__all__ = [
    "ENTRY_POINT_GROUP",
    "HookSpecs",
    "PluginManager",
    "PluginRecord",
    "allowed_backends",
    "available_backends",
    "backend_sources",
    "default_plugins",
    "hookimpl",
    "hookspec",
    "installed_backends",
    "left_out_backends",
    "plugins_with",
]
