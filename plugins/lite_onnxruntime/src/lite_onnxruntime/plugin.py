"""The plugin's hook implementations. The backend is imported when Lite asks for the list of backends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lite_core.plugins import hookimpl

if TYPE_CHECKING:
    from lite_core.backend import Backend

LITE_API_VERSION = 1


@hookimpl
def lite_backends() -> list[Backend]:
    from lite_onnxruntime.backend import OnnxRuntimeBackend

    return [OnnxRuntimeBackend()]
