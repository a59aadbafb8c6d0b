"""Plugin hooks of lite-arm. The backend is imported only when Lite asks for backends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lite_core.plugins import hookimpl

if TYPE_CHECKING:
    from lite_core.backend import Backend
    from lite_cpu.growing import GrowingOutputs

LITE_API_VERSION = 1


@hookimpl
def lite_backends() -> list[Backend]:
    from lite_arm.backend import ArmBackend

    return [ArmBackend()]


@hookimpl
def lite_passes() -> list[GrowingOutputs]:
    from lite_cpu.growing import GrowingOutputs

    return [GrowingOutputs()]
