"""Importing the plugins of this process, for the cases of their operators, passes and formats.

An import may end the process, for example if a driver is broken. A run therefore lets a worker process import the
plugins first, which may die without ending the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lite_core.plugins import PluginManager, default_plugins

__all__ = ["imported_after", "imported_plugins"]

_conditions: list[Callable[[], object]] = []


@contextmanager
def imported_after(condition: Callable[[], object]) -> Iterator[None]:
    """Call a function before plugins are imported in this context; if it raises, they are not imported."""
    _conditions.append(condition)
    try:
        yield
    finally:
        _conditions.pop()


def imported_plugins() -> PluginManager:
    """Return the plugin manager of this process, after it has imported all plugins."""
    for condition in _conditions:
        condition()
    plugins = default_plugins()
    plugins.records()
    return plugins
