"""A plugin made in a test, that gives the backends it was made with."""

from __future__ import annotations

from typing import Any

from lite_core.plugins import PluginHost, hookimpl


class Plugin:
    """A plugin that gives the backends it was made with."""

    LITE_API_VERSION = 1

    def __init__(self, *backends: Any) -> None:
        self._backends = backends

    @hookimpl
    def lite_backends(self) -> list[Any]:
        return list(self._backends)


def host_with(*backends: Any) -> PluginHost:
    host = PluginHost(list)
    host.register(Plugin(*backends), "test")
    return host
