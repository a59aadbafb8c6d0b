"""Plugins, backends and operators as plain data, for JSON and for the pipe from the process that examines plugins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lite_core.backend import Device, Unavailable
from lite_core.ir import DType
from lite_core.ops import OpDef
from lite_core.plugins import PluginRecord

__all__ = ["backend_row", "device_rows", "operator_row", "record_of_row", "record_row"]


def record_row(record: PluginRecord) -> dict[str, Any]:
    """Convert a plugin's record to plain data."""
    return {
        "name": record.name,
        "distribution": record.distribution,
        "version": record.version,
        "module": record.module,
        "phase": record.phase,
        "error": record.error,
        "traceback": record.traceback,
        "provides": record.provides,
        "warnings": list(record.warnings),
    }


def record_of_row(row: dict[str, Any]) -> PluginRecord:
    """Convert plain data back to a plugin's record."""
    return PluginRecord(**row)


def backend_row(name: str, state: str, why: str) -> dict[str, Any]:
    """Return the row of a backend without a device: its state, and the reason."""
    return {"backend": name, "state": state, "device": "-", "score": "-", "about": why, "details": {}}


def device_rows(name: str, devices: Sequence[Device] | Unavailable) -> list[dict[str, Any]]:
    """Return the rows of a backend: one per device, or one with the reason why there is none."""
    if isinstance(devices, Unavailable):
        why = f"{devices.reason}. {devices.remedy}" if devices.remedy else devices.reason
        return [backend_row(name, "unavailable", why)]
    return [
        {
            "backend": name,
            "state": "ready",
            "device": device.label,
            "score": f"{device.score:g}",
            "about": device.name,
            "details": {str(key): str(value) for key, value in device.details.items()},
        }
        for device in devices
    ]


def operator_row(definition: OpDef) -> dict[str, Any]:
    """Convert an operator's definition to plain data."""
    return {
        "name": definition.name,
        "domain": definition.domain,
        "signature": definition.signature,
        "types": {k: [DType.of(d).value for d in v] for k, v in definition.types.items()},
        "attributes": {
            k: {"kind": a.kind, "default": a.default, "required": a.required, "choices": list(a.choices)}
            for k, a in definition.attributes.items()
        },
        "documentation": definition.documentation,
    }
