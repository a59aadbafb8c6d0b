"""``lite doctor``: the environment, all plugins, and their problems."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata

import click
import numpy as np

from lite_core import __version__
from lite_core.backend import API_VERSION, ReportsFindings
from lite_core.plugins import PluginRecord, available_backends, default_plugins
from lite_tools.cli.backends import backend_rows, record_row
from lite_tools.cli.group import commands_of_plugins
from lite_tools.commands.exit_codes import EXIT_FAILURE, EXIT_OK
from lite_tools.commands.options import json_option
from lite_tools.commands.printing import console, print_json, table

_VARIABLES = (
    "LITE_BACKEND",
    "LITE_BACKENDS",
    "LITE_LOG",
    "GLOG_v",
    "LITE_STRICT_PLUGINS",
    "LITE_TRACE_PLUGINS",
    "OMP_NUM_THREADS",
)
_HOOKS = ("lite_backends", "lite_formats", "lite_ops", "lite_passes")


@click.command("doctor")
@json_option
def command(as_json: bool) -> int:
    """Show the environment, all plugins, and their problems.

    The exit code is 1 if a plugin failed. Suspicious findings are warnings, which do not change the exit code.
    """
    plugins = default_plugins()
    for hook in _HOOKS:
        plugins.ask(hook)
    commands_of_plugins()  # records unusable commands
    rows = backend_rows()
    reports = _reports()
    records = plugins.records()
    facts = _facts()
    failed = [r for r in records if r.failed]
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
    for record in failed:
        console.print(f"\nplugin {record.label} failed at {record.phase}: {record.error}", markup=False)
        if record.traceback:
            console.print(record.traceback.rstrip(), markup=False)
        console.print(f"next: pip install --upgrade {record.distribution} lite-core", markup=False)
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


def _reports() -> dict[str, list[str]]:
    """Return the reports of backends that have one, by the backend's name."""
    backends = available_backends().items()
    reports = {name: _report(backend) for name, backend in backends if isinstance(backend, ReportsFindings)}
    return {name: lines for name, lines in reports.items() if lines}


def _report(backend: ReportsFindings) -> list[str]:
    try:
        return [str(line) for line in backend.report()]
    except Exception as error:  # a broken backend may fail in report(), too
        return [f"report() failed with {type(error).__name__}: {error}"]


def _plugin_row(record: PluginRecord) -> tuple[str, str, str, str, str]:
    provides = "; ".join(f"{hook.removeprefix('lite_')}: {', '.join(v)}" for hook, v in record.provides.items())
    state = f"failed at {record.phase}" if record.failed else record.phase
    return record.name, record.distribution, record.version, state, record.error or provides
