"""``lite backends``: the installed backends, their devices, and reasons why devices are missing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

from lite_core.backend import API_VERSION
from lite_core.plugins import PluginManager, available_backends, left_out_backends
from lite_core.schedule.probing import probe
from lite_tools.cli.plugin_tables import print_failures
from lite_tools.commands.options import json_option
from lite_tools.commands.printing import console, print_json, table
from lite_tools.examining.plain_data import backend_row, device_rows, record_row
from lite_tools.examining.plugins import ExaminedPlugin, examine_plugins


@click.command("backends")
@click.option("--verbose", "-v", is_flag=True, help="Show the details of each device and full tracebacks.")
@json_option
def command(verbose: bool, as_json: bool) -> None:
    """List the installed backends, their devices, and the reasons why devices are missing.

    Plugins are asked in a separate process: one that crashes, exits or does not answer within 20 seconds (or the number
    that LITE_PROBE_TIMEOUT sets) is shown, and does not affect the others.
    """
    plugins = examine_plugins("lite_backends")
    rows = backend_rows(plugins)
    failed = [plugin.record for plugin in plugins if plugin.record.failed]
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
    for plugin in plugins:
        if plugin.record.failed:
            print_failures(plugin.record, with_traceback=verbose or plugin.has_ended_a_process)


def backend_rows(plugins: Iterable[ExaminedPlugin]) -> list[dict[str, Any]]:
    """Return the rows of all installed backends: one per device, or one with the reason why there is none."""
    builtin = PluginManager(list)
    rows = [row for name, b in available_backends(builtin).items() for row in device_rows(name, probe(b))]
    rows += [backend_row(name, "left out", why) for name, why in left_out_backends(builtin).items()]
    found = [row for plugin in plugins for row in plugin.backends]
    rows += [row for position, row in enumerate(found) if row not in found[:position]]  # rivals have equal rows
    return sorted(rows, key=lambda row: row["state"] == "left out")
