"""What is known about one plugin."""

from __future__ import annotations

from dataclasses import dataclass, field

from lite_core.plugins.installed import EntryPoint

__all__ = ["PluginRecord", "record_of"]


@dataclass(slots=True)
class PluginRecord:
    """What is known about one plugin.

    Attributes:
        name: the entry point's name.
        distribution: the installed distribution it belongs to.
        version: that distribution's version.
        module: the module the entry point names.
        stage: ``discovered``, ``ready``, or the stage that failed: ``duplicate``, ``version`` (before the
            import or after it), ``import``, ``register``, or the name of a hook.
        error: why it failed, one line; empty while all is well.
        traceback: the full traceback where there is one.
        provides: what its hooks gave, by hook.
        warnings: what looks wrong and hurts nobody, a sentence each, such as a misspelt optional member of a backend.
    """

    name: str
    distribution: str
    version: str
    module: str
    stage: str = "discovered"
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
    """The record of a plugin that was found and nothing else, from metadata alone."""
    distribution = entry.dist
    name = distribution.name if distribution else "unknown"
    return PluginRecord(entry.name, name, distribution.version if distribution else "-", entry.value)
