"""Checks of a package's metadata."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

from lite_core.plugins import ENTRY_POINT_GROUP
from lite_core.plugins.versions import requirement_problem
from lite_core.version import __version__
from lite_tools.validating.findings import Finding
from lite_tools.validating.package import Package

__all__ = ["metadata_findings"]

_GROUPS = (ENTRY_POINT_GROUP, "lite.conformance", "lite.tools")
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")


def metadata_findings(package: Package) -> Iterator[Finding]:
    """Check name, version, requirement of lite-core, description, licence, classifiers and entry points."""
    stated = package.distribution.metadata.get_all
    where = "pyproject.toml"

    def error(text: str, remedy: str) -> Finding:
        return Finding("error", "metadata", where, text, remedy)

    def warning(text: str, remedy: str) -> Finding:
        return Finding("warning", "metadata", where, text, remedy)

    if not _NAME.fullmatch(package.name):
        yield error(f"the name {package.name!r} is not valid", "use letters, digits, - and .")
    try:
        Version(package.version)
    except InvalidVersion:
        yield error(f"the version {package.version!r} is not valid", 'state one such as version = "0.1.0"')
    for level, text, remedy in _on_lite_core(package.distribution.requires or []):
        yield error(text, remedy) if level == "error" else warning(text, remedy)
    if not "".join(stated("Description") or []).strip():
        yield warning("it has no README", 'add readme = "README.md"')
    if not stated("Summary"):
        yield warning("it has no description", 'add description = "one sentence"')
    classifiers: list[str] = stated("Classifier") or []
    licensed = stated("License-Expression") or stated("License")
    if not licensed and not any(text.startswith("License ::") for text in classifiers):
        yield warning("it states no licence", 'add license = "MIT" or another SPDX expression, and the file LICENSE')
    if not stated("Requires-Python"):
        yield warning("it states no versions of Python", 'add requires-python = ">=3.10"')
    if not any(text.startswith("Programming Language :: Python") for text in classifiers):
        yield warning("it has no classifiers", 'add classifiers = ["Programming Language :: Python :: 3"]')
    if not (stated("Project-URL") or stated("Home-page") or stated("Author-email")):
        yield warning("users cannot report failures", "add [project.urls] with Issues, or authors with an address")
    yield from _entry_points(package)


def _on_lite_core(requirements: list[str]) -> Iterator[tuple[str, str, str]]:
    bounds = f'dependencies = ["lite-core>={__version__.rsplit(".", 1)[0]},<{_next_minor()}"]'
    stated = []
    for text in requirements:
        try:
            requirement = Requirement(text)
        except InvalidRequirement as error:
            yield "error", f"the requirement {text!r} is not valid: {error}", "correct it"
            continue
        if re.sub(r"[-_.]+", "-", requirement.name).lower() == "lite-core" and requirement.marker is None:
            stated.append(requirement)
    if not stated:
        yield "error", "it does not require lite-core", bounds
        return
    together = SpecifierSet(",".join(str(requirement.specifier) for requirement in stated))
    if not any(bound.operator in ("<", "<=", "~=", "==") for bound in together):
        yield "error", "its requirement of lite-core has no upper bound: a later contract would load it", bounds
    if not any(bound.operator in (">", ">=", "~=", "==") for bound in together):
        yield "warning", "its requirement of lite-core has no lower bound", bounds
    if problem := requirement_problem(map(str, stated)):
        yield "error", f"it {problem}, so it is not loaded here", bounds


def _next_minor() -> str:
    major, minor = Version(__version__).release[:2]
    return f"{major}.{minor + 1}"


def _entry_points(package: Package) -> Iterator[Finding]:
    where = "entry points"
    points = package.distribution.entry_points
    if not any(point.group == ENTRY_POINT_GROUP for point in points):
        example = f'[project.entry-points."{ENTRY_POINT_GROUP}"] with acme = "lite_acme.plugin"'
        yield Finding("error", "metadata", where, f"it has none in the group {ENTRY_POINT_GROUP}", f"add {example}")
    for point in points:
        if point.group.startswith("lite.") and point.group not in _GROUPS:
            known = ", ".join(_GROUPS)
            yield Finding("error", "metadata", where, f"there is no group {point.group!r}", f"the groups are {known}")
        if point.group in _GROUPS and package.names is not None:
            yield from _module_of(package, point.module, f"{point.name} = {point.value}")


def _module_of(package: Package, module: str, entry: str) -> Iterator[Finding]:
    """Check that the module of an entry point is in the package, and that the file can be parsed."""
    base = module.replace(".", "/")
    names = [f"{base}.py", f"{base}/__init__.py"]
    found = next((name for name in names if name in (package.names or ())), None)
    if found is None:
        binary = any((name or "").startswith(f"{base}.") for name in package.names or ())
        if not binary:
            yield Finding(
                "error",
                "metadata",
                entry,
                f"the package does not contain the module {module}",
                "correct the entry point",
            )
        return
    try:
        ast.parse(package.read(found) or b"", found)
    except (SyntaxError, ValueError) as error:
        yield Finding("error", "load", found, f"it cannot be parsed: {error}", "correct it")
