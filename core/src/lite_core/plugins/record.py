"""Records of plugins: identity, state and failures."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from lite_core.plugins.installed import EntryPoint

__all__ = ["PluginFailure", "PluginRecord", "record_of"]

_MOST = 50  # a reader that fails for every file must not fill the memory of a server


class PluginFailure(NamedTuple):
    """One failure of a plugin; what it provides there is left out.

    Attributes:
        phase: ``version`` (before the import or after it), ``import``, ``register``, the name of a hook, ``probe``,
            ``supports`` or ``sniff``.
        error: the reason, in one line.
        traceback: the full traceback, if the failure was an exception.
    """

    phase: str
    error: str
    traceback: str = ""


@dataclass(slots=True)
class PluginRecord:
    """The record of one plugin.

    Attributes:
        name: the entry point's name.
        distribution: the installed distribution it belongs to.
        version: that distribution's version.
        module: the module that the entry point names.
        state: ``discovered``, or ``ready`` after its hooks are registered.
        failures: all that failed, in order.
        provides: names of the items that its hooks returned, by hook.
        warnings: one sentence for each likely mistake that causes no failure, such as a misspelt optional member of a
            backend.
    """

    name: str
    distribution: str
    version: str
    module: str
    state: str = "discovered"
    failures: list[PluginFailure] = field(default_factory=list)
    provides: dict[str, list[str]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        return bool(self.failures)

    @property
    def phase(self) -> str:
        """The phase of the latest failure; without one, the state."""
        return self.failures[-1].phase if self.failures else self.state

    @property
    def error(self) -> str:
        """The reasons of all failures, in one line; empty if there is none."""
        return "; ".join(failure.error for failure in self.failures)

    @property
    def label(self) -> str:
        return f"{self.name!r} ({self.distribution} {self.version})"

    def fail(self, failure: PluginFailure) -> bool:
        """Add a failure. Return False if its error is known, or there are too many to be of use."""
        is_new = len(self.failures) < _MOST and all(failure.error != known.error for known in self.failures)
        self.failures += [failure] * is_new
        return is_new


def record_of(entry: EntryPoint) -> PluginRecord:
    """Return the record of a discovered plugin, from metadata alone."""
    name, version = (entry.dist.name, entry.dist.version) if entry.dist else ("unknown", "-")
    return PluginRecord(entry.name, name, version, entry.value)
