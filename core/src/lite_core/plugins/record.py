"""Records of plugins: identity, state and failures."""

from __future__ import annotations

from dataclasses import dataclass, field

from lite_core.plugins.installed import EntryPoint

__all__ = ["PluginRecord", "record_of"]


@dataclass(slots=True)
class PluginRecord:
    """The record of one plugin.

    Attributes:
        name: the entry point's name.
        distribution: the installed distribution it belongs to.
        version: that distribution's version.
        module: the module that the entry point names.
        phase: ``discovered``, ``ready``, or the latest phase that failed: ``version`` (before the import or after it),
            ``import``, ``register``, the name of a hook, ``probe`` or ``sniff``.
        error: the reasons of the failures, in one line; empty if there is none.
        traceback: the full traceback, if the failure was an exception.
        provides: names of the items that its hooks returned, by hook.
        warnings: one sentence for each likely mistake that causes no failure, such as a misspelt optional member of a
            backend.
    """

    name: str
    distribution: str
    version: str
    module: str
    phase: str = "discovered"
    error: str = ""
    traceback: str = ""
    provides: dict[str, list[str]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        return bool(self.error)

    @property
    def label(self) -> str:
        return f"{self.name!r} ({self.distribution} {self.version})"


def record_of(entry: EntryPoint) -> PluginRecord:
    """Return the record of a discovered plugin, from metadata alone."""
    distribution = entry.dist
    name = distribution.name if distribution else "unknown"
    return PluginRecord(entry.name, name, distribution.version if distribution else "-", entry.value)
