"""Plugins, backends and operators as plain data, for JSON and for the pipe from the process that examines plugins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lite_core.backend import Device, Unavailable
from lite_core.ir import DType
from lite_core.ops import OpDef
from lite_core.plugins import PluginRecord
from lite_core.plugins.record import PluginFailure
from lite_tools.examining.remedies import remedies_of

__all__ = ["backend_row", "device_rows", "operator_row", "record_of_row", "record_row", "traceback_of"]


#: Phases whose failures leave a plugin without hooks.
_BEFORE_READY = ("version", "import", "register")


def record_row(record: PluginRecord) -> dict[str, Any]:
    """Convert a plugin's record to plain data."""
    return {
        "name": record.name,
        "distribution": record.distribution,
        "version": record.version,
        "module": record.module,
        "phase": record.phase,
        "error": record.error,
        "traceback": traceback_of(record),
        "failures": [{**failure._asdict(), "remedies": remedies_of(record, failure)} for failure in record.failures],
        "provides": record.provides,
        "warnings": list(record.warnings),
    }


def traceback_of(record: PluginRecord) -> str:
    """Return the tracebacks of all failures of a plugin that were exceptions."""
    return "\n".join(failure.traceback for failure in record.failures if failure.traceback)


def record_of_row(row: dict[str, Any]) -> PluginRecord:
    """Convert plain data back to a plugin's record."""
    failures = [PluginFailure(*(failure[name] for name in PluginFailure._fields)) for failure in row["failures"]]
    state = "discovered" if failures and failures[0].phase in _BEFORE_READY else "ready"
    fields = {name: row[name] for name in ("name", "distribution", "version", "module", "provides", "warnings")}
    return PluginRecord(**fields, state=state, failures=failures)


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
