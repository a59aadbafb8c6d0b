"""Packages of new plugins for tests: every kind, alone and with others, written as ``lite new-plugin`` writes them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from lite_tools.cli.new_plugin_ci import SERVICES
from lite_tools.cli.new_plugin_files import write_package
from lite_tools.cli.new_plugin_kinds import KINDS, NewPlugin

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["EVERYTHING", "PLUGINS", "install_metadata", "project_of", "written"]

#: Every kind alone, the two forms of backends with an operator of their own, and a package with everything.
PLUGINS = {
    **{name: NewPlugin("my_chip", (name,)) for name in KINDS},
    "numba": NewPlugin("my_chip", ("kernel-backend",), numba=True),
    "kernel-backend,operator": NewPlugin("my_chip", ("kernel-backend", "operator")),
    "numba,operator": NewPlugin("my_chip", ("kernel-backend", "operator"), numba=True),
    "everything": NewPlugin("my_chip", [name for name in KINDS if name != "kernel-backend"], services=tuple(SERVICES)),
}
EVERYTHING = PLUGINS["everything"]


def written(plugin: NewPlugin, folder: Path) -> Path:
    """Write a package below a folder, and return the package's folder."""
    write_package(plugin, folder / plugin.distribution)
    return folder / plugin.distribution


def project_of(package: Path) -> dict[str, Any]:
    """Return the table ``[project]`` of a package."""
    project: dict[str, Any] = tomllib.loads((package / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project


def install_metadata(package: Path) -> Path:
    """Write the metadata that pip leaves beside the sources of a package, and return the folder of both."""
    project, site = project_of(package), package / "src"
    info = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    lines = []
    for group, entries in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {module}" for name, module in entries.items())]
    (info / "entry_points.txt").write_text("\n".join([*lines, ""]))
    return site
