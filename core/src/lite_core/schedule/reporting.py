"""The backends of this process, with their devices or the reason why there are none."""

from __future__ import annotations

from typing import NamedTuple

from lite_core.backend import Device, Unavailable
from lite_core.plugins import PluginManager, available_backends, backend_sources, default_plugins, left_out_backends
from lite_core.schedule.probing import probe

__all__ = ["BackendReport", "backends"]


class BackendReport(NamedTuple):
    """A backend, as :func:`backends` found it.

    Attributes:
        name: its name, as ``load(..., backend=...)`` takes it.
        package: the distribution that brings it; empty if several claim the name.
        version: the version of this distribution.
        devices: its devices on this machine, each with a ``label``, a ``name`` and ``details``.
        reason: why there are no devices, and what to do; empty if there are some.
    """

    name: str
    package: str
    version: str
    devices: tuple[Device, ...]
    reason: str = ""

    @property
    def available(self) -> bool:
        """True if a session can use it."""
        return bool(self.devices)

    def __repr__(self) -> str:
        source = f" ({self.package} {self.version})" if self.package else ""
        return f"<{self.name}{source}: {self.reason or ', '.join(device.name for device in self.devices)}>"


def backends(plugins: PluginManager | None = None) -> list[BackendReport]:
    """Return a report about each installed backend, and about each plugin that does not load.

    Drivers are asked in this process, as ``load(backend="auto")`` does. The command `lite backends` asks them in a
    process of its own, which a faulty driver may end.

    Args:
        plugins: the plugins to use instead of the installed ones, for tests.
    """
    plugins = plugins or default_plugins()
    sources = {name: source.rpartition(" ")[::2] for name, source in backend_sources(plugins).items()}
    found = []
    for name, backend in available_backends(plugins).items():
        answer = probe(backend, " ".join(sources[name]), automatic=True)
        if isinstance(answer, Unavailable):
            found.append(BackendReport(name, *sources[name], (), f"{answer.reason}. {answer.remedy}".strip()))
        else:
            found.append(BackendReport(name, *sources[name], tuple(answer)))
    found += [BackendReport(n, *sources.get(n, ("", "")), (), why) for n, why in left_out_backends(plugins).items()]
    broken = [record for record in plugins.records() if record.failed and not record.provides]
    return found + [BackendReport(r.name, r.distribution, r.version, (), f"{r.phase}: {r.error}") for r in broken]
