"""The lowest versions of other packages that the distributions of this workspace declare, as constraints for pip.

``python scripts/lower_bounds.py PYTHON`` prints ``numpy==1.24`` and so on: for each package the lowest version that
every distribution allows and that has a wheel for the interpreter PYTHON, which must have pip.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Collection, Iterator

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from workspace import distributions

__all__ = ["constraints", "requirements_of_others"]


def requirements_of_others() -> dict[str, list[Requirement]]:
    """Return what the distributions require of packages outside of the workspace, extras included, by package."""
    own = {distribution.name for distribution in distributions()}
    found: dict[str, list[Requirement]] = {}
    for distribution in distributions():
        for requirement in map(Requirement, distribution.all_requirements):
            if requirement.name not in own:
                found.setdefault(requirement.name, []).append(requirement)
    return dict(sorted(found.items()))


def constraints(python: str, left_out: Collection[str] = ()) -> list[str]:
    """Return ``name==version`` for each package outside of the workspace that an interpreter needs.

    Args:
        python: the interpreter, for which wheels are looked up; its own pip does it.
        left_out: packages without a constraint.

    Raises:
        LookupError: no version that is allowed has a wheel for this interpreter.
    """
    environment = _marker_environment(python)
    lines = []
    for name, requirements in requirements_of_others().items():
        needed = [r for r in requirements if r.marker is None or r.marker.evaluate(environment)]
        if needed and name not in left_out:
            allowed = SpecifierSet(",".join(str(requirement.specifier) for requirement in needed))
            lines.append(f"{name}=={_lowest(python, name, allowed)}")
    return lines


def _marker_environment(python: str) -> dict[str, str]:
    """Return the variables of environment markers that differ between the interpreters of one machine."""
    version = _output(python, "-c", "import platform; print(platform.python_version())").strip()
    return {"python_full_version": version, "python_version": ".".join(version.split(".")[:2])}


def _lowest(python: str, name: str, allowed: SpecifierSet) -> Version:
    for version in _candidates(python, name, allowed):
        wheel = [f"{name}=={version}", "--dry-run", "--no-deps", "--ignore-installed", "--only-binary", ":all:"]
        if _pip(python, "install", *wheel).returncode == 0:
            return version
    raise LookupError(f"no version of {name}{allowed} has a wheel for {python}")


def _candidates(python: str, name: str, allowed: SpecifierSet) -> Iterator[Version]:
    """Yield the allowed versions from the lowest: first what the bound says, which mostly exists, then the index's."""
    bounds = [Version(one.version) for one in allowed if one.operator in (">=", "==", "~=")]
    if bounds:
        yield max(bounds)
    listed = re.search(r"Available versions: (.*)", _pip(python, "index", "versions", name).stdout)
    yield from sorted(allowed.filter(map(Version, listed[1].split(", ") if listed else ())))


def _pip(python: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [python, "-m", "pip", "--disable-pip-version-check", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    print("\n".join(constraints(sys.argv[1] if len(sys.argv) > 1 else sys.executable)))
