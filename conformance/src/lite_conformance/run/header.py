"""The header of a report: the backend, its device and stack, versions, and the expectations of its package."""

from __future__ import annotations

import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from lite_conformance.cases.case import Settings
from lite_conformance.drive.stack import stack_of
from lite_conformance.drive.subject import Subject
from lite_conformance.run.expectations import Expectations, find_expectations, read_expectations
from lite_conformance.run.identity import digest_of_module
from lite_conformance.run.suite_digest import suite_digests
from lite_core.backend import API_VERSION

__all__ = ["describe", "expectations_for"]


def expectations_for(settings: Settings, subject: Subject) -> Expectations:
    """Read those for the precision level from the file that the settings name, or else from the backend's package."""
    if settings.expectations:
        return read_expectations(Path(settings.expectations)).at(settings.precision)
    return find_expectations(subject.module).at(settings.precision)


def describe(subject: Subject, expectations: Expectations) -> dict[str, Any]:
    """Return the header of the report: backend, device, versions and platform."""
    names = ["lite-core", "lite-conformance", "numpy", "hypothesis"]
    owner = next((r for r, b in subject.plugins.ask("lite_backends") if b is subject.backend), None)
    if owner is not None and owner.version != "-":
        names.append(owner.distribution)
    return {
        "backend": subject.backend.name,
        "device": subject.device.label,
        "device_name": str(subject.device.name),
        "device_details": {str(k): str(v) for k, v in dict(subject.device.details).items()},
        "memory": str(subject.memory.space),
        "plugin": owner.label if owner is not None and owner.version != "-" else "",
        "api_version": API_VERSION,
        "versions": {**{name: _version(name) for name in names}, "python": platform.python_version()},
        "suite": suite_digests(),
        "stack": stack_of(subject.backend, subject.device),
        "platform": f"{platform.system()}, {platform.machine()}",
        "expectations": expectations.source,
        "expectations_digest": expectations.digest,
        "code": digest_of_module(subject.module, getattr(sys.modules.get(subject.module), "__file__", None)),
    }


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "not installed"
