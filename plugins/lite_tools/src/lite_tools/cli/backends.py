"""``lite backends``: the installed backends, their devices, and reasons why devices are missing."""

from __future__ import annotations

from typing import Any

import click

from lite_core.backend import API_VERSION, Backend, Unavailable
from lite_core.plugins import PluginRecord, available_backends, default_plugins, left_out_backends
from lite_tools.commands.options import json_option
from lite_tools.commands.printing import console, print_json, table


@click.command("backends")
@click.option("--verbose", "-v", is_flag=True, help="Show the details of each device and full tracebacks.")
@json_option
def command(verbose: bool, as_json: bool) -> None:
    """List the installed backends, their devices, and the reasons why devices are missing."""
    rows = backend_rows()
    failed = [r for r in default_plugins().records() if r.failed]
    if as_json:
        print_json({"api_version": API_VERSION, "backends": rows, "failed_plugins": [record_row(r) for r in failed]})
        return
    columns = ("backend", "state", "device", "score", "about")
    table(columns, [[row[c] for c in columns] for row in rows])
    console.print("\nBy default, each node of a model runs on the device with the highest score that supports it.")
    if verbose:
        for row in rows:
            for key, value in row["details"].items():
                console.print(f"  {row['device']}: {key}: {value}", markup=False)
    for record in failed:
        console.print(f"\nplugin {record.label} failed at {record.phase}: {record.error}", markup=False)
        if verbose and record.traceback:
            console.print(record.traceback, markup=False)
    if failed and not verbose:
        console.print("next: lite doctor")


def backend_rows() -> list[dict[str, Any]]:
    """Return the rows of all installed backends: one per device, or one with the reason why there is none."""
    rows = [row for backend in available_backends().values() for row in probe_rows(backend)]
    return rows + [_row(name, "left out", why) for name, why in left_out_backends().items()]


def _row(name: str, state: str, why: str) -> dict[str, Any]:
    return {"backend": name, "state": state, "device": "-", "score": "-", "about": why, "details": {}}


def probe_rows(backend: Backend) -> list[dict[str, Any]]:
    """Return the rows of a backend: one per device, or one with the reason why there is none."""
    try:
        devices = backend.probe()
    except Exception as error:  # the contract forbids exceptions; show them instead of failing
        devices = Unavailable(f"probe() failed with {type(error).__name__}: {error}", "report it to its author")
    if isinstance(devices, Unavailable):
        why = f"{devices.reason}. {devices.remedy}" if devices.remedy else devices.reason
        return [_row(backend.name, "unavailable", why)]
    return [
        {
            "backend": backend.name,
            "state": "ready",
            "device": device.label,
            "score": f"{device.score:g}",
            "about": device.name,
            "details": dict(device.details),
        }
        for device in devices
    ]


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
