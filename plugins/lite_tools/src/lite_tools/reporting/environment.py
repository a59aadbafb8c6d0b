"""The environment of a report: Python, the system, the processor, versions of packages, and settings."""

from __future__ import annotations

import os
import platform
import re
import sys
from importlib import metadata
from typing import Any

from lite_core.plugins import ENTRY_POINT_GROUP
from lite_core.processors import useful_threads
from lite_tools.reporting.scrubbing import shared_variables

__all__ = ["describe_environment"]


def describe_environment() -> dict[str, Any]:
    """Return facts about this process and machine that may matter for a failure, and name neither user nor host."""
    return {
        "python": f"{platform.python_implementation()} {sys.version}",
        "system": f"{platform.system()} {platform.release()}, {'-'.join(platform.libc_ver()) or 'no libc'}",
        "machine": platform.machine(),
        "processor": _processor(),
        "processors": os.cpu_count(),
        "threads": useful_threads(),
        "packages": _packages(),
        "variables": shared_variables(os.environ),
    }


def _packages() -> dict[str, str]:
    """Return the versions of Lite's packages and plugins, and of the packages that they require."""
    found: dict[str, str] = {}
    required: set[str] = set()
    for distribution in metadata.distributions():
        name = _normal(distribution.metadata["Name"] or "")
        groups = {entry.group for entry in distribution.entry_points}
        if name.startswith("lite-") or ENTRY_POINT_GROUP in groups:
            found[name] = distribution.version
            required |= {_normal(re.split(r"[^\w.-]", text, maxsplit=1)[0]) for text in distribution.requires or ()}
    for name in required - found.keys():
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:  # an extra that is not installed
            continue
    return dict(sorted(found.items()))


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _processor() -> str:
    """Return the processor's name as the system reports it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            named = re.search(r"^(?:model name|Hardware|CPU part)\s*:\s*(.+)$", file.read(), re.MULTILINE)
    except OSError:
        named = None
    return named.group(1) if named else platform.processor() or "unknown"
