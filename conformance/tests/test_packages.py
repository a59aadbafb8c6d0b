"""The allowed imports between the packages of the suite."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import lite_conformance

ROOT = Path(lite_conformance.__file__).parent
ALLOWED = {
    "judge": set(),
    "drive": {"judge"},
    "cases": {"judge", "drive"},
    "reports": {"judge"},
    "run": {"judge", "drive", "cases", "reports"},
    "mutate": {"judge", "drive", "cases", "run"},
    "data_folders": {"judge", "cases", "reports", "run"},
    "submission": {"judge", "cases", "reports", "run"},
    "pytest_plugin": {"judge", "drive", "cases", "reports", "run"},
    "cli": {"judge", "drive", "cases", "reports", "run", "mutate", "data_folders", "submission"},
    "must_pass": set(),  # lists, no code
}


def imports_of(package: str) -> Iterator[tuple[str, str]]:
    """Yield each file of a package with its imports from the suite."""
    for file in (ROOT / package).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            yield from ((str(file.relative_to(ROOT)), name) for name in names if name.startswith("lite_conformance"))


@pytest.mark.parametrize("package", ALLOWED)
def test_package_imports_only_packages_below_it(package: str) -> None:
    allowed = tuple(f"lite_conformance.{name}." for name in (*ALLOWED[package], package))
    assert [(file, name) for file, name in imports_of(package) if not f"{name}.".startswith(allowed)] == []


def test_packages_and_top_level_modules() -> None:
    assert {p.name for p in ROOT.iterdir() if p.is_dir() and p.name != "__pycache__"} == set(ALLOWED)
    assert {p.name for p in ROOT.glob("*.py")} == {"__init__.py", "__main__.py", "plugin_cases.py"}
