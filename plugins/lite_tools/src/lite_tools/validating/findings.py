"""Findings of the validation of a package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

__all__ = ["Finding", "Report"]


class Finding(NamedTuple):
    """One finding.

    Attributes:
        level: ``error`` for what users would meet, ``warning`` for what may be meant so.
        check: ``metadata``, ``api``, ``load``, ``imports``, ``hooks``, ``names``, ``objects`` or ``contents``.
        where: the file, plugin, hook or object that it is about.
        text: what is wrong.
        remedy: what to do.
        traceback: the traceback of an exception of the plugin.
    """

    level: Literal["error", "warning"]
    check: str
    where: str
    text: str
    remedy: str
    traceback: str = ""


class Report(NamedTuple):
    """The result of validating a package.

    Attributes:
        package: its name.
        version: its version.
        kind: ``installed``, ``folder`` or ``wheel``.
        findings: the errors, then the warnings.
        plugins: a row for each of its plugins, see :func:`lite_tools.examining.packages.plugin_rows`.
    """

    package: str
    version: str
    kind: str
    findings: list[Finding]
    plugins: list[Mapping[str, Any]]

    def count(self, level: str) -> int:
        """Return the number of findings of a level."""
        return sum(finding.level == level for finding in self.findings)
