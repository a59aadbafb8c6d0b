"""The hooks that a plugin may implement."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pluggy

from lite_core.backend import Backend

__all__ = ["ENTRY_POINT_GROUP", "HookSpecs", "hookimpl", "hookspec"]

ENTRY_POINT_GROUP = "lite.plugins"

hookspec = pluggy.HookspecMarker("lite")
#: Marks a plugin's implementation of a hook.
hookimpl = pluggy.HookimplMarker("lite")


class HookSpecs:
    """The hooks that a plugin may implement; each is called once, when it is first needed."""

    @hookspec
    def lite_backends(self) -> Iterable[Backend]:  # type: ignore[empty-body]
        """(optional) Backends, see :mod:`lite_core.backend`."""

    @hookspec
    def lite_formats(self) -> Iterable[Any]:  # type: ignore[empty-body]
        """(optional) Readers and writers of model files, see :mod:`lite_core.formats`."""

    @hookspec
    def lite_ops(self) -> Iterable[Any]:  # type: ignore[empty-body]
        """(optional) Operators (:func:`lite_core.ops.define`) in the plugin's domain."""

    @hookspec
    def lite_passes(self) -> Iterable[Any]:  # type: ignore[empty-body]
        """(optional) Graph passes that run after the core's own."""

    @hookspec
    def lite_commands(self) -> Iterable[Any]:  # type: ignore[empty-body]
        """(optional) click commands for the ``lite`` command line."""
