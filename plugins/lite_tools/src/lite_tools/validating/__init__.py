"""Validating a plugin's package before it is published: metadata, loading, names, signatures, contents."""

from __future__ import annotations

from importlib import metadata

from lite_core.plugins import ENTRY_POINT_GROUP, PluginManager
from lite_core.plugins.installed import installed_entry_points
from lite_tools.examining.inspection import HOOKS
from lite_tools.examining.packages import plugin_rows
from lite_tools.examining.plugins import ExaminedPlugin, examine_plugins
from lite_tools.validating.content_checks import content_findings
from lite_tools.validating.findings import Finding, Report
from lite_tools.validating.load_checks import load_findings
from lite_tools.validating.metadata_checks import metadata_findings
from lite_tools.validating.name_checks import name_findings
from lite_tools.validating.package import Package, opened_package

__all__ = ["Finding", "Report", "validate_package"]


def validate_package(named: str) -> Report:
    """Validate a package. Its plugins are loaded in a separate process only.

    Args:
        named: the name of an installed distribution, a wheel file, or the folder of a project.

    Raises:
        InputError: there is no such package, or it cannot be built.
        UnavailableError: a folder is named, and the package build is missing.
    """
    with opened_package(named) as package:
        own = _examined(package)
        rows = plugin_rows(own, _entry_points(package))
        others = plugin_rows(_others(package))
        findings = [
            *metadata_findings(package),
            *load_findings(own),
            *name_findings(rows, others),
            *content_findings(package),
        ]
        findings = sorted(dict.fromkeys(findings), key=lambda finding: finding.level != "error")
        return Report(package.name, package.version, package.kind, findings, list(rows))


def _entry_points(package: Package) -> list[metadata.EntryPoint]:
    return [point for point in package.distribution.entry_points if point.group == ENTRY_POINT_GROUP]


def _examined(package: Package) -> list[ExaminedPlugin]:
    points = _entry_points(package)
    return examine_plugins(*HOOKS, "validate", plugins=PluginManager(lambda: points), site=package.site)


def _others(package: Package) -> list[ExaminedPlugin]:
    """Examine the plugins of other installed packages, whose names the package must not claim."""
    name = package.name.replace("_", "-").lower()
    others = [
        entry
        for entry in installed_entry_points(ENTRY_POINT_GROUP)
        if entry.dist is not None and entry.dist.name.replace("_", "-").lower() != name
    ]
    return examine_plugins(*HOOKS, plugins=PluginManager(lambda: others))
