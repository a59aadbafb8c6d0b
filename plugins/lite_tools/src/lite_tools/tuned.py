"""The optional part of a backend that measures its machine, for `lite tune` and conversions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from lite_core.backend import Unavailable
from lite_core.plugins import PluginManager, available_backends, backend_sources
from lite_core.schedule.probing import probe

__all__ = ["HasTuning", "backends_with_tuning", "measure_missing"]


@runtime_checkable
class HasTuning(Protocol):
    """Optional part of a backend: numbers of this machine that its choices between kernels and plans depend on.

    ``tuning`` returns the numbers in use by name, with their origin as ``source``; ``tuning_lines`` describes them, one
    a line. ``measure_tuning`` measures and stores them, in a few seconds at most; unless ``again``, only if they were
    never measured. ``forget_tuning`` removes what is stored, and returns True if there was something. A session keeps
    the numbers that it began with.
    """

    def tuning(self) -> Mapping[str, Any]: ...

    def tuning_lines(self) -> Sequence[str]: ...

    def measure_tuning(self, *, again: bool = True) -> None: ...

    def forget_tuning(self) -> bool: ...


def backends_with_tuning(plugins: PluginManager) -> tuple[dict[str, HasTuning], dict[str, str]]:
    """Return the backends that measure this machine, by name, and the reasons why others of them cannot."""
    found: dict[str, HasTuning] = {}
    absent: dict[str, str] = {}
    sources = backend_sources(plugins)
    for name, backend in available_backends(plugins).items():
        if isinstance(backend, HasTuning):
            answer = probe(backend, sources[name], automatic=True)
            if isinstance(answer, Unavailable):
                absent[name] = f"{answer.reason}. {answer.remedy}"
            else:
                found[name] = backend
    return found, absent


def measure_missing(targets: Sequence[str], plugins: PluginManager) -> None:
    """Measure this machine where it was never measured.

    Args:
        targets: names of the backends that will be used, or ``auto`` for all; other backends are not asked.
        plugins: the plugins.
    """
    names = [name for name, b in available_backends(plugins).items() if isinstance(b, HasTuning)]
    if any(name in targets or "auto" in targets for name in names):
        for name, backend in backends_with_tuning(plugins)[0].items():
            if name in targets or "auto" in targets:
                backend.measure_tuning(again=False)
