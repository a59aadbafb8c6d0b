"""``lite doctor``: the environment, all plugins, and their problems."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata

import click
import numpy as np

from lite_core import __version__
from lite_core.backend import API_VERSION
from lite_core.plugins import PluginRecord
from lite_tools.cli.backends import backend_rows
from lite_tools.cli.plugin_tables import print_failures
from lite_tools.commands.exit_codes import EXIT_FAILURE, EXIT_OK
from lite_tools.commands.options import json_option
from lite_tools.commands.printing import console, print_json, table
from lite_tools.examining.plain_data import record_row
from lite_tools.examining.plugins import examine_plugins

_VARIABLES = (
    "LITE_BACKEND",
    "LITE_BACKENDS",
    "LITE_LOG",
    "GLOG_v",
    "LITE_PLUGINS",
    "LITE_PROBE_TIMEOUT",
    "LITE_STRICT_PLUGINS",
    "LITE_TRACE_PLUGINS",
    "OMP_NUM_THREADS",
)
_EXAMINED = ("lite_backends", "report", "lite_formats", "lite_ops", "lite_passes", "lite_commands")


@click.command("doctor")
@json_option
def command(as_json: bool) -> int:
    """Show the environment, all plugins, and their problems.

    Each plugin is imported in a separate process, and what it provides is tried: its backends find their devices, its
    formats look at files, its passes rewrite a small graph. The exit code is 1 if a plugin failed, crashed, or did not
    answer within 20 seconds (or the number that LITE_PROBE_TIMEOUT sets). Suspicious findings are warnings, which do
    not change the exit code.
    """
    plugins = examine_plugins(*_EXAMINED)
    rows = backend_rows(plugins)
    reports = {name: lines for plugin in plugins for name, lines in plugin.reports.items() if lines}
    records = [plugin.record for plugin in plugins]
    facts = _facts()
    failed = [plugin for plugin in plugins if plugin.record.failed]
    warned = [r for r in records if r.warnings]
    if as_json:
        shown = [record_row(r) for r in records]
        print_json({"environment": facts, "plugins": shown, "backends": rows, "reports": reports})
        return EXIT_FAILURE if failed else EXIT_OK
    table(("environment", "value"), facts.items())
    console.print()
    table(("plugin", "package", "version", "state", "provides"), [_plugin_row(r) for r in records])
    console.print()
    columns = ("backend", "state", "device", "about")
    table(columns, [[row[c] for c in columns] for row in rows])
    for name, lines in reports.items():
        console.print("\n".join([f"\n{name}", *(f"  {line}" for line in lines)]), markup=False)
    for plugin in failed:
        print_failures(plugin.record, with_traceback=True)
    for record in warned:
        console.print("\n".join([f"\nplugin {record.label}", *(f"  {w}" for w in record.warnings)]), markup=False)
    if not failed and not warned:
        console.print("\nno problems with plugins")
    return EXIT_FAILURE if failed else EXIT_OK


def _facts() -> dict[str, str]:
    facts = {
        "lite-core": f"{__version__}, plugin API {API_VERSION}",
        "python": f"{platform.python_version()} at {sys.executable}",
        "machine": f"{platform.machine()}, {os.cpu_count()} processors, {platform.system()}",
        "numpy": np.__version__,
        "pluggy": metadata.version("pluggy"),
    }
    facts.update({name: os.environ[name] for name in _VARIABLES if name in os.environ})
    return facts


def _plugin_row(record: PluginRecord) -> tuple[str, str, str, str, str]:
    provides = "; ".join(f"{hook.removeprefix('lite_')}: {', '.join(v)}" for hook, v in record.provides.items())
    state = f"failed at {record.phase}" if record.failed else record.phase
    return record.name, record.distribution, record.version, state, record.error or provides
