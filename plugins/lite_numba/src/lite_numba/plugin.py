"""The plugin's hook implementations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lite_core.plugins import hookimpl

if TYPE_CHECKING:
    from lite_core.backend import Backend

LITE_API_VERSION = 1


@hookimpl
def lite_backends() -> list[Backend]:
    from lite_numba.backend import backend

    return [backend]
