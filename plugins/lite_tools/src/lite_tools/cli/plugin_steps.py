"""The command to type next if a plugin is missing, at fault, or left out because another one claims the same names."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

from lite_core.errors import LiteError
from lite_core.plugins import default_plugins
from lite_core.plugins.known import format_distribution, known_distributions
from lite_tools.commands.errors import package_of_others

__all__ = ["step_for_plugin_at_fault", "step_for_reader"]


def step_for_plugin_at_fault(error: LiteError) -> str:
    """Return the command that shows the plugin that an error blames; empty for none and for Lite's own packages."""
    package = package_of_others(error.source or _source_by_format(str(error)))
    installed = {record.distribution for record in default_plugins().discover()}
    return f"lite plugins {package}" if package in installed else ""


def _source_by_format(message: str) -> str:
    """Return the package whose reader or writer failed, according to a message; empty for none.

    A file that a reader finds damaged is no fault of the reader.
    """
    failed = (
        record.distribution
        for record in default_plugins().discover()
        for verb in ("failed with", "returned", "wrote")
        if f" of plugin {record.label} {verb} " in message
    )
    return next(failed, "") if "the reader " in message or "the writer " in message else ""


def step_for_reader(model: str | None, arguments: Sequence[str]) -> str:
    """Return the command that brings the reader of a model's format; empty if it is there, or the format is unknown.

    Args:
        model: the model's path.
        arguments: the words of the command line behind ``lite``, which are repeated after a conflict of names.
    """
    package = None if model is None else format_distribution(model)
    plugins = default_plugins()
    if package is None or any(record.distribution == package for record, _ in plugins.ask("lite_formats")):
        return ""
    if all(record.distribution != package for record in plugins.records()):
        return f"pip install {package}"
    refused = plugins.refused.get("lite_formats", {})
    for name, distribution in known_distributions("formats").items():
        if distribution == package and name in refused:
            given = filter(None, [os.environ.get("LITE_PLUGINS"), f"{name}={package}"])
            return f"LITE_PLUGINS={shlex.quote(','.join(given))} {shlex.join(['lite', *arguments])}"
    return f"lite plugins {package}"
